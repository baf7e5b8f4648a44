package pttest

import (
	"bytes"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/recorder/pt"
)

// walkOf walks a program for a number of blocks, and returns the walk and its packets.
func walkOf(t *testing.T, p *Program, o Options, blocks int) (*Walk, []byte) {
	t.Helper()
	var out bytes.Buffer
	enc := pt.NewEncoder(&out, pt.Config{})
	w := NewWalk(p, enc, 5, o)
	w.Keep = true
	w.Run(blocks)
	if err := enc.Flush(); err != nil {
		t.Fatal(err)
	}
	return w, out.Bytes()
}

// TestProgram: blocks are adjacent, the code of each has the length of its instructions, and the
// same seed makes the same program.
func TestProgram(t *testing.T) {
	p, again := NewProgram(3, 0x1000, 200, Even), NewProgram(3, 0x1000, 200, Even)
	at := uint64(0x1000)
	for i := range p.blocks {
		b := &p.blocks[i]
		if b.addr != at || len(b.code) == 0 || !bytes.Equal(b.code, again.blocks[i].code) {
			t.Fatalf("block %d is at %#x, should be at %#x, and has %d bytes", i, b.addr, at, len(b.code))
		}
		at = b.endAddress()
	}
}

// TestWalk: a walk executes instructions of its code only, in as many address spaces as threads, and
// the same seed makes the same walk and the same packets.
func TestWalk(t *testing.T) {
	o := Options{Threads: 2, Changes: true, Time: true}
	w, packets := walkOf(t, NewProgram(7, 0x1000, 50, Typical), o, 500)
	again, same := walkOf(t, NewProgram(7, 0x1000, 50, Typical), o, 500)
	if !slices.Equal(w.Addresses, again.Addresses) || !bytes.Equal(packets, same) {
		t.Error("two walks of one seed differ")
	}
	if uint64(len(w.Addresses)) != w.Count || w.Branches == 0 || w.Branches >= w.Count || len(packets) == 0 {
		t.Errorf("%d addresses of %d instructions, %d of which branch, %d bytes", len(w.Addresses), w.Count, w.Branches, len(packets))
	}
	for _, pc := range w.Addresses {
		if !slices.ContainsFunc(w.Code, func(c Code) bool { return c.Addr <= pc && pc < c.Addr+uint64(len(c.Bytes)) }) {
			t.Fatalf("the instruction at %#x is in no code", pc)
		}
	}
}

// TestMix: kinds are drawn as often as the mix says.
func TestMix(t *testing.T) {
	r, counts := Rand(11), map[kind]int{}
	m := Mix{jump: 3, call: 1}
	for range 4000 {
		counts[m.drawKind(&r)]++
	}
	if counts[jump]+counts[call] != 4000 || counts[jump] < 2800 || counts[jump] > 3200 {
		t.Errorf("of 4000 kinds %d are jumps and %d calls, should be about 3000 and 1000", counts[jump], counts[call])
	}
}
