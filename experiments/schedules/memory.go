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
	order := hybrid.NewOrder(Options{Portable: true}.rules(followed.Free))
	if err := tell(r, order, followed.Allocators); err != nil {
		return nil, err
	}
	s, marks := order.Finish()
	maker := hybrid.NewAudit(s, marks, order.Process, followed)
	if err := tellMemory(r, order, maker, followed.Allocators); err != nil {
		return nil, err
	}
	left, _ := maker.Finish()
	return left, nil
}

// tellMemory tells a Maker of all accesses of a trace, and of the calls of allocators if
// they are to be told apart and were recorded.
func tellMemory(r *trace.Reader, o *hybrid.Order, m *hybrid.Maker, allocators bool) error {
	if allocators && r.Has(trace.Heap) {
		calls, err := allocations(r, o)
		if err != nil {
			return err
		}
		m.Allocations(calls)
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
	for e, err := range trace.Get[event.Heap](r, trace.Key{Kind: trace.Heap}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		call := hybrid.Allocation{Seq: e.Seq, Thread: o.Thread(e.Thread), Begins: e.Phase == event.Enter, Addr: e.Addr, Size: e.Size}
		if e.Addr == e.Old {
			call.Addr = 0 // it has grown, or shrunk, where it is
		}
		calls = append(calls, call)
	}
	return calls, nil
}
