package emu_test

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// TestSelfChangingBlock: a block whose first instruction writes into the block is logged as the
// instructions executed: three rounds of mov, mov, mov, dec, jnz.
func TestSelfChangingBlock(t *testing.T) { onEngines(t, testSelfChangingBlock) }

func testSelfChangingBlock(t tester) {
	b := newBench(t, `
		mov ecx, 3
	again:
		mov dword ptr [rip+patched+1], ecx
	patched:
		mov eax, 0x11111111
		add edx, eax
		dec ecx
		jnz again
		syscall
	`)
	if err := b.CPU.LogBranches(false); err != nil {
		t.Fatal(err)
	}
	if err := b.CPU.LogInstructions(); err != nil {
		t.Fatal(err)
	}
	b.Space.Protect(codeBase, codeBase+0x1000, arch.Read|arch.Write|arch.Exec)
	s := b.CPU.Run(arch.Limit{})
	if s.Reason != arch.StopSyscall || b.Regs().GPR[arch.RDX] != 3+2+1 {
		t.Fatalf("%v, sum %d", s.Reason, b.Regs().GPR[arch.RDX])
	}
	if want := []string{"tnt 1", "tnt 1", "tnt 0"}; !slices.Equal(flattenLog(b.CPU.Branches()), want) {
		t.Errorf("branches %v, want %v", flattenLog(b.CPU.Branches()), want)
	}
	const completed = 1 + 3*5 + 1
	if got := s.Instructions - s.Repeated; got != completed {
		t.Errorf("%d instructions without repetitions, want %d", got, completed)
	}
	got, err := b.CPU.TakeInstructions(completed)
	if err != nil {
		t.Fatal(err)
	}
	round := []uint64{5, 11, 16, 18, 20} // offsets of the instructions in the code
	want := []uint64{0}
	for range 3 {
		want = append(want, round...)
	}
	want = append(want, 22)
	for i := range want {
		want[i] += uint64(codeBase)
	}
	if !slices.Equal(got, want) {
		t.Errorf("instructions at %#x, want %#x", got, want)
	}
}

// TestInstructionLog compares the log with single steps. A repeated string instruction has one
// entry.
func TestInstructionLog(t *testing.T) { onEngines(t, testInstructionLog) }

func testInstructionLog(t tester) {
	var want []uint64
	b := newBranchy(t)
	for s := (arch.Stop{}); s.Reason != arch.StopSyscall; {
		pc := b.Regs().RIP
		s = b.CPU.Run(arch.Limit{Instructions: 1, Exact: true})
		for s.Reason == arch.StopFault {
			b.supplyPage(s)
			s = b.CPU.Resume()
		}
		if n := len(want); n == 0 || want[n-1] != pc || b.codeByte(pc) != 0xf3 && b.codeByte(pc) != 0xf2 {
			want = append(want, pc)
		}
	}
	b = newBranchy(t)
	if err := b.CPU.LogBranches(false); err != nil {
		t.Fatal(err)
	}
	if err := b.CPU.LogInstructions(); err != nil {
		t.Fatal(err)
	}
	var got []uint64
	take := func(s arch.Stop, before uint64) uint64 {
		done := s.Instructions - s.Repeated
		pcs, err := b.CPU.TakeInstructions(done - before)
		if err != nil {
			t.Error(err)
		}
		got = append(got, pcs...)
		return done
	}
	for s := (arch.Stop{}); s.Reason != arch.StopSyscall; {
		s = b.CPU.Run(arch.Limit{Instructions: 37, Exact: true})
		done := take(s, 0)
		for s.Reason == arch.StopFault {
			b.supplyPage(s)
			s = b.CPU.Resume()
			done = take(s, done)
		}
		b.CPU.Drained()
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d instructions, single steps are %d", len(got), len(want))
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("instruction %d at %#x, single steps at %#x", i, got[i], want[i])
			}
		}
	}
}

// codeByte returns the byte at an address of the program.
func (b *bench) codeByte(pc uint64) byte {
	return b.RAM.Bytes(b.Space.Get(codeBase).Page())[pc-uint64(codeBase)]
}
