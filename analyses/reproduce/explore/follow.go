package explore

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
)

// Step is one step of a schedule: an event, or its write's way to memory.
type Step struct {
	Event  model.ID
	Commit bool
}

// Follow executes a schedule of the recorded events, and returns what each event
// reads. It is an error if a step cannot be taken, or a thread leaves its path.
func (r *Recording) Follow(m model.Memory, steps []Step) (map[model.ID]uint64, error) {
	x := &search{Recording: r}
	return x.follow(newState(r.Program, m), steps, 0)
}

func (x *search) follow(s *state, steps []Step, n int) (map[model.ID]uint64, error) {
	if !x.branches(s) {
		return nil, fmt.Errorf("step %d: a thread leaves its path", n)
	}
	if n == len(steps) {
		return map[model.ID]uint64{}, nil
	}
	e := &x.Trace.Events[steps[n].Event]
	if steps[n].Commit {
		for _, i := range s.mayCommit(e.Thread) {
			if s.threads[e.Thread].buffer[i].event == e.At {
				s.commit(e.Thread, i)
				return x.follow(s, steps, n+1)
			}
		}
		return nil, fmt.Errorf("step %d: %s cannot reach memory", n, x.Trace.Name(steps[n].Event))
	}
	o := s.op(e.Thread)
	if o == nil || o.Branch || s.threads[e.Thread].events != e.At || !s.ready(e.Thread) {
		return nil, fmt.Errorf("step %d: %s cannot be executed", n, x.Trace.Name(steps[n].Event))
	}
	var last error
	for _, woken := range x.wakes(s, e.Thread) {
		next := s.clone()
		got := next.step(e.Thread, woken)
		var values map[model.ID]uint64
		if values, last = x.follow(next, steps, n+1); last == nil {
			if e.Kind.Reads() {
				values[steps[n].Event] = got
			}
			return values, nil
		}
	}
	return nil, last
}
