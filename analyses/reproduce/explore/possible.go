package explore

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
)

// Goal is what is asked for: what some of the reads of the recorded trace read, by
// event.
type Goal map[model.ID]uint64

// Possible tells whether some execution of the program takes the recorded paths as
// far as they go and reads what the goal says: under the recorded model or another
// one, in the recorded order of each core or in any. False also if it takes more
// than limit states to find out, which the second result tells.
func (r *Recording) Possible(m model.Memory, goal Goal, ordered bool, limit int) (possible, decided bool) {
	s := &search{Recording: r, goal: goal, limit: limit, seen: map[string]bool{}}
	if ordered {
		s.cores = r.Trace.Slices()
	}
	found := s.from(newState(r.Program, m))
	return found, found || len(s.seen) < limit
}

type search struct {
	*Recording
	goal  Goal
	limit int
	seen  map[string]bool
	cores [][]model.Slice // of the cores, if their order is to be kept
}

// from looks through all that can follow a state.
func (x *search) from(s *state) bool {
	if !x.branches(s) {
		return false
	}
	k := s.key()
	if x.seen[k] || len(x.seen) >= x.limit {
		return false
	}
	x.seen[k] = true
	done := true
	for t := range s.threads {
		done = done && s.threads[t].events == len(x.Trace.Threads[t].Events)
	}
	if done {
		return true
	}
	for t := range s.threads {
		for _, i := range s.mayCommit(t) {
			next := s.clone()
			next.commit(t, i)
			if x.from(next) {
				return true
			}
		}
		if x.executes(s, t) {
			return true
		}
	}
	return false
}

// branches takes the threads through the branches that they are at, and tells
// whether all go as recorded.
func (x *search) branches(s *state) bool {
	for t := range s.threads {
		for o := s.op(t); o != nil && o.Branch; o = s.op(t) {
			if s.threads[t].events == len(x.Trace.Threads[t].Events) && x.beyond(s, t) {
				break
			}
			at := s.threads[t].pc
			if taken := s.branch(t, o); taken != x.outcome(t, at) {
				return false
			}
		}
	}
	return true
}

// beyond tells that the recorded path of a thread ends before the branch that it
// is at.
func (x *search) beyond(s *state, t int) bool {
	_, known := x.outcomes(t)[s.threads[t].pc]
	return !known
}

func (x *search) outcome(t, pc int) bool { return x.outcomes(t)[pc] }

// outcomes are those of a thread's recorded branches, by place in the code, each of
// which is met once as branches go forward.
func (x *search) outcomes(t int) map[int]bool {
	found := map[int]bool{}
	pc, n := 0, 0
	code := x.Program.Threads[t]
	for pc < len(code) && n < len(x.Branches[t]) {
		o := &code[pc]
		pc++
		if !o.Branch {
			continue
		}
		found[pc-1] = x.Branches[t][n]
		if x.Branches[t][n] {
			pc += o.Skip
		}
		n++
	}
	return found
}

// executes tries a thread's next event.
func (x *search) executes(s *state, t int) bool {
	n := s.threads[t].events
	if n == len(x.Trace.Threads[t].Events) || s.op(t) == nil || s.op(t).Branch || !s.ready(t) {
		return false
	}
	id := x.Trace.Threads[t].Events[n]
	if x.cores != nil && !x.inOrder(s, id) {
		return false
	}
	for _, woken := range x.wakes(s, t) {
		next := s.clone()
		got := next.step(t, woken)
		if want, ok := x.goal[id]; ok && x.Trace.Events[id].Kind.Reads() && got != want {
			continue
		}
		if x.from(next) {
			return true
		}
	}
	return false
}

// wakes lists whom the next event of a thread may wake.
func (x *search) wakes(s *state, t int) []int {
	var asleep []int
	if s.op(t).Kind == model.Signal {
		for i := range s.threads {
			if s.threads[i].asleep {
				asleep = append(asleep, i)
			}
		}
	}
	if asleep == nil {
		return []int{-1}
	}
	return asleep
}

// inOrder tells that all slices before the event's, on its core and of its thread,
// are over and their writes in memory.
func (x *search) inOrder(s *state, id model.ID) bool {
	e := &x.Trace.Events[id]
	for _, core := range x.cores {
		for i := range core {
			if !slices.Contains(core[i].Events, id) {
				continue
			}
			if i > 0 && !x.over(s, core[i-1].Events) {
				return false
			}
			if core[i].Events[0] == id && e.At > 0 && !s.threads[e.Thread].drained() {
				return false
			}
		}
	}
	return true
}

// over tells that the events of a slice have been executed and have reached memory.
func (x *search) over(s *state, events []model.ID) bool {
	last := &x.Trace.Events[events[len(events)-1]]
	t := &s.threads[last.Thread]
	if t.events <= last.At {
		return false
	}
	for _, w := range t.buffer {
		if w.event <= last.At && w.size > 0 {
			return false
		}
	}
	return true
}
