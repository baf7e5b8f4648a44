package path

import (
	"math"
	"sort"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/symbolic/exec"
	"github.com/heddle-dmt/heddle/internal/chunks"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// NoAddr is the address of an access that was not made: its condition did not hold,
// or the compare-and-exchange failed.
const NoAddr = math.MaxUint64

// Trace is what a run executed.
type Trace struct {
	// Threads come in the order of their first pieces.
	Threads []*Thread
	// Pieces are the run, one after the other, and Events what the kernel did
	// between them.
	Pieces []Piece
	Events []Event
	// Blocks are the code, by number; nil: one that was not executed.
	Blocks []*Block

	executor *exec.Executor
	reasons  []string
}

// Piece is what a thread executed without another thread, the kernel or an operation
// in between.
type Piece struct {
	// Thread is the thread's place in Trace.Threads.
	Thread int
	// Space numbers the address space.
	Space uint64
	// First is the first of the thread's steps that are the piece's, and Count how
	// many there are.
	First, Count int
	// At is how many instructions the thread had executed before, as event.Stamp
	// counts, and Seq how many events of the run had happened.
	At, Seq uint64
}

// EventKind says what the kernel did.
type EventKind uint8

// Kinds of events.
const (
	// Call is a system call that was made: Number and Args. Return is its end:
	// Number, Args and Result; RAX, RCX and R11 are the kernel's from then on. What
	// it wrote comes as Wrote and Input between them.
	Call EventKind = iota
	Return
	// Wrote: the kernel wrote Size bytes at Addr, of no symbols.
	Wrote
	// Input: Size bytes at Addr are the symbols Name[First] and so on.
	Input
	// Move: whole pages, Size bytes, went from Addr to To.
	Move
	// Fork: Space has from now on what space From has.
	Fork
	// Signal: a signal goes to a handler, Number, or kills; registers are the
	// kernel's.
	Signal
	// Exit: the thread ends.
	Exit
)

// Event is what the kernel did for a thread.
type Event struct {
	Kind   EventKind
	Thread event.ThreadID
	// Piece is how many pieces come before.
	Piece int
	// At is how many instructions the thread had executed.
	At    uint64
	Space uint64

	Addr, Size, To, From uint64
	Name                 string
	First                int
	Number               uint64
	Args                 [6]uint64
	Result               int64
}

// Constraint is a truth over inputs that held when a step was executed.
type Constraint struct {
	Kind   exec.Kind
	Reason string // of exec.Fixed
	// Step is the thread's step; that of a system call is the last before it. Stmt is
	// the statement of its block, or how many the block has if the constraint is on
	// where it goes, or exec.NoStmt.
	Step, Stmt int

	term  exec.Term
	trace *Trace
}

// Expr is the constraint itself; it may turn out to be a constant. It is made when
// it is asked for, in the executor's pool.
func (c *Constraint) Expr() *symbolic.Expr { return c.trace.executor.Express(c.term) }

// Thread is what a thread executed.
type Thread struct {
	ID event.ThreadID
	// Pieces are the thread's among Trace.Pieces.
	Pieces []int

	trace       *Trace
	constraints chunks.List[kept]
	steps       chunks.List[step]
	addrs       chunks.List[uint64]
	values      chunks.List[uint64]
	// marks has, for each step whose number is a multiple of markEvery, how many
	// instructions come before.
	marks []uint64
	count uint64 // instructions
}

const markEvery = 256

// kept is a constraint as it is kept.
type kept struct {
	term   exec.Term
	step   uint32
	stmt   int16
	kind   exec.Kind
	reason uint8 // number in Trace.reasons
}

// constraint makes a constraint of what is kept.
func (t *Thread) constraint(i int) Constraint {
	k := t.constraints.At(i)
	return Constraint{
		Kind: k.kind, Reason: t.trace.reasons[k.reason], Step: int(k.step), Stmt: int(k.stmt), term: k.term, trace: t.trace,
	}
}

// firstConstraint is the first of step i or a later one.
func (t *Thread) firstConstraint(i int) int {
	return sort.Search(t.constraints.Len(), func(k int) bool { return int(t.constraints.At(k).step) >= i })
}

// step is a step as it is kept.
type step struct {
	block, access uint32
	done, flags   uint16
}

const (
	flagExited = 1 << iota
	flagSummary
)

// Len is how many steps there are, and Instructions how many instructions.
func (t *Thread) Len() int             { return t.steps.Len() }
func (t *Thread) Instructions() uint64 { return t.count }

// Find is the step that executed the instruction before which there were so many;
// Len: it was not executed.
func (t *Thread) Find(instructions uint64) int {
	if instructions >= t.count {
		return t.Len()
	}
	// Behind the last mark that is not above; a step may have no instruction.
	i := sort.Search(len(t.marks), func(i int) bool { return t.marks[i] > instructions }) - 1
	c := t.Cursor(i * markEvery)
	for c.Next() && c.At+uint64(c.Instructions()) <= instructions {
		continue
	}
	return c.Index
}

// Piece is the piece of a step.
func (t *Thread) Piece(step int) *Piece {
	i := sort.Search(len(t.Pieces), func(i int) bool { return t.trace.Pieces[t.Pieces[i]].First > step }) - 1
	return &t.trace.Pieces[t.Pieces[i]]
}

// Step is a block that a thread executed.
type Step struct {
	// Index is the step's place in its thread.
	Index int
	Block *Block
	// Done is how many of the block's statements were carried out: all, or up to
	// the side exit that was taken, which Exited tells.
	Done   int
	Exited bool
	// Summary tells that a summary of a function stands for the step: it has no
	// constraints.
	Summary bool
	// At is how many instructions the thread had executed before.
	At uint64
	// Addrs are those of the block's sites, as far as it went; Values are what was
	// loaded and stored there, the lower 8 bytes, if the Log keeps them.
	Addrs, Values []uint64
	// Constraints are those that came up in the step, in order, and in a system call
	// behind it.
	Constraints []Constraint
}

// Instructions is how many the step executed.
func (s *Step) Instructions() int {
	if s.Done == len(s.Block.Stmts) {
		return s.Block.Instructions
	}
	return instructionsIn(s.Block, s.Done)
}

// Cursor goes over the steps of a thread. It is between two of them, or on the one
// that it has come over last, which is its Step: valid up to the next Next or Prev.
type Cursor struct {
	Step
	thread *Thread
	next   int // the step behind the cursor's place
	at     uint64
	// constraint is the first of those that belong to step next or later.
	constraint int
}

// Cursor is one before step i, which may be Len: to go backwards.
func (t *Thread) Cursor(i int) *Cursor {
	c := &Cursor{thread: t, next: i, at: t.count}
	c.constraint = t.firstConstraint(i)
	if i < t.Len() {
		k := i / markEvery
		c.at = t.marks[k]
		for j := k * markEvery; j < i; j++ {
			c.at += uint64(t.instructions(t.steps.At(j)))
		}
	}
	return c
}

func (t *Thread) instructions(s *step) int {
	b := t.trace.Blocks[s.block]
	if int(s.done) == len(b.Stmts) {
		return b.Instructions
	}
	return instructionsIn(b, int(s.done))
}

// Next goes over the next step; false: there is none.
func (c *Cursor) Next() bool {
	if c.next == c.thread.Len() {
		return false
	}
	first := c.constraint
	for list := &c.thread.constraints; c.constraint < list.Len() && int(list.At(c.constraint).step) == c.next; {
		c.constraint++
	}
	c.load(c.next, first, c.constraint)
	c.At = c.at
	c.at += uint64(c.Instructions())
	c.next++
	return true
}

// Prev goes over the step before; false: there is none.
func (c *Cursor) Prev() bool {
	if c.next == 0 {
		return false
	}
	c.next--
	last := c.constraint
	for list := &c.thread.constraints; c.constraint > 0 && int(list.At(c.constraint-1).step) == c.next; {
		c.constraint--
	}
	c.load(c.next, c.constraint, last)
	c.at -= uint64(c.Instructions())
	c.At = c.at
	return true
}

func (c *Cursor) load(i, first, last int) {
	t := c.thread
	s := t.steps.At(i)
	c.Index, c.Block, c.Done = i, t.trace.Blocks[s.block], int(s.done)
	c.Exited, c.Summary = s.flags&flagExited != 0, s.flags&flagSummary != 0
	n := len(c.Block.Sites)
	if c.Done < len(c.Block.Stmts) {
		n = sitesIn(c.Block, c.Done)
	}
	c.Addrs, c.Values = t.addrs.Slice(int(s.access), n), nil
	if t.values.Len() > 0 {
		c.Values = t.values.Slice(int(s.access), n)
	}
	c.Constraints = c.Constraints[:0]
	for k := first; k < last; k++ {
		c.Constraints = append(c.Constraints, t.constraint(k))
	}
}
