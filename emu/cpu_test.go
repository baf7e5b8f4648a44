package emu_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

func TestRunToSyscall(t *testing.T) { onEngines(t, testRunToSyscall) }

func testRunToSyscall(t tester) {
	b := newBench(t, `mov eax, 39
		add rax, 3
		syscall
		nop`)
	s := b.CPU.Run(arch.Limit{})
	b.ExpectStop(s, arch.StopSyscall, uint64(codeBase)+11, 3)
	if got := b.Regs().GPR[arch.RAX]; got != 42 {
		t.Errorf("rax = %d, want 42", got)
	}
}

const loop = `mov rcx, 100000
	1: add rax, rcx
	xor rdx, rax
	dec rcx
	jnz 1b
	syscall`

func TestBudgets(t *testing.T) { onEngines(t, testBudgets) }

func testBudgets(t tester) {
	b := newBench(t, loop)
	var total uint64
	for {
		s := b.CPU.Run(arch.Limit{Instructions: 1000})
		total += s.Instructions
		if s.Reason == arch.StopSyscall {
			break
		}
		if s.Reason != arch.StopBudget || s.Instructions < 1000 || s.Instructions > 1004 {
			t.Fatalf("reason %d after %d instructions", s.Reason, s.Instructions)
		}
	}
	if total != 400002 {
		t.Errorf("%d instructions, want 400002", total)
	}
}

func TestExactBudget(t *testing.T) { onEngines(t, testExactBudget) }

func testExactBudget(t tester) {
	b := newBench(t, loop)
	var total uint64
	for n := uint64(1); ; n = n%13 + 1 {
		s := b.CPU.Run(arch.Limit{Instructions: n, Exact: true})
		total += s.Instructions
		if s.Reason == arch.StopSyscall {
			break
		}
		if s.Reason != arch.StopBudget || s.Instructions != n {
			t.Fatalf("reason %d after %d instructions, want %d", s.Reason, s.Instructions, n)
		}
		// mov, then four instructions of 3, 3, 3 and 2 bytes
		want := uint64(codeBase) + 7
		if k := (total - 1) % 4; total < 400001 {
			want += 3 * k
		} else {
			want += 11
		}
		if pc := b.Regs().RIP; pc != want {
			t.Fatalf("after %d instructions the PC is %#x, want %#x", total, pc, want)
		}
	}
	if total != 400002 {
		t.Errorf("%d instructions, want 400002", total)
	}
}

func TestFaultIsPreciseAndResumes(t *testing.T) { onEngines(t, testFaultIsPreciseAndResumes) }

func testFaultIsPreciseAndResumes(t tester) {
	b := newBench(t, `mov rax, 1
		mov rbx, 0x900008
		mov rcx, 7
		mov [rbx], rcx
		mov rdx, [rbx]
		syscall`)
	s := b.CPU.Run(arch.Limit{})
	b.ExpectStop(s, arch.StopFault, uint64(codeBase)+21, 3)
	if s.Access != arch.AccessWrite || s.Kind != arch.Absent || b.CPU.FaultAddr() != 0x900008 {
		t.Errorf("access %d kind %d address %#x, want a write to 0x900008", s.Access, s.Kind, b.CPU.FaultAddr())
	}
	b.MapPage(0x900000, arch.Read|arch.Write)
	s = b.CPU.Run(arch.Limit{})
	if s.Reason != arch.StopSyscall || s.Instructions != 3 || b.Regs().GPR[arch.RDX] != 7 {
		t.Errorf("resumed: reason %d, %d instructions, rdx %d; want a system call after 3 with 7", s.Reason, s.Instructions, b.Regs().GPR[arch.RDX])
	}
}

func TestExceptions(t *testing.T) { onEngines(t, testExceptions) }

func testExceptions(t tester) {
	for _, c := range []struct {
		name, code   string
		reason       arch.StopReason
		vector       uint8
		pc           uint64
		instructions uint64
	}{
		{"divide", "xor ecx, ecx\n mov eax, 1\n cdq\n idiv ecx\n nop", arch.StopException, 0, 8, 3},
		{"ud2", "nop\n ud2\n nop", arch.StopException, 6, 1, 1},
		{"hlt", "nop\n hlt\n nop", arch.StopException, 13, 1, 1},
		{"cli", "nop\n nop\n cli\n nop", arch.StopException, 13, 2, 2},
		{"int3", "nop\n int3\n nop", arch.StopInterrupt, 3, 2, 2},
		{"int80", "nop\n int 0x80\n nop", arch.StopInterrupt, 0x80, 3, 2},
		{"wrmsr", "nop\n wrmsr", arch.StopException, 13, 1, 1},
		{"mov cr3", "nop\n mov cr3, rax", arch.StopException, 13, 1, 1},
		{"in", "nop\n in al, dx", arch.StopException, 13, 1, 1},
	} {
		t.Run(c.name, func(inner *testing.T) {
			t := tester{inner, t.open}
			b := newBench(t, c.code)
			for range 4 { // the state after one exception must not change the next
				b.ChangeRegs(func(r *arch.Regs) { r.RIP = uint64(codeBase) })
				s := b.CPU.Run(arch.Limit{})
				b.ExpectStop(s, c.reason, uint64(codeBase)+c.pc, c.instructions)
				if s.Vector != c.vector {
					t.Fatalf("vector %d, want %d", s.Vector, c.vector)
				}
			}
		})
	}
}

func TestTSCIsVirtual(t *testing.T) { onEngines(t, testTSCIsVirtual) }

func testTSCIsVirtual(t tester) {
	b := newBench(t, `nop
		rdtsc
		mov esi, eax
		rdtsc
		sub eax, esi
		rdtscp
		syscall`)
	b.CPU.SetCore(3, 1_000_000)
	s := b.CPU.Run(arch.Limit{})
	b.ExpectStop(s, arch.StopSyscall, uint64(codeBase)+14, 7)
	r := b.Regs()
	if r.GPR[arch.RSI] != 1_000_001 {
		t.Errorf("first RDTSC gives %d, want 1000001", r.GPR[arch.RSI])
	}
	if r.GPR[arch.RCX] == 0 && r.GPR[arch.RAX] == 0 {
		t.Error("RDTSCP changed nothing")
	}
}

func TestPushfHidesStepping(t *testing.T) { onEngines(t, testPushfHidesStepping) }

func testPushfHidesStepping(t tester) {
	b := newBench(t, `pushfq
		pop rax
		nop
		syscall`)
	for range 4 {
		if s := b.CPU.Run(arch.Limit{Instructions: 1, Exact: true}); s.Instructions != 1 {
			t.Fatalf("%d instructions, want 1", s.Instructions)
		}
	}
	if f := b.Regs().GPR[arch.RAX]; f&0x100 != 0 {
		t.Errorf("flags %#x show the trap flag", f)
	}
}

func TestRepCounts(t *testing.T) { onEngines(t, testRepCounts) }

func testRepCounts(t tester) {
	for _, exact := range []bool{false, true} {
		b := newBench(t, `mov rdi, 0x600000
			mov ecx, 3
			mov al, 7
			rep stosb
			syscall`)
		var total uint64
		for {
			l := arch.Limit{}
			if exact {
				l = arch.Limit{Instructions: 1, Exact: true}
			}
			s := b.CPU.Run(l)
			total += s.Instructions
			if s.Reason == arch.StopSyscall {
				break
			}
		}
		if total != 3+4+1 {
			t.Errorf("exact %v: %d instructions, want 8", exact, total)
		}
	}
}

func TestBreakpoints(t *testing.T) { onEngines(t, testBreakpoints) }

func testBreakpoints(t tester) {
	b := newBench(t, loop)
	b.CPU.SetBreakpoints([]arch.Addr{codeBase + 10})
	for i := range 5 {
		s := b.CPU.Run(arch.Limit{Pass: true})
		want := uint64(4)
		if i == 0 {
			want = 2
		}
		b.ExpectStop(s, arch.StopBreakpoint, uint64(codeBase)+10, want)
	}
	b.CPU.SetBreakpoints(nil)
	if s := b.CPU.Run(arch.Limit{}); s.Reason != arch.StopSyscall {
		t.Errorf("reason %d, want a system call", s.Reason)
	}
}

func TestPauseAndSync(t *testing.T) { onEngines(t, testPauseAndSync) }

func testPauseAndSync(t tester) {
	b := newBench(t, `nop
		pause
		nop
		lock inc qword ptr [rsp-8]
		nop
		syscall`)
	s := b.CPU.Run(arch.Limit{AtPause: true, AtSync: true})
	b.ExpectStop(s, arch.StopPause, uint64(codeBase)+3, 2)
	s = b.CPU.Run(arch.Limit{AtPause: true, AtSync: true})
	b.ExpectStop(s, arch.StopSync, uint64(codeBase)+4, 1)
	s = b.CPU.Run(arch.Limit{AtPause: true, AtSync: true, Pass: true})
	if s.Reason != arch.StopSyscall || s.Instructions != 3 {
		t.Errorf("reason %d after %d, want a system call after 3", s.Reason, s.Instructions)
	}
}

func TestSelfModifyingCode(t *testing.T) { onEngines(t, testSelfModifyingCode) }

func testSelfModifyingCode(t tester) {
	// Calls f, changes its immediate operand, calls it again.
	b := newBench(t, `call 2f
		mov ebx, eax
		mov byte ptr [rip + 2f + 1], 9
		call 2f
		syscall
		.balign 64
		2: mov eax, 5
		nop
		ret`)
	b.Space.Protect(codeBase, codeBase+arch.PageSize, arch.Read|arch.Write|arch.Exec)
	s := b.CPU.Run(arch.Limit{})
	r := b.Regs()
	if s.Reason != arch.StopSyscall || r.GPR[arch.RBX] != 5 || r.GPR[arch.RAX] != 9 || s.Instructions != 11 {
		t.Errorf("reason %d, %d instructions, first %d, then %d; want 11 instructions, 5, 9", s.Reason, s.Instructions, r.GPR[arch.RBX], r.GPR[arch.RAX])
	}
}

func TestCodeChangedBySomeoneElse(t *testing.T) { onEngines(t, testCodeChangedBySomeoneElse) }

func testCodeChangedBySomeoneElse(t tester) {
	b := newBench(t, `mov eax, 5
		syscall`)
	for want := uint64(5); want < 9; want++ {
		b.Space.WriteAt([]byte{byte(want)}, codeBase) // not writable: nothing happens
		b.ChangeRegs(func(r *arch.Regs) { r.RIP = uint64(codeBase) })
		b.CPU.Run(arch.Limit{})
		if got := b.Regs().GPR[arch.RAX]; got != want {
			t.Fatalf("rax %d, want %d", got, want)
		}
		p := b.Space.Get(codeBase).Page()
		b.RAM.Bytes(p)[1] = byte(want + 1)
		b.RAM.Written(p)
	}
}

func TestSnapshotsBranch(t *testing.T) { onEngines(t, testSnapshotsBranch) }

func testSnapshotsBranch(t tester) {
	b := newBench(t, `mov rbx, 0x600000
		1: inc qword ptr [rbx]
		syscall
		jmp 1b`)
	word := func(s *mem.Space) byte {
		var buf [1]byte
		s.ReadAt(buf[:], dataBase)
		return buf[0]
	}
	type snapshot struct {
		space *mem.Space
		ctx   arch.Context
	}
	take := func() snapshot { return snapshot{b.Space.Clone(), b.CPU.CloneContext(b.Ctx)} }
	var snaps []snapshot
	for range 5 {
		b.CPU.Load(b.Ctx, b.Space)
		b.CPU.Run(arch.Limit{})
		snaps = append(snaps, take())
	}
	for i := len(snaps) - 1; i >= 0; i-- {
		space, ctx := snaps[i].space.Clone(), b.CPU.CloneContext(snaps[i].ctx)
		b.CPU.Load(ctx, space)
		b.CPU.Run(arch.Limit{})
		if word(snaps[i].space) != byte(i+1) || word(space) != byte(i+2) {
			t.Errorf("snapshot %d holds %d and its branch %d, want %d and %d", i, word(snaps[i].space), word(space), i+1, i+2)
		}
		changed := space.Changed(snaps[i].space)
		if len(changed) != 1 || changed[0].Addr != dataBase {
			t.Errorf("snapshot %d: changed pages %v, want the one at %#x", i, changed, dataBase)
		}
	}
}

// TestSnapshotsKeepTranslations: spaces that are restored from one snapshot share translations. Code in a page that
// one of them has added is not reached from it in the others: by a jump, through a register, or at its address; each
// finds its own page there, or none.
func TestSnapshotsKeepTranslations(t *testing.T) { onEngines(t, testSnapshotsKeepTranslations) }

func testSnapshotsKeepTranslations(t tester) {
	for name, source := range map[string]string{
		"jump":     "1: inc rbx\ncmp rbx, 100\njb 1b\njmp 1f\n.org 0x1000\n1: syscall",
		"indirect": "1: inc rbx\ncmp rbx, 100\njb 1b\nlea rcx, [rip + 1f]\njmp rcx\n.org 0x1000\n1: syscall",
		"across":   "1: inc rbx\ncmp rbx, 100\njb 1b\njmp 1f\n.org 0xffe\n1: mov eax, 0x050f\nsyscall",
	} {
		t.Run(name, func(inner *testing.T) {
			t := tester{inner, t.open}
			b := newBench(t, source)
			second := codeBase + arch.PageSize
			code := slices.Clone(b.RAM.Bytes(b.Space.Get(second).Page()))
			b.Space.Unmap(second, second+arch.PageSize)
			start, ctx := b.Space.CloneForSnapshot(), b.CPU.CloneContext(b.Ctx)
			for round := range 20 {
				b.Space.Release()
				b.Space, b.Ctx = start.CloneForSnapshot(), b.CPU.CloneContext(ctx)
				b.CPU.Load(b.Ctx, b.Space)
				b.ChangeRegs(func(r *arch.Regs) { r.RIP, r.GPR[arch.RBX] = uint64(codeBase), 0 })
				kind := round % 3
				if kind > 0 {
					b.MapPage(second, arch.Read|arch.Exec)
					bytes := b.RAM.Bytes(b.Space.Get(second).Page())
					copy(bytes, code)
					if kind == 2 && name != "across" {
						copy(bytes, []byte{0x48, 0x83, 0xc3, 0x07, 0x0f, 0x05}) // add rbx, 7; syscall
					}
				}
				s := b.CPU.Run(arch.Limit{Instructions: 1000})
				want := uint64(100)
				if kind == 2 && name != "across" {
					want = 107
				}
				if got := b.Regs().GPR[arch.RBX]; got != want || (s.Reason == arch.StopSyscall) != (kind > 0) {
					t.Errorf("round %d: stop %d at %#x, rbx %d", round, s.Reason, b.Regs().RIP, got)
				}
			}
		})
	}
}

// TestSnapshotsOfSnapshots: a snapshot that is taken after code was added has it when it is restored, and one from
// before does not. A page that was freed is allocated again for the same code, and no other.
func TestSnapshotsOfSnapshots(t *testing.T) { onEngines(t, testSnapshotsOfSnapshots) }

func testSnapshotsOfSnapshots(t tester) {
	b := newBench(t, "1: inc rbx\ncmp rbx, 100\njb 1b\njmp 1f\n.org 0x1000\n1: syscall")
	second := codeBase + arch.PageSize
	codes := [][]byte{slices.Clone(b.RAM.Bytes(b.Space.Get(second).Page())), make([]byte, arch.PageSize)}
	copy(codes[1], []byte{0x48, 0x83, 0xc3, 0x07, 0x0f, 0x05}) // add rbx, 7; syscall
	b.Space.Unmap(second, second+arch.PageSize)
	type snapshot struct {
		space *mem.Space
		code  int // in the second page; -1: none
	}
	snapshots := []snapshot{{b.Space.CloneForSnapshot(), -1}}
	ctx := b.CPU.CloneContext(b.Ctx)
	var pages [2]mem.Page
	r := rand.New(rand.NewPCG(23, 1))
	for round := range 200 {
		from := snapshots[r.IntN(len(snapshots))]
		b.Space.Release()
		b.Space, b.Ctx = from.space.CloneForSnapshot(), b.CPU.CloneContext(ctx)
		b.CPU.Load(b.Ctx, b.Space)
		code := from.code
		if code < 0 && r.IntN(3) > 0 {
			code = r.IntN(2)
			copy(b.RAM.Draft()[:], codes[code])
			page, ok := b.RAM.AllocFilled()
			if !ok || !bytes.Equal(b.RAM.Bytes(page), codes[code]) {
				t.Fatalf("round %d: page %d, %v, does not have the code", round, page, ok)
			}
			if len(snapshots) == 1 && pages[code] != 0 && page != pages[code] {
				t.Errorf("round %d: page %d was not found again", round, pages[code])
			}
			pages[code] = page
			b.Space.Set(second, mem.MakePTE(page, arch.Read|arch.Exec, false))
		}
		want := uint64(100 + 7*max(0, code))
		for range 1 + r.IntN(2) {
			b.ChangeRegs(func(r *arch.Regs) { r.RIP, r.GPR[arch.RBX] = uint64(codeBase), 0 })
			s := b.CPU.Run(arch.Limit{Instructions: 1000})
			if got := b.Regs().GPR[arch.RBX]; got != want || (s.Reason == arch.StopSyscall) != (code >= 0) {
				t.Fatalf("round %d, code %d: stop %d at %#x, rbx %d", round, code, s.Reason, b.Regs().RIP, got)
			}
			if round > 50 && r.IntN(8) == 0 {
				snapshots = append(snapshots, snapshot{b.Space.CloneForSnapshot(), code})
			}
		}
		if n := len(snapshots); n > 6 {
			i := 1 + r.IntN(n-1)
			snapshots[i].space.Release()
			snapshots = slices.Delete(snapshots, i, i+1)
		}
	}
	if pages[0] == 0 || pages[1] == 0 || pages[0] == pages[1] {
		t.Errorf("pages %v", pages)
	}
}

func TestFPRoundTrip(t *testing.T) { onEngines(t, testFPRoundTrip) }

func testFPRoundTrip(t tester) {
	b := newBench(t, `fldpi
		fld1
		movq xmm3, rsp
		syscall
		faddp
		fistp qword ptr [rsp-8]
		mov rax, [rsp-8]
		movq rbx, xmm3
		syscall`)
	b.CPU.Run(arch.Limit{})
	var image, other [arch.FPSize]byte
	b.CPU.FP(&image)
	fresh := b.CPU.NewContext()
	rip := b.Regs().RIP
	b.CPU.Load(fresh, b.Space)
	b.CPU.SetFP(&image)
	b.CPU.FP(&other)
	if image != other {
		t.Errorf("the image changed:\n% x\n% x", image, other)
	}
	b.ChangeRegs(func(r *arch.Regs) { r.RIP = rip; r.GPR[arch.RSP] = uint64(stackBase) + arch.PageSize })
	b.CPU.Run(arch.Limit{})
	if r := b.Regs(); r.GPR[arch.RAX] != 4 || r.GPR[arch.RBX] != uint64(stackBase)+arch.PageSize {
		t.Errorf("pi + 1 rounds to %d and xmm3 is %#x; want 4 and %#x", r.GPR[arch.RAX], r.GPR[arch.RBX], uint64(stackBase)+arch.PageSize)
	}
}

// TestFaultsDoNotMoveStops expects that the place where a run stops does not depend on which pages
// are present.
func TestFaultsDoNotMoveStops(t *testing.T) { onEngines(t, testFaultsDoNotMoveStops) }

func testFaultsDoNotMoveStops(t tester) {
	const source = `mov rbx, 0x900000
		mov ecx, 40
		1: add rax, 3
		mov [rbx], rax
		lea rbx, [rbx + 0x7f8]
		mov rdx, [rbx]
		add rax, rdx
		xor rdx, rcx
		dec ecx
		jnz 1b
		lock inc rax
		syscall`
	type point struct{ pc, instructions, cycles uint64 }
	trace := func(mapped bool, budget uint64, exact bool) (list []point) {
		b := newBench(t, strings.Replace(source, "lock inc rax", "lock inc qword ptr [rsp-8]", 1))
		for at := arch.Addr(0x900000); mapped && at < 0x920000; at += arch.PageSize {
			b.MapPage(at, arch.Read|arch.Write)
		}
		for {
			s := b.CPU.Run(arch.Limit{Instructions: budget, Exact: exact, AtSync: budget%2 == 0, Pass: true})
			for s.Reason == arch.StopFault {
				b.MapPage(s.Page&^(arch.PageSize-1), arch.Read|arch.Write)
				s = b.CPU.Resume()
			}
			list = append(list, point{b.Regs().RIP, s.Instructions, uint64(s.Cycles)})
			if s.Reason == arch.StopSyscall {
				return list
			}
		}
	}
	for budget := uint64(1); budget < 20; budget++ {
		for _, exact := range []bool{false, true} {
			if got, want := trace(false, budget, exact), trace(true, budget, exact); !slices.Equal(got, want) {
				t.Errorf("budget %d, exact %v: stops at %v with faults, at %v without", budget, exact, got, want)
			}
		}
	}
}

// TestMoreCodeThanTheBufferHolds runs more code than the engine's buffer of translated code can
// have, and expects that the host's memory does not grow beyond the buffer.
func TestMoreCodeThanTheBufferHolds(t *testing.T) { onEngines(t, testMoreCodeThanTheBufferHolds) }

func testMoreCodeThanTheBufferHolds(t tester) {
	if testing.Short() {
		t.Skip("translates half a million blocks")
	}
	const pages, perPage = 768, arch.PageSize / 5
	b := newBench(t, "nop")
	end := codeBase + pages*arch.PageSize
	for page := range arch.Addr(pages) {
		b.MapPage(codeBase+page*arch.PageSize, arch.Read|arch.Exec)
		code := b.RAM.Bytes(b.Space.Get(codeBase + page*arch.PageSize).Page())
		for i := range perPage {
			copy(code[5*i:], "\x48\xff\xc0\xeb\x00") // inc rax; jmp to the next
		}
		code[arch.PageSize-1] = 0x90
	}
	b.MapPage(end, arch.Read|arch.Exec)
	copy(b.RAM.Bytes(b.Space.Get(end).Page()), "\x0f\x05")
	for round := range uint64(2) {
		b.ChangeRegs(func(r *arch.Regs) { r.RIP = uint64(codeBase) })
		s := b.CPU.Run(arch.Limit{})
		b.ExpectStop(s, arch.StopSyscall, uint64(end)+2, pages*(2*perPage+1)+1)
		if got := b.Regs().GPR[arch.RAX]; got != (round+1)*pages*perPage {
			t.Fatalf("round %d: rax = %d, want %d", round, got, (round+1)*pages*perPage)
		}
	}
}

// TestFaultAheadOfTheProgram expects code before a missing page to be executed, up to the
// instruction of which a part is missing. An engine that translates a whole block before it executes
// any of it reports the fault before it has executed anything, as Ahead.
func TestFaultAheadOfTheProgram(t *testing.T) { onEngines(t, testFaultAheadOfTheProgram) }

func testFaultAheadOfTheProgram(t tester) {
	b := newBench(t, `.fill 4084, 1, 0x90
		mov eax, 1
		mov ecx, 2
		nop`) // then comes the first byte of an ADD, and the page ends
	for range 3 {
		b.ChangeRegs(func(r *arch.Regs) { r.RIP, r.GPR[arch.RAX], r.GPR[arch.RCX] = uint64(codeBase)+4080, 0, 0 })
		s := b.CPU.Run(arch.Limit{})
		if s.Ahead {
			if s.Reason != arch.StopFault || s.Instructions != 0 {
				t.Fatalf("%+v, want a fault before the first instruction", s)
			}
			b.CPU.StepAhead()
			s = b.CPU.Resume()
		}
		b.ExpectStop(s, arch.StopFault, uint64(codeBase)+4095, 7)
		if r := b.Regs(); s.Ahead || r.GPR[arch.RAX] != 1 || r.GPR[arch.RCX] != 2 || b.CPU.FaultAddr() != codeBase+arch.PageSize {
			t.Fatalf("%+v at %#x, rax %d, rcx %d", s, b.CPU.FaultAddr(), r.GPR[arch.RAX], r.GPR[arch.RCX])
		}
	}
}

// TestPauseInSteppedBlock: a block with RDTSC is executed one instruction at a time, and the engine
// would execute the instruction after PAUSE without counting it.
func TestPauseInSteppedBlock(t *testing.T) { onEngines(t, testPauseInSteppedBlock) }

func testPauseInSteppedBlock(t tester) {
	b := newBench(t, `rdtsc
		pause
		inc ecx
		pause
		rdtsc
		syscall`)
	const size = 2 + 2 + 2 + 2 + 2 + 2
	b.ExpectStop(b.CPU.Run(arch.Limit{}), arch.StopSyscall, uint64(codeBase)+size, 6)
	for n := range uint64(5) {
		b.ChangeRegs(func(r *arch.Regs) { r.RIP, r.GPR[arch.RCX] = uint64(codeBase), 0 })
		s := b.CPU.Run(arch.Limit{Instructions: n + 1, Exact: true})
		b.ExpectStop(s, arch.StopBudget, uint64(codeBase)+2*(n+1), n+1)
		if want := min(n/2, 1); b.Regs().GPR[arch.RCX] != want {
			t.Errorf("after %d instructions rcx is %d, want %d", n+1, b.Regs().GPR[arch.RCX], want)
		}
	}
	for _, at := range []uint64{4, 8} {
		b.ChangeRegs(func(r *arch.Regs) { r.RIP = uint64(codeBase) + at - 4 })
		b.ExpectStop(b.CPU.Run(arch.Limit{AtPause: true}), arch.StopPause, uint64(codeBase)+at, 2)
	}
}

// TestCodeChangedPieceByPiece runs functions in one page, and one that lies in two, then changes
// each and runs it again. The change of one must not hide the change of the next.
func TestCodeChangedPieceByPiece(t *testing.T) { onEngines(t, testCodeChangedPieceByPiece) }

func testCodeChangedPieceByPiece(t tester) {
	b := newBench(t, `
		lea rbx, [rip + 5f]
		xor ebp, ebp
		call 3f
		inc ebp
		1: mov rcx, rbp
		imul rcx, rcx, 64
		lea rcx, [rbx + rcx]
		mov byte ptr [rcx + 1], 9
		call rcx
		add r12, rax
		inc ebp
		cmp ebp, 4
		jb 1b
		mov byte ptr [rip + 4f + 9], 9
		call 6f
		add r12, rax
		syscall
		3: call 5f
		call 5f + 64
		call 5f + 128
		call 5f + 192
		call 6f
		ret
		.balign 64
		5: .rept 4
		mov eax, 5
		ret
		.balign 64
		.endr
		.org 4090
		6: nop
		4: movabs rax, 0x0500000000000000
		shr rax, 56
		ret`)
	b.Space.Protect(codeBase, codeBase+2*arch.PageSize, arch.Read|arch.Write|arch.Exec)
	s := b.CPU.Run(arch.Limit{})
	if r := b.Regs(); s.Reason != arch.StopSyscall || r.GPR[arch.R12] != 4*9 {
		t.Errorf("reason %d, sum %d; want 36", s.Reason, r.GPR[arch.R12])
	}
}
