package emu_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// A graph of pieces of code, in slots of one page each. A page that is in a slot is one of several versions, with other
// constants and other branches.
const (
	graphSlots    = 4
	graphVersions = 3
	graphPieces   = 24 // of a page
	pieceBytes    = 128
)

// piece is a piece of code: rax = 33*rax + add, and unless rcx becomes 0, on to next[0], or next[1] if the sum is odd.
type piece struct {
	add      int32
	next     [2]arch.Addr
	indirect [2]bool
}

func graphSlot(i int) arch.Addr { return codeBase + arch.Addr(1+i)*arch.PageSize }

func randomPiece(rnd *rand.Rand, slot int) (p piece) {
	p.add = int32(rnd.Uint32())
	for k := range p.next {
		to := slot
		if rnd.IntN(2) == 0 {
			to = rnd.IntN(graphSlots)
		}
		p.next[k] = graphSlot(to) + arch.Addr(rnd.IntN(graphPieces))*pieceBytes
		p.indirect[k] = rnd.IntN(4) == 0
	}
	return p
}

// code is the piece's machine code at an address.
func (p *piece) code(at arch.Addr) []byte {
	code := []byte{0x48, 0x6b, 0xc0, 33} // imul rax, rax, 33
	code = binary.LittleEndian.AppendUint32(append(code, 0x48, 0x05), uint32(p.add))
	jump := func(to arch.Addr) {
		code = binary.LittleEndian.AppendUint32(code, uint32(to-at-arch.Addr(len(code))-4))
	}
	code = append(code, 0x48, 0xff, 0xc9, 0x0f, 0x84) // dec rcx; jz to the end
	jump(codeBase)
	code = append(code, 0xa8, 1, 0x74, 0) // test al, 1; jz over what follows
	over := len(code)
	for _, k := range []int{1, 0} {
		if p.indirect[k] {
			code = binary.LittleEndian.AppendUint32(append(code, 0xbb), uint32(p.next[k])) // mov ebx, next
			code = append(code, 0xff, 0xe3)                                                // jmp rbx
		} else {
			code = append(code, 0xe9)
			jump(p.next[k])
		}
		if k == 1 {
			code[over-1] = byte(len(code) - over)
		}
	}
	return code
}

// graphSpace is an address space with a version of each slot, and what its thread must have computed when it stops.
type graphSpace struct {
	space    *mem.Space
	ctx      arch.Context
	versions [graphSlots]int
	want     uint64
	runs     bool
}

// TestSpacesShareCode runs several address spaces by turns, whose pages with code are the same ones in part. They are
// forked, get other pages at the same addresses, and end. Each executes its own pages, from whichever space
// translations were made for, and whatever they branch to.
func TestSpacesShareCode(t *testing.T) { onEngines(t, testSpacesShareCode) }

func testSpacesShareCode(t tester) {
	rnd := rand.New(rand.NewPCG(1, 20))
	b := newBench(t, "syscall")
	var pieces [graphSlots][graphVersions][graphPieces]piece
	var pages [graphSlots][graphVersions]mem.Page
	for slot := range graphSlots {
		for version := range graphVersions {
			page, ok := b.RAM.Alloc()
			if !ok {
				t.Fatal("no memory")
			}
			pages[slot][version] = page
			for i := range graphPieces {
				p := &pieces[slot][version][i]
				*p = randomPiece(rnd, slot)
				copy(b.RAM.Bytes(page)[i*pieceBytes:], p.code(graphSlot(slot)+arch.Addr(i)*pieceBytes))
			}
		}
	}
	put := func(s *graphSpace, slot, version int) {
		b.RAM.Ref(pages[slot][version])
		s.space.Set(graphSlot(slot), mem.MakePTE(pages[slot][version], arch.Read|arch.Exec, false))
		s.versions[slot] = version
	}
	begin := func(s *graphSpace) {
		slot, i, n := rnd.IntN(graphSlots), rnd.IntN(graphPieces), 1+rnd.IntN(3000)
		b.ChangeRegs(func(r *arch.Regs) {
			r.RIP, r.GPR[arch.RAX], r.GPR[arch.RCX] = uint64(graphSlot(slot))+uint64(i)*pieceBytes, 1, uint64(n)
		})
		s.want, s.runs = 1, true
		for ; n > 0; n-- {
			p := &pieces[slot][s.versions[slot]][i]
			s.want = s.want*33 + uint64(int64(p.add))
			next := p.next[s.want&1]
			slot, i = int(next/arch.PageSize-codeBase/arch.PageSize)-1, int(next%arch.PageSize)/pieceBytes
		}
	}
	first := &graphSpace{space: b.Space, ctx: b.Ctx}
	for slot := range graphSlots {
		put(first, slot, 0)
	}
	spaces := []*graphSpace{first}
	for turn := range 6000 {
		k := rnd.IntN(len(spaces))
		s := spaces[k]
		b.CPU.Load(s.ctx, s.space)
		if !s.runs {
			switch {
			case rnd.IntN(4) == 0:
				put(s, rnd.IntN(graphSlots), rnd.IntN(graphVersions))
			case rnd.IntN(8) == 0 && len(spaces) < 12:
				spaces = append(spaces, &graphSpace{space: s.space.Clone(), ctx: b.CPU.CloneContext(s.ctx), versions: s.versions})
			case rnd.IntN(12) == 0 && s != first:
				s.ctx.Release()
				s.space.Release()
				spaces = append(spaces[:k], spaces[k+1:]...)
				continue
			}
			begin(s)
		}
		stop := b.CPU.Run(arch.Limit{Instructions: 1 + uint64(rnd.IntN(8000)), Exact: rnd.IntN(2) == 0})
		if stop.Reason == arch.StopBudget {
			continue
		}
		r := b.Regs()
		if stop.Reason != arch.StopSyscall || r.RIP != uint64(codeBase)+2 || r.GPR[arch.RAX] != s.want {
			t.Fatalf("turn %d: %+v, rip %#x, rax %#x, want %#x", turn, stop, r.RIP, r.GPR[arch.RAX], s.want)
		}
		s.runs = false
	}
}
