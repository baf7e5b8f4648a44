package explore

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
)

// Step is one step of a schedule: an event, or its write's way to memory.
type Step struct {
	Event  model.ID
	Commit bool
}

// Follow executes a schedule of the recorded events, and returns the value that each event reads.
// It is an error if a step cannot be taken, or if a thread leaves its path.
func (r *Recording) Follow(m model.MemoryModel, steps []Step) (map[model.ID]uint64, error) {
	x := &searcher{Recording: r}
	return x.followFrom(newState(r.Program, m), steps, 0)
}

func (x *searcher) followFrom(s *state, steps []Step, n int) (map[model.ID]uint64, error) {
	if !x.takeBranches(s) {
		return nil, fmt.Errorf("step %d: a thread leaves its path", n)
	}
	if n == len(steps) {
		return map[model.ID]uint64{}, nil
	}
	e := &x.Trace.Events[steps[n].Event]
	if steps[n].Commit {
		for _, i := range s.committable(e.Thread) {
			if s.threads[e.Thread].buffer[i].event == e.Number {
				s.commitStore(e.Thread, i)
				return x.followFrom(s, steps, n+1)
			}
		}
		return nil, fmt.Errorf("step %d: %s cannot reach memory", n, x.Trace.EventName(steps[n].Event))
	}
	o := s.nextOp(e.Thread)
	if o == nil || o.Branch || s.threads[e.Thread].events != e.Number || !s.isReady(e.Thread) {
		return nil, fmt.Errorf("step %d: %s cannot be executed", n, x.Trace.EventName(steps[n].Event))
	}
	var last error
	for _, woken := range x.wakeableThreads(s, e.Thread) {
		next := s.clone()
		got := next.executeStep(e.Thread, woken)
		var values map[model.ID]uint64
		if values, last = x.followFrom(next, steps, n+1); last == nil {
			if e.Kind.Reads() {
				values[steps[n].Event] = got
			}
			return values, nil
		}
	}
	return nil, last
}
