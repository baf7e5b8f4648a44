package blocktrace

import (
	"math"
	"sort"

	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/chunks"
)

// NoAddr is the address of an access that was not made: its condition did not hold, or the
// compare-and-exchange failed.
const NoAddr = math.MaxUint64

// Trace is the block trace of a run.
type Trace struct {
	// Threads are in the order of their first pieces.
	Threads []*Thread
	// Pieces are the run in order; Events are the effects of the kernel between them.
	Pieces []Piece
	Events []Event
	// Blocks are the code, by number; nil: a block that was not executed.
	Blocks []*Block

	executor *concolic.Executor
	reasons  []string
}

// Piece is a part of a thread's execution that no other thread, system call or operation
// interrupts.
type Piece struct {
	// Thread is the thread's index in Trace.Threads.
	Thread int
	// Space numbers the address space.
	Space uint64
	// First is the index of the piece's first step in its thread, Count the number of its
	// steps.
	First, Count int
	// At is the number of instructions that the thread had executed before, as event.Stamp
	// counts, and Seq the number of events of the run before.
	At, Seq uint64
}

// EventKind is the kind of an effect of the kernel.
type EventKind uint8

// Kinds of events.
const (
	// Call is a system call: Number and Args. Return is its end: Number, Args and Result;
	// from there on RAX, RCX and R11 are the kernel's. Its writes to memory are KernelWrite
	// and Input events between the two.
	Call EventKind = iota
	Return
	// KernelWrite: the kernel wrote Size bytes at Addr that are no symbols.
	KernelWrite
	// Input: the Size bytes at Addr are the symbols Name[First] and following.
	Input
	// MovePages: whole pages, Size bytes, moved from Addr to To.
	MovePages
	// Fork: Space becomes a copy of the address space From.
	Fork
	// Signal: signal Number starts a handler or kills; registers are the kernel's.
	Signal
	// Exit: the thread ends.
	Exit
)

// Event is an effect of the kernel for a thread.
type Event struct {
	Kind   EventKind
	Thread arch.ThreadID
	// Piece is the number of pieces before the event.
	Piece int
	// At is the number of instructions that the thread had executed.
	At    uint64
	Space uint64

	Addr, Size, To, From uint64
	Name                 string
	First                int
	Number               uint64
	Args                 [6]uint64
	Result               int64
}

// Constraint is a condition on inputs that held when a step was executed.
type Constraint struct {
	Kind   concolic.Kind
	Reason string // of a concolic.Fixed constraint
	// Step is the index of the thread's step; a constraint of a system call has the last
	// step before it. Stmt is the statement of its block, or the number of statements if
	// the constraint is on the successor of the block, or concolic.NoStmt.
	Step, Stmt int

	term  concolic.Term
	trace *Trace
}

// Term returns the condition as a term.
func (c *Constraint) Term() concolic.Term { return c.term }

// IsSettled reports whether the constraint depends on pinned inputs alone: it holds when these are as recorded.
func (c *Constraint) IsSettled() bool { return c.trace.executor.IsSettled(c.term) }

// Expr returns the constraint as an expression of the executor's pool, which may be a
// constant. Each call builds it anew.
func (c *Constraint) Expr() *symbolic.Expr { return c.trace.executor.Express(c.term) }

// Thread is the execution of a thread.
type Thread struct {
	ID arch.ThreadID
	// Pieces are the indexes of the thread's pieces in Trace.Pieces.
	Pieces []int

	trace       *Trace
	constraints chunks.List[packedConstraint]
	steps       chunks.List[packedStep]
	addrs       chunks.List[uint64]
	values      chunks.List[uint64]
	// instructionMarks has, for each step whose index is a multiple of stepsPerMark, the
	// number of instructions before it.
	marks []uint64
	count uint64 // instructions executed
}

const stepsPerMark = 256

// packedConstraint is the stored form of a Constraint.
type packedConstraint struct {
	term   concolic.Term
	step   uint32
	stmt   int16
	kind   concolic.Kind
	reason uint8 // index in Trace.reasons
}

// unpackConstraint returns the constraint of an index.
func (t *Thread) unpackConstraint(i int) Constraint {
	k := t.constraints.At(i)
	return Constraint{
		Kind: k.kind, Reason: t.trace.reasons[k.reason], Step: int(k.step), Stmt: int(k.stmt), term: k.term, trace: t.trace,
	}
}

// firstConstraint returns the index of the first constraint of step i or of a later one.
func (t *Thread) firstConstraint(i int) int {
	return sort.Search(t.constraints.Len(), func(k int) bool { return int(t.constraints.At(k).step) >= i })
}

// packedStep is the stored form of a Step.
type packedStep struct {
	block, access uint32
	done, flags   uint16
}

const (
	flagExited = 1 << iota
	flagSummary
)

// Len is the number of steps, Instructions the number of instructions.
func (t *Thread) Len() int             { return t.steps.Len() }
func (t *Thread) Instructions() uint64 { return t.count }

// StepAt returns the index of the step that executed the instruction with this number,
// counted from 0; Len if it was not executed.
func (t *Thread) StepAt(instructions uint64) int {
	if instructions >= t.count {
		return t.Len()
	}
	// Start at the last mark that is not above; a step may have no instruction.
	i := sort.Search(len(t.marks), func(i int) bool { return t.marks[i] > instructions }) - 1
	c := t.Cursor(i * stepsPerMark)
	for c.Next() && c.At+uint64(c.Instructions()) <= instructions {
		continue
	}
	return c.Index
}

// PieceOf returns the piece of a step.
func (t *Thread) PieceOf(step int) *Piece {
	i := sort.Search(len(t.Pieces), func(i int) bool { return t.trace.Pieces[t.Pieces[i]].First > step }) - 1
	return &t.trace.Pieces[t.Pieces[i]]
}

// Step is one execution of a block by a thread.
type Step struct {
	// Index is the step's index in its thread.
	Index int
	Block *Block
	// Done is the number of the block's statements that were executed: all, or those up to
	// the side exit that was taken; then Exited is set.
	Done   int
	Exited bool
	// Summary is set if a summary of a function stands for the step: it has no constraints.
	Summary bool
	// At is the number of instructions that the thread had executed before.
	At uint64
	// Addrs are the addresses of the block's executed sites. Values are the lower 8 bytes
	// of the values loaded and stored there, if the Log keeps them.
	Addrs, Values []uint64
	// Constraints are those of the step, in order, and of a system call directly after it, except those about
	// pinned inputs alone.
	Constraints []Constraint
}

// Instructions is the number of instructions that the step executed.
func (s *Step) Instructions() int {
	if s.Done == len(s.Block.Stmts) {
		return s.Block.Instructions
	}
	return instructionsBefore(s.Block, s.Done)
}

// Cursor walks the steps of a thread. It stands between two steps; its Step is the one that
// it passed last, valid until the next call of Next or Prev.
type Cursor struct {
	Step
	thread *Thread
	next   int // index of the step after the cursor
	at     uint64
	// constraint is the index of the first constraint of step next or of a later one.
	constraint int
}

// Cursor returns a cursor before step i; i may be Len, to walk backwards.
func (t *Thread) Cursor(i int) *Cursor {
	c := &Cursor{thread: t, next: i, at: t.count}
	c.constraint = t.firstConstraint(i)
	if i < t.Len() {
		k := i / stepsPerMark
		c.at = t.marks[k]
		for j := k * stepsPerMark; j < i; j++ {
			c.at += uint64(t.stepInstructions(t.steps.At(j)))
		}
	}
	return c
}

func (t *Thread) stepInstructions(s *packedStep) int {
	b := t.trace.Blocks[s.block]
	if int(s.done) == len(b.Stmts) {
		return b.Instructions
	}
	return instructionsBefore(b, int(s.done))
}

// Next passes the next step; false: there is no next step.
func (c *Cursor) Next() bool {
	if c.next == c.thread.Len() {
		return false
	}
	first := c.constraint
	for list := &c.thread.constraints; c.constraint < list.Len() && int(list.At(c.constraint).step) == c.next; {
		c.constraint++
	}
	c.loadStep(c.next, first, c.constraint)
	c.At = c.at
	c.at += uint64(c.Instructions())
	c.next++
	return true
}

// Prev passes the previous step; false: there is no previous step.
func (c *Cursor) Prev() bool {
	if c.next == 0 {
		return false
	}
	c.next--
	last := c.constraint
	for list := &c.thread.constraints; c.constraint > 0 && int(list.At(c.constraint-1).step) == c.next; {
		c.constraint--
	}
	c.loadStep(c.next, c.constraint, last)
	c.at -= uint64(c.Instructions())
	c.At = c.at
	return true
}

func (c *Cursor) loadStep(i, first, last int) {
	t := c.thread
	s := t.steps.At(i)
	c.Index, c.Block, c.Done = i, t.trace.Blocks[s.block], int(s.done)
	c.Exited, c.Summary = s.flags&flagExited != 0, s.flags&flagSummary != 0
	n := len(c.Block.Sites)
	if c.Done < len(c.Block.Stmts) {
		n = sitesBefore(c.Block, c.Done)
	}
	c.Addrs, c.Values = t.addrs.Slice(int(s.access), n), nil
	if t.values.Len() > 0 {
		c.Values = t.values.Slice(int(s.access), n)
	}
	c.Constraints = c.Constraints[:0]
	for k := first; k < last; k++ {
		if x := t.trace.executor; x == nil || !x.IsSettled(t.constraints.At(k).term) {
			c.Constraints = append(c.Constraints, t.unpackConstraint(k))
		}
	}
}
