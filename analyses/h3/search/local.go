package search

import (
	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// localEvents finds the events that no other thread can notice, nor prevent, whenever
// they can be executed: they need not be interleaved.
func localEvents(t *model.Trace, m model.MemoryModel, held []uint64, private []bool) []bool {
	local := make([]bool, len(t.Events))
	tried := map[event.ObjectID]bool{}
	guards := map[event.ObjectID]uint64{} // locks that all who use a condition have
	for id := range t.Events {
		switch e := &t.Events[id]; e.Kind {
		case model.TryFailed:
			tried[e.Object] = true
		case model.Sleep, model.Signal, model.Broadcast:
			if g, known := guards[e.Object]; known {
				guards[e.Object] = g & held[id]
			} else {
				guards[e.Object] = held[id]
			}
		}
	}
	for id := range t.Events {
		e := &t.Events[id]
		switch e.Kind {
		case model.Read, model.Update:
			local[id] = private[id]
		case model.Write:
			local[id] = private[id] || m != model.SC // it goes into a buffer
		case model.Lock, model.TryFailed, model.Take:
		case model.Unlock:
			local[id] = !tried[e.Object]
		case model.Sleep, model.Signal, model.Broadcast:
			local[id] = guards[e.Object] != 0
		case model.Wake:
			local[id] = !e.TimedOut
		default:
			local[id] = true
		}
	}
	return local
}

// heldLocks has, for each event, a bit for each lock that its thread holds exclusively. Locks after
// the 64th count as not held.
func heldLocks(t *model.Trace) []uint64 {
	numbers := map[event.ObjectID]int{}
	held := make([]uint64, len(t.Events))
	for i := range t.Threads {
		depth := map[event.ObjectID]int{}
		now := uint64(0)
		for _, id := range t.Threads[i].Events {
			e := &t.Events[id]
			if e.Kind == model.Lock && !e.Shared || e.Kind == model.Unlock && depth[e.Object] > 0 {
				n, known := numbers[e.Object]
				if !known {
					n = len(numbers)
					numbers[e.Object] = n
				}
				if e.Kind == model.Lock {
					depth[e.Object]++
					now |= 1 << n
				} else if depth[e.Object]--; depth[e.Object] == 0 {
					now &^= 1 << n
				}
			}
			held[id] = now
		}
	}
	return held
}

// privateAccesses finds the accesses to memory that only one thread accesses, that no thread
// writes, or that all threads access under a common lock.
func privateAccesses(t *model.Trace, held []uint64) []bool {
	private := make([]bool, len(t.Events))
	for i := range private {
		private[i] = true
	}
	for _, c := range t.Cells() {
		all := append(append([]model.Access{}, c.Reads...), c.Writes...)
		common, threads := ^uint64(0), map[int]bool{}
		for _, a := range all {
			common &= held[a.Event]
			threads[t.Events[a.Event].Thread] = true
		}
		if common == 0 && len(threads) > 1 && len(c.Writes) > 0 {
			for _, a := range all {
				private[a.Event] = false
			}
		}
	}
	return private
}
