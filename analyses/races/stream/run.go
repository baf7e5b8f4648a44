package stream

import (
	"errors"
	"iter"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

var (
	errNoMemory = errs.Define("races-without-memory",
		"the trace has no memory accesses: races are found in a trace of heddle record --races",
		"The trace was written by heddle record or heddle replay without --memory.",
		"Record the run with heddle record --races, or repeat it: heddle replay -o NEW --races TRACE.")
	errNoSync = errs.Define("races-without-sync",
		"the trace has no synchronization operations: races are found in a trace of heddle record --races",
		"The trace was written by heddle record or heddle replay without --sync, so nothing tells which accesses are ordered.",
		"Record the run with heddle record --races, or repeat it: heddle replay -o NEW --races TRACE.")
	errLost = errs.Define("races-in-damaged-trace",
		"the trace has lost a part, so its races cannot be told",
		"Where a part is missing accesses that were ordered look like races. The rest of the sentence says what is wrong.",
		"Record the run again; heddle trace check lists all damage.")
	errThreads = errs.Define("races-of-too-many-threads",
		"the trace has more than {limit} threads",
		"The race detector tells only so many threads apart.",
		"Record a shorter run.")
	errStamps = errs.Define("races-in-inconsistent-trace",
		"the trace is inconsistent: thread {thread} does something at event {event} before it starts",
		"The trace was put together by something else than heddle record.",
		"Record the run again.")
)

// Options say how a trace is gone through.
type Options struct {
	Order races.Order
	// Values follows the content of memory, so that benign races are recognized.
	Values bool
	// Operation reports whether an event of the stream of synchronization operations is an
	// operation of the schedule, under ScheduleRelative; nil: all are. The others order nothing and
	// do not count in races.Instance.
	Operation func(*event.Sync) bool
	// Race is called for each race, with Addr as the second access has it. The Race is valid only
	// during the call.
	Race func(*races.Race)
	// Sync, unless nil, is called for each operation, with the thread's number and the operation's
	// place among the accesses: Instance.At of those before it is lower, of those after it not. The
	// detector knows the operation already.
	Sync func(thread int, at uint64, e *event.Sync)
}

// Counts counts the events of a trace.
type Counts struct {
	// Accesses are the loads, stores and writes of the kernel that the detector got, Skipped those
	// within operations.
	Accesses uint64 `json:"accesses"`
	Skipped  uint64 `json:"skipped"`
	// Syncs are synchronization operations: their begins, ends and wholes.
	Syncs   uint64 `json:"sync_operations"`
	Threads int    `json:"threads"`
	// Cut: the recording ended before the run. Accesses after its last synchronization operation,
	// system call or call of an allocator are then not examined: whether there was another is not
	// known.
	Cut bool `json:"cut"`
}

// Reader goes through one trace once.
type Reader struct {
	options      Options
	trace        *trace.Reader
	detector     *races.Detector
	counts       Counts
	accessNumber uint64 // number of the access
	event        uint64 // number of the event that was last before it, or that it is part of
	limit        uint64 // the last event that counts, in a trace that is cut

	threads   []*Thread
	byID      map[arch.ThreadID]*Thread
	current   *Thread
	processes map[int32]*process
	stacks    *stackTree
	values    *memoryContent
	barriers  map[event.ObjectID]*barrier
	atomics   bool // are operations
	access    races.Access
	base      uint64 // where it is for the detector
	addr      uint64 // and for the thread
}

// New prepares a Reader of a trace. It fails if the trace lacks a stream that is needed.
func New(r *trace.Reader, o Options) (*Reader, error) {
	switch {
	case !r.Has(trace.Memory):
		return nil, errNoMemory.New()
	case !r.Has(trace.Sync):
		return nil, errNoSync.New()
	}
	x := &Reader{
		options: o, trace: r, byID: map[arch.ThreadID]*Thread{}, processes: map[int32]*process{}, stacks: newStackTree(),
		barriers: map[event.ObjectID]*barrier{}, limit: ^uint64(0),
	}
	x.detector = races.New(o.Order, x.passRaceOn)
	if o.Values {
		x.values = newMemoryContent()
	}
	return x, x.inspectTrace()
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
	last := uint64(0)
	for e, err := range trace.Get[event.Sync](x.trace, trace.Key{Kind: trace.Sync}, trace.Where{}) {
		if err != nil {
			return errLost.Wrap(err)
		}
		last = e.Seq
		x.atomics = x.atomics || e.Op == event.OpAtomic
		if x.atomics && !x.counts.Cut {
			break
		}
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

// Counts returns the counts so far.
func (x *Reader) Counts() Counts {
	c := x.counts
	c.Threads = len(x.threads)
	return c
}

// LastEvent is the number of the last event that comes before the access at hand, or
// that it is part of.
func (x *Reader) LastEvent() uint64 { return x.event }

// ReadAll goes through the trace.
func (x *Reader) ReadAll() error {
	q := newEventQueues(x)
	defer q.stopAll()
	d := memtrace.NewDecoder()
	for record, err := range x.trace.Records(memtrace.Key, trace.Where{}) {
		if err == nil {
			err = d.Block(record)
		}
		if err == nil {
			err = x.readBlock(d, q)
		}
		if errors.Is(err, errEnd) || x.counts.Cut && errors.Is(err, errStamps) {
			return nil // in the latter case the start of a thread was cut off
		}
		if err != nil {
			return damageError(err)
		}
	}
	err := q.handleUntil(x.limit)
	if x.counts.Cut && errors.Is(err, errStamps) {
		return nil
	}
	return damageError(err)
}

// damageError says that damage makes the analysis worthless; other errors stay.
func damageError(err error) error {
	var e *errs.Error
	if err == nil || errors.As(err, &e) && (e.Kind() == errThreads || e.Kind() == errStamps) {
		return err
	}
	return errLost.Wrap(err)
}

// errEnd ends a trace that is cut.
var errEnd = errors.New("the end of what is looked at")

// readBlock reads the accesses of a block.
func (x *Reader) readBlock(d *memtrace.Decoder, q *eventQueues) error {
	seq, thread := ^uint64(0), arch.NoThread
	for {
		m, err := d.Next()
		if err != nil || m == nil {
			return err
		}
		if m.Seq != seq {
			if seq = m.Seq; seq > x.limit {
				return errEnd
			}
			if err := q.handleUntil(seq); err != nil {
				return err
			}
			thread, x.event = arch.NoThread, seq
		}
		if m.Thread != thread {
			thread, x.current = m.Thread, x.byID[m.Thread]
		}
		if err := x.handleMemory(m); err != nil {
			return err
		}
	}
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
