package schedules

import (
	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Unordered finds the races of a recorded run that followed a portable schedule which
// that does not order, as the constraints that would.
func Unordered(path string, followed *event.Schedule) ([]event.Constraint, error) {
	r, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	allocators := followed.Allocators && r.Has(trace.Heap)
	order := hybrid.NewOrder(Options{Portable: true}.rules(followed.Free, allocators))
	if err := tell(r, order, allocators); err != nil {
		return nil, err
	}
	s, marks := order.Finish()
	maker := hybrid.NewAudit(s, marks, order.Process, followed)
	if err := tellMemory(r, order, maker, allocators, true); err != nil {
		return nil, err
	}
	left, _ := maker.Finish()
	return left, nil
}

// tellMemory tells a Maker of all accesses of a trace, and of the calls of allocators if
// they are looked at: what is in them does not count for a portable schedule.
func tellMemory(r *trace.Reader, o *hybrid.Order, m *hybrid.Maker, allocators, portable bool) error {
	if allocators {
		calls, err := allocations(r, o)
		if err != nil {
			return err
		}
		if portable {
			m.Allocations(calls)
		} else {
			m.Calls(calls)
		}
	}
	for e, err := range memtrace.Read(r, memtrace.Select{}) {
		if err != nil {
			return err
		}
		if n := o.Thread(e.Thread); n >= 0 {
			m.Memory(n, e)
		}
	}
	return nil
}

// allocations are the calls of allocators of a trace.
func allocations(r *trace.Reader, o *hybrid.Order) ([]hybrid.Allocation, error) {
	var calls []hybrid.Allocation
	number := 0
	for e, err := range trace.Get[event.Heap](r, trace.Key{Kind: trace.Heap}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		call := hybrid.Allocation{Seq: e.Seq, Thread: o.Thread(e.Thread), Begins: e.Phase == event.Enter, Addr: e.Addr, Size: e.Size}
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
