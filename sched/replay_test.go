package sched_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/deepcopy"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"pgregory.net/rapid"
)

// decisionLog notes the decisions of a fake machine, as a recorder would.
type decisionLog struct{ list []event.Decision }

// Decision implements sched.Decisions.
func (l *decisionLog) Decision(n uint64) (event.Decision, bool) {
	if n >= uint64(len(l.list)) {
		return event.Decision{}, false
	}
	return l.list[n], true
}

// SharedInSnapshot implements sched.Decisions.
func (l *decisionLog) SharedInSnapshot() {}

func (l *decisionLog) decided(c *sched.Cluster, s sched.Slice, v sched.Verdict, timer event.Cycles) {
	d := event.Decision{Thread: s.Thread, Core: s.Core}
	for k := range c.Cores() {
		core := event.CoreID(k)
		d.Cores = append(d.Cores, event.CoreState{Core: core, Thread: c.On(core), Clock: c.Now(core)})
	}
	switch v {
	case sched.Run:
		d.Time = c.Now(s.Core)
	case sched.FireTimer:
		d.Kind, d.Time = event.DecideTimer, timer
	default:
		d.Kind, d.Time, d.Instructions = event.DecideEnd, c.Makespan(), c.Switches()
	}
	l.list = append(l.list, d)
}

func (l *decisionLog) ran(n uint64, now event.Cycles) {
	d := &l.list[len(l.list)-1]
	d.Instructions, d.After, d.Budget = n, now, n > 0
}

// replayOf is a fake machine that runs a setting's scripts by a log.
func replayOf(t testing.TB, s setting, log sched.Decisions) *fake {
	t.Helper()
	c, err := sched.NewReplay(s.cores, log)
	if err != nil {
		t.Fatal(err)
	}
	// No switch cost: the clocks of the log have it.
	f := newFake(c, s.scripts...)
	for i, cost := range s.costs {
		f.threads[i].cost = cost
	}
	return f
}

// TestReplayIsTheRun: whatever policy made the decisions, a replay of them has
// the same history, clocks and counts, also when it is copied on the way.
func TestReplayIsTheRun(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := settings(sched.PolicyNames()...).Draw(r, "setting")
		f := s.fake(t, rapid.Uint64().Draw(r, "seed"))
		f.log = &decisionLog{}
		f.finish(t)

		again := replayOf(t, s, f.log)
		more := true
		for n := rapid.IntRange(0, 30).Draw(r, "steps before the copy"); n > 0 && more; n-- {
			more = again.step(t)
		}
		again = deepcopy.Copy(deepcopy.New(), again)
		for more && again.step(t) {
		}
		if why := again.c.Why(); why != "" {
			r.Fatalf("the replay ends: %s", why)
		}
		if !slices.Equal(again.history, f.history) {
			r.Fatalf("history\n%s\nwant\n%s", strings.Join(again.history, "\n"), strings.Join(f.history, "\n"))
		}
		if !again.c.Conclude() || again.c.Makespan() != f.c.Makespan() || again.c.Switches() != f.c.Switches() ||
			!slices.Equal(again.clocks, f.clocks) {
			r.Fatalf("makespan %d, switches %d, clocks %v; want %d, %d, %v", again.c.Makespan(), again.c.Switches(),
				again.clocks, f.c.Makespan(), f.c.Switches(), f.clocks)
		}
	})
}

// TestReplayOfWrongDecisions: what cannot be done is a verdict with a reason.
func TestReplayOfWrongDecisions(t *testing.T) {
	scripts := [][]op{{{run, 50}, {sleep, 500}, {run, 10}}, {{run, 100}}}
	s := setting{cores: 2, options: sched.Options{Policy: sched.RR, Quantum: 20}, scripts: scripts, costs: []event.Cycles{1, 1}}
	f := s.fake(t, 1)
	f.log = &decisionLog{}
	f.finish(t)
	timer := slices.IndexFunc(f.log.list, func(d event.Decision) bool { return d.Kind == event.DecideTimer })
	for _, c := range []struct {
		name, why string
		verdict   sched.Verdict
		change    func(list []event.Decision) []event.Decision
	}{
		{"none", "the recording has 0 decisions and no end", sched.End, func([]event.Decision) []event.Decision { return nil }},
		{"cut", "the recording has 2 decisions and no end", sched.End, func(l []event.Decision) []event.Decision { return l[:2] }},
		{
			"unknown thread", "thread 77 is on core 0 in the recording, and cannot now", sched.Diverged,
			func(l []event.Decision) []event.Decision { l[0].Cores[0].Thread = 77; return l },
		},
		{
			"unknown core", "core 9 is not there", sched.Diverged,
			func(l []event.Decision) []event.Decision { l[0].Cores[0].Core = 9; return l },
		},
		{
			"thread elsewhere", "thread 2 runs on core 0 in the recording, and cannot now", sched.Diverged,
			func(l []event.Decision) []event.Decision { l[0].Thread = 2; return l },
		},
		{
			"other time", "a timer fires at 1 in the recording, and the earliest is set for", sched.Diverged,
			func(l []event.Decision) []event.Decision { l[timer].Time = 1; return l },
		},
		{
			"no timer", "a timer fires at 0 in the recording, and none is set", sched.Diverged,
			func(l []event.Decision) []event.Decision { l[0].Kind = event.DecideTimer; l[0].Time = 0; return l },
		},
		{
			"early end", "the recording ends here", sched.End,
			func(l []event.Decision) []event.Decision { l[1].Kind = event.DecideEnd; return l },
		},
	} {
		list := slices.Clone(f.log.list)
		for i := range list {
			list[i].Cores = slices.Clone(list[i].Cores)
		}
		again := replayOf(t, s, &decisionLog{list: c.change(list)})
		var verdict sched.Verdict
		for {
			at := event.Cycles(0)
			if len(again.timers) > 0 {
				at = again.timers[0].at
			}
			before := deepcopy.Copy(deepcopy.New(), again)
			if _, verdict = before.c.Next(at, len(again.timers) > 0); verdict != sched.Run && verdict != sched.FireTimer {
				again = before
				break
			}
			again.step(t)
		}
		if verdict != c.verdict || !strings.HasPrefix(again.c.Why(), c.why) {
			t.Errorf("%s: verdict %s: %s; want %s: %s", c.name, verdict, again.c.Why(), c.verdict, c.why)
		}
	}
}

// beginOf is the begin of a log: to ask for more is an error.
type beginOf struct {
	*decisionLog
	t    testing.TB
	most uint64
}

// Decision implements sched.Decisions.
func (b *beginOf) Decision(n uint64) (event.Decision, bool) {
	if n >= b.most {
		b.t.Errorf("decision %d is asked for, behind %d", n, b.most)
	}
	return b.decisionLog.Decision(n)
}

// lowest runs the thread with the lowest number of those that it was told of.
type lowest struct{ runnable map[event.ThreadID]bool }

func (l *lowest) Ready(_ *sched.Cluster, t event.ThreadID, _ event.Cycles) { l.runnable[t] = true }
func (l *lowest) Block(_ *sched.Cluster, t event.ThreadID)                 { delete(l.runnable, t) }
func (l *lowest) Exit(_ *sched.Cluster, t event.ThreadID)                  { delete(l.runnable, t) }
func (l *lowest) Yield(*sched.Cluster, event.ThreadID)                     {}
func (l *lowest) Ran(*sched.Cluster, sched.Slice, uint64, event.Cycles)    {}
func (l *lowest) Next(c *sched.Cluster, timer event.Cycles, has bool) (sched.Slice, sched.Verdict) {
	if has && timer <= c.Makespan() {
		return sched.Slice{}, sched.FireTimer
	}
	t := slices.Min(slices.Collect(maps.Keys(l.runnable)))
	core := c.Place(t)
	c.Lift(core, c.Makespan())
	return sched.Slice{Core: core, Thread: t, Instructions: 20}, sched.Run
}

// TestContinued: a run that goes on from a place of a recorded one is that up to there,
// uses nothing of the log behind it, and the other policy then knows who can run.
func TestContinued(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := settings(sched.PolicyNames()...).Draw(r, "setting")
		seed := rapid.Uint64().Draw(r, "seed")
		f := s.fake(t, seed)
		f.log = &decisionLog{}
		f.finish(t)
		n := rapid.IntRange(0, len(f.log.list)-1).Draw(r, "decisions")
		c, err := sched.NewContinued(s.cores, &beginOf{f.log, t, uint64(n)}, uint64(n), &lowest{map[event.ThreadID]bool{}})
		if err != nil {
			t.Fatal(err)
		}
		whole, part := s.fake(t, seed), newFake(c, s.scripts...)
		for i, cost := range s.costs {
			part.threads[i].cost = cost
		}
		for range n {
			whole.step(t)
			part.step(t)
		}
		if !slices.Equal(part.history, whole.history) {
			r.Fatalf("behind %d decisions: history\n%s\nwant\n%s", n, strings.Join(part.history, "\n"), strings.Join(whole.history, "\n"))
		}
		part.finish(t)
	})
}
