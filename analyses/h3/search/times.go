package search

import (
	"math"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
)

// estimateTimes are approximate times of the events: as if all cores had executed instructions at
// one speed, and a thread's first ones after those of the thread that created it.
func estimateTimes(t *model.Trace) []uint64 {
	all := make([]uint64, len(t.Events))
	begins := map[int]uint64{} // by thread, when it was made
	for i := range t.Threads {
		late := uint64(0)
		for n, id := range t.Threads[i].Events {
			e := &t.Events[id]
			if n == 0 {
				late = begins[i] - min(begins[i], e.CoreInstructions)
			}
			all[id] = e.CoreInstructions + late
			if e.Kind == model.Fork {
				begins[e.Peer] = all[id]
			}
		}
	}
	return all
}

// nextEventTime is when a thread's next event was.
func (x *searcher) nextEventTime(s *state, thread int) uint64 {
	events := x.Threads[thread].Events
	if at := int(s.nextEvents[thread]); at < len(events) {
		return x.times[events[at]]
	}
	return math.MaxUint64
}

// allExecuted reports whether nothing is left but writes in buffers.
func (x *searcher) allExecuted(s *state) bool {
	for t, at := range s.nextEvents {
		if int(at) < len(x.Threads[t].Events) {
			return false
		}
	}
	return true
}
