package search

import (
	"math"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
)

// times are about when events were executed: as if all cores had executed instructions
// at one speed, and a thread's first ones behind those that made it.
func times(t *model.Trace) []uint64 {
	all := make([]uint64, len(t.Events))
	begins := map[int]uint64{} // by thread, when it was made
	for i := range t.Threads {
		late := uint64(0)
		for n, id := range t.Threads[i].Events {
			e := &t.Events[id]
			if n == 0 {
				late = begins[i] - min(begins[i], e.Place)
			}
			all[id] = e.Place + late
			if e.Kind == model.Fork {
				begins[e.Peer] = all[id]
			}
		}
	}
	return all
}

// timeOf is when a thread's next event was.
func (x *searcher) timeOf(s *state, thread int) uint64 {
	events := x.Threads[thread].Events
	if at := int(s.at[thread]); at < len(events) {
		return x.times[events[at]]
	}
	return math.MaxUint64
}

// allExecuted tells that nothing is left but writes on their way to memory.
func (x *searcher) allExecuted(s *state) bool {
	for t, at := range s.at {
		if int(at) < len(x.Threads[t].Events) {
			return false
		}
	}
	return true
}
