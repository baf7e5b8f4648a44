package uc

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/emutest"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"pgregory.net/rapid"
)

// scope is a part of a test.
type scope struct {
	testing.TB
	ends []func()
}

func (s *scope) Cleanup(end func()) { s.ends = append(s.ends, end) }

func (s *scope) runCleanups() {
	for _, end := range slices.Backward(s.ends) {
		end()
	}
}

// newProgram makes a bench with code that may change itself. If other machines share its memory,
// PAUSE ends blocks.
func newProgram(t testing.TB, code []byte, shared bool) *bench {
	t.Helper()
	count := 1
	if shared {
		count = 2
	}
	rams, err := mem.NewRAMs(16<<20, count)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range rams[1:] {
		t.Cleanup(other.Close)
	}
	b := newBenchOf(t, rams[0], code)
	b.Space.Protect(codeBase, codeBase+2*arch.PageSize, arch.Read|arch.Write|arch.Exec)
	return b
}

// programState returns the whole state of the program.
func (b *bench) programState() string {
	data, code := make([]byte, 64), make([]byte, 2*arch.PageSize)
	b.Space.ReadAt(data, dataBase)
	b.Space.ReadAt(code, codeBase)
	return fmt.Sprintf("%x %x %08x", b.Regs(), data, crc32.ChecksumIEEE(code))
}

// TestPauseEndsNoBlock expects PAUSE to be translated together with the code after it.
func TestPauseEndsNoBlock(t *testing.T) {
	for _, pauses := range []string{
		"pause",
		"pause\n pause",
		".byte 0x2e, 0xf3, 0x90",
		".byte 0xf3, 0x66, 0x90",
		".byte 0xf3, 0x48, 0x90",
		".byte 0xf3, 0xf3, 0x90",
		".fill 20, 2, 0x90f3",
	} {
		source := "mov ecx, 1000\n 1: inc rax\n" + pauses + "\n inc rbx\n dec ecx\n jnz 1b\n"
		size := len(emutest.Assemble(t, source))
		b := newBench(t, source+"syscall")
		if err := b.CPU.LogBranches(false); err != nil {
			t.Fatal(err)
		}
		s := b.CPU.Run(arch.Limit{})
		if r := b.Regs(); s.Reason != arch.StopSyscall || r.GPR[arch.RAX] != 1000 || r.GPR[arch.RBX] != 1000 {
			t.Fatalf("%q: reason %d, %d and %d rounds", pauses, s.Reason, r.GPR[arch.RAX], r.GPR[arch.RBX])
		}
		longest := 0
		for c := range b.CPU.Code {
			longest = max(longest, int(c.PC-codeBase)+len(c.Bytes))
		}
		if longest < size {
			t.Errorf("%q: no block reaches the end of the loop: %d bytes of %d", pauses, longest, size)
		}
	}
}

// TestPauseIsReadAsPause expects that no load of the program reads the replaced bytes.
func TestPauseIsReadAsPause(t *testing.T) {
	const source = `lea rbx, [rip + 2f]
		mov ecx, 100
		1: mov rax, [rbx]
		add rdx, rax
		2: pause
		mov rax, [rbx]
		add rdx, rax
		dec ecx
		jnz 1b
		syscall`
	for _, logs := range []bool{false, true} {
		b := newBench(t, source)
		var m *emutest.MemoryLog[*CPU]
		if logs {
			m = b.LogMemory(memlog.Filter{})
		}
		at := make([]byte, 8)
		b.Space.ReadAt(at, codeBase+arch.Addr(len(emutest.Assemble(t, "lea rbx, [rip + 2f]\n mov ecx, 100\n mov rax, [rbx]\n add rdx, rax\n 2:"))))
		if at[0] != 0xf3 || at[1] != 0x90 {
			t.Fatalf("bad test: % x", at)
		}
		var s arch.Stop
		if logs {
			s = m.RunToStop(arch.Limit{})
		} else {
			s = b.CPU.Run(arch.Limit{})
		}
		want := 200 * binary.LittleEndian.Uint64(at)
		if s.Reason != arch.StopSyscall || b.Regs().GPR[arch.RDX] != want || s.Instructions != 2+100*7+1 {
			t.Errorf("logged %v: reason %d after %d instructions, sum %#x, want %#x", logs, s.Reason, s.Instructions, b.Regs().GPR[arch.RDX], want)
		}
		if logs && len(m.Lines) != 200 {
			t.Errorf("%d loads are logged, want 200", len(m.Lines))
		}
	}
}

// TestPauseInTwoPages: the prefix is the last byte of a page.
func TestPauseInTwoPages(t *testing.T) {
	b := newBench(t, `jmp 1f
		.org 4090
		1: mov ecx, 100
		2: pause
		add rax, 2
		dec ecx
		jnz 2b
		syscall`)
	s := b.CPU.Run(arch.Limit{})
	if s.Reason != arch.StopSyscall || s.Instructions != 2+100*4+1 || b.Regs().GPR[arch.RAX] != 200 {
		t.Errorf("reason %d after %d instructions, sum %d", s.Reason, s.Instructions, b.Regs().GPR[arch.RAX])
	}
}

// TestPauseBeforeMissingPage: the code after PAUSE is translated with it, but must not fault before
// the program reaches it.
func TestPauseBeforeMissingPage(t *testing.T) {
	b := newBench(t, ".org 4090\n inc eax\n inc ecx\n pause")
	b.Space.Unmap(codeBase+arch.PageSize, codeBase+2*arch.PageSize)
	b.ChangeRegs(func(r *arch.Regs) { r.RIP = uint64(codeBase) + 4090 })
	s := b.CPU.Run(arch.Limit{})
	for s.Reason == arch.StopFault && s.Ahead {
		b.CPU.StepAhead()
		s = b.CPU.Resume()
	}
	b.ExpectStop(s, arch.StopFault, uint64(codeBase)+arch.PageSize, 3)
	b.MapPage(codeBase+arch.PageSize, arch.Read|arch.Exec)
	copy(b.RAM.Bytes(b.Space.Get(codeBase+arch.PageSize).Page()), "\x0f\x05")
	if s = b.CPU.Resume(); s.Reason != arch.StopSyscall || s.Instructions != 4 {
		t.Errorf("reason %d after %d instructions, want a system call after 4", s.Reason, s.Instructions)
	}
}

// TestPauseInsideInstruction: the bytes of a PAUSE in one block are part of another instruction in
// another block.
func TestPauseInsideInstruction(t *testing.T) {
	b := newBench(t, `mov ecx, 100
		1: jmp 2f + 1
		2: .byte 0xb8, 0xf3, 0x90, 0xf3, 0x90 # mov eax, 0x90f390f3, or two PAUSEs
		add rdx, rax
		dec ecx
		jz 3f
		test ecx, 1
		jnz 1b
		jmp 2b
		3: syscall`)
	s := b.CPU.Run(arch.Limit{})
	// The first two rounds find the initial rax, 0.
	if want := uint64(98 * 0x90f390f3); s.Reason != arch.StopSyscall || b.Regs().GPR[arch.RDX] != want {
		t.Errorf("reason %d, sum %#x, want %#x", s.Reason, b.Regs().GPR[arch.RDX], want)
	}
}

// TestPauseInSharedPages: spaces share a page of code, and one of them then replaces its PAUSE by
// another instruction.
func TestPauseInSharedPages(t *testing.T) {
	b := newProgram(t, emutest.Assemble(t, `mov ecx, 50
		1: inc rbx
		pause
		inc rdx
		dec ecx
		jnz 1b
		syscall`), false)
	run := func(space *mem.Space, twice uint64) {
		t.Helper()
		b.CPU.Load(b.Ctx, space)
		b.ChangeRegs(func(r *arch.Regs) { r.RIP, r.GPR[arch.RBX], r.GPR[arch.RDX] = uint64(codeBase), 0, 0 })
		s := b.CPU.Run(arch.Limit{})
		if r := b.Regs(); s.Reason != arch.StopSyscall || s.Instructions != 2+5*50 || r.GPR[arch.RBX] != 50 || r.GPR[arch.RDX] != 50+twice*50 {
			t.Fatalf("reason %d after %d instructions, %d and %d", s.Reason, s.Instructions, r.GPR[arch.RBX], r.GPR[arch.RDX])
		}
	}
	run(b.Space, 0)
	other := b.Space.Clone()
	run(other, 0)
	other.WriteAt([]byte{0xff, 0xc2}, codeBase+8) // inc edx
	for range 3 {
		run(b.Space, 0)
		run(other, 1)
	}
	third := b.Space.Clone()
	run(third, 0)
	other.WriteAt([]byte{0xf3, 0x90}, codeBase+8)
	run(other, 0)
	run(third, 0)
}

// TestPauseWithTrapFlag: a program that steps itself gets an exception after PAUSE.
func TestPauseWithTrapFlag(t *testing.T) {
	b := newBench(t, "1: inc rax\n pause\n pause\n inc rbx\n jmp 1b")
	b.CPU.Run(arch.Limit{Instructions: 50})
	at := []uint64{3, 5, 7, 10, 0}
	b.ChangeRegs(func(r *arch.Regs) { r.RIP, r.RFLAGS = uint64(codeBase), r.RFLAGS|0x100 })
	for i := range 20 {
		for _, l := range []arch.Limit{{}, {Instructions: 1, Exact: true}} {
			before := b.Regs()
			b.ExpectStop(b.CPU.Run(l), arch.StopException, uint64(codeBase)+at[i%5], 1)
			if after := b.Regs(); l.Exact {
				continue
			} else if after.RFLAGS&0x100 == 0 {
				t.Fatal("the flag is gone")
			}
			b.CPU.SetRegs(&before)
		}
	}
}

// pieces are machine code, the parts of random programs.
var pieces = []string{
	"\x48\xff\xc0",                         // inc rax
	"\x48\x01\xc3",                         // add rbx, rax
	"\x48\x31\xda",                         // xor rdx, rbx
	"\xf3\x90",                             // pause
	"\xf3\x90",                             // pause
	"\xf3\x90\xf3\x90",                     // pause, twice
	"\x66\xf3\x90",                         // pause with another prefix
	"\xf3\x41\x90",                         // xchg r8, rax, which is not PAUSE
	"\xb8\xf3\x90\xf3\x90",                 // mov eax, 0x90f390f3
	"\x48\x89\x04\x25\x10\x00\x60\x00",     // mov [data+16], rax
	"\x48\x33\x1c\x25\x10\x00\x60\x00",     // xor rbx, [data+16]
	"\xf0\x48\xff\x04\x25\x20\x00\x60\x00", // lock inc qword ptr [data+32]
	"\x48\x03\x04\x25\x00\x00\x40\x00",     // add rax, [code]
	"\x48\x33\x14\x25\xf9\x0f\x40\x00",     // xor rdx, [code+0xff9]
	"\x0f\xae\xf0",                         // mfence
}

// change turns the PAUSE at patched into two NOPs, and back: xor word ptr [code+0x7c0], 0x63.
const change = "\x66\x81\x34\x25\xc0\x07\x40\x00\x63\x00"

// patched is the address that programs change: a PAUSE, or two NOPs.
const patched = 0x7c0

// drawProgram draws a program of loops, which may change one of them. The last one crosses the end
// of a page.
func drawProgram(t *rapid.T, changes bool) []byte {
	code, pieces := []byte{}, pieces
	if changes {
		pieces = append(slices.Clone(pieces), change)
	}
	loop := func(name string) {
		code = append(code, 0x41, 0xb9) // mov r9d, rounds
		code = binary.LittleEndian.AppendUint32(code, uint32(rapid.IntRange(1, 12).Draw(t, name)))
		start := len(code)
		for _, p := range rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, name) {
			code = append(code, p...)
		}
		code = append(code, 0x41, 0xff, 0xc9, 0x0f, 0x85) // dec r9d; jnz start
		code = binary.LittleEndian.AppendUint32(code, uint32(start-len(code)-4))
	}
	pad := func(to int) {
		code = append(code, 0xe9) // jmp
		code = binary.LittleEndian.AppendUint32(code, uint32(to-len(code)-4))
		for len(code) < to {
			code = append(code, 0x90)
		}
	}
	loop("first")
	loop("second")
	pad(patched - 6)
	code = append(code, 0x41, 0xb9, 3, 0, 0, 0, 0xf3, 0x90) // mov r9d, 3; pause
	code = append(code, 0x48, 0xff, 0xc0, 0x41, 0xff, 0xc9) // inc rax; dec r9d
	code = append(code, 0x75, 0xf6)                         // jnz to the PAUSE
	loop("behind")
	pad(0x1000 - 14 - rapid.IntRange(0, 24).Draw(t, "place"))
	loop("last")
	return append(code, 0x0f, 0x05)
}

func drawLimit(t *rapid.T) arch.Limit {
	l := arch.Limit{AtPause: rapid.Bool().Draw(t, "pause"), Pass: true}
	if l.AtPause && rapid.Bool().Draw(t, "after") {
		l.PauseAfter = rapid.Uint64Range(0, 80).Draw(t, "after")
	}
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		l.Instructions = rapid.Uint64Range(1, 60).Draw(t, "instructions")
	case 1:
		l.Instructions, l.Exact = rapid.Uint64Range(1, 60).Draw(t, "instructions"), true
	case 2:
		l.Cycles, l.Exact = arch.Cycles(rapid.Uint64Range(1, 100).Draw(t, "cycles")), rapid.Bool().Draw(t, "exact")
	case 3:
		l.Most = rapid.Uint64Range(1, 60).Draw(t, "most")
	}
	if rapid.IntRange(0, 3).Draw(t, "inside") == 0 {
		l.Inside = arch.InsideByChance(rapid.Uint32().Draw(t, "inside"))
	}
	return l
}

// TestPauseMovesNothing: random programs, run in random quanta, stop where they stop if PAUSE ends
// blocks, and also if they stop after each PAUSE and are resumed; the state there is that of single
// steps.
func TestPauseMovesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// A run that starts with a block that is changed passes the next place to stop at as well:
		// that place depends on where blocks end.
		changes := rapid.Bool().Draw(rt, "changes")
		code := drawProgram(rt, changes)
		limits := rapid.SliceOfN(rapid.Custom(drawLimit), 1, 8).Draw(rt, "limits")
		for i := range limits {
			limits[i].AtSync = !changes && i%2 == 1
		}
		breaks := rapid.SliceOfN(rapid.Uint64Range(0, uint64(len(code))), 0, 2).Draw(rt, "breakpoints")
		if changes {
			breaks = nil
		}
		logs := rapid.SampledFrom([]string{"", "branches", "memory"}).Draw(rt, "logs")
		type run struct {
			stops, states, log []string
			counts             []uint64
			inside             []uint8
		}
		play := func(shared, each bool, limits []arch.Limit) (r run) {
			part := &scope{TB: t}
			defer part.runCleanups()
			b := newProgram(part, code, shared)
			var m *emutest.MemoryLog[*CPU]
			switch logs {
			case "branches":
				if err := b.CPU.LogBranches(false); err != nil {
					rt.Fatal(err)
				}
			case "memory":
				m = b.LogMemory(memlog.Filter{})
			}
			list := []arch.Addr{}
			for _, at := range breaks {
				list = append(list, codeBase+arch.Addr(at))
			}
			b.CPU.SetBreakpoints(list)
			total := uint64(0)
			var from *arch.Interrupted
			for i := 0; ; i++ {
				l := limits[i%len(limits)]
				l.From = from
				if each {
					l.PauseAfter = 0
				}
				s := b.CPU.Run(l)
				for s.Reason == arch.StopBreakpoint || s.Reason == arch.StopLog || s.Reason == arch.StopPause && s.Instructions < limits[i%len(limits)].PauseAfter {
					if s.Reason == arch.StopBreakpoint {
						r.stops = append(r.stops, fmt.Sprintf("breakpoint %#x after %d", b.Regs().RIP, s.Instructions))
					}
					s = b.CPU.Resume()
				}
				total += s.Instructions
				r.stops = append(r.stops, fmt.Sprintf("%d: %d at %#x after %d, %d cycles, inside %d", i, s.Reason, b.Regs().RIP, s.Instructions, s.Cycles, s.Inside))
				r.states = append(r.states, b.programState())
				r.counts = append(r.counts, total)
				r.inside = append(r.inside, s.Inside)
				if from = nil; s.Inside > 0 {
					in, _ := b.CPU.Interrupted()
					from = &in
				}
				if s.Reason != arch.StopBudget && s.Reason != arch.StopPause && s.Reason != arch.StopSync {
					break
				}
			}
			if logs == "branches" {
				r.log = flattenLog(b.CPU.Branches())
			} else if logs == "memory" {
				m.TakeLog()
				r.log = m.Lines
			}
			return r
		}
		got := play(false, false, limits)
		for _, want := range []run{play(true, false, limits), play(true, true, limits), play(false, true, limits)} {
			if !slices.Equal(got.stops, want.stops) {
				rt.Fatalf("it stops at\n%q, want\n%q", got.stops, want.stops)
			}
			if !slices.Equal(got.states, want.states) || !slices.Equal(got.log, want.log) {
				rt.Fatalf("states or logs differ:\n%q, want\n%q", got.log, want.log)
			}
		}
		breaks = nil
		stepped := play(false, false, []arch.Limit{{Instructions: 1, Exact: true, Pass: true}})
		for i, n := range got.counts {
			if n == 0 || got.inside[i] > 0 {
				continue // not started, or inside an instruction
			}
			if at := slices.Index(stepped.counts, n); at < 0 || stepped.states[at] != got.states[i] {
				rt.Fatalf("the state after %d instructions is\n%s, and when stepped\n%s", n, got.states[i], stepped.states[max(at, 0)])
			}
		}
		if slices.Max(got.inside) == 0 && !slices.Equal(got.log, stepped.log) {
			rt.Fatalf("the log is\n%q, and when stepped\n%q", got.log, stepped.log)
		}
	})
}

// BenchmarkSpin runs a spin loop with and without PAUSE.
func BenchmarkSpin(b *testing.B) {
	for _, x := range []struct{ name, wait string }{{"without", "nop"}, {"with", "pause"}} {
		b.Run(x.name, func(b *testing.B) {
			m := newBench(b, "1: "+x.wait+`
				mov rax, [0x600000]
				test rax, rax
				jz 1b`)
			for b.Loop() {
				m.CPU.Run(arch.Limit{Instructions: 10_000_000})
			}
		})
	}
}

// flattenLog brings the words of a log into one form, with outcomes one by one.
func flattenLog(words []emu.BranchWord) []string {
	var out []string
	for _, w := range words {
		switch w.Tag() {
		case emu.TagTNT:
			bits, n := w.Outcomes()
			for i := n - 1; i >= 0; i-- {
				out = append(out, fmt.Sprint("tnt ", bits>>i&1))
			}
		case emu.TagTime:
		default:
			out = append(out, fmt.Sprintf("%d %#x", w.Tag(), w.Value()))
		}
	}
	return out
}
