// Package peregrine makes hybrid schedules of recorded runs: it reads a
// trace's operations and accesses for analyses/hybrid, and repeats the run to find
// at how many instructions the constraints' points are.
//
// It neither decides what is a race or a constraint, nor enforces anything.
// The main function is Make.
//
// Invariants:
//
//  1. The same trace and options give the same schedule.
//  2. Every point of a schedule with constraints was reached when the run was
//     repeated.
package peregrine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/accesses"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched/enforce"
	"github.com/heddle-dmt/heddle/sched/follow"
)

var (
	errLacks = errs.Define("schedule-lacks-recording",
		"no schedule can be made of {file}: it has no {missing}",
		"The order of operations needs a recording by heddle record with --sync, and constraints on races one by heddle record with --memory.",
		"Record the run again with heddle schedule record.")

	errStreams = errs.Define("schedule-of-failed-stream",
		"no schedule can be made of {file}: a standard stream of the program failed or was closed",
		"Where reading standard input or writing standard output or error fails depends on the host, and a run under the schedule would not have it.",
		"Record the run again with its output in a file, or in /dev/null, and with all of standard input, output and error open.")

	errTracer = errs.Define("schedule-of-traced-threads",
		"no schedule can be made of {file}: a thread of the run stops others with ptrace(2), as AddressSanitizer does to find leaks (--env ASAN_OPTIONS=detect_leaks=0 turns that off)",
		"Where a thread is when a tracer stops it is not part of a schedule. A debugger stops threads in this way, and so does the search for leaks at the end of a program that was built with -fsanitize=address or -fsanitize=leak.",
		"Record the run, and run it under the schedule, with --env ASAN_OPTIONS=detect_leaks=0 (--env LSAN_OPTIONS=detect_leaks=0 for -fsanitize=leak), or without the debugger.")

	errContention = errs.Define("schedule-after-library-lock",
		"no schedule can be made of {file}: thread {thread} contends for a lock of the C library's own before the instruction at {pc}, which has to be ordered; heddle schedule record with another --seed records another run",
		"Outside of operations the C library takes locks of its own, such as that of the list of arenas when a thread ends. Where two threads meet there one makes a futex call. A run under a schedule does not meet there, and reaches the instruction after fewer instructions than the schedule says.",
		"Record the run with another seed, other cores or a longer --quantum, so that no two threads meet there.")

	errPoint = errs.Define("schedule-point-not-found",
		"no schedule can be made of {file}: thread {thread} does not reach the instruction at {pc} when the run is repeated",
		"The recording's accesses and its replay do not agree.",
		"Report the sentence: this is a defect of heddle.")
)

// Options say how a schedule is made.
type Options struct {
	// Prune says which constraints are left out.
	Prune hybrid.Prune
	// SyncOnly leaves out all; Every takes all accesses that conflict, for a
	// mem-schedule.
	SyncOnly, Every bool
	// Portable makes a schedule that other inputs than the recorded one may follow.
	Portable bool
	// OrderMemory has a portable schedule order the system calls that change address spaces, and what allocators do, as
	// other schedules do. Then memory has the recorded addresses, as long as the same sizes are allocated.
	OrderMemory bool
}

// Schedule is a schedule with the facts that were found on the way.
type Schedule struct {
	Schedule *event.Schedule
	Counts   hybrid.Counts
	// SpinLoops are the loops in which threads waited for each other.
	SpinLoops []hybrid.SpinLoop
	// Marks are the places of the operations in the run, and IDs the guest's numbers
	// of the schedule's threads.
	Marks []hybrid.Mark
	IDs   []arch.ThreadID
}

// orderRules are those of the enforcement. Free are the descriptors of a portable schedule.
// Returns of threads' routines have positions where calls of allocators may have some.
func (o Options) orderRules(free []int64, allocators bool) hybrid.Rules {
	r := hybrid.Rules{Ordered: enforce.Ordered, Forks: enforce.Forks, Transparent: follow.Transparent}
	if o.SyncOnly || o.Portable && !o.OrderMemory {
		r.Ordered = func(number uint64) bool { return enforce.Ordered(number) && !enforce.AddressSpace(number) }
	}
	if o.Portable || !allocators {
		r.Transparent = func(op event.SyncOp) bool { return follow.Transparent(op) || op == event.OpThreadReturn }
	}
	if o.Portable {
		r.Free = func(number uint64, d int64) bool { return enforce.MovesData(number) && slices.Contains(free, d) }
	}
	return r
}

// Make makes the schedule of a recorded run.
func Make(ctx context.Context, path string, o Options) (*Schedule, error) {
	r, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c, err := schedulableConfig(path)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(checkRecorded(r, path, !o.SyncOnly), checkTracers(r, path)); err != nil {
		return nil, err
	}
	if o.Every {
		o.Prune = hybrid.PruneNone
	}
	m := &scheduleMaker{Options: o, path: path, r: r, heap: r.Has(trace.Heap) && (o.Portable && !o.OrderMemory || hadSerialAllocators(c))}
	if o.Portable {
		if m.free, err = freeDescriptors(r); err != nil {
			return nil, err
		}
	}
	made, order, err := m.makeSchedule(ctx)
	if err != nil || o.SyncOnly {
		return made, err
	}
	bases := hybrid.CountsAfterOperations(made.Schedule, made.Marks)
	made.Schedule.Constraints = append(made.Schedule.Constraints, order.EndConstraints(bases)...)
	return made, locatePoints(ctx, path, made.Schedule, bases, order)
}

// checkRecorded refuses a trace in which operations, or accesses that are needed, were not recorded.
func checkRecorded(r *trace.Reader, path string, withAccesses bool) error {
	recorded, err := r.Recorded(trace.Sync)
	if err != nil || !recorded {
		return cmp.Or(err, errLacks.New(path, "synchronization operations"))
	}
	if !withAccesses {
		return nil
	}
	if recorded, err = accesses.Are(r); err != nil || !recorded {
		return cmp.Or(err, errLacks.New(path, "memory accesses"))
	}
	return nil
}

// checkTracers refuses a run in which a tracer has stopped threads wherever they were.
func checkTracers(r *trace.Reader, path string) error {
	for e, err := range trace.Get[event.Syscall](r, trace.Key{Kind: trace.Syscalls}, trace.Where{}) {
		if err != nil {
			return err
		}
		if e.Number == unix.SYS_PTRACE && (e.Args[0] == unix.PTRACE_ATTACH || e.Args[0] == unix.PTRACE_INTERRUPT) && e.Phase == event.Return && e.Result == 0 {
			return errTracer.New(path)
		}
	}
	return nil
}

// schedulableConfig is the configuration of a recorded run. It fails if no schedule can be
// made of that.
func schedulableConfig(path string) (machine.Config, error) {
	r, err := machine.OpenProgram(path)
	if err != nil {
		return machine.Config{}, err
	}
	defer r.Close()
	if err := r.CheckWhole(); err != nil {
		return machine.Config{}, err
	}
	c, err := r.Config()
	if err == nil && (len(c.Faults) > 0 || c.Closed != [3]bool{}) {
		err = errStreams.New(path)
	}
	return c, cmp.Or(err, c.Schedulable())
}

// hadSerialAllocators reports whether calls of allocators happened one at a time in a run, as far
// as that matters.
func hadSerialAllocators(c machine.Config) bool {
	if c.Enforce != nil {
		return c.Enforce.Schedule.Allocators && !c.Enforce.Schedule.Portable
	}
	return c.Control.Schedules
}

// scheduleMaker is how the schedule of a recorded run is made.
type scheduleMaker struct {
	Options
	path string
	r    *trace.Reader
	// heap: calls of allocators are examined. free are the descriptors of a portable schedule.
	heap bool
	free []int64
}

// makeSchedule makes the schedule. Calls of allocators that race, or that make system calls which
// would have a position elsewhere, become operations: then it is made anew.
func (m *scheduleMaker) makeSchedule(ctx context.Context) (*Schedule, *hybrid.OrderBuilder, error) {
	operations := map[int]bool{}
	for {
		made, order, more, err := m.attemptOnce(ctx, operations)
		if err != nil {
			return nil, nil, err
		}
		before := len(operations)
		maps.Copy(operations, more)
		if m.Portable || len(operations) == before {
			return made, order, nil
		}
	}
}

// attemptOnce makes the schedule in which the given calls of allocators are operations, and returns
// which others should be.
func (m *scheduleMaker) attemptOnce(ctx context.Context, operations map[int]bool) (made *Schedule, order *hybrid.OrderBuilder, more map[int]bool, err error) {
	rules := m.orderRules(m.free, m.heap)
	rules.Allocations = operations
	order = hybrid.NewOrderBuilder(rules)
	if err := addEvents(m.r, order, m.heap); err != nil {
		return nil, nil, nil, err
	}
	s, marks := order.Finish()
	s.Portable, s.Free = m.Portable, m.free
	made, more = &Schedule{Schedule: s, Marks: marks}, map[int]bool{}
	for n := range s.Threads {
		made.IDs = append(made.IDs, order.ThreadID(n))
	}
	for _, n := range order.ActingAllocations() {
		more[n] = true
	}
	if m.SyncOnly || len(more) > 0 && !m.Portable {
		return made, order, more, nil
	}
	maker := hybrid.NewConstraintFinder(s, marks, order.Process, m.Prune, m.Every)
	if err := addMemory(ctx, m.path, m.r, order, maker, m.heap, m.Portable); err != nil {
		return nil, nil, nil, err
	}
	s.Constraints, made.Counts = maker.Finish()
	made.SpinLoops = maker.SpinLoops()
	maps.Copy(more, maker.RacingAllocations())
	return made, order, more, nil
}

// numberedEvent is an event with its place among all.
type numberedEvent struct {
	seq   uint64
	addTo func(*hybrid.OrderBuilder)
}

// addEvents passes the events of a trace to an OrderBuilder, calls of allocators among them if they
// are examined.
func addEvents(r *trace.Reader, o *hybrid.OrderBuilder, allocators bool) error {
	var all []numberedEvent
	var err error
	if allocators {
		err = gatherStream(r, trace.Heap, &all, func(e *event.Heap) uint64 { return e.Seq }, (*hybrid.OrderBuilder).AddAllocation)
	}
	err = cmp.Or(err,
		gatherStream(r, trace.Threads, &all, func(e *event.Start) uint64 { return e.Seq }, (*hybrid.OrderBuilder).AddStart),
		gatherStream(r, trace.Objects, &all, func(e *event.Object) uint64 { return e.Seq }, (*hybrid.OrderBuilder).AddObject),
		gatherStream(r, trace.Sync, &all, func(e *event.Sync) uint64 { return e.Seq }, (*hybrid.OrderBuilder).AddSync),
		gatherStream(r, trace.Syscalls, &all, func(e *event.Syscall) uint64 { return e.Seq }, (*hybrid.OrderBuilder).AddSyscall),
		gatherStream(r, trace.Inputs, &all, func(e *event.Input) uint64 { return e.Seq }, (*hybrid.OrderBuilder).AddInput),
		gatherStream(r, trace.Signals, &all, func(e *event.Signal) uint64 { return e.Seq }, (*hybrid.OrderBuilder).AddSignal),
		gatherStream(r, trace.Exits, &all, func(e *event.Exit) uint64 { return e.Seq }, (*hybrid.OrderBuilder).AddExit),
	)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b numberedEvent) int { return cmp.Compare(a.seq, b.seq) })
	for _, e := range all {
		e.addTo(o)
	}
	return nil
}

// gatherStream adds the events of a stream.
func gatherStream[E trace.Event](r *trace.Reader, k trace.Kind, all *[]numberedEvent, seq func(*E) uint64, tell func(*hybrid.OrderBuilder, *E)) error {
	for e, err := range trace.Get[E](r, trace.Key{Kind: k}, trace.Where{}) {
		if err != nil {
			return err
		}
		*all = append(*all, numberedEvent{seq(&e), func(o *hybrid.OrderBuilder) { tell(o, &e) }})
	}
	return nil
}

// locatePoints repeats the run to find at how many instructions the points of the
// constraints are.
func locatePoints(ctx context.Context, path string, s *event.Schedule, bases [][]hybrid.Counted, order *hybrid.OrderBuilder) error {
	locator := NewLocator()
	find := func(p *event.Point) {
		if p.PC == 0 || p.Ends {
			return
		}
		b := bases[p.Thread][p.Done]
		locator.Add(order.LifeAfter(p.Thread, p.Done), p.PC, b.Branches+p.Branches)
	}
	for i := range s.Constraints {
		find(&s.Constraints[i].First)
		find(&s.Constraints[i].Second)
	}
	if locator.Len() == 0 {
		return nil
	}
	if err := replayRun(ctx, path, locator); err != nil {
		return err
	}
	for i := range s.Constraints {
		for _, p := range []*event.Point{&s.Constraints[i].First, &s.Constraints[i].Second} {
			if p.PC == 0 || p.Ends {
				continue
			}
			b := bases[p.Thread][p.Done]
			first, last, ok := locator.Found(order.LifeAfter(p.Thread, p.Done), p.PC, b.Branches+p.Branches)
			if !ok || first < b.Instructions {
				return errPoint.New(path, s.Threads[p.Thread], hexadecimal(p.PC))
			}
			if !s.Portable && order.ContendsBetween(p.Thread, b.Instructions, first) {
				return errContention.New(path, s.Threads[p.Thread], hexadecimal(p.PC))
			}
			p.Instructions, p.Span = first-b.Instructions, last-first+1
			p.Occurrence = locator.Occurrence(order.LifeAfter(p.Thread, p.Done), p.PC, b.Instructions, first)
		}
	}
	return nil
}

// replayRun repeats the recorded run for a locator.
func replayRun(ctx context.Context, path string, locator *Locator) error {
	_, err := machine.RepeatTrace(ctx, path, nil, machine.WithHook(locator))
	return cmp.Or(err, ctx.Err())
}

func hexadecimal(a arch.Addr) string { return fmt.Sprintf("%#x", uint64(a)) }
