package stream

import (
	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
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
	errSegments = errs.Define("races-of-too-many-releases",
		"a thread of the run releases something more often than 4294967294 times, so its races cannot be told",
		"The race detector numbers the parts of a thread's run between its releases. With heddle races --atomic-words order each store to a word of atomic instructions is a release.",
		"Look at a shorter run.")
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
	// Words says, under HappensBefore, which accesses make synchronization words
	// (races.Follower.OrderByWords), and WordsOf, unless nil, which ones do from the moment at which a
	// process maps such a file.
	Words   races.Atomics
	WordsOf func(file string) races.Atomics
	// Repeats compares repeated accesses, which are omitted otherwise under HappensBefore.
	Repeats bool
	// AtomicCode, unless nil, lists code of a file that a process maps whose accesses are
	// atomic ones (races.Space.SetAtomicCode), where it is mapped. It is called if Words or WordsOf
	// say so.
	AtomicCode func(*event.Mapping) []races.Code
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

// Run is what is known of a run at the moment that its events and accesses have reached. Its owner
// calls Close.
type Run struct {
	options   Options
	follower  *races.Follower
	counts    Counts
	event     uint64 // number of the event that was last before the access, or that it is part of
	threads   []*Thread
	byID      map[arch.ThreadID]*Thread
	processes map[int32]*process
	barriers  map[event.ObjectID]*barrier
	current   *Thread       // whose accesses come next, or nil
	words     races.Atomics // make synchronization words
}

func newRun(o Options) *Run {
	x := &Run{options: o, byID: map[arch.ThreadID]*Thread{}, processes: map[int32]*process{}, barriers: map[event.ObjectID]*barrier{}}
	x.follower = races.NewFollower(o.Order, o.Values, o.Race)
	if o.Repeats {
		x.follower.CompareRepeats()
	}
	x.orderByWords(o.Words)
	return x
}

// orderByWords adds to the accesses that make synchronization words.
func (x *Run) orderByWords(a races.Atomics) {
	if a > x.words {
		x.words = a
		x.follower.OrderByWords(a)
	}
}

// Words are the accesses that make synchronization words by now.
func (x *Run) Words() races.Atomics { return x.words }

// checkSegments fails if races may be missing.
func (x *Run) checkSegments() error {
	if x.follower.Full() {
		return errSegments.New()
	}
	return nil
}

// Close frees the memory of the detector.
func (x *Run) Close() { x.follower.Close() }

// Counts returns the counts so far.
func (x *Run) Counts() Counts {
	c := x.counts
	c.Threads = len(x.threads)
	c.Accesses, c.Skipped = x.follower.Accesses(), x.follower.Skipped()
	return c
}

// LastEvent is the number of the last event that comes before the access at hand, or
// that it is part of.
func (x *Run) LastEvent() uint64 { return x.event }

// CallsOf are the instructions that called, the innermost first, of a stack.
func (x *Run) CallsOf(stack uint32) []arch.Addr { return x.follower.CallsOf(stack) }

// beginPiece begins a piece of a thread's accesses, after an event and a number of branches.
func (x *Run) beginPiece(thread arch.ThreadID, seq, branches uint64) {
	x.event = seq
	x.current = x.byID[thread]
	var r *races.Runner
	if x.current != nil {
		r = x.current.runner
	}
	x.follower.Turn(r, branches)
}

// follow takes accesses of the thread whose piece has begun.
func (x *Run) follow(entries []memlog.Entry, bytes []byte, branches, counted uint64) bool {
	return x.follower.Follow(entries, bytes, branches, counted, func(addr uint64) { x.forgetStack(x.current, addr) })
}
