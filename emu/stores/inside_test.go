package stores_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// writeNumber stores a number as another core would.
func (b *bench) writeNumber(at arch.Addr, v uint64, size int) {
	b.Helper()
	var text [8]byte
	binary.LittleEndian.PutUint64(text[:], v)
	if n, kind := b.Space.WriteAt(text[:size], at); n != size {
		b.Fatalf("%#x cannot be written: %v", at, kind)
	}
}

func (b *bench) readNumber(at arch.Addr, size int) uint64 {
	b.Helper()
	var text [8]byte
	copy(text[:], b.readBytes(at, size))
	return binary.LittleEndian.Uint64(text[:])
}

// enterInstruction runs a number of instructions and then some accesses of the next one.
func (b *bench) enterInstruction(instructions uint64, accesses uint8, from *arch.Interrupted) *arch.Interrupted {
	b.Helper()
	s := b.CPU.Run(arch.Limit{
		Instructions: instructions, Immediately: instructions == 0, Exact: true, Inside: arch.InsideAfter(accesses), From: from,
	})
	in, ok := b.CPU.Interrupted()
	if s.Reason != arch.StopBudget || s.Instructions != instructions || s.Inside != accesses || !ok {
		b.Fatalf("%+v, inside %v; want to be after %d accesses, %d instructions later", s, ok, accesses, instructions)
	}
	return &in
}

// TestOthersActInsideInstructions: a store of another core between the accesses of an instruction
// is visible to the later accesses and not to the earlier ones, and the instruction's stores
// overwrite it (Intel SDM volume 3, section 8.1: only locked instructions and accesses within a
// cache line are atomic).
func TestOthersActInsideInstructions(t *testing.T) { onEngines(t, testOthersActInsideInstructions) }

func testOthersActInsideInstructions(t *testing.T, e engine) {
	const line = dataBase + 64
	for _, c := range []struct {
		code     string
		accesses uint8
		at       arch.Addr // address of the other core's store between the accesses
		value    uint64
		size     int
		rax      uint64
		memory   uint64    // 8 bytes at mem after the instruction
		mem      arch.Addr // the address that is compared
		between  uint64    // 8 bytes at mem before the other core stores
	}{
		{"inc dword ptr [0x600000]", 1, dataBase, 41, 4, 5, 1, dataBase, 0},
		{"add [0x600000], rax", 1, dataBase, 41, 8, 5, 5, dataBase, 0},
		{"xadd [0x600000], rax", 1, dataBase, 41, 8, 0, 5, dataBase, 0},
		{"push qword ptr [0x600000]\n pop rax", 1, dataBase, 41, 8, 0, 41, dataBase, 0},
		{"mov rax, [0x60003c]", 1, line, 0x22222222, 4, 0x11111111 << 32 >> 32, 0x22222222_00000000, line - 4, 0},
		{"mov rax, [0x60003c]", 1, line - 4, 0x22222222, 4, 0, 0x22222222, line - 4, 0},
		{"mov [0x60003c], rcx", 1, line, 0x22222222, 4, 5, 0x33333333_33333333, line - 4, 0x33333333},
		{"mov [0x60003c], rcx", 1, line - 4, 0x22222222, 4, 5, 0x33333333_22222222, line - 4, 0x33333333},
		{"add [0x60003c], rcx", 1, line, 0x22222222, 4, 5, 0x55555555_33333333, line - 4, 0},
		{"add [0x60003c], rcx", 2, line, 0x22222222, 4, 5, 0x33333333_33333333, line - 4, 0},
		{"add [0x60003c], rcx", 3, line, 0x22222222, 4, 5, 0x33333333_33333333, line - 4, 0x33333333},
		{"add [0x60003c], rcx", 3, line - 4, 0x22222222, 4, 5, 0x33333333_22222222, line - 4, 0x33333333},
		{"movups [0x60003c], xmm0\n nop", 1, line - 4, 7, 4, 5, 7, line - 4, 0},
		{"mov esi, 0x600000\n mov edi, 0x600100\n movsq", 1, dataBase, 41, 8, 5, 0, dataBase + 0x100, 0},
	} {
		b := e.newBench(t, c.code+"\nsyscall")
		before := uint64(strings.Count(c.code, "\n"))
		if !strings.Contains(c.code, "movsq") {
			before = 0
		}
		b.ChangeRegs(func(r *arch.Regs) { r.GPR[arch.RAX], r.GPR[arch.RCX] = 5, 0x33333333_33333333 })
		in := b.enterInstruction(before, c.accesses, nil)
		if got := b.readNumber(c.mem, 8); got != c.between {
			t.Errorf("%s: after %d accesses others see %#x, want %#x", c.code, c.accesses, got, c.between)
		}
		if !in.HasStored() && b.Regs().GPR[arch.RAX] != 5 {
			t.Errorf("%s: a register has changed before the instruction was done", c.code)
		}
		if before, stored := in.Before(); stored && (before.RIP != uint64(in.PC) || before.GPR[arch.RAX] != 5) {
			t.Errorf("%s: the registers before the instruction are %+v", c.code, before)
		}
		b.writeNumber(c.at, c.value, c.size)
		s := b.CPU.Run(arch.Limit{From: in})
		if want := uint64(strings.Count(c.code, "\n")) + 2 - before; s.Reason != arch.StopSyscall || s.Instructions != want {
			t.Errorf("%s: %+v, want %d instructions", c.code, s, want)
		}
		if got := b.readNumber(c.mem, 8); got != c.memory {
			t.Errorf("%s: %#x in memory in the end, want %#x", c.code, got, c.memory)
		}
		if got := b.Regs().GPR[arch.RAX]; got != c.rax && !strings.HasPrefix(c.code, "mov rax, [0x60003c]") {
			t.Errorf("%s: rax is %#x, want %#x", c.code, got, c.rax)
		}
	}
}

// TestLoadAcrossLines expects the halves of a load to be read at different times.
func TestLoadAcrossLines(t *testing.T) { onEngines(t, testLoadAcrossLines) }

func testLoadAcrossLines(t *testing.T, e engine) {
	b := e.newBench(t, "mov rax, [0x60003c]\nsyscall")
	b.writeNumber(dataBase+60, 0x1111111111111111, 8)
	in := b.enterInstruction(0, 1, nil)
	b.writeNumber(dataBase+60, 0x2222222222222222, 8)
	b.CPU.Run(arch.Limit{From: in})
	if got := b.Regs().GPR[arch.RAX]; got != 0x2222222211111111 {
		t.Errorf("loaded %#x, want 0x2222222211111111", got)
	}
	if got := b.readNumber(dataBase+60, 8); got != 0x2222222222222222 {
		t.Errorf("%#x in memory, want what was stored", got)
	}
}

// TestAtomicInstructionsHaveNoPlaceInside also covers instructions with one access.
func TestAtomicInstructionsHaveNoPlaceInside(t *testing.T) {
	onEngines(t, testAtomicInstructionsHaveNoPlaceInside)
}

func testAtomicInstructionsHaveNoPlaceInside(t *testing.T, e engine) {
	for _, code := range []string{
		"lock inc dword ptr [0x600000]", "xchg [0x600000], eax", "lock xadd [0x60003e], rax", "mov eax, [0x600000]",
		"mov [0x600001], rax", "push rax", "lea rax, [0x60003e]", "nop", "prefetcht0 [0x60003f]", "clflush [0x60003f]",
	} {
		b := e.newBench(t, code+"\nsyscall")
		for choice := range uint32(8) {
			b.ChangeRegs(func(r *arch.Regs) { r.RIP = uint64(codeBase) })
			s := b.CPU.Run(arch.Limit{Immediately: true, Exact: true, Inside: arch.InsideByChance(choice)})
			if _, inside := b.CPU.Interrupted(); inside || s.Inside != 0 || s.Instructions != 0 {
				t.Errorf("%s: %+v", code, s)
			}
		}
	}
}

// TestInterruptedInstructionBeginsAnew: the thread has executed other code meanwhile.
func TestInterruptedInstructionBeginsAnew(t *testing.T) {
	onEngines(t, testInterruptedInstructionBeginsAnew)
}

func testInterruptedInstructionBeginsAnew(t *testing.T, e engine) {
	b := e.newBench(t, "inc dword ptr [0x600000]\nsyscall\nmov ebx, 3\nsyscall")
	in := b.enterInstruction(0, 1, nil)
	b.ChangeRegs(func(r *arch.Regs) { r.RIP = uint64(codeBase) + 9 })
	if s := b.CPU.Run(arch.Limit{From: in}); s.Instructions != 2 || b.Regs().GPR[arch.RBX] != 3 || b.readNumber(dataBase, 4) != 0 {
		t.Errorf("%+v, %d in memory", s, b.readNumber(dataBase, 4))
	}
}

// TestInsideChangesNothing runs programs with instructions of every kind in one thread, in runs
// that may end inside instructions, and expects the same result as in one run.
func TestInsideChangesNothing(t *testing.T) { onEngines(t, testInsideChangesNothing) }

func testInsideChangesNothing(t *testing.T, e engine) {
	kinds := []string{
		"inc dword ptr [rbx+%d]", "add [rbx+%d], rax", "xor [rbx+%d], cx", "not byte ptr [rbx+%d]", "xadd [rbx+%d], rdx",
		"cmpxchg [rbx+%d], rcx", "adc rax, [rbx+%d]", "mov [rbx+%d], rax", "mov rdx, [rbx+%d]", "movups xmm0, [rbx+%d]",
		"movups [rbx+%d], xmm0", "push qword ptr [rbx+%d]\npop rcx", "pop qword ptr [rbx+%d]\npush rax", "bts [rbx+%d], rsi",
		"lea rsi, [rbx+%d]\nlea rdi, [rbx+200]\nmovsq", "lea rsi, [rbx+%d]\nlea rdi, [rbx+90]\nmov ecx, 3\nrep movsb",
		"lea rdi, [rbx+%d]\nlea rsi, [rbx+9]\ncmpsq", "shl dword ptr [rbx+%d], 3", "neg qword ptr [rbx+%d]", "fld tbyte ptr [rbx+%d]\nfstp tbyte ptr [rbx+20]",
		"lock inc qword ptr [rbx+%d]", "xchg [rbx+%d], rax", "setz byte ptr [rbx+%d]", "cvtsi2sd xmm1, qword ptr [rbx+%d]", "addpd xmm0, [rbx+%d]",
	}
	places := map[uint8]int{}
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 18))
		code := "mov rbx, 0x600000\nmov rsi, 77\n"
		for range 40 {
			offset := r.IntN(120)
			kind := kinds[r.IntN(len(kinds))]
			if strings.HasPrefix(kind, "addpd") {
				offset &^= 15
			}
			code += fmt.Sprintf(kind, offset) + "\n"
		}
		fill := func(b *bench) {
			content := rand.New(rand.NewPCG(seed, 5))
			for at := range arch.Addr(64) {
				b.writeNumber(dataBase+8*at, content.Uint64()>>content.IntN(60), 8)
			}
			b.ChangeRegs(func(r *arch.Regs) { r.GPR[arch.RSP] -= 256 })
		}
		whole := e.newBench(t, code+"syscall")
		fill(whole)
		want := whole.CPU.Run(arch.Limit{})
		for _, buffered := range []bool{false, true} {
			b := e.newBench(t, code+"syscall")
			var buffers emu.Buffers
			if buffered {
				var err error
				if buffers, err = b.CPU.BufferStores(3); err != nil {
					t.Fatal(err)
				}
			}
			fill(b)
			var from *arch.Interrupted
			var stores []emu.Store
			instructions, cycles := uint64(0), arch.Cycles(0)
			for reason := arch.StopBudget; reason == arch.StopBudget; {
				l := arch.Limit{Exact: r.IntN(30) > 0, Inside: arch.InsideByChance(r.Uint32()), From: from}
				if r.IntN(2) == 0 {
					l.Instructions = uint64(r.IntN(4))
					l.Immediately = l.Instructions == 0
				} else {
					l.Cycles = arch.Cycles(1 + r.IntN(6))
				}
				if buffered {
					buffers.Apply(stores)
				}
				s := b.CPU.Run(l)
				if buffered {
					stores = buffers.Withdraw(nil)
				}
				reason, from = s.Reason, nil
				instructions += s.Instructions
				cycles += s.Cycles
				if in, ok := b.CPU.Interrupted(); ok && reason == arch.StopBudget {
					from = &in
					places[in.Done()]++
				}
			}
			if buffered {
				for _, s := range stores {
					b.Space.WriteAt(s.Data[:s.Size], s.Addr)
				}
			}
			wr, gr := whole.Regs(), b.Regs()
			const adjust = uint64(0x10) // undefined after shifts and BTS
			wr.RFLAGS &^= adjust
			gr.RFLAGS &^= adjust
			if gr != wr || !slices.Equal(b.readBytes(dataBase, 512), whole.readBytes(dataBase, 512)) {
				t.Fatalf("seed %d, buffered %v: other registers or memory:\n%x\n%x\n%s", seed, buffered, gr, wr, code)
			}
			if instructions != want.Instructions || cycles != want.Cycles {
				t.Fatalf("seed %d, buffered %v: %d instructions and %d cycles, want %d and %d",
					seed, buffered, instructions, cycles, want.Instructions, want.Cycles)
			}
		}
	}
	if places[1] < 200 || places[2] == 0 || places[3] == 0 {
		t.Errorf("runs have ended inside instructions, by the accesses that were done: %v", places)
	}
}

// TestStopsAfterInterruptedInstruction expects a run that completes an instruction to stop at the next
// one. Pass concerns the first instruction of the run, which is the one that the thread is inside; all
// iterations of a repeated instruction are one in this respect.
func TestStopsAfterInterruptedInstruction(t *testing.T) {
	onEngines(t, testStopsAfterInterruptedInstruction)
}

func testStopsAfterInterruptedInstruction(t *testing.T, e engine) {
	const next = codeBase + 8
	for _, c := range []struct {
		code     string
		accesses uint8
		stopAt   arch.Addr // address of the breakpoint
		sync     bool
		want     arch.StopReason
		count    uint64
	}{
		{"add [0x60003c], rcx\n nop\n nop", 1, next, false, arch.StopBreakpoint, 1},
		{"add [0x60003c], rcx\n nop\n nop", 3, next, false, arch.StopBreakpoint, 1},
		{"add [0x60003c], rcx\n nop\n nop", 3, next + 1, false, arch.StopBreakpoint, 2},
		{"add [0x60003c], rcx\n lock inc dword ptr [0x600100]", 1, 0, true, arch.StopSync, 1},
		{"add [0x60003c], rcx\n lock inc dword ptr [0x600100]", 3, 0, true, arch.StopSync, 1},
		{"rep movsq", 1, codeBase, false, arch.StopSyscall, 5},
	} {
		b := e.newBench(t, c.code+"\nsyscall")
		b.ChangeRegs(func(r *arch.Regs) {
			r.GPR[arch.RCX], r.GPR[arch.RSI], r.GPR[arch.RDI] = 3, uint64(dataBase), uint64(dataBase)+0x100
		})
		in := b.enterInstruction(0, c.accesses, nil)
		b.CPU.SetBreakpoints([]arch.Addr{c.stopAt})
		s := b.CPU.Run(arch.Limit{From: in, Pass: true, AtSync: c.sync})
		if s.Reason != c.want || s.Instructions != c.count {
			t.Errorf("%s, from inside after %d accesses: %v after %d instructions, want %v after %d", c.code, c.accesses, s.Reason, s.Instructions, c.want, c.count)
		}
	}
}
