package stream

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Live passes a run to a race detector while it takes place: it is the listener of a machine that records
// what heddle record --races does, without a trace. Its owner calls Close.
type Live struct {
	*Run
	pending []pendingEvent // in the order of their numbers
	reached uint64         // all events up to this number have been handled
	piece   event.Stamp    // of the last accesses
	begun   bool           // there is a piece
	err     error          // the first
	atomics bool           // atomic instructions are among the operations
}

type pendingEvent struct {
	seq    uint64
	handle func() error
}

// NewLive makes a Live of a run that has not begun.
func NewLive(o Options) *Live { return &Live{Run: newRun(o)} }

// SeparateAtomics says that the run records atomic instructions among its operations.
func (x *Live) SeparateAtomics() {
	x.atomics = true
	x.follower.SeparateAtomics()
}

// SharedInSnapshot marks that copies of a machine's state share it.
func (x *Live) SharedInSnapshot() {}

// Event implements trace.Listener.
func (x *Live) Event(e any) {
	switch e := e.(type) {
	case *event.Start:
		addPending(x, e.Seq, e, x.handleStart)
	case *event.Area:
		addPending(x, e.Seq, e, x.handleArea)
	case *event.Exit:
		addPending(x, e.Seq, e, x.handleExit)
	case *event.Mapping:
		addPending(x, e.Seq, e, x.handleMapping)
	case *event.Syscall:
		addPending(x, e.Seq, e, x.handleSyscall)
	case *event.Signal:
		addPending(x, e.Seq, e, x.handleSignal)
	case *event.Heap:
		addPending(x, e.Seq, e, x.handleAllocator)
	case *event.Sync:
		if e.Op == event.OpAtomic && x.options.Order == races.ScheduleRelative && !x.atomics {
			panic("bug: a run records atomic instructions, and Live.SeparateAtomics was not called")
		}
		addPending(x, e.Seq, e, x.handleSync)
	}
}

// addPending adds an event, which is valid during the call only.
func addPending[E any](x *Live, seq uint64, e *E, handle func(*E) error) {
	if seq <= x.reached {
		panic(fmt.Sprintf("bug: event %d comes after accesses behind event %d", seq, x.reached))
	}
	copied := *e
	at := len(x.pending)
	for at > 0 && x.pending[at-1].seq > seq {
		at--
	}
	x.pending = slices.Insert(x.pending, at, pendingEvent{seq, func() error { return handle(&copied) }})
}

// BeginRun implements memtrace.Listener.
func (x *Live) BeginRun(start event.Stamp, counted uint64) memlog.Consumer {
	if !x.reachPiece(start) {
		return nil
	}
	return x.follower.BeginRun(start.Branches, counted)
}

// Memory implements memtrace.Listener.
func (x *Live) Memory(log *memlog.Buffer, start event.Stamp, counted uint64) {
	if x.reachPiece(start) && !x.follow(log.Entries(), log.AllBytes(), start.Branches, counted) {
		x.err = errStamps.New(start.Thread, start.Seq)
	}
}

// reachPiece acts on the events up to the begin of a piece of accesses, and reports whether the analysis has
// not failed.
func (x *Live) reachPiece(start event.Stamp) bool {
	x.handleUntil(start.Seq)
	if x.err != nil {
		return false
	}
	if last := &x.piece; !x.begun || last.Thread != start.Thread || last.Seq != start.Seq || last.Core != start.Core {
		x.beginPiece(start.Thread, start.Seq, start.Branches)
		x.piece, x.begun = start, true
	}
	return true
}

// MemorySaved implements memtrace.Listener.
func (x *Live) MemorySaved() { x.begun = false }

// handleUntil acts on all events up to a number.
func (x *Live) handleUntil(seq uint64) {
	n := 0
	for ; n < len(x.pending) && x.pending[n].seq <= seq && x.err == nil; n++ {
		x.event = x.pending[n].seq
		x.err = x.pending[n].handle()
	}
	x.pending = slices.Delete(x.pending, 0, n)
	x.reached = max(x.reached, seq)
}

// Finish acts on the last events, and returns why the analysis failed, if it did.
func (x *Live) Finish() error {
	x.handleUntil(^uint64(0))
	return cmp.Or(x.err, x.checkSegments())
}
