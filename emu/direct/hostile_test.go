package direct

import (
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"golang.org/x/sys/unix"
)

// allowWrites makes the code pages of the subject writable.
func (s *subject) allowWrites() {
	for i, p := range s.code {
		s.ram.Ref(p)
		s.space.Set(oracleCode+arch.Addr(i)*arch.PageSize, mem.MakePTE(p, arch.Read|arch.Write|arch.Exec, false))
	}
}

// pair is two subjects with the same memory, one of which executes instructions one at a time.
type pair struct{ blocks, steps *subject }

func newPair(t testing.TB, rnd *rand.Rand) pair {
	data := newData(rnd)
	p := pair{newSubject(t, arch.V3, data), newSubject(t, arch.V3, data)}
	p.steps.cpu.setStepsOnly(true)
	return p
}

// run runs code on both from the same state, in pieces, and demands that they agree. It returns the
// number of instructions.
func (p pair) run(t *testing.T, rnd *rand.Rand, name int, code []byte) (instructions uint64) {
	t.Helper()
	state := randomState(rnd)
	state.Regs.RFLAGS &^= 0x400
	state.Regs.RIP = oracleCode + programCode
	p.blocks.place(&state, code)
	p.steps.place(&state, code)
	for range 20 {
		limit := arch.Limit{Instructions: 1 + uint64(rnd.IntN(300)), Exact: rnd.IntN(2) == 0}
		a, b := p.blocks.cpu.Run(limit), p.steps.cpu.Run(limit)
		instructions += a.Instructions
		if text := p.blocks.compareWith(p.steps, a, b); text != "" {
			t.Fatalf("case %d: % x: %s", name, code, text)
		}
		if a.Reason == arch.StopSyscall || a.Reason == arch.StopInterrupt || a.Reason == arch.StopBudget {
			continue
		}
		// To somewhere else in the code, perhaps into an instruction.
		to := oracleCode + programCode + uint64(rnd.IntN(len(code)))
		for _, s := range []*subject{p.blocks, p.steps} {
			var r arch.Regs
			s.cpu.Regs(&r)
			r.RIP = to
			s.cpu.SetRegs(&r)
		}
	}
	return instructions
}

// TestRandomBytes executes random bytes, from any of them on.
func TestRandomBytes(t *testing.T) {
	p := newPair(t, rand.New(rand.NewPCG(1, 1)))
	var instructions uint64
	for n := range testsize.Runs(2_000, 10_000, 1_000_000) {
		rnd := rand.New(rand.NewPCG(2, uint64(n)))
		code := make([]byte, 1+rnd.IntN(200))
		for i := range code {
			code[i] = byte(rnd.Uint32())
		}
		instructions += p.run(t, rnd, n, code)
	}
	t.Logf("%d instructions", instructions)
}

// TestProgramsThatWriteThemselves runs random programs whose stores often go to their own code.
func TestProgramsThatWriteThemselves(t *testing.T) {
	p := newPair(t, rand.New(rand.NewPCG(1, 1)))
	p.blocks.allowWrites()
	p.steps.allowWrites()
	list := programForms(arch.V3)
	var instructions uint64
	for n := range testsize.Runs(2_000, 10_000, 1_000_000) {
		rnd := rand.New(rand.NewPCG(3, uint64(n)))
		var code []byte
		for range 1 + rnd.IntN(6) {
			code = append(code, randomProgram(rnd, list, arch.V3, 1+rnd.IntN(8))...)
			code = code[:len(code)-2]
			// mov byte ptr [rip + d], imm8, often within the next instructions.
			code = append(code, 0xc6, 0x05, byte(rnd.IntN(48)-8), 0, 0, 0, byte(rnd.Uint32()))
			if code[len(code)-5] >= 0x80 {
				copy(code[len(code)-4:], []byte{0xff, 0xff, 0xff})
			}
		}
		// Back to the beginning.
		back := uint32(-len(code) - 5)
		code = append(code, 0xe9, byte(back), byte(back>>8), byte(back>>16), byte(back>>24))
		instructions += p.run(t, rnd, n, code)
	}
	t.Logf("%d instructions", instructions)
}

// TestSignals runs blocks with stack pointers of all kinds while the Go runtime profiles and collects
// garbage, and the thread gets a signal every 100 us: the results are those of a quiet run. Hosts that cannot
// return to such a stack pointer may execute an instruction in software, which lacks many of SSE and MMX.
func TestSignals(t *testing.T) {
	source := `mov rsp, r12
		mov r15d, 3000
	1:	mov ecx, 300
	2:	add rax, rcx
		imul rdx, rax, 77
		movq mm0, rax
		pmulhuw mm0, [rdi + 16]
		xor rbx, [rdi + 8]
		movq xmm1, rbx
		add [rdi], rbx
		pmulhuw xmm1, xmm1
		ror rsp, 1
		paddw xmm1, xmm1
		movq r8, xmm1
		add r9, r8
		pmulhuw mm0, mm0
		movq r8, mm0
		xor r9, r8
		dec ecx
		jnz 2b
		mov rsi, [0x900000]
		dec r15
		jnz 1b
		syscall`
	b := newBench(t, source)
	run := func(stack uint64) arch.Regs {
		b.ChangeRegs(func(r *arch.Regs) {
			*r = arch.Regs{RIP: uint64(codeBase), RFLAGS: 0x202}
			r.GPR[arch.R12], r.GPR[arch.RDI] = stack, uint64(dataBase)
		})
		clear(b.RAM.Bytes(b.Space.Get(dataBase).Page()))
		for {
			s := b.CPU.Run(arch.Limit{Instructions: 100_000})
			switch s.Reason {
			case arch.StopSyscall:
				return b.Regs()
			case arch.StopFault: // the load: every time
				b.ChangeRegs(func(r *arch.Regs) { r.RIP += 8 })
			case arch.StopBudget:
			default:
				t.Fatalf("%+v", s)
			}
		}
	}
	stacks := []uint64{0, 1, 1 << 63, 0x7fff_ffff_ffff, uint64(stackBase), ^uint64(7)}
	var want []arch.Regs
	for _, s := range stacks {
		want = append(want, run(s))
	}
	runtime.SetCPUProfileRate(5000) // which StartCPUProfile complains about, and keeps
	_ = pprof.StartCPUProfile(io.Discard)
	stop := make(chan bool)
	repeat := func(act func()) {
		for {
			select {
			case <-stop:
				return
			default:
				act()
			}
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := unix.Gettid()
	go repeat(runtime.GC)
	go repeat(func() {
		_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG) // which the runtime takes for a request to yield
		time.Sleep(100 * time.Microsecond)
	})
	for range testsize.Runs(3, 20, 1000) {
		for i, s := range stacks {
			if got := run(s); got != want[i] {
				t.Fatalf("stack %#x: %x, want %x", s, got, want[i])
			}
		}
	}
	close(stop)
	pprof.StopCPUProfile()
}
