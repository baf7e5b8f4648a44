package peregrine

import (
	"cmp"
	"context"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/machine/accesses"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Ordered is a recorded run with the total order of its operations, every call of an allocator among
// them: from these, schedules with another order are made. It must be closed.
type Ordered struct {
	*Schedule
	// Allocations are the calls of allocators.
	Allocations []hybrid.Allocation

	path  string
	r     *trace.Reader
	order *hybrid.OrderBuilder
	bases [][]hybrid.Counted
}

// OpenOrdered reads the operations of a run that heddle schedule record has recorded.
func OpenOrdered(path string) (o *Ordered, err error) {
	c, err := schedulableConfig(path)
	if err != nil {
		return nil, err
	}
	r, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	if err := cmp.Or(checkRecorded(r, path, true), checkTracers(r, path)); err != nil {
		return nil, err
	}
	if !hadSerialAllocators(c) {
		return nil, errLacks.New(path, "operations that happened one at a time, as heddle schedule record has them")
	}
	o = &Ordered{Schedule: &Schedule{}, path: path, r: r}
	rules := Options{}.orderRules(nil, true)
	rules.Allocations = map[int]bool{}
	for e, err := range trace.Get[event.Heap](r, trace.Key{Kind: trace.Heap}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		if e.Phase == event.Enter {
			rules.Allocations[len(rules.Allocations)+1] = true
		}
	}
	o.order = hybrid.NewOrderBuilder(rules)
	if err := addEvents(r, o.order, true); err != nil {
		return nil, err
	}
	o.Schedule.Schedule, o.Marks = o.order.Finish()
	for n := range o.Schedule.Schedule.Threads {
		o.IDs = append(o.IDs, o.order.ThreadID(n))
	}
	o.bases = hybrid.CountsAfterOperations(o.Schedule.Schedule, o.Marks)
	o.Allocations, err = readAllocations(r, o.order)
	return o, err
}

// Close closes the trace.
func (o *Ordered) Close() error { return o.r.Close() }

// Trace returns the trace of the run.
func (o *Ordered) Trace() *trace.Reader { return o.r }

// Process returns the process of a thread.
func (o *Ordered) Process(thread int) int { return o.order.Process(thread) }

// EachAccess calls f with the accesses of the run, in their order, and the numbers of their threads, until f
// returns false. An access is valid until the next one.
func (o *Ordered) EachAccess(f func(thread int, e *event.Memory) bool) error {
	for e, err := range accesses.Read(context.Background(), o.path, o.r, memtrace.Select{}) {
		if err != nil {
			return err
		}
		if n := o.order.ThreadAt(e.Thread, e.Seq); n >= 0 && !f(n, e) {
			return nil
		}
	}
	return nil
}

// Locate repeats the run to find at how many instructions the points of constraints are.
func (o *Ordered) Locate(ctx context.Context, constraints []event.Constraint) error {
	s := &event.Schedule{Threads: o.Schedule.Schedule.Threads, Constraints: constraints}
	return locatePoints(ctx, o.path, s, o.bases, o.order)
}

// NewFile makes the file of a schedule of the run's program and inputs.
func (o *Ordered) NewFile(s *event.Schedule) (*hybrid.File, error) {
	return NewFile(&Schedule{Schedule: s}, o.path, Options{})
}

// Point is the point of a thread that has completed a number of operations, at an access.
func (o *Ordered) Point(thread, done int, pc arch.Addr, branches uint64) event.Point {
	return event.Point{Thread: thread, Done: done, PC: pc, Branches: branches - o.bases[thread][done].Branches, Span: 1}
}
