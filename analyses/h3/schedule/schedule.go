package schedule

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
)

// Step executes an event, or has a write reach memory that was executed before.
type Step struct {
	Event  model.ID
	Commit bool
}

// Schedule is a total order of steps. Under SC writes reach memory at once, and
// there are no commits.
type Schedule []Step

// FromClocks orders the events of a trace by their clocks, those of the same by
// their number. A write that is executed before its clock comes is executed just
// before the next event of its thread that it must not hold up.
func FromClocks(t *model.Trace, m model.MemoryModel, clocks []int64) Schedule {
	order := make([]model.ID, len(t.Events))
	for i := range order {
		order[i] = model.ID(i)
	}
	slices.SortStableFunc(order, func(a, b model.ID) int { return cmp.Compare(clocks[a], clocks[b]) })
	next := make([]int, len(t.Threads))
	var s Schedule
	for _, id := range order {
		e := &t.Events[id]
		events := t.Threads[e.Thread].Events
		for ; next[e.Thread] <= e.Number; next[e.Thread]++ {
			s = append(s, Step{Event: events[next[e.Thread]]})
		}
		if e.Kind == model.Write && m != model.SC {
			s = append(s, Step{Event: id, Commit: true})
		}
	}
	return s
}

// Switches is how often a schedule goes from one thread to another. A commit is
// part of no thread.
func (s Schedule) Switches(t *model.Trace) int {
	n, last := 0, -1
	for _, step := range s {
		thread := t.Events[step.Event].Thread
		if step.Commit || thread == last {
			continue
		}
		if last >= 0 {
			n++
		}
		last = thread
	}
	return n
}
