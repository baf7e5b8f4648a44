package minimize

import (
	"github.com/heddle-dmt/heddle/emu/arch"

	"github.com/heddle-dmt/heddle/sched/follow"
)

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

// Probe makes the run search for the place where a step ended. The rest of the run is meaningless.
func (f *Follower) Probe(step int) { f.probe = &probe{step: step} }

// Probed returns the distance of the place that Probe searches for from the step's end, in
// instructions of its thread. Over reports that the search has ended.
func (f *Follower) Probed() (off int64, found, over bool) {
	p := f.probe
	if p == nil || !p.found {
		return 0, false, p != nil && (p.over || f.next > p.step)
	}
	return int64(p.best) - int64(f.plan[p.step].To), true, p.over || f.next > p.step
}

// isProbing reports whether the current step is the one that is searched for.
func (f *Follower) isProbing() bool { return f.probe != nil && f.probe.step == f.next && !f.probe.over }

// limitForProbe shortens the budget of a step that is looked for: single instructions
// around its end.
func (f *Follower) limitForProbe(w follow.Distance) follow.Distance {
	switch {
	case !f.isProbing():
		return w
	case w.Instructions > Window && w.Instructions <= 1<<62:
		return follow.Distance{Instructions: w.Instructions - Window}
	}
	return follow.Distance{Instructions: 1}
}

// compareWithStep compares the end of a quantum with the end of the current step.
func (f *Follower) compareWithStep(how How, pc arch.Addr) {
	if f.next >= len(f.plan) || f.running != f.plan[f.next].Thread || f.helper != arch.NoThread {
		return
	}
	s := &f.plan[f.next]
	p := f.progressOf(s.Thread)
	there := pc == s.PC && (how != AtBudget) == s.Acts
	if f.isProbing() {
		f.noteProbedPlace(p, s, there)
		return
	}
	there = there && p.inside == s.Inside
	if s.PC != 0 && f.drifted < 0 && !there && (hasReached(p, s) || how == AtBudget && s.Acts) {
		f.drifted = f.next
	}
}

// noteUnreached records that a thread has exited before the end of its step.
func (f *Follower) noteUnreached(s *Step) {
	if s.PC != 0 && f.drifted < 0 && f.exited[s.Thread] && !hasReached(f.progressOf(s.Thread), s) {
		f.drifted = f.next
	}
}

// noteProbedPlace records a place that a probe has reached.
func (f *Follower) noteProbedPlace(p *Progress, s *Step, there bool) {
	distance := func(at uint64) uint64 { return max(at, s.To) - min(at, s.To) }
	if there && distance(p.reached) <= Window && (!f.probe.found || distance(p.reached) < distance(f.probe.best)) {
		f.probe.best, f.probe.found = p.reached, true
	}
	f.probe.over = p.reached > s.To+Window || p.waits
}

// shiftSteps moves the ends of a thread's steps from one on.
func shiftSteps(s Schedule, from int, by int64) Schedule {
	c := s.deepClone()
	for i := from; i < len(c); i++ {
		if c[i].Thread == c[from].Thread {
			c[i].To = uint64(max(0, int64(c[i].To)+by))
		}
	}
	return c
}
