package explore

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
)

// Goal is a question: the values that some reads of the recorded trace should read, by event.
type Goal map[model.ID]uint64

// Possible reports whether some execution of the program takes the recorded paths as far as they
// reach and reads the values of the goal: under the recorded model or another one, in the recorded
// order of each core or in any. If the search takes more than limit states, it is not decided.
func (r *Recording) Possible(m model.MemoryModel, goal Goal, ordered bool, limit int) (possible, decided bool) {
	s := &searcher{Recording: r, goal: goal, limit: limit, seen: map[string]bool{}}
	if ordered {
		s.cores = r.Trace.Turns()
	}
	found := s.searchFrom(newState(r.Program, m))
	return found, found || len(s.seen) < limit
}

type searcher struct {
	*Recording
	goal  Goal
	limit int
	seen  map[string]bool
	cores [][]model.Turn // of the cores, if their order is to be kept
}

// searchFrom looks through all that can follow a state.
func (x *searcher) searchFrom(s *state) bool {
	if !x.takeBranches(s) {
		return false
	}
	k := s.stateKey()
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
		for _, i := range s.committable(t) {
			next := s.clone()
			next.commitStore(t, i)
			if x.searchFrom(next) {
				return true
			}
		}
		if x.tryNextEvent(s, t) {
			return true
		}
	}
	return false
}

// takeBranches takes the threads through their next branches, and returns whether all go as
// recorded.
func (x *searcher) takeBranches(s *state) bool {
	for t := range s.threads {
		for o := s.nextOp(t); o != nil && o.Branch; o = s.nextOp(t) {
			if s.threads[t].events == len(x.Trace.Threads[t].Events) && x.isBeyondPath(s, t) {
				break
			}
			at := s.threads[t].pc
			if taken := s.takeBranch(t, o); taken != x.recordedOutcome(t, at) {
				return false
			}
		}
	}
	return true
}

// isBeyondPath reports whether the recorded path of a thread ends before its next branch.
func (x *searcher) isBeyondPath(s *state, t int) bool {
	_, known := x.recordedOutcomes(t)[s.threads[t].pc]
	return !known
}

func (x *searcher) recordedOutcome(t, pc int) bool { return x.recordedOutcomes(t)[pc] }

// recordedOutcomes are those of a thread's recorded branches, by place in the code, each of
// which is met once as branches go forward.
func (x *searcher) recordedOutcomes(t int) map[int]bool {
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

// tryNextEvent tries a thread's next event.
func (x *searcher) tryNextEvent(s *state, t int) bool {
	n := s.threads[t].events
	if n == len(x.Trace.Threads[t].Events) || s.nextOp(t) == nil || s.nextOp(t).Branch || !s.isReady(t) {
		return false
	}
	id := x.Trace.Threads[t].Events[n]
	if x.cores != nil && !x.keepsCoreOrder(s, id) {
		return false
	}
	for _, woken := range x.wakeableThreads(s, t) {
		next := s.clone()
		got := next.executeStep(t, woken)
		if want, ok := x.goal[id]; ok && x.Trace.Events[id].Kind.Reads() && got != want {
			continue
		}
		if x.searchFrom(next) {
			return true
		}
	}
	return false
}

// wakeableThreads lists whom the next event of a thread may wake.
func (x *searcher) wakeableThreads(s *state, t int) []int {
	var asleep []int
	if s.nextOp(t).Kind == model.Signal {
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

// keepsCoreOrder reports whether all turns before the event's, on its core and of its thread, are
// over and their writes in memory.
func (x *searcher) keepsCoreOrder(s *state, id model.ID) bool {
	e := &x.Trace.Events[id]
	for _, core := range x.cores {
		for i := range core {
			if !slices.Contains(core[i].Events, id) {
				continue
			}
			if i > 0 && !x.hasReachedMemory(s, core[i-1].Events) {
				return false
			}
			if core[i].Events[0] == id && e.Number > 0 && !s.threads[e.Thread].isDrained() {
				return false
			}
		}
	}
	return true
}

// hasReachedMemory reports whether the events of a turn have been executed and have reached memory.
func (x *searcher) hasReachedMemory(s *state, events []model.ID) bool {
	last := &x.Trace.Events[events[len(events)-1]]
	t := &s.threads[last.Thread]
	if t.events <= last.Number {
		return false
	}
	for _, w := range t.buffer {
		if w.event <= last.Number && w.size > 0 {
			return false
		}
	}
	return true
}
