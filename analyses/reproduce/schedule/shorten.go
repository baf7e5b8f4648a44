package schedule

import (
	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
)

// Shorten puts the steps of a thread together as far as the others do not mind:
// steps that depend on each other keep their order, so that every read reads what it
// did. What it returns has at most as many switches.
func Shorten(t *model.Trace, m model.Memory, s Schedule) Schedule {
	g := &grouping{Trace: t, model: m, next: make([][]int, len(t.Threads)), steps: s, waits: make([]int, len(s)), after: make([][]int, len(s))}
	for i := range s {
		thread := t.Events[s[i].Event].Thread
		g.next[thread] = append(g.next[thread], i)
		for k := range i {
			if g.depend(k, i) {
				g.after[k] = append(g.after[k], i)
				g.waits[i]++
			}
		}
	}
	out := g.regroup()
	if out.Switches(t) >= s.Switches(t) {
		return s
	}
	return out
}

// grouping is what Shorten knows of a schedule.
type grouping struct {
	*model.Trace
	model model.Memory
	steps Schedule
	next  [][]int // by thread, its steps to come
	waits []int   // by step, how many have to come before
	after [][]int // by step, those that wait for it
}

// depend tells whether two steps of different threads must keep their order. Those of
// one thread come in order anyway.
func (g *grouping) depend(a, b int) bool {
	x, y := &g.Events[g.steps[a].Event], &g.Events[g.steps[b].Event]
	if x.Thread == y.Thread {
		return false
	}
	switch {
	case access(x) && access(y):
		touches := x.Addr < y.Addr+uint64(y.Size) && y.Addr < x.Addr+uint64(x.Size)
		if x.Index != nil || y.Index != nil {
			touches = x.Addr == y.Addr
		}
		return touches && (x.Kind.Writes() || y.Kind.Writes()) && g.visible(a) && g.visible(b)
	case access(x) || access(y):
		return false
	case x.Kind == model.Fork && y.Thread == x.Peer, y.Kind == model.Join && x.Thread == y.Peer:
		return true
	}
	return x.Object == y.Object && x.Kind >= model.Lock && y.Kind >= model.Lock
}

func access(e *model.Event) bool { return e.Kind.Reads() || e.Kind.Writes() }

// visible tells steps that other threads can notice: a write is where it reaches
// memory.
func (g *grouping) visible(i int) bool {
	return g.model == model.SC || g.Events[g.steps[i].Event].Kind != model.Write || g.steps[i].Commit
}

// regroup takes steps of one thread as long as it can.
func (g *grouping) regroup() Schedule {
	out := make(Schedule, 0, len(g.steps))
	now := 0
	for len(out) < len(g.steps) {
		if !g.free(now) {
			now = g.first()
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

func (g *grouping) free(thread int) bool {
	return len(g.next[thread]) > 0 && g.waits[g.next[thread][0]] == 0
}

// first is the thread whose next step came first.
func (g *grouping) first() int {
	best := -1
	for t := range g.next {
		if g.free(t) && (best < 0 || g.next[t][0] < g.next[best][0]) {
			best = t
		}
	}
	return best
}
