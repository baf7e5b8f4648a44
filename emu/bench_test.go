package emu_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/emutest"
	"github.com/heddle-dmt/heddle/emu/memlog"
)

// benchmarkOnEngines runs a benchmark of a machine with this program on each engine.
func benchmarkOnEngines(b *testing.B, source string, run func(*testing.B, bench)) {
	for _, e := range engines {
		b.Run(e.name, func(b *testing.B) {
			run(b, bench{emutest.New(b, e.open, emutest.NewRAM(b), emutest.Assemble(b, source))})
		})
	}
}

// benchmarkRounds runs a program that ends with a system call again and again, after prepare, and
// reports its speed.
func benchmarkRounds(b *testing.B, source string, prepare func(emu.CPU) error) {
	benchmarkOnEngines(b, source, func(b *testing.B, m bench) {
		if err := prepare(m.CPU); err != nil {
			b.Fatal(err)
		}
		spare := memlog.NewBuffer()
		defer spare.Close()
		var instructions uint64
		for b.Loop() {
			m.ChangeRegs(func(r *arch.Regs) { r.RIP = uint64(codeBase) })
			s := m.CPU.Run(arch.Limit{})
			for s.Reason == arch.StopLog {
				m.CPU.SwapMemory(spare)
				m.CPU.Drained()
				s = m.CPU.Resume()
			}
			m.CPU.Drained()
			instructions += s.Instructions
		}
		b.ReportMetric(float64(instructions)/b.Elapsed().Seconds()/1e6, "Minstr/s")
	})
}

const (
	addLoop = `mov rcx, 10000000
		1: add rax, rcx
		xor rdx, rax
		dec rcx
		jnz 1b
		syscall`
	accessLoop = `mov rbx, 0x600000
		mov rcx, 1000000
		1: add rax, [rbx]
		xor rdx, rax
		mov [rbx+8], rdx
		dec rcx
		jnz 1b
		syscall`
)

func BenchmarkLoop(b *testing.B) {
	benchmarkRounds(b, addLoop, func(emu.CPU) error { return nil })
}

func BenchmarkLoopLogged(b *testing.B) {
	benchmarkRounds(b, addLoop, func(c emu.CPU) error { return c.LogBranches(false) })
}

func BenchmarkMemoryLog(b *testing.B) {
	benchmarkRounds(b, accessLoop, func(c emu.CPU) error { return c.LogMemory(memlog.Filter{}) })
}

func BenchmarkSwitch(b *testing.B) {
	benchmarkOnEngines(b, "1: inc rax\n jmp 1b", func(b *testing.B, m bench) {
		threads := make([]arch.Context, 64)
		for i := range threads {
			threads[i] = m.CPU.CloneContext(m.Ctx)
		}
		for i := 0; b.Loop(); i++ {
			m.CPU.Load(threads[i%64], m.Space)
			m.CPU.Run(arch.Limit{Instructions: 1})
		}
	})
}

func BenchmarkExactStep(b *testing.B) {
	benchmarkOnEngines(b, "1: inc rax\n inc rbx\n inc rdx\n jmp 1b", func(b *testing.B, m bench) {
		for b.Loop() {
			m.CPU.Run(arch.Limit{Instructions: 1, Exact: true})
		}
	})
}
