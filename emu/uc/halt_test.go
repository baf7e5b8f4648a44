package uc

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// haltSource touches a page in every round and repeats string instructions.
const haltSource = `mov rbx, 0x900000
	mov r8d, 12
	1: mov rdi, rbx
	mov ecx, 5
	mov al, 3
	rep stosb
	add rax, [rbx]
	lea rbx, [rbx + 0x7f8]
	test al, 1
	jz 2f
	inc rdx
	2: dec r8d
	jnz 1b
	lock inc qword ptr [rsp-8]
	syscall`

// place is where a run of a limited length ended.
type place struct{ pc, instructions, cycles uint64 }

// ends runs to the system call in runs of a budget. Every run is halted after
// the numbers of instructions that next says, until it says 0, and seen is
// called there.
func ends(t *testing.T, l arch.Limit, next func(uint64) uint64, seen func(*bench, arch.Stop), points ...arch.Addr) (list []place) {
	b := newBench(t, haltSource)
	if err := b.cpu.SetPoints(points); err != nil {
		t.Fatal(err)
	}
	for {
		b.cpu.HaltAt(next(0))
		s := b.cpu.Run(l)
		for s.Reason == arch.StopFault || s.Reason == arch.StopBreakpoint {
			if s.Reason == arch.StopFault {
				b.mapPage(s.Page&^(arch.PageSize-1), arch.Read|arch.Write)
			} else {
				seen(b, s)
				b.cpu.HaltAt(next(s.Instructions))
			}
			s = b.cpu.Resume()
		}
		list = append(list, place{b.regs().RIP, s.Instructions, uint64(s.Cycles)})
		if s.Reason == arch.StopSyscall {
			return list
		}
	}
}

func never(uint64) uint64 { return 0 }

// A run halts after exactly so many instructions, and ends where it would have
// ended.
func TestHaltAt(t *testing.T) {
	for _, l := range []arch.Limit{{}, {Instructions: 17}, {Instructions: 17, Exact: true}, {Cycles: 40}, {AtSync: true, Pass: true}} {
		want := ends(t, l, never, nil)
		for _, step := range []uint64{1, 2, 7, 50} {
			at := uint64(0)
			got := ends(t, l, func(n uint64) uint64 { at = n + step; return at }, func(b *bench, s arch.Stop) {
				if s.Instructions != at {
					t.Fatalf("limit %+v: halted after %d instructions, want %d", l, s.Instructions, at)
				}
			})
			if !slices.Equal(got, want) {
				t.Errorf("limit %+v, halts every %d: ends at %v, want %v", l, step, got, want)
			}
		}
	}
}

// Where a run ends depends on neither points nor by which of two limits it ends
// exactly.
func TestPoints(t *testing.T) {
	every := []arch.Addr{}
	for at := codeBase; at < codeBase+64; at++ {
		every = append(every, at)
	}
	for most := uint64(1); most < 30; most++ {
		want := ends(t, arch.Limit{Instructions: most, Exact: true}, never, nil)
		some := []arch.Addr{}
		for i, e := range want {
			if i%2 == 0 {
				some = append(some, arch.Addr(e.pc))
			}
		}
		for _, points := range [][]arch.Addr{nil, some, every} {
			if got := ends(t, arch.Limit{Most: most}, never, nil, points...); !slices.Equal(got, want) {
				t.Errorf("%d points, most %d: ends at %v, want %v", len(points), most, got, want)
			}
		}
		l := arch.Limit{Instructions: most, Most: most + most/2}
		want = ends(t, l, never, nil)
		for _, e := range want[:len(want)-1] {
			if e.instructions < l.Instructions || e.instructions > l.Most {
				t.Errorf("limit %+v: ends after %d instructions", l, e.instructions)
			}
		}
		for _, points := range [][]arch.Addr{some, every} {
			if got := ends(t, l, never, nil, points...); !slices.Equal(got, want) {
				t.Errorf("%d points, limit %+v: ends at %v, want %v", len(points), l, got, want)
			}
		}
	}
}

// A breakpoint on an instruction that the run ends before does not move the end.
func TestBreakpointWhereARunEnds(t *testing.T) {
	b := newBench(t, `nop
		lock inc qword ptr [rsp-8]
		nop
		syscall`)
	b.cpu.SetBreakpoints([]arch.Addr{codeBase + 1})
	b.expectStop(b.cpu.Run(arch.Limit{AtSync: true, Pass: true}), arch.StopBreakpoint, uint64(codeBase)+1, 1)
	b.expectStop(b.cpu.Resume(), arch.StopSync, uint64(codeBase)+1, 1)
}

// Halting after every instruction shows the same instructions as running one at
// a time, and does not miss or repeat a breakpoint.
func TestHaltShowsEveryInstruction(t *testing.T) {
	var want []uint64
	b := newBench(t, haltSource)
	for s := (arch.Stop{}); s.Reason != arch.StopSyscall; {
		if s.Reason != arch.StopFault {
			want = append(want, b.regs().RIP)
		}
		if s = b.cpu.Run(arch.Limit{Instructions: 1, Exact: true}); s.Reason == arch.StopFault {
			b.mapPage(s.Page&^(arch.PageSize-1), arch.Read|arch.Write)
		}
	}
	got := []uint64{uint64(codeBase)}
	ends(t, arch.Limit{}, func(n uint64) uint64 { return n + 1 }, func(b *bench, _ arch.Stop) { got = append(got, b.regs().RIP) })
	if !slices.Equal(got, want) {
		t.Errorf("instructions at %#x, want %#x", got, want)
	}
	hits := 0
	b = newBench(t, haltSource)
	b.cpu.SetBreakpoints([]arch.Addr{arch.Addr(want[2])}) // the start of the loop
	b.cpu.HaltAt(1)
	for s := b.cpu.Run(arch.Limit{}); s.Reason != arch.StopSyscall; s = b.cpu.Resume() {
		switch {
		case s.Reason == arch.StopFault:
			b.mapPage(s.Page&^(arch.PageSize-1), arch.Read|arch.Write)
		case b.regs().RIP == want[2]:
			hits++
		}
		b.cpu.HaltAt(s.Instructions + 1)
	}
	if hits != 12 {
		t.Errorf("%d stops at the start of the loop, want 12", hits)
	}
}
