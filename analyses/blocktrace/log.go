package blocktrace

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// Log builds a Trace from the blocks, constraints and events that it is given.
type Log struct {
	// Values has the log keep the values that were loaded and stored; set it before the
	// run.
	Values bool

	trace   Trace
	threads map[arch.ThreadID]int
	current *Thread
	piece   int // the open piece; -1: there is no open piece
}

// NewLog makes a Log to be the Tracer of an executor.
func NewLog(x *concolic.Executor) *Log {
	return &Log{trace: Trace{executor: x}, threads: map[arch.ThreadID]int{}, piece: -1}
}

// Trace is the trace so far. It grows while the log is in use.
func (l *Log) Trace() *Trace { return &l.trace }

// threadIndex returns the index of a thread in Trace.Threads and adds the thread if it is
// new.
func (l *Log) threadIndex(id arch.ThreadID) int {
	n, known := l.threads[id]
	if !known {
		n = len(l.trace.Threads)
		l.threads[id] = n
		l.trace.Threads = append(l.trace.Threads, &Thread{ID: id, trace: &l.trace})
	}
	return n
}

// BeginPiece begins a piece of a thread in an address space, after seq events of the run. A
// piece without a step is not kept.
func (l *Log) BeginPiece(id arch.ThreadID, space, seq uint64) {
	l.dropEmptyPiece()
	n := l.threadIndex(id)
	t := l.trace.Threads[n]
	l.current, l.piece = t, len(l.trace.Pieces)
	t.Pieces = append(t.Pieces, l.piece)
	l.trace.Pieces = append(l.trace.Pieces, Piece{Thread: n, Space: space, First: t.Len(), At: t.count, Seq: seq})
}

// dropEmptyPiece removes the open piece if nothing was executed in it.
func (l *Log) dropEmptyPiece() {
	if l.piece < 0 || l.trace.Pieces[l.piece].Count > 0 {
		return
	}
	l.current.Pieces = l.current.Pieces[:len(l.current.Pieces)-1]
	l.trace.Pieces = l.trace.Pieces[:l.piece]
	l.piece = -1
}

// AddEvent adds an effect of the kernel and fills in its position in the trace. The
// thread's piece ends.
func (l *Log) AddEvent(e Event) {
	l.dropEmptyPiece()
	l.piece = -1
	e.Piece = len(l.trace.Pieces)
	if n, known := l.threads[e.Thread]; known {
		e.At = l.trace.Threads[n].count
	}
	l.trace.Events = append(l.trace.Events, e)
}

// TraceBlock implements concolic.Tracer: it adds a step to the current thread.
func (l *Log) TraceBlock(e *concolic.BlockExecution) {
	t := l.current
	if l.piece < 0 || t.ID != e.Thread {
		panic("bug: a thread executes code outside of a piece of it")
	}
	b := l.tracedBlock(e)
	m := e.Machine
	s := packedStep{block: uint32(e.Number), done: uint16(m.Done)}
	if m.Exited {
		s.flags |= flagExited
	}
	if e.Summary != "" {
		s.flags |= flagSummary
	}
	s.access = uint32(t.recordAccesses(b, m, l.Values))
	if t.Len()%stepsPerMark == 0 {
		t.marks = append(t.marks, t.count)
	}
	*t.steps.Add() = s
	t.count += uint64(m.Count)
	l.trace.Pieces[l.piece].Count++
}

// tracedBlock returns the Block for an executed block and makes it on its first execution.
func (l *Log) tracedBlock(e *concolic.BlockExecution) *Block {
	if e.Number >= len(l.trace.Blocks) {
		l.trace.Blocks = append(l.trace.Blocks, slices.Repeat([]*Block{nil}, e.Number+1-len(l.trace.Blocks))...)
	}
	b := l.trace.Blocks[e.Number]
	if b == nil {
		b = newBlock(e.Block, e.Number, e.Code)
		l.trace.Blocks[e.Number] = b
	}
	return b
}

// recordAccesses records the addresses, and if asked the values, of the accesses of a
// block's last execution, and returns their index in the thread's lists.
func (t *Thread) recordAccesses(b *Block, m *vex.Machine, values bool) int {
	n := len(b.Sites)
	if m.Done < len(b.Stmts) {
		n = sitesBefore(b, m.Done)
	}
	at, to := t.addrs.Grow(n)
	for i := range to {
		to[i] = b.Sites[i].accessedAddr(m)
	}
	if values {
		_, to = t.values.Grow(n)
		for i := range to {
			to[i] = b.Sites[i].accessedValue(m)
		}
	}
	return at
}

// TraceConstraint implements concolic.Tracer: it adds a constraint to the last step of its
// thread.
func (l *Log) TraceConstraint(c *concolic.Constraint) {
	t := l.trace.Threads[l.threadIndex(c.Thread)]
	reason := slices.Index(l.trace.reasons, c.Reason)
	if reason < 0 {
		reason = len(l.trace.reasons)
		l.trace.reasons = append(l.trace.reasons, c.Reason)
	}
	*t.constraints.Add() = packedConstraint{term: c.Term, step: uint32(t.Len() - 1), stmt: int16(c.Stmt), kind: c.Kind, reason: uint8(reason)}
}

// sitesBefore and instructionsBefore count the sites and the instructions in the first
// stmts statements of a block.
func sitesBefore(b *Block, stmts int) int {
	n := 0
	for n < len(b.Sites) && b.Sites[n].Stmt < stmts {
		n++
	}
	return n
}

func instructionsBefore(b *Block, stmts int) int {
	n := 0
	for _, s := range b.Stmts[:stmts] {
		if m, ok := s.(*vex.Mark); ok && m.Len > 0 {
			n++
		}
	}
	return n
}
