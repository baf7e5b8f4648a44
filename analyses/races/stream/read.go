package stream

import (
	"cmp"
	"errors"
	"iter"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Reader goes through one trace once.
type Reader struct {
	*Run
	trace *trace.Reader
	limit uint64 // the last event that counts, in a trace that is cut
	batch batch
	// The piece of a thread's run that the last access is in, if there is one.
	seq    uint64
	thread arch.ThreadID
}

// New prepares a Reader of a trace, which the caller closes. It fails if a stream that is needed was not
// recorded. A run that ended before its first operation has none, and its accesses are read.
func New(r *trace.Reader, o Options) (*Reader, error) {
	for _, needed := range []struct {
		kind    trace.Kind
		missing *errs.Kind
	}{{trace.Memory, errNoMemory}, {trace.Sync, errNoSync}} {
		if recorded, err := r.Recorded(needed.kind); err != nil {
			return nil, errLost.Wrap(err)
		} else if !recorded {
			return nil, needed.missing.New()
		}
	}
	x := &Reader{Run: newRun(o), trace: r, limit: ^uint64(0)}
	if err := x.inspectTrace(); err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

// inspectTrace finds out whether the trace is cut, and whether atomic instructions are
// among its operations.
func (x *Reader) inspectTrace() error {
	for _, damage := range x.trace.Damage() {
		var e *errs.Error
		if !errors.As(damage, &e) || e.Kind().ID() != "trace-cut" {
			return errLost.Wrap(damage)
		}
		x.counts.Cut = true
	}
	text, err := x.trace.Summary()
	if err != nil {
		return errLost.Wrap(err)
	}
	x.counts.Cut = x.counts.Cut || text == nil
	last, atomics := uint64(0), false
	for e, err := range trace.Get[event.Sync](x.trace, trace.Key{Kind: trace.Sync}, trace.Where{}) {
		if err != nil {
			return errLost.Wrap(err)
		}
		last = e.Seq
		atomics = atomics || e.Op == event.OpAtomic
		if atomics && !x.counts.Cut {
			break
		}
	}
	if atomics {
		x.follower.SeparateAtomics()
	}
	if x.counts.Cut {
		x.limit = last
		for _, kind := range []trace.Kind{trace.Syscalls, trace.Heap} {
			if list := x.trace.Chunks(trace.Key{Kind: kind}); len(list) > 0 {
				x.limit = min(x.limit, list[len(list)-1].High.Seq)
			}
		}
	}
	return nil
}

// ReadAll goes through the trace.
func (x *Reader) ReadAll() error {
	q := newEventQueues(x)
	defer q.stopAll()
	err := x.readAccesses(q)
	if errors.Is(err, errEnd) || x.counts.Cut && errors.Is(err, errStamps) {
		return x.checkSegments() // in the latter case the start of a thread was cut off
	}
	if err != nil {
		return damageError(err)
	}
	err = q.handleUntil(x.limit)
	if x.counts.Cut && errors.Is(err, errStamps) {
		err = nil
	}
	return damageError(cmp.Or(err, x.checkSegments()))
}

// readAccesses reads the accesses, and the events before them.
func (x *Reader) readAccesses(q *eventQueues) error {
	d := memtrace.NewDecoder()
	for record, err := range x.trace.Records(memtrace.Key, trace.Where{}) {
		if err == nil {
			err = d.Block(record)
		}
		if err == nil {
			err = x.readBlock(d, q)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// damageError says that damage makes the analysis worthless; other errors stay.
func damageError(err error) error {
	var e *errs.Error
	if err == nil || errors.As(err, &e) && !trace.IsDamage(err) {
		return err
	}
	return errLost.Wrap(err)
}

// errEnd ends a trace that is cut.
var errEnd = errors.New("the end of what is looked at")

func (x *Reader) beginBlock() { x.seq, x.thread = ^uint64(0), arch.NoThread }

// readBlock reads the accesses of a block.
func (x *Reader) readBlock(d *memtrace.Decoder, q *eventQueues) error {
	x.beginBlock()
	for {
		m, err := d.Next()
		if err != nil || m == nil {
			return cmp.Or(x.followBatch(), err)
		}
		if err := x.add(m, q); err != nil {
			return err
		}
	}
}

// add adds an access to the batch, and acts on the events before it.
func (x *Reader) add(m *event.Memory, q *eventQueues) error {
	if m.Seq != x.seq || m.Thread != x.thread {
		if err := x.followBatch(); err != nil {
			return err
		}
		if m.Seq != x.seq {
			if x.seq = m.Seq; x.seq > x.limit {
				return errEnd
			}
			if err := q.handleUntil(x.seq); err != nil {
				return err
			}
		}
		x.thread = m.Thread
		x.batch.thread, x.batch.seq = x.thread, x.seq
		x.batch.beginPiece(m)
		x.beginPiece(x.thread, x.seq, m.Branches)
	}
	if !x.batch.hasRoom(m) {
		if err := x.followBatch(); err != nil {
			return err
		}
		x.batch.beginPiece(m)
		x.beginPiece(x.thread, x.seq, m.Branches)
	}
	x.batch.add(m)
	return nil
}

// followBatch passes the batch on.
func (x *Reader) followBatch() error {
	b := &x.batch
	if !x.follow(b.entries, b.bytes, b.branches, b.branches) {
		return errStamps.New(b.thread, b.seq)
	}
	b.entries, b.bytes = b.entries[:0], b.bytes[:0]
	return nil
}

// eventQueue is a stream of events, of which the first is at hand.
type eventQueue struct {
	seq         uint64
	fetchNext   func() (bool, error) // the next one
	handleEvent func() error         // on the one at hand
	stop        func()
}

// eventQueues are the streams of events that matter.
type eventQueues struct{ list []*eventQueue }

func newEventQueues(x *Reader) *eventQueues {
	q := &eventQueues{}
	addQueue(q, x, trace.Threads, func(e *event.Start) (uint64, func(*event.Start) error) { return e.Seq, x.handleStart })
	addQueue(q, x, trace.Areas, func(e *event.Area) (uint64, func(*event.Area) error) { return e.Seq, x.handleArea })
	addQueue(q, x, trace.Exits, func(e *event.Exit) (uint64, func(*event.Exit) error) { return e.Seq, x.handleExit })
	addQueue(q, x, trace.Mappings, func(e *event.Mapping) (uint64, func(*event.Mapping) error) { return e.Seq, x.handleMapping })
	addQueue(q, x, trace.Syscalls, func(e *event.Syscall) (uint64, func(*event.Syscall) error) { return e.Seq, x.handleSyscall })
	addQueue(q, x, trace.Signals, func(e *event.Signal) (uint64, func(*event.Signal) error) { return e.Seq, x.handleSignal })
	addQueue(q, x, trace.Heap, func(e *event.Heap) (uint64, func(*event.Heap) error) { return e.Seq, x.handleAllocator })
	addQueue(q, x, trace.Sync, func(e *event.Sync) (uint64, func(*event.Sync) error) { return e.Seq, x.handleSync })
	return q
}

// addQueue adds the stream of a kind.
func addQueue[T trace.Event](q *eventQueues, x *Reader, kind trace.Kind, of func(*T) (uint64, func(*T) error)) {
	next, stop := iter.Pull2(trace.Get[T](x.trace, trace.Key{Kind: kind}, trace.Where{}))
	s := &eventQueue{stop: stop}
	var e T
	s.fetchNext = func() (bool, error) {
		var err error
		var ok bool
		if e, err, ok = next(); !ok || err != nil {
			return false, err
		}
		s.seq, _ = of(&e)
		return true, nil
	}
	s.handleEvent = func() error {
		var f func(*T) error
		x.event, f = of(&e)
		return f(&e)
	}
	q.list = append(q.list, s)
}

func (q *eventQueues) stopAll() {
	for _, s := range q.list {
		s.stop()
	}
}

// handleUntil acts on all events up to a number.
func (q *eventQueues) handleUntil(seq uint64) error {
	for {
		var first *eventQueue
		for i := 0; i < len(q.list); i++ {
			s := q.list[i]
			if s.seq == 0 {
				if ok, err := s.fetchNext(); err != nil {
					return err
				} else if !ok {
					s.stop()
					q.list = append(q.list[:i], q.list[i+1:]...)
					i--
					continue
				}
			}
			if s.seq <= seq && (first == nil || s.seq < first.seq) {
				first = s
			}
		}
		if first == nil {
			return nil
		}
		first.seq = 0
		if err := first.handleEvent(); err != nil {
			return err
		}
	}
}
