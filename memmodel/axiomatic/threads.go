package axiomatic

import (
	"fmt"
	"iter"
	"slices"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

var (
	errLoop = errs.Define("litmus-loop",
		"{file}:{line}: the axiomatic checker cannot follow the loop that the jump closes",
		"The jump goes back, so that the thread has runs without bound.",
		"Unroll the loop in the test, or explore the test on the machine alone.")
	errOutside = errs.Define("litmus-outside",
		"{file}:{line}: P{thread} accesses {address}, where the test has no location",
		"A register that serves as an address does not point to a location of the test, or beyond its end.",
		"Give the register the address of a location in the initial state.")
)

type kind uint8

const (
	read kind = iota
	write
	fullFence
	storeFence
)

// event is an access of a thread, or a fence.
type event struct {
	thread, instr int
	kind          kind
	at, size      int // offset from litmus.DataBase
	value         uint64
	locked        bool // half of an atomic instruction
	weak          bool // non-temporal
}

func (e event) String() string {
	name := [...]string{"R", "W", "MFENCE", "SFENCE"}[e.kind]
	if e.kind > write {
		return fmt.Sprintf("P%d %s", e.thread, name)
	}
	return fmt.Sprintf("P%d %s%d[%#x]=%d", e.thread, name, e.size, e.at, e.value)
}

// trace is a run of one thread on guessed values.
type trace struct {
	events []event
	regs   [16]uint64
}

// store is a write as other threads may see it.
type store struct {
	at, size int
	value    uint64
}

// guesser runs one thread on all values that its reads could return.
type guesser struct {
	test    *litmus.Test
	thread  int
	init    []byte
	foreign []store // writes of other threads
	traces  []trace
	err     error
}

// run is one run under way: the choices to make again, then new ones.
type run struct {
	*guesser
	choices  []int // at each read, which value
	limits   []int // ... of how many
	made     int
	reg      registers
	events   []event
	pc, next int
}

// allTraces finds every trace, by making every sequence of choices.
func (g *guesser) allTraces() error {
	choices := []int{}
	for {
		r := &run{guesser: g, choices: choices}
		r.completeRun()
		if g.err != nil {
			return g.err
		}
		g.traces = append(g.traces, trace{r.events, r.reg.r})
		last := len(r.limits) - 1
		for last >= 0 && r.choices[last]+1 == r.limits[last] {
			last--
		}
		if last < 0 {
			return nil
		}
		choices = append(slices.Clone(r.choices[:last]), r.choices[last]+1)
	}
}

// completeRun runs the thread from its start to its end.
func (r *run) completeRun() {
	for _, init := range r.test.Regs {
		if init.Thread == r.thread {
			r.reg.r[init.Reg] = r.test.Address(init.Value)
		}
	}
	code := r.test.Threads[r.thread].Code
	for r.pc = 0; r.pc < len(code) && r.err == nil; r.pc = r.next {
		r.next = r.pc + 1
		r.executeInstr(&code[r.pc])
	}
}

func (r *run) jumpTo(in *litmus.Instr) {
	if in.Target <= r.pc {
		r.err = errLoop.New(r.test.File, in.Line)
	}
	r.next = in.Target
}

// executeInstr executes one instruction.
func (r *run) executeInstr(in *litmus.Instr) {
	locked := in.Lock || in.Op == "xchg" && in.Dst.Kind == litmus.MemOperand
	switch in.Op {
	case "nop", "endbr64", "pause", "lfence":
	case "mfence":
		r.addEvent(event{kind: fullFence})
	case "sfence":
		r.addEvent(event{kind: storeFence})
	case "ret", "jmp":
		r.jumpTo(in)
	case "jcc":
		if r.reg.f.holdsCondition(in.Cond) {
			r.jumpTo(in)
		}
	case "setcc":
		v := uint64(0)
		if r.reg.f.holdsCondition(in.Cond) {
			v = 1
		}
		r.writeOperand(in.Dst, 1, v, false, false)
	case "cmovcc":
		v := r.readOperand(in.Src, in.Size, false)
		if !r.reg.f.holdsCondition(in.Cond) {
			v = r.reg.readPart(in.Dst, in.Size)
		}
		r.writeOperand(in.Dst, in.Size, v, false, false)
	case "lea":
		r.writeOperand(in.Dst, in.Size, r.reg.addressOf(r.test, in.Src), false, false)
	case "mov", "movabs", "movnti":
		r.writeOperand(in.Dst, in.Size, r.readOperand(in.Src, in.Size, false), false, in.Op == "movnti")
	case "movzx":
		r.writeOperand(in.Dst, in.Size, r.readOperand(in.Src, in.SrcSize, false), false, false)
	case "movsx":
		r.writeOperand(in.Dst, in.Size, signExtend(r.readOperand(in.Src, in.SrcSize, false), in.SrcSize), false, false)
	default:
		r.arithmetic(in, locked)
	}
}

// arithmetic executes an instruction that reads its destination.
func (r *run) arithmetic(in *litmus.Instr, locked bool) {
	n := in.Size
	a := r.readOperand(in.Dst, n, locked)
	switch in.Op {
	case "cmp", "test":
		r.reg.f.computeResult(in.Op, a, r.readOperand(in.Src, n, false), n)
	case "xchg":
		b := r.readOperand(in.Src, n, false)
		r.writeOperand(in.Dst, n, b, locked, false)
		r.writeOperand(in.Src, n, a, false, false)
	case "xadd":
		b := r.readOperand(in.Src, n, false)
		sum := r.reg.f.computeResult("add", a, b, n)
		r.writeOperand(in.Src, n, a, false, false)
		r.writeOperand(in.Dst, n, sum, locked, false)
	case "cmpxchg":
		r.compareExchange(in, a, locked)
	case "inc", "dec", "neg", "not":
		r.writeOperand(in.Dst, n, r.reg.f.computeResult(in.Op, a, 0, n), locked, false)
	default:
		b := r.readOperand(in.Src, n, false)
		r.writeOperand(in.Dst, n, r.reg.f.computeResult(in.Op, a, b, n), locked, false)
	}
}

// compareExchange executes CMPXCHG, which writes a destination in memory in any case (SDM volume
// 2). A register that is not equal keeps its upper half, too.
func (r *run) compareExchange(in *litmus.Instr, a uint64, locked bool) {
	n := in.Size
	rax := litmus.Operand{Kind: litmus.RegOperand}
	r.reg.f.computeResult("cmpxchg", r.reg.readPart(rax, n), a, n)
	if r.reg.f.z {
		r.writeOperand(in.Dst, n, r.readOperand(in.Src, n, false), locked, false)
		return
	}
	if in.Dst.Kind != litmus.RegOperand {
		r.writeOperand(in.Dst, n, a, locked, false)
	}
	r.reg.writePart(rax, n, a)
}

// readOperand reads an operand.
func (r *run) readOperand(o litmus.Operand, size int, locked bool) uint64 {
	switch o.Kind {
	case litmus.RegOperand:
		return r.reg.readPart(o, size)
	case litmus.ImmOperand:
		return uint64(r.test.Number(o)) & sizeMask(size)
	}
	at, ok := r.placeOf(o, size)
	if !ok {
		return 0
	}
	var v uint64
	for piece, n := range accessPieces(at, size, locked) {
		part := r.guessValue(piece, n)
		r.addEvent(event{kind: read, at: piece, size: n, value: part, locked: locked})
		v |= part << (8 * (piece - at))
	}
	return v
}

// writeOperand writes an operand.
func (r *run) writeOperand(o litmus.Operand, size int, v uint64, locked, weak bool) {
	if o.Kind == litmus.RegOperand {
		r.reg.writePart(o, size, v)
		return
	}
	at, ok := r.placeOf(o, size)
	if !ok {
		return
	}
	for piece, n := range accessPieces(at, size, locked) {
		part := v >> (8 * (piece - at)) & sizeMask(n)
		r.addEvent(event{kind: write, at: piece, size: n, value: part, locked: locked, weak: weak})
	}
}

// accessPieces are the events of an access: one for each cache line that it lies in, or, if the
// instruction is atomic, one.
func accessPieces(at, size int, locked bool) iter.Seq2[int, int] {
	if locked {
		return func(yield func(int, int) bool) { yield(at, size) }
	}
	return litmus.Pieces(at, size)
}

func (r *run) placeOf(o litmus.Operand, size int) (int, bool) {
	at := r.reg.addressOf(r.test, o)
	off := at - litmus.DataBase
	if off >= uint64(len(r.init)) || off+uint64(size) > uint64(len(r.init)) {
		line := r.test.Threads[r.thread].Code[r.pc].Line
		r.err = errOutside.New(r.test.File, line, r.thread, fmt.Sprintf("%#x", at))
		return 0, false
	}
	return int(off), true
}

func (r *run) addEvent(e event) {
	e.thread, e.instr = r.thread, r.pc
	r.events = append(r.events, e)
}

// guessValue chooses the value of a read.
func (r *run) guessValue(at, size int) uint64 {
	values := r.possibleValues(at, size)
	k := r.made
	r.made++
	r.limits = append(r.limits, len(values))
	if k == len(r.choices) {
		r.choices = append(r.choices, 0)
	}
	return values[r.choices[k]]
}

// possibleValues lists the values that a read could return: for each byte the values that another thread
// may have written, and the last one of this thread, or the initial value if it
// wrote nothing.
func (r *run) possibleValues(at, size int) []uint64 {
	values := []uint64{0}
	for k := range size {
		var next []uint64
		for _, b := range r.possibleBytes(at + k) {
			for _, v := range values {
				next = append(next, v|uint64(b)<<(8*k))
			}
		}
		slices.Sort(next)
		values = slices.Compact(next)
	}
	return values
}

func (r *run) possibleBytes(at int) []byte {
	own := r.init[at]
	for _, e := range r.events {
		if e.kind == write && at >= e.at && at < e.at+e.size {
			own = byte(e.value >> (8 * (at - e.at)))
		}
	}
	list := []byte{own}
	for _, s := range r.foreign {
		if at >= s.at && at < s.at+s.size {
			list = append(list, byte(s.value>>(8*(at-s.at))))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// threadTraces finds the traces of all threads. The writes of a thread depend on the values
// it reads, so this goes in rounds: in round n every chain of n writes, each of
// which depends on a read of the one before, has been followed. No chain is
// longer than the test has instructions, since no model here lets a write depend
// on itself, or on another write of its instruction, whose reads are all before.
func threadTraces(t *litmus.Test) ([][]trace, error) {
	all := make([][]trace, len(t.Threads))
	stores := make([][]store, len(t.Threads))
	rounds := 1
	for _, th := range t.Threads {
		rounds += len(th.Code)
	}
	for range rounds {
		before := make([]int, len(stores))
		for i := range stores {
			before[i] = len(stores[i])
		}
		for i := range t.Threads {
			g := &guesser{test: t, thread: i, init: t.Memory()}
			for j, s := range stores {
				if j != i {
					g.foreign = append(g.foreign, s[:before[j]]...)
				}
			}
			if err := g.allTraces(); err != nil {
				return nil, err
			}
			all[i] = g.traces
		}
		grown := false
		for i := range all {
			stores[i] = storesOf(all[i])
			grown = grown || len(stores[i]) != before[i]
		}
		if !grown {
			break
		}
	}
	return all, nil
}

// storesOf lists the different writes of a thread's traces.
func storesOf(all []trace) []store {
	var list []store
	for _, t := range all {
		for _, e := range t.events {
			if e.kind == write {
				list = append(list, store{e.at, e.size, e.value})
			}
		}
	}
	slices.SortFunc(list, func(a, b store) int {
		return slices.Compare([]uint64{uint64(a.at), uint64(a.size), a.value}, []uint64{uint64(b.at), uint64(b.size), b.value})
	})
	return slices.Compact(list)
}
