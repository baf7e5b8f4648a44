package memmodel_test

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/internal/gcc"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/explore"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

// columnsC runs the tests of an assembler file, a thread for each column.
//
//go:embed testdata/columns.c
var columnsC []byte

// programTests are the classic tests that run as programs besides those with instructions
// in several accesses: one for each way in which two or four accesses can be ordered.
var programTests = []string{"SB", "MP", "LB", "2+2W", "R", "S", "IRIW"}

var programRegs = [16]string{
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
}

// place is a register of a column.
type place struct {
	thread int
	reg    litmus.Reg
}

// programTest is a litmus test as part of a program.
type programTest struct {
	*litmus.Test
	code     []litmus.Code
	observer *litmus.Observer
	observed []place // the registers that are printed, by columns
	words    []int   // the offsets of the words of memory that the test touches
}

func newProgramTest(t *testing.T, test *litmus.Test, code []litmus.Code) *programTest {
	p := &programTest{Test: test, code: code, observer: test.Observer()}
	for _, l := range p.observer.Locs {
		if l.IsReg() {
			p.observed = append(p.observed, place{l.Thread, l.Reg})
		}
	}
	slices.SortStableFunc(p.observed, func(a, b place) int { return a.thread - b.thread })
	for _, th := range test.Threads {
		for i := range th.Code {
			p.touch(t, th.Code[i].Dst)
			p.touch(t, th.Code[i].Src)
		}
	}
	slices.Sort(p.words)
	p.words = slices.Compact(p.words)
	return p
}

// touch adds the words of an operand in memory.
func (p *programTest) touch(t *testing.T, o litmus.Operand) {
	if o.Kind != litmus.MemOperand {
		return
	}
	if o.Reg != litmus.NoReg || o.Index != litmus.NoReg {
		t.Fatalf("%s has an address in a register, which such a program cannot have", p.Name)
	}
	at := int(p.Number(o)) - litmus.DataBase
	for w := at / 8 * 8; w < at+8 && w < len(p.Memory()); w += 8 {
		p.words = append(p.words, w)
	}
}

// used are the registers that a column has or that are observed of it.
func (p *programTest) used(thread int) []litmus.Reg {
	regs := []litmus.Reg{0}
	add := func(o litmus.Operand) {
		if o.Kind == litmus.RegOperand {
			regs = append(regs, o.Reg)
		}
	}
	for i := range p.Threads[thread].Code {
		add(p.Threads[thread].Code[i].Dst)
		add(p.Threads[thread].Code[i].Src)
	}
	for _, o := range p.observed {
		if o.thread == thread {
			regs = append(regs, o.reg)
		}
	}
	slices.Sort(regs)
	return slices.Compact(regs)
}

func (p *programTest) initial(thread int, reg litmus.Reg) uint64 {
	for _, r := range p.Regs {
		if r.Thread == thread && r.Reg == reg {
			return p.Address(r.Value)
		}
	}
	return 0
}

// assembly writes the test's functions.
func (p *programTest) assembly(b *strings.Builder, n int) {
	for i := range p.Threads {
		p.column(b, n, i)
	}
	memory := p.Memory()
	fmt.Fprintf(b, "reset%d:\n", n)
	for k, w := range p.words {
		fmt.Fprintf(b, "movq %#x,%%rax\nmovq %%rax,%d(%%rdi)\n", litmus.DataBase+w, 8*k)
		fmt.Fprintf(b, "movabs $%d,%%rax\nmovq %%rax,%#x\n", binary.LittleEndian.Uint64(memory[w:]), litmus.DataBase+w)
	}
	fmt.Fprintf(b, "ret\nbegin%d:\n", n)
	for w := 0; w < len(memory); w += 8 {
		fmt.Fprintf(b, "movabs $%d,%%rax\nmovq %%rax,%#x\n", binary.LittleEndian.Uint64(memory[w:]), litmus.DataBase+w)
	}
	b.WriteString("ret\n")
}

// column writes the function of a column. Its result is at rdi, which stays on the stack
// while the column's code runs.
func (p *programTest) column(b *strings.Builder, n, thread int) {
	fmt.Fprintf(b, "column%d_%d:\n", n, thread)
	var saved []string
	for _, r := range p.used(thread) {
		if slices.Contains([]string{"rbx", "rbp", "r12", "r13", "r14", "r15"}, programRegs[r]) {
			saved = append(saved, programRegs[r])
		}
	}
	for _, name := range saved {
		fmt.Fprintf(b, "push %%%s\n", name)
	}
	b.WriteString("push %rdi\n")
	for _, r := range p.used(thread) {
		fmt.Fprintf(b, "movabs $%d,%%%s\n", p.initial(thread, r), programRegs[r])
	}
	b.WriteString(".byte ")
	code := p.code[thread]
	for k, c := range code.Bytes[:code.Starts[len(code.Starts)-1]] {
		fmt.Fprintf(b, "%s%d", map[bool]string{true: ","}[k > 0], c)
	}
	b.WriteString("\n")
	var at []int
	for k, o := range p.observed {
		if o.thread == thread {
			at = append(at, k)
			fmt.Fprintf(b, "push %%%s\n", programRegs[o.reg])
		}
	}
	fmt.Fprintf(b, "mfence\nmov %d(%%rsp),%%rdi\n", 8*len(at))
	for _, k := range slices.Backward(at) {
		fmt.Fprintf(b, "popq %d(%%rdi)\n", 8*k)
	}
	b.WriteString("pop %rdi\n")
	for _, name := range slices.Backward(saved) {
		fmt.Fprintf(b, "pop %%%s\n", name)
	}
	b.WriteString("ret\n")
}

// buildColumns compiles the program with all tests.
func buildColumns(t *testing.T, tests []*programTest) string {
	var b strings.Builder
	b.WriteString(".text\n")
	for n, p := range tests {
		p.assembly(&b, n)
	}
	b.WriteString(".section .rodata\n.balign 8\n.globl tests\ntests:\n")
	for n, p := range tests {
		fmt.Fprintf(&b, ".quad %d,%d,%d\n", len(p.Threads), len(p.observed), len(p.words))
		for i := range 4 {
			if i < len(p.Threads) {
				fmt.Fprintf(&b, ".quad column%d_%d\n", n, i)
			} else {
				b.WriteString(".quad 0\n")
			}
		}
		fmt.Fprintf(&b, ".quad reset%d,begin%d\n", n, n)
	}
	b.WriteString(".section .note.GNU-stack\n")
	path, err := gcc.Build{
		Cache: "heddle-litmus", Name: "columns", Label: "tests",
		Args:    []string{"-O2", "-static", "-pthread", "columns.c", "tests.s"},
		Sources: []gcc.Source{{Path: "columns.c", Text: columnsC}, {Path: "tests.s", Text: []byte(b.String())}},
	}.Make()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs a test as a program for some rounds and adds the outcomes that it ends in.
func (p *programTest) run(t *testing.T, engine, bin string, n int, model memmodel.Model, seed uint64, rounds int, to *litmus.Outcomes) {
	var out, diagnostics bytes.Buffer
	c := machine.DefaultConfig()
	c.Args = []string{bin, strconv.Itoa(n), strconv.Itoa(rounds)}
	c.Cores, c.Seed = len(p.Threads), seed
	c.Sched.Policy, c.Sched.Granularity, c.Sched.Quantum = "random", "instruction", 3
	c.Memory.Model, c.Engine = model.String(), engine
	c.Stdout, c.Stderr = &out, &diagnostics
	result, err := machine.Run(context.Background(), c)
	if err != nil || result.ExitCode != 0 {
		t.Fatalf("%s: %+v, %v\n%s", p.Name, result, err, diagnostics.String())
	}
	size := 8 * (len(p.observed) + len(p.words))
	if out.Len() != rounds*size {
		t.Fatalf("%s: %d bytes of results, want %d", p.Name, out.Len(), rounds*size)
	}
	memory := p.Memory()
	for range rounds {
		record := out.Next(size)
		for k, w := range p.words {
			copy(memory[w:w+8], record[8*(len(p.observed)+k):])
		}
		reg := func(thread int, r litmus.Reg) uint64 {
			return binary.LittleEndian.Uint64(record[8*slices.Index(p.observed, place{thread, r}):])
		}
		to.Add(p.observer.State(reg, memory), 1)
	}
}

// TestProgramsEndAsExplored runs litmus tests as programs, whose threads are preempted
// between any two accesses, and compares the outcomes with those of the explorer: there
// are no others, and each of them comes up.
func TestProgramsEndAsExplored(t *testing.T) {
	texts := textsOf(readTests(t, "testdata/split.txt"))
	for _, name := range programTests {
		for _, c := range classics(t) {
			if strings.HasPrefix(c.text, "X86_64 "+name+"\n") {
				texts = append(texts, c.text)
			}
		}
	}
	tests, codes := parseAll(t, texts)
	var programs []*programTest
	for i, test := range tests {
		programs = append(programs, newProgramTest(t, test, codes[i]))
	}
	if want := len(readTests(t, "testdata/split.txt")) + len(programTests); len(programs) != want {
		t.Fatalf("%d tests, want %d", len(programs), want)
	}
	bin := buildColumns(t, programs)
	m := newMachine(t)
	var numbers []int
	for n := range programs {
		numbers = append(numbers, n)
	}
	for k, model := range memmodel.Models() {
		for _, n := range testsize.Sample(numbers, testsize.Pick(3, len(numbers), len(numbers)), k) {
			programs[n].compare(t, engines.Direct, m, bin, n, model)
		}
		for _, n := range testsize.Sample(numbers, testsize.Pick(1, len(numbers)/2, len(numbers)), k) {
			programs[n].compare(t, engines.Unicorn, m, bin, n, model)
		}
	}
}

// moreSeeds is how many more runs a test may take until the last of its outcomes comes up. The
// rarest now takes eight: under TSO half a store is seldom seen without the other.
const moreSeeds = 60

// compare runs a test with seeds until all outcomes came up.
func (p *programTest) compare(t *testing.T, engine string, m *explore.Machine, bin string, n int, model memmodel.Model) {
	t.Helper()
	explored := explored(t, m, p.Test, p.code, explore.Options{Model: model}).Outcomes
	seen := litmus.NewOutcomes(p.observer)
	least := uint64(testsize.Runs(1, 2, 20))
	seed := uint64(1)
	for ; seed <= least || seed <= least+moreSeeds && len(explored.Minus(seen)) > 0; seed++ {
		p.run(t, engine, bin, n, model, seed, 300, seen)
		for _, s := range seen.Minus(explored) {
			t.Fatalf("%s on %s under %v, seed %d: the program ends in %s, which the explorer has not", p.Name, engine, model, seed, p.observer.Format(s))
		}
	}
	for _, s := range explored.Minus(seen) {
		t.Errorf("%s on %s under %v: no run of %d ends in %s", p.Name, engine, model, seed-1, p.observer.Format(s))
	}
}
