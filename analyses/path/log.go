package path

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic/exec"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Log makes a Trace of what it is told.
type Log struct {
	// Values has the log keep what was loaded and stored; set it before the run.
	Values bool

	trace   Trace
	threads map[event.ThreadID]int
	current *Thread
	piece   int // the open one; -1: none
}

// NewLog makes a Log for the Tracer of an executor.
func NewLog(x *exec.Executor) *Log {
	return &Log{trace: Trace{executor: x}, threads: map[event.ThreadID]int{}, piece: -1}
}

// Trace is what was logged so far. It grows if the log is told more.
func (l *Log) Trace() *Trace { return &l.trace }

// thread is the place of a thread in the trace.
func (l *Log) thread(id event.ThreadID) int {
	n, known := l.threads[id]
	if !known {
		n = len(l.trace.Threads)
		l.threads[id] = n
		l.trace.Threads = append(l.trace.Threads, &Thread{ID: id, trace: &l.trace})
	}
	return n
}

// Begin begins a piece of a thread, in an address space, behind so many events of
// the run. A piece without a step is not kept.
func (l *Log) Begin(id event.ThreadID, space, seq uint64) {
	l.drop()
	n := l.thread(id)
	t := l.trace.Threads[n]
	l.current, l.piece = t, len(l.trace.Pieces)
	t.Pieces = append(t.Pieces, l.piece)
	l.trace.Pieces = append(l.trace.Pieces, Piece{Thread: n, Space: space, First: t.Len(), At: t.count, Seq: seq})
}

// drop leaves out the open piece if nothing was executed in it.
func (l *Log) drop() {
	if l.piece < 0 || l.trace.Pieces[l.piece].Count > 0 {
		return
	}
	l.current.Pieces = l.current.Pieces[:len(l.current.Pieces)-1]
	l.trace.Pieces = l.trace.Pieces[:l.piece]
	l.piece = -1
}

// Event adds what the kernel did; where it comes in the trace is filled in. The
// thread's piece ends.
func (l *Log) Event(e Event) {
	l.drop()
	l.piece = -1
	e.Piece = len(l.trace.Pieces)
	if n, known := l.threads[e.Thread]; known {
		e.At = l.trace.Threads[n].count
	}
	l.trace.Events = append(l.trace.Events, e)
}

// Executed implements exec.Tracer, and so does Constrained.
func (l *Log) Executed(e *exec.Executed) {
	t := l.current
	if l.piece < 0 || t.ID != e.Thread {
		panic("bug: a thread executes code outside of a piece of it")
	}
	b := l.block(e)
	m := e.Machine
	s := step{block: uint32(e.Number), done: uint16(m.Done)}
	if m.Exited {
		s.flags |= flagExited
	}
	if e.Summary != "" {
		s.flags |= flagSummary
	}
	s.access = uint32(t.take(b, m, l.Values))
	if t.Len()%markEvery == 0 {
		t.marks = append(t.marks, t.count)
	}
	*t.steps.Add() = s
	t.count += uint64(m.Count)
	l.trace.Pieces[l.piece].Count++
}

// block is the block of a number, which may be new.
func (l *Log) block(e *exec.Executed) *Block {
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

// take takes the addresses, and values, of what a block has accessed, and returns
// where they are.
func (t *Thread) take(b *Block, m *vex.Machine, values bool) int {
	n := len(b.Sites)
	if m.Done < len(b.Stmts) {
		n = sitesIn(b, m.Done)
	}
	at, to := t.addrs.Grow(n)
	for i := range to {
		to[i] = b.Sites[i].at(m)
	}
	if values {
		_, to = t.values.Grow(n)
		for i := range to {
			to[i] = b.Sites[i].accessed(m)
		}
	}
	return at
}

// Constrained takes a constraint of the last step of its thread.
func (l *Log) Constrained(c *exec.Constraint) {
	t := l.trace.Threads[l.thread(c.Thread)]
	reason := slices.Index(l.trace.reasons, c.Reason)
	if reason < 0 {
		reason = len(l.trace.reasons)
		l.trace.reasons = append(l.trace.reasons, c.Reason)
	}
	*t.constraints.Add() = kept{term: c.Term, step: uint32(t.Len() - 1), stmt: int16(c.Stmt), kind: c.Kind, reason: uint8(reason)}
}

// sitesIn and instructionsIn count those among so many statements of a block.
func sitesIn(b *Block, stmts int) int {
	n := 0
	for n < len(b.Sites) && b.Sites[n].Stmt < stmts {
		n++
	}
	return n
}

func instructionsIn(b *Block, stmts int) int {
	n := 0
	for _, s := range b.Stmts[:stmts] {
		if m, ok := s.(*vex.Mark); ok && m.Len > 0 {
			n++
		}
	}
	return n
}
