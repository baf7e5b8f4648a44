// Package schedules makes hybrid schedules out of recorded runs: it reads a
// trace's operations and accesses for analyses/hybrid, and repeats the run to find
// at how many instructions the constraints' points are.
//
// It decides nothing about what is a race or a constraint, and enforces nothing.
// The main function is Make.
//
// Invariants:
//
//  1. The same trace and options give the same schedule.
//  2. Every point of a schedule with constraints was come to when the run was
//     repeated.
package schedules

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
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

	errPoint = errs.Define("schedule-point-not-found",
		"no schedule can be made of {file}: thread {thread} does not come to the instruction at {pc} when the run is repeated",
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
}

// Made is a schedule with what was found on the way.
type Made struct {
	Schedule *event.Schedule
	Counts   hybrid.Counts
	// Marks are the places of the operations in the run, and IDs the guest's numbers
	// of the schedule's threads.
	Marks []hybrid.Mark
	IDs   []event.ThreadID
}

// rules are those of the enforcement. Free are the descriptors of a portable schedule.
// Returns of threads' routines have positions where calls of allocators may have some.
func (o Options) rules(free []int64, allocators bool) hybrid.Rules {
	r := hybrid.Rules{Ordered: sched.Ordered, Forks: sched.Forks, Transparent: sched.Transparent}
	if o.SyncOnly || o.Portable {
		r.Ordered = func(number uint64) bool { return sched.Ordered(number) && !sched.AddressSpace(number) }
	}
	if o.Portable || !allocators {
		r.Transparent = func(op event.SyncOp) bool { return sched.Transparent(op) || op == event.OpThreadReturn }
	}
	if o.Portable {
		r.Free = func(number uint64, d int64) bool { return sched.Moves(number) && slices.Contains(free, d) }
	}
	return r
}

// Make makes the schedule of a recorded run.
func Make(ctx context.Context, path string, o Options) (*Made, error) {
	r, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c, err := schedulable(path)
	if err != nil {
		return nil, err
	}
	for _, x := range []struct {
		kind    trace.Kind
		needed  bool
		missing string
	}{{trace.Sync, true, "synchronization operations"}, {trace.Memory, !o.SyncOnly, "memory accesses"}} {
		if x.needed && !r.Has(x.kind) {
			return nil, errLacks.New(path, x.missing)
		}
	}
	if o.Every {
		o.Prune = hybrid.PruneNone
	}
	m := &making{Options: o, r: r, heap: r.Has(trace.Heap) && (o.Portable || serial(c))}
	if o.Portable {
		if m.free, err = freeDescriptors(r); err != nil {
			return nil, err
		}
	}
	made, order, err := m.make()
	if err != nil || o.SyncOnly {
		return made, err
	}
	bases := hybrid.Bases(made.Schedule, made.Marks)
	made.Schedule.Constraints = append(made.Schedule.Constraints, order.Ends(bases)...)
	return made, locate(ctx, path, made.Schedule, bases, order)
}

// schedulable is the configuration of a recorded run. It fails if no schedule can be
// made of that.
func schedulable(path string) (heddle.Config, error) {
	r, err := heddle.OpenProgram(path)
	if err != nil {
		return heddle.Config{}, err
	}
	defer r.Close()
	c, err := r.Config()
	if err == nil && (len(c.Faults) > 0 || c.Closed != [3]bool{}) {
		err = errStreams.New(path)
	}
	return c, cmp.Or(err, c.Schedulable())
}

// serial tells whether calls of allocators came one at a time in a run, as far as that
// matters.
func serial(c heddle.Config) bool {
	if c.Enforce != nil {
		return c.Enforce.Schedule.Allocators && !c.Enforce.Schedule.Portable
	}
	return c.Control.Schedules
}

// making is how the schedule of a recorded run is made.
type making struct {
	Options
	r *trace.Reader
	// heap tells that calls of allocators are looked at, and free are the descriptors of
	// a portable schedule.
	heap bool
	free []int64
}

// make makes the schedule. Calls of allocators that race, or that make system calls which
// would have a position elsewhere, become operations: then it is made anew.
func (m *making) make() (*Made, *hybrid.Order, error) {
	operations := map[int]bool{}
	for {
		made, order, more, err := m.attempt(operations)
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

// attempt makes the schedule in which the given calls of allocators are operations, and
// tells which others should be.
func (m *making) attempt(operations map[int]bool) (made *Made, order *hybrid.Order, more map[int]bool, err error) {
	rules := m.rules(m.free, m.heap)
	rules.Allocations = operations
	order = hybrid.NewOrder(rules)
	if err := tell(m.r, order, m.heap); err != nil {
		return nil, nil, nil, err
	}
	s, marks := order.Finish()
	s.Portable, s.Free = m.Portable, m.free
	made, more = &Made{Schedule: s, Marks: marks}, map[int]bool{}
	for n := range s.Threads {
		made.IDs = append(made.IDs, order.ID(n))
	}
	for _, n := range order.Acting() {
		more[n] = true
	}
	if m.SyncOnly || len(more) > 0 && !m.Portable {
		return made, order, more, nil
	}
	maker := hybrid.NewMaker(s, marks, order.Process, m.Prune, m.Every)
	if err := tellMemory(m.r, order, maker, m.heap, m.Portable); err != nil {
		return nil, nil, nil, err
	}
	s.Constraints, made.Counts = maker.Finish()
	maps.Copy(more, maker.Racing())
	return made, order, more, nil
}

// numbered is an event with its place among all.
type numbered struct {
	seq  uint64
	tell func(*hybrid.Order)
}

// tell tells an Order of the events of a trace, calls of allocators among them if they
// are looked at.
func tell(r *trace.Reader, o *hybrid.Order, allocators bool) error {
	var all []numbered
	var err error
	if allocators {
		err = gather(r, trace.Heap, &all, func(e *event.Heap) uint64 { return e.Seq }, (*hybrid.Order).Heap)
	}
	err = cmp.Or(err,
		gather(r, trace.Threads, &all, func(e *event.Start) uint64 { return e.Seq }, (*hybrid.Order).Start),
		gather(r, trace.Objects, &all, func(e *event.Object) uint64 { return e.Seq }, (*hybrid.Order).Object),
		gather(r, trace.Sync, &all, func(e *event.Sync) uint64 { return e.Seq }, (*hybrid.Order).Sync),
		gather(r, trace.Syscalls, &all, func(e *event.Syscall) uint64 { return e.Seq }, (*hybrid.Order).Call),
		gather(r, trace.Inputs, &all, func(e *event.Input) uint64 { return e.Seq }, (*hybrid.Order).Input),
		gather(r, trace.Signals, &all, func(e *event.Signal) uint64 { return e.Seq }, (*hybrid.Order).Signal),
		gather(r, trace.Exits, &all, func(e *event.Exit) uint64 { return e.Seq }, (*hybrid.Order).Exit),
	)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b numbered) int { return cmp.Compare(a.seq, b.seq) })
	for _, e := range all {
		e.tell(o)
	}
	return nil
}

// gather adds the events of a stream.
func gather[E trace.Event](r *trace.Reader, k trace.Kind, all *[]numbered, seq func(*E) uint64, tell func(*hybrid.Order, *E)) error {
	for e, err := range trace.Get[E](r, trace.Key{Kind: k}, trace.Where{}) {
		if err != nil {
			return err
		}
		*all = append(*all, numbered{seq(&e), func(o *hybrid.Order) { tell(o, &e) }})
	}
	return nil
}

// locate repeats the run to find at how many instructions the points of the
// constraints are.
func locate(ctx context.Context, path string, s *event.Schedule, bases [][]hybrid.Base, order *hybrid.Order) error {
	probe := heddle.NewProbe()
	find := func(p *event.Point) {
		if p.PC == 0 || p.Ends {
			return
		}
		b := bases[p.Thread][p.Done]
		probe.Add(order.ID(p.Thread), p.PC, b.Branches+p.Branches)
	}
	for i := range s.Constraints {
		find(&s.Constraints[i].First)
		find(&s.Constraints[i].Second)
	}
	if probe.Len() == 0 {
		return nil
	}
	if err := replay(ctx, path, probe); err != nil {
		return err
	}
	for i := range s.Constraints {
		for _, p := range []*event.Point{&s.Constraints[i].First, &s.Constraints[i].Second} {
			if p.PC == 0 || p.Ends {
				continue
			}
			b := bases[p.Thread][p.Done]
			first, last, ok := probe.Found(order.ID(p.Thread), p.PC, b.Branches+p.Branches)
			if !ok || first < b.Instructions {
				return errPoint.New(path, s.Threads[p.Thread], hexadecimal(p.PC))
			}
			p.Instructions, p.Span = first-b.Instructions, last-first+1
			p.Occurrence = probe.Occurrence(order.ID(p.Thread), p.PC, b.Instructions, first)
		}
	}
	return nil
}

// replay repeats the recorded run for a probe.
func replay(ctx context.Context, path string, probe *heddle.Probe) error {
	_, err := heddle.RepeatTrace(ctx, path, func(c *heddle.Config) error {
		c.Probe = probe
		return nil
	})
	return cmp.Or(err, ctx.Err())
}

func hexadecimal(a event.Addr) string { return fmt.Sprintf("%#x", uint64(a)) }
