package direct

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/emu/memlog"
)

// kernels are loops of some 200 million instructions. Data are at 0x600000, 1 MiB.
var kernels = []struct{ name, code string }{
	{"integer", `
		mov ecx, 40000000
		mov eax, 1
	1:	lea rdx, [rax + rax*4]
		xor rax, rdx
		shr rdx, 7
		add rax, rdx
		dec ecx
		jnz 1b`},
	{"memory", `
		mov r12d, 5000
	1:	mov rsi, 0x600000
		mov ecx, 16384
	2:	mov rax, [rsi]
		add rax, [rsi + 8]
		mov [rsi + 16], rax
		add rdx, rax
		add rsi, 32
		sub ecx, 1
		jnz 2b
		sub r12d, 1
		jnz 1b`},
	{"table", `
		mov ecx, 20000000
		mov edi, 0x600000
		mov eax, 1
	1:	imul eax, eax, 1664525
		add eax, 1013904223
		mov edx, eax
		shr edx, 12
		movzx ebx, byte ptr [rdi + rdx]
		inc ebx
		mov [rdi + rdx], bl
		test bl, 7
		jne 2f
		add rsi, rbx
	2:	sub ecx, 1
		jnz 1b`},
	{"calls", `
		mov ebx, 50000000
	1:	mov edi, ebx
		call 3f
		add r14, rax
		sub ebx, 1
		jnz 1b
		jmp 4f
	3:	push rbp
		mov rbp, rsp
		push rbx
		lea eax, [rdi + rdi]
		test edi, 3
		je 5f
		add eax, 7
	5:	pop rbx
		pop rbp
		ret
	4:`},
	{"float", `
		mov r12d, 5000
		mov eax, 3
		cvtsi2sd xmm1, eax
	1:	mov rsi, 0x600000
		mov ecx, 16384
	2:	movsd xmm0, [rsi]
		mulsd xmm0, xmm1
		addsd xmm0, [rsi + 8]
		movsd [rsi + 16], xmm0
		addpd xmm2, xmm0
		add rsi, 32
		sub ecx, 1
		jnz 2b
		sub r12d, 1
		jnz 1b`},
}

const kernelData = 1 << 20

// runNatively measures the kernel as a program of the host.
func runNatively(b *testing.B, code string) time.Duration {
	dir := b.TempDir()
	src, bin := filepath.Join(dir, "a.s"), filepath.Join(dir, "a")
	text := ".intel_syntax noprefix\n.globl _start\n_start:\nmov eax, 9\nmov edi, 0x600000\nmov esi, 0x100000\nmov edx, 3\nmov r10d, 0x32\nmov r8, -1\nxor r9d, r9d\nsyscall\n" +
		code + "\nmov eax, 231\nxor edi, edi\nsyscall\n"
	if err := os.WriteFile(src, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-nostdlib", "-static", "-o", bin, src).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(bin)
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
	return cmd.ProcessState.UserTime()
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkKernels compares kernels with the same code on the host: "native" is how many times
// longer they take here.
func BenchmarkKernels(b *testing.B) {
	for _, k := range kernels {
		b.Run(k.name, func(b *testing.B) {
			var here, there time.Duration
			var instructions uint64
			for range b.N {
				there += runNatively(b, strings.ReplaceAll(k.code, ";", "\n"))
				took, n := runKernel(b, k.code, func(*CPU) {}, func(*CPU) {})
				here += took
				instructions += n
			}
			b.ReportMetric(float64(here)/float64(there), "native")
			b.ReportMetric(float64(instructions)/here.Seconds()/1e6, "MIPS")
		})
	}
}

// runKernel runs a kernel in pieces, with logs that are drained after each.
func runKernel(b *testing.B, code string, prepare, drain func(*CPU)) (took time.Duration, instructions uint64) {
	ram, err := mem.NewRAM(64 << 20)
	if err != nil {
		b.Fatal(err)
	}
	m := newBenchIn(b, ram, code+"\nsyscall")
	for at := arch.Addr(4 * arch.PageSize); at < kernelData; at += arch.PageSize {
		m.MapPage(dataBase+at, arch.Read|arch.Write)
	}
	m.MapPage(0x7fff_0000, arch.Read|arch.Write)
	m.ChangeRegs(func(r *arch.Regs) { r.GPR[arch.RSP] = 0x7fff_1000 })
	prepare(m.CPU)
	begin := processorTime()
	for {
		s := m.CPU.Run(arch.Limit{Instructions: 200_000})
		for s.Reason == arch.StopLog {
			drain(m.CPU)
			s = m.CPU.Resume()
		}
		drain(m.CPU)
		instructions += s.Instructions
		if s.Reason == arch.StopSyscall {
			return processorTime() - begin, instructions
		} else if s.Reason != arch.StopBudget {
			b.Fatalf("%+v", s)
		}
	}
}

// BenchmarkLogs compares kernels with logs and without: "plain" is how many times longer they take.
func BenchmarkLogs(b *testing.B) {
	for _, log := range []struct {
		name           string
		prepare, drain func(*CPU)
	}{
		{"branches", func(c *CPU) { _ = c.LogBranches(false); c.CompressReturns() }, (*CPU).Drained},
		{"timed", func(c *CPU) { _ = c.LogBranches(true) }, (*CPU).Drained},
		{"accesses", func(c *CPU) { _ = c.LogMemory(memlog.Filter{}) }, sumAccesses},
		{"count", func(c *CPU) { _ = c.CountBranches() }, func(*CPU) {}},
	} {
		for _, k := range kernels {
			b.Run(log.name+"/"+k.name, func(b *testing.B) {
				var with, without time.Duration
				for range b.N {
					took, _ := runKernel(b, k.code, log.prepare, log.drain)
					with += took
					took, _ = runKernel(b, k.code, func(*CPU) {}, func(*CPU) {})
					without += took
				}
				b.ReportMetric(float64(with)/float64(without), "plain")
			})
		}
	}
}

// BenchmarkBuffers compares kernels whose stores are buffered with others: "plain" is how many times
// longer they take.
func BenchmarkBuffers(b *testing.B) {
	for _, k := range kernels {
		b.Run(k.name, func(b *testing.B) {
			var with, without time.Duration
			for range b.N {
				var buffers emu.Buffers
				var stores []emu.Store
				commit := func(*CPU) {
					buffers.Withdraw(stores[:0])
					buffers.Apply(nil)
				}
				took, _ := runKernel(b, k.code, func(c *CPU) {
					buffers, _ = c.BufferStores(56)
					buffers.Apply(nil)
				}, commit)
				with += took
				took, _ = runKernel(b, k.code, func(*CPU) {}, func(*CPU) {})
				without += took
			}
			b.ReportMetric(float64(with)/float64(without), "plain")
		})
	}
}

var (
	benchBuffer = memlog.NewBuffer()
	benchSum    uint64
)

// sumAccesses takes the log of memory and adds up its values.
func sumAccesses(c *CPU) {
	c.SwapMemory(benchBuffer)
	entries := benchBuffer.Entries()
	for i := range entries {
		benchSum += entries[i].Value
	}
}
