package schedule

import (
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Shorten moves steps of a thread together where no step of another thread depends on their order:
// dependent steps keep their order, so that every read reads the same value. The result has at most
// as many switches.
func Shorten(t *model.Trace, m model.MemoryModel, s Schedule) Schedule {
	g := &grouping{Trace: t, model: m, next: make([][]int, len(t.Threads)), steps: s, waits: make([]int, len(s)), after: make([][]int, len(s))}
	for i := range s {
		thread := t.Events[s[i].Event].Thread
		g.next[thread] = append(g.next[thread], i)
	}
	g.orderAccesses()
	g.orderSynchronization()
	out := g.groupByThread()
	if out.Switches(t) >= s.Switches(t) {
		return s
	}
	return out
}

// grouping has the dependences between the steps of a schedule.
type grouping struct {
	*model.Trace
	model model.MemoryModel
	steps Schedule
	next  [][]int // by thread, its steps to come
	waits []int   // by step, how many have to come before
	after [][]int // by step, the steps that wait for it
}

// keepOrder has step a stay before step b. Steps of one thread do anyway.
func (g *grouping) keepOrder(a, b int) {
	if a >= 0 && g.Events[g.steps[a].Event].Thread != g.Events[g.steps[b].Event].Thread {
		g.after[a] = append(g.after[a], b)
		g.waits[b]++
	}
}

// orderAccesses keeps the order of the accesses to each cell of which one is a write.
func (g *grouping) orderAccesses() {
	place := map[model.ID]int{}
	for i := range g.steps {
		if g.isVisible(i) {
			place[g.steps[i].Event] = i
		}
	}
	for _, c := range g.Cells() {
		steps := map[int]bool{} // whether it writes
		for _, a := range c.Reads {
			steps[place[a.Event]] = false
		}
		for _, a := range c.Writes {
			steps[place[a.Event]] = true
		}
		write, reads := -1, []int(nil)
		for _, i := range slices.Sorted(maps.Keys(steps)) {
			g.keepOrder(write, i)
			if !steps[i] {
				reads = append(reads, i)
				continue
			}
			for _, r := range reads {
				g.keepOrder(r, i)
			}
			write, reads = i, nil
		}
	}
}

// orderSynchronization keeps the order of the operations on each object, and of threads with the
// events that fork and join them.
func (g *grouping) orderSynchronization() {
	latest, fork := map[event.ObjectID]int{}, -1
	for i, step := range g.steps {
		e := &g.Events[step.Event]
		if e.Kind == model.Fork {
			g.keepOrder(fork, i)
			fork = i
		}
		switch {
		case e.Kind == model.Fork && len(g.next[e.Peer]) > 0:
			g.keepOrder(i, g.next[e.Peer][0])
		case e.Kind == model.Join && len(g.next[e.Peer]) > 0:
			g.keepOrder(g.next[e.Peer][len(g.next[e.Peer])-1], i)
		case e.Kind >= model.Lock:
			if last, ok := latest[e.Object]; ok {
				g.keepOrder(last, i)
			}
			latest[e.Object] = i
		}
	}
}

// isVisible reports whether other threads can observe a step: a write is visible where it reaches
// memory.
func (g *grouping) isVisible(i int) bool {
	return g.model == model.SC || g.Events[g.steps[i].Event].Kind != model.Write || g.steps[i].Commit
}

// groupByThread takes steps of one thread as long as it can.
func (g *grouping) groupByThread() Schedule {
	out := make(Schedule, 0, len(g.steps))
	now := 0
	for len(out) < len(g.steps) {
		if !g.canContinue(now) {
			now = g.earliestThread()
		}
		i := g.next[now][0]
		g.next[now] = g.next[now][1:]
		for _, a := range g.after[i] {
			g.waits[a]--
		}
		out = append(out, g.steps[i])
	}
	return out
}

func (g *grouping) canContinue(thread int) bool {
	return len(g.next[thread]) > 0 && g.waits[g.next[thread][0]] == 0
}

// earliestThread is the thread whose next step came first.
func (g *grouping) earliestThread() int {
	best := -1
	for t := range g.next {
		if g.canContinue(t) && (best < 0 || g.next[t][0] < g.next[best][0]) {
			best = t
		}
	}
	return best
}
