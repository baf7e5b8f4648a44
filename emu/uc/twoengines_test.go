package uc

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// TestThreadContinuesInAnotherEngine: a thread continues in another engine, in a copy of its space.
// Neither engine sees the other's changes, including those of code.
func TestThreadContinuesInAnotherEngine(t *testing.T) {
	rams, err := mem.NewRAMs(64<<20, 2)
	if err != nil {
		t.Fatal(err)
	}
	b := newBenchIn(t, rams[0], `mov rbx, 0x600000
		1: inc qword ptr [rbx]
		mov eax, 5
		syscall
		jmp 1b`)
	other, err := NewCPU(rams[1], 4, arch.DefaultCosts())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close(); rams[1].Close() })
	count := func(s *mem.Space) byte {
		var at [1]byte
		s.ReadAt(at[:], dataBase)
		return at[0]
	}
	for i := byte(1); i < 6; i++ {
		b.CPU.Run(arch.Limit{})
		snapshot, thread := b.Space.Clone(), b.CPU.CloneContext(b.Ctx)
		rams[1].Import(rams[0].Generation(), rams[0].Level())
		space := snapshot.CloneTo(rams[1])
		ctx := deepcopy.Copy(deepcopy.For(other), thread)
		other.Load(ctx, space)
		for range 3 {
			other.Run(arch.Limit{})
		}
		var r arch.Regs
		other.Regs(&r)
		if got := r.GPR[arch.RAX]; got != 5+uint64(i-1) {
			t.Errorf("round %d: the other engine has %d, want %d", i, got, 5+i-1)
		}
		if a, c := count(b.Space), count(space); a != i || c != i+3 {
			t.Errorf("round %d: %d, and %d in the other engine, want %d, %d", i, a, c, i, i+3)
		}
		other.Unload()
		ctx.Release()
		space.Release()
		thread.Release()
		snapshot.Release()
		// The code is changed in place, without informing the other engine.
		page := b.Space.Get(codeBase).Page()
		b.RAM.Bytes(page)[11]++
		b.RAM.Written(page)
	}
}
