package emu_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/emutest"
	"golang.org/x/arch/x86/x86asm"
)

// branchy has every kind of branch, a fault in a page that is then supplied (at dataBase+0x10000),
// a repeated string instruction and an SSE instruction that is executed alone.
const branchy = `
	mov ebx, 30
	lea r15, [rip+table]
again:
	mov eax, ebx
	and eax, 3
	movsxd rax, dword ptr [r15+rax*4]
	add rax, r15
	jmp rax
c0:	call f
	jmp next
c1:	lea r8, [rip+f]
	call r8
	stmxcsr [rsp-8]
	jmp next
c2:	mov rdi, 0x600000
	mov ecx, ebx
	and ecx, 7
	rep stosb
	mov ecx, 5
	mov rsi, 0x600000
	repe cmpsb
	mov ecx, 9
	mov al, 3
	repne scasb
	jmp next
c3:	mov rdi, 0x610000
	mov [rdi+rbx], bl
	loop next
	pause
next:
	dec ebx
	jnz again
	syscall
f:	test bl, 4
	jz 1f
	push rbx
	call g
	pop rbx
1:	ret
g:	xor r9, rbx
	bt r9, 2
	jc 2f
	jmp 3f
2:	nop
3:	ret
	.balign 4
table:	.long c0-table, c1-table, c2-table, c3-table
`

const dataFault arch.Addr = 0x610000

func newBranchy(t tester) *bench { return newBench(t, branchy) }

// supplyPage supplies the page in which branchy faults.
func (b *bench) supplyPage(s arch.Stop) {
	if s.Page&^(arch.PageSize-1) != dataFault {
		b.Fatalf("fault at %#x", s.Page)
	}
	b.MapPage(dataFault, arch.Read|arch.Write)
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

// expectedBySteps derives the log and the number of repeated iterations by running one instruction
// at a time and decoding with another decoder.
func expectedBySteps(t tester) (log []string, repeated uint64) {
	b := newBranchy(t)
	for {
		pc := b.Regs().RIP
		code := b.RAM.Bytes(b.Space.Get(codeBase).Page())[pc-uint64(codeBase):]
		in, err := x86asm.Decode(code, 64)
		if err != nil {
			t.Fatal(err)
		}
		s := b.CPU.Run(arch.Limit{Instructions: 1, Exact: true})
		for s.Reason == arch.StopFault {
			b.supplyPage(s)
			s = b.CPU.Resume()
		}
		if s.Reason == arch.StopSyscall {
			return log, repeated
		}
		next, end := b.Regs().RIP, pc+uint64(in.Len)
		_, direct := in.Args[0].(x86asm.Rel)
		switch {
		case in.Op == x86asm.CALL:
			log = append(log, fmt.Sprintf("%d %#x", emu.TagCall, end))
			if !direct {
				log = append(log, fmt.Sprintf("%d %#x", emu.TagTIP, next))
			}
		case in.Op == x86asm.RET:
			log = append(log, fmt.Sprintf("%d %#x", emu.TagRet, next))
		case in.Op == x86asm.JMP && !direct:
			log = append(log, fmt.Sprintf("%d %#x", emu.TagTIP, next))
		case in.Op != x86asm.JMP && direct:
			taken := 0
			if next != end {
				taken = 1
			}
			log = append(log, fmt.Sprint("tnt ", taken))
		case next == pc: // a repeated string instruction
			repeated++
		}
	}
}

// runLogged runs branchy to its end in runs of a limit. It returns the log, the end of each run and
// the sums of instructions and of repeated iterations.
func runLogged(t tester, l arch.Limit, breakpoints []arch.Addr, timed bool) (log, ends []string, sum arch.Stop) {
	log, ends, sum, _ = runPolled(t, l, breakpoints, timed, 0)
	return log, ends, sum
}

// runPolled is runLogged with stops at an interval of instructions, which it counts.
func runPolled(t tester, l arch.Limit, breakpoints []arch.Addr, timed bool, every uint64) (log, ends []string, sum arch.Stop, looks int) {
	b := newBranchy(t)
	b.CPU.SetPollInterval(every)
	if err := b.CPU.LogBranches(timed); err != nil {
		t.Fatal(err)
	}
	b.CPU.SetBreakpoints(breakpoints)
	l.Pass = true
	for {
		s := b.CPU.Run(l)
		for s.Reason == arch.StopFault || s.Reason == arch.StopBreakpoint || s.Reason == arch.StopLog {
			if s.Reason == arch.StopFault {
				b.supplyPage(s)
			}
			if s.Reason == arch.StopLog {
				looks++
			}
			s = b.CPU.Resume()
		}
		log = append(log, flattenLog(b.CPU.Branches())...)
		b.CPU.Drained()
		ends = append(ends, fmt.Sprintf("%#x after %d, %d cycles, reason %d", b.Regs().RIP, s.Instructions, s.Cycles, s.Reason))
		sum.Instructions += s.Instructions
		sum.Repeated += s.Repeated
		if s.Reason == arch.StopSyscall {
			return log, ends, sum, looks
		}
	}
}

// TestLooksChangeNothing expects that a run which is stopped and resumed at intervals has the same
// branches, counts and end as one that is not.
func TestLooksChangeNothing(t *testing.T) { onEngines(t, testLooksChangeNothing) }

func testLooksChangeNothing(t tester) {
	for _, l := range []arch.Limit{
		{},
		{Instructions: 7},
		{Instructions: 7, Exact: true},
		{Cycles: 50},
		{Cycles: 23, Exact: true},
		{AtPause: true},
		{AtPause: true, Instructions: 20, Exact: true},
		{AtSync: true},
	} {
		want, wantEnds, wantSum := runLogged(t, l, nil, true)
		for _, every := range []uint64{1, 2, 3, 10, 100} {
			log, ends, sum, looks := runPolled(t, l, nil, true, every)
			if !slices.Equal(log, want) || !slices.Equal(ends, wantEnds) || sum != wantSum {
				t.Errorf("%+v, every %d:\n%q\n%q\n%+v, want\n%q\n%q\n%+v", l, every, log, ends, sum, want, wantEnds, wantSum)
			}
			if l.Instructions == 0 && l.Cycles == 0 && looks == 0 {
				t.Errorf("%+v, every %d: it never stopped", l, every)
			}
		}
	}
}

func TestBranchLog(t *testing.T) { onEngines(t, testBranchLog) }

func testBranchLog(t tester) {
	want, repeated := expectedBySteps(t)
	if len(want) < 100 || repeated < 10 {
		t.Fatalf("bad test: %d branches, %d repeated", len(want), repeated)
	}
	var everywhere []arch.Addr
	for a := range arch.Addr(200) {
		everywhere = append(everywhere, codeBase+a)
	}
	for _, l := range []arch.Limit{
		{},
		{Instructions: 1},
		{Instructions: 7},
		{Instructions: 7, Exact: true},
		{Instructions: 1, Exact: true},
		{Cycles: 50},
		{Cycles: 23, Exact: true},
		{AtPause: true},
		{AtPause: true, Instructions: 20, Exact: true},
	} {
		log, ends, sum := runLogged(t, l, nil, false)
		if !slices.Equal(log, want) || sum.Repeated != repeated {
			t.Fatalf("%+v: log is\n%q, %d repeated, want\n%q, %d", l, log, sum.Repeated, want, repeated)
		}
		if timed, _, _ := runLogged(t, l, nil, true); !slices.Equal(timed, want) {
			t.Errorf("%+v, timed: log differs", l)
		}
		// Breakpoints change neither the log nor the ends of runs.
		broken, brokenEnds, _ := runLogged(t, l, everywhere, false)
		if !slices.Equal(broken, want) {
			t.Errorf("%+v: breakpoints change the log", l)
		}
		if !slices.Equal(brokenEnds, ends) {
			t.Errorf("%+v: breakpoints change the ends of runs:\n%q, without:\n%q", l, brokenEnds, ends)
		}
	}
}

// TestLogMovesNothing expects that logging does not move the ends of runs.
func TestLogMovesNothing(t *testing.T) { onEngines(t, testLogMovesNothing) }

func testLogMovesNothing(t tester) {
	for _, l := range []arch.Limit{{Instructions: 13}, {Cycles: 31}, {Instructions: 5, Exact: true}} {
		_, ends, _ := runLogged(t, l, nil, false)
		b := newBranchy(t)
		for i := range ends {
			s := b.CPU.Run(l)
			for s.Reason == arch.StopFault {
				b.supplyPage(s)
				s = b.CPU.Resume()
			}
			got := fmt.Sprintf("%#x after %d, %d cycles, reason %d", b.Regs().RIP, s.Instructions, s.Cycles, s.Reason)
			if got != ends[i] {
				t.Fatalf("%+v: run %d ends at %s, logged at %s", l, i, got, ends[i])
			}
		}
	}
}

func TestFullLogStopsAndResumes(t *testing.T) { onEngines(t, testFullLogStopsAndResumes) }

func testFullLogStopsAndResumes(t tester) {
	b := newBench(t, `mov ecx, 1000000
		lea rax, [rip+1f]
		1: dec ecx
		jz 2f
		jmp rax
		2: syscall`)
	if err := b.CPU.LogBranches(false); err != nil {
		t.Fatal(err)
	}
	outcomes, targets, stops := 0, 0, 0
	s := b.CPU.Run(arch.Limit{})
	for {
		for _, w := range b.CPU.Branches() {
			if w.Tag() == emu.TagTNT {
				_, n := w.Outcomes()
				outcomes += n
			} else {
				targets++
			}
		}
		b.CPU.Drained()
		if s.Reason != arch.StopLog {
			break
		}
		stops++
		s = b.CPU.Resume()
	}
	if outcomes != 1_000_000 || targets != 999_999 || stops < 10 || s.Instructions != 3_000_002 {
		t.Errorf("%d outcomes, %d targets, %d stops, %d instructions", outcomes, targets, stops, s.Instructions)
	}
}

// TestOutcomesOfLongBlocks runs a loop with 24 conditional branches in a row, which has the bits of numbers as its
// outcomes, often enough that engines make long blocks of it.
func TestOutcomesOfLongBlocks(t *testing.T) { onEngines(t, testOutcomesOfLongBlocks) }

func testOutcomesOfLongBlocks(t tester) {
	const rounds, bits, factor, added = 3000, 24, 1664525, 1013904223
	var code strings.Builder
	fmt.Fprintf(&code, "mov ecx, %d\nmov edx, 1\n1: imul edx, edx, %d\nadd edx, %d\n", rounds, factor, added)
	for k := range bits {
		fmt.Fprintf(&code, "bt edx, %d\njc 2f\nnop\n2:\n", 31-k)
	}
	code.WriteString("dec ecx\njnz 1b\nsyscall")
	var want []byte
	for x, n := uint32(1), rounds; n > 0; n-- {
		x = x*factor + added
		for k := range bits {
			want = append(want, byte(x>>(31-k)&1))
		}
		want = append(want, byte(min(n-1, 1)))
	}
	b := newBench(t, code.String())
	if err := b.CPU.LogBranches(false); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for {
		s := b.CPU.Run(arch.Limit{Instructions: 10_000})
		for _, w := range b.CPU.Branches() {
			outcomes, n := w.Outcomes()
			for i := n - 1; i >= 0; i-- {
				got = append(got, byte(outcomes>>i&1))
			}
		}
		b.CPU.Drained()
		if s.Reason == arch.StopSyscall {
			break
		}
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d outcomes, want %d, or they differ", len(got), len(want))
	}
}

// TestCodeLog expects the code as it was when it was executed.
func TestCodeLog(t *testing.T) { onEngines(t, testCodeLog) }

func testCodeLog(t tester) {
	b := newBench(t, `mov ecx, 2
		1: lea rdi, [rip+2f]
		mov byte ptr [rdi+1], cl
		jmp 2f
		2: mov al, 0
		dec ecx
		jnz 1b
		syscall`)
	b.MapPage(codeBase, arch.Read|arch.Write|arch.Exec)
	copy(b.RAM.Bytes(b.Space.Get(codeBase).Page()), emutest.Assemble(t, `mov ecx, 2
		1: lea rdi, [rip+2f]
		mov byte ptr [rdi+1], cl
		jmp 2f
		2: mov al, 0
		dec ecx
		jnz 1b
		syscall`))
	if err := b.CPU.LogBranches(false); err != nil {
		t.Fatal(err)
	}
	s := b.CPU.Run(arch.Limit{})
	b.ExpectStop(s, arch.StopSyscall, b.Regs().RIP, 14)
	// MOV AL is the third instruction from the end, and is executed after 4 and 10 instructions.
	at := arch.Addr(b.Regs().RIP) - 8
	for executed, want := range map[uint64][]byte{4: {0xb0, 2}, 10: {0xb0, 1}} {
		var got []byte
		for c := range b.CPU.Code {
			if k := at - c.PC; c.At <= executed && int(k) < len(c.Bytes) {
				got = slices.Clone(c.Bytes[k:][:2])
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %d instructions: % x, want % x", executed, got, want)
		}
	}
}
