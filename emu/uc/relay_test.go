package uc

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// BenchmarkRelay measures the smallest possible cost of waiting at an order constraint: the engine
// switches threads and runs up to an instruction within a block that has a hook, in the loop of
// racey. Empty has no instructions in between.
func BenchmarkRelay(b *testing.B) {
	for _, bench := range []struct {
		name  string
		most  uint64 // a multiple of the loop's length
		empty bool
	}{{"empty", 0, true}, {"200-instructions", 200, false}} {
		b.Run(bench.name, func(b *testing.B) { benchmarkRelay(b, bench.most) })
	}
}

func benchmarkRelay(b *testing.B, most uint64) {
	const loop = 20
	m := newBench(b, `1: imul eax, ebx, -1640531535
		add rcx, 1
		add eax, edx
		mov edx, eax
		shr edx, 15
		xor eax, edx
		mov ebx, eax
		shr ebx, 13
		xor ebx, eax
		mov [rsp-8], ebx
		mov eax, ebx
		mov edx, eax
		shr edx, 15
		xor eax, edx
		mov edx, eax
		shr edx, 13
		xor edx, eax
		mov [rsp-16], edx
		cmp r9, rcx
		jne 1b`)
	m.MapPage(stackBase, arch.Read|arch.Write)
	at := codeBase + 30
	if err := m.CPU.SetPoints([]arch.Addr{at}); err != nil {
		b.Fatal(err)
	}
	threads := make([]arch.Context, 8)
	for i := range threads {
		threads[i] = m.CPU.CloneContext(m.Ctx)
		m.CPU.Load(threads[i], m.Space)
		for s := (arch.Stop{}); m.Regs().RIP != uint64(at); {
			s = m.CPU.Run(arch.Limit{Most: s.Instructions + 1})
		}
	}
	for i := 0; b.Loop(); i++ {
		m.CPU.Load(threads[i%8], m.Space)
		s := m.CPU.Run(arch.Limit{Most: max(most, loop)})
		if most > 0 && (s.Reason != arch.StopBudget || m.CPU.PC() != at) {
			b.Fatalf("stopped at %#x: %+v", m.CPU.PC(), s)
		}
	}
}
