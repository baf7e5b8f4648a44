package minimize

import "github.com/heddle-dmt/heddle/recorder/event"

// Places in a thread move where waiting takes another path than not waiting: a
// contended mutex, a failed compare-and-swap. A step of a changed schedule then ends
// at another instruction than it did in the schedule that was changed. A Follower
// notes the first step of which that is so; a run that probes that step finds how
// far off it is.

// Window is how many instructions to either side a probe looks for the place where
// a step ended.
const Window = 256

// probe looks for the end of a step.
type probe struct {
	step  int
	best  uint64 // the thread's progress at the place, nearest to the step's end
	found bool
	over  bool
}

// Drifted returns the first step that did not end where its PC says, or -1.
func (f *Follower) Drifted() int { return f.drifted }

// Probe makes the run look for the place where a step ended. The run is of no use
// behind it.
func (f *Follower) Probe(step int) { f.probe = &probe{step: step} }

// Probed returns how far the place that Probe looks for is from the step's end, in
// instructions of its thread. Over tells that the search is over.
func (f *Follower) Probed() (off int64, found, over bool) {
	p := f.probe
	if p == nil || !p.found {
		return 0, false, p != nil && (p.over || f.next > p.step)
	}
	return int64(p.best) - int64(f.plan[p.step].To), true, p.over || f.next > p.step
}

// probes tells whether the step that is under way is looked for.
func (f *Follower) probes() bool { return f.probe != nil && f.probe.step == f.next && !f.probe.over }

// probed shortens the budget of a step that is looked for: single instructions
// around its end.
func (f *Follower) probed(w way) way {
	switch {
	case !f.probes():
		return w
	case w.instructions > Window && w.instructions <= 1<<62:
		return way{instructions: w.instructions - Window}
	}
	return way{instructions: 1}
}

// compare looks where the slice of the step that is under way ended.
func (f *Follower) compare(how How, pc event.Addr) {
	if f.next >= len(f.plan) || f.running != f.plan[f.next].Thread || f.helper != event.NoThread {
		return
	}
	s := &f.plan[f.next]
	p := f.thread(s.Thread)
	there := pc == s.PC && (how != AtBudget) == s.Acts
	if f.probes() {
		f.note(p, s, there)
		return
	}
	there = there && p.inside == s.Inside
	if s.PC != 0 && f.drifted < 0 && !there && (reached(p, s) || how == AtBudget && s.Acts) {
		f.drifted = f.next
	}
}

// abandon notes that a step is left behind whose thread has exited before its end.
func (f *Follower) abandon(s *Step) {
	if s.PC != 0 && f.drifted < 0 && f.exited[s.Thread] && !reached(f.thread(s.Thread), s) {
		f.drifted = f.next
	}
}

// note takes in a place that a probe has come to.
func (f *Follower) note(p *Progress, s *Step, there bool) {
	distance := func(at uint64) uint64 { return max(at, s.To) - min(at, s.To) }
	if there && distance(p.reached) <= Window && (!f.probe.found || distance(p.reached) < distance(f.probe.best)) {
		f.probe.best, f.probe.found = p.reached, true
	}
	f.probe.over = p.reached > s.To+Window || p.waits
}

// shifted moves the ends of a thread's steps from one on.
func shifted(s Schedule, from int, by int64) Schedule {
	c := s.clone()
	for i := from; i < len(c); i++ {
		if c[i].Thread == c[from].Thread {
			c[i].To = uint64(max(0, int64(c[i].To)+by))
		}
	}
	return c
}
