package emu_test

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// haltSource accesses a page in every iteration and repeats string instructions.
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

// place is the end of a run of limited length.
type place struct{ pc, instructions, cycles uint64 }

// endsOfBudgets runs to the system call in runs of a budget. Every run is halted after the numbers
// of instructions that next returns, until it returns 0, and seen is called there.
func endsOfBudgets(t tester, l arch.Limit, next func(uint64) uint64, seen func(*bench, arch.Stop), points ...arch.Addr) (list []place) {
	b := newBench(t, haltSource)
	if err := b.CPU.SetPoints(points); err != nil {
		t.Fatal(err)
	}
	for {
		b.CPU.HaltAt(next(0))
		s := b.CPU.Run(l)
		for s.Reason == arch.StopFault || s.Reason == arch.StopBreakpoint {
			if s.Reason == arch.StopFault {
				b.MapPage(s.Page&^(arch.PageSize-1), arch.Read|arch.Write)
			} else {
				seen(b, s)
				b.CPU.HaltAt(next(s.Instructions))
			}
			s = b.CPU.Resume()
		}
		list = append(list, place{b.Regs().RIP, s.Instructions, uint64(s.Cycles)})
		if s.Reason == arch.StopSyscall {
			return list
		}
	}
}

func neverHalt(uint64) uint64 { return 0 }

// TestHaltAt expects a run to halt after exactly the given number of instructions, and to end as it
// would have ended without.
func TestHaltAt(t *testing.T) { onEngines(t, testHaltAt) }

func testHaltAt(t tester) {
	for _, l := range []arch.Limit{{}, {Instructions: 17}, {Instructions: 17, Exact: true}, {Cycles: 40}, {AtSync: true, Pass: true}} {
		want := endsOfBudgets(t, l, neverHalt, nil)
		for _, step := range []uint64{1, 2, 7, 50} {
			at := uint64(0)
			got := endsOfBudgets(t, l, func(n uint64) uint64 { at = n + step; return at }, func(b *bench, s arch.Stop) {
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

// TestPoints expects that the end of a run depends neither on points nor on which of two limits is
// exact.
func TestPoints(t *testing.T) { onEngines(t, testPoints) }

func testPoints(t tester) {
	every := []arch.Addr{}
	for at := codeBase; at < codeBase+64; at++ {
		every = append(every, at)
	}
	for most := uint64(1); most < 30; most += testsize.Pick[uint64](5, 1, 1) {
		want := endsOfBudgets(t, arch.Limit{Instructions: most, Exact: true}, neverHalt, nil)
		some := []arch.Addr{}
		for i, e := range want {
			if i%2 == 0 {
				some = append(some, arch.Addr(e.pc))
			}
		}
		for _, points := range [][]arch.Addr{nil, some, every} {
			if got := endsOfBudgets(t, arch.Limit{Most: most}, neverHalt, nil, points...); !slices.Equal(got, want) {
				t.Errorf("%d points, most %d: ends at %v, want %v", len(points), most, got, want)
			}
		}
		l := arch.Limit{Instructions: most, Most: most + most/2}
		want = endsOfBudgets(t, l, neverHalt, nil)
		for _, e := range want[:len(want)-1] {
			if e.instructions < l.Instructions || e.instructions > l.Most {
				t.Errorf("limit %+v: ends after %d instructions", l, e.instructions)
			}
		}
		for _, points := range [][]arch.Addr{some, every} {
			if got := endsOfBudgets(t, l, neverHalt, nil, points...); !slices.Equal(got, want) {
				t.Errorf("%d points, limit %+v: ends at %v, want %v", len(points), l, got, want)
			}
		}
	}
}

// TestBreakpointWhereARunEnds has a breakpoint on an instruction that the run ends before.
func TestBreakpointWhereARunEnds(t *testing.T) { onEngines(t, testBreakpointWhereARunEnds) }

func testBreakpointWhereARunEnds(t tester) {
	b := newBench(t, `nop
		lock inc qword ptr [rsp-8]
		nop
		syscall`)
	b.CPU.SetBreakpoints([]arch.Addr{codeBase + 1})
	b.ExpectStop(b.CPU.Run(arch.Limit{AtSync: true, Pass: true}), arch.StopBreakpoint, uint64(codeBase)+1, 1)
	b.ExpectStop(b.CPU.Resume(), arch.StopSync, uint64(codeBase)+1, 1)
}

// TestHaltShowsEveryInstruction expects that halting after every instruction visits the same
// instructions as single runs of one instruction, and neither misses nor repeats a breakpoint.
func TestHaltShowsEveryInstruction(t *testing.T) { onEngines(t, testHaltShowsEveryInstruction) }

func testHaltShowsEveryInstruction(t tester) {
	var want []uint64
	b := newBench(t, haltSource)
	for s := (arch.Stop{}); s.Reason != arch.StopSyscall; {
		if s.Reason != arch.StopFault {
			want = append(want, b.Regs().RIP)
		}
		if s = b.CPU.Run(arch.Limit{Instructions: 1, Exact: true}); s.Reason == arch.StopFault {
			b.MapPage(s.Page&^(arch.PageSize-1), arch.Read|arch.Write)
		}
	}
	got := []uint64{uint64(codeBase)}
	endsOfBudgets(t, arch.Limit{}, func(n uint64) uint64 { return n + 1 }, func(b *bench, _ arch.Stop) { got = append(got, b.Regs().RIP) })
	if !slices.Equal(got, want) {
		t.Errorf("instructions at %#x, want %#x", got, want)
	}
	hits := 0
	b = newBench(t, haltSource)
	b.CPU.SetBreakpoints([]arch.Addr{arch.Addr(want[2])}) // the start of the loop
	b.CPU.HaltAt(1)
	for s := b.CPU.Run(arch.Limit{}); s.Reason != arch.StopSyscall; s = b.CPU.Resume() {
		switch {
		case s.Reason == arch.StopFault:
			b.MapPage(s.Page&^(arch.PageSize-1), arch.Read|arch.Write)
		case b.Regs().RIP == want[2]:
			hits++
		}
		b.CPU.HaltAt(s.Instructions + 1)
	}
	if hits != 12 {
		t.Errorf("%d stops at the start of the loop, want 12", hits)
	}
}
