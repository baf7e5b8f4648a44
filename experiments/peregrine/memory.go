package peregrine

import (
	"context"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/internal/machine/accesses"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// UnorderedRaces finds the races of a recorded run that followed a portable schedule which
// that does not order, as the constraints that would.
func UnorderedRaces(ctx context.Context, path string, followed *event.Schedule) ([]event.Constraint, error) {
	r, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	allocators := followed.Allocators && r.Has(trace.Heap)
	order := hybrid.NewOrderBuilder(Options{Portable: true}.orderRules(followed.Free, allocators))
	if err := addEvents(r, order, allocators); err != nil {
		return nil, err
	}
	s, marks := order.Finish()
	maker := hybrid.NewAuditor(s, marks, order.Process, followed)
	if err := addMemory(ctx, path, r, order, maker, allocators, true); err != nil {
		return nil, err
	}
	left, _ := maker.Finish()
	return left, nil
}

// accessesPerCheck is the number of accesses after which it is looked whether the computation is to end.
const accessesPerCheck = 1 << 20

// addMemory passes all accesses of a trace to a ConstraintFinder, and the calls of allocators if
// they matter: accesses within them do not count for a portable schedule.
func addMemory(ctx context.Context, path string, r *trace.Reader, o *hybrid.OrderBuilder, m *hybrid.ConstraintFinder, allocators, portable bool) error {
	if allocators {
		calls, err := readAllocations(r, o)
		if err != nil {
			return err
		}
		if portable {
			m.IgnoreAllocations(calls)
		} else {
			m.WatchAllocations(calls)
		}
	}
	count := 0
	for e, err := range accesses.Read(ctx, path, r, memtrace.Select{}) {
		if err != nil {
			return err
		}
		if count++; count%accessesPerCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if n := o.ThreadAt(e.Thread, e.Seq); n >= 0 {
			m.AddMemory(n, e)
		}
	}
	return nil
}

// readAllocations are the calls of allocators of a trace.
func readAllocations(r *trace.Reader, o *hybrid.OrderBuilder) ([]hybrid.Allocation, error) {
	var calls []hybrid.Allocation
	number := 0
	for e, err := range trace.Get[event.Heap](r, trace.Key{Kind: trace.Heap}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		call := hybrid.Allocation{Seq: e.Seq, Thread: o.ThreadAt(e.Thread, e.Seq), Begins: e.Phase == event.Enter, Addr: e.Addr, Size: e.Size}
		if call.Begins {
			number++
			call.Number = number
		}
		if e.Addr == e.Old {
			call.Addr = 0 // it has grown, or shrunk, where it is
		}
		calls = append(calls, call)
	}
	return calls, nil
}
