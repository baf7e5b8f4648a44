package replay_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/replay"
	. "github.com/heddle-dmt/heddle/sched/schedtest"
)

// replayOf is a fake machine that runs a setting's scripts by a log.
func replayOf(t testing.TB, s Setting, log replay.Decisions) *Machine {
	t.Helper()
	c, err := replay.New(s.Cores, log)
	if err != nil {
		t.Fatal(err)
	}
	// No switch cost: the clocks of the log have it.
	f := NewMachine(c, s.Scripts...)
	for i, cost := range s.Costs {
		f.Threads[i].Cost = cost
	}
	return f
}

// TestReplayIsTheRun: whatever policy made the decisions, a replay of them has
// the same history, clocks and counts, also when it is copied on the way.
func TestReplayIsTheRun(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := Settings(sched.PolicyNames()...).Draw(r, "setting")
		f := s.Machine(t, rapid.Uint64().Draw(r, "seed"))
		f.Log = &DecisionLog{}
		f.Finish(t)

		again := replayOf(t, s, f.Log)
		more := true
		for n := rapid.IntRange(0, 30).Draw(r, "steps before the copy"); n > 0 && more; n-- {
			more = again.Step(t)
		}
		again = deepcopy.Copy(deepcopy.New(), again)
		for more && again.Step(t) {
		}
		if why := replay.Why(again.Cluster); why != "" {
			r.Fatalf("the replay ends: %s", why)
		}
		if !slices.Equal(again.History, f.History) {
			r.Fatalf("history\n%s\nwant\n%s", strings.Join(again.History, "\n"), strings.Join(f.History, "\n"))
		}
		if !replay.Conclude(again.Cluster) || again.Cluster.Makespan() != f.Cluster.Makespan() || again.Cluster.Switches() != f.Cluster.Switches() ||
			!slices.Equal(again.Clocks, f.Clocks) {
			r.Fatalf("makespan %d, switches %d, clocks %v; want %d, %d, %v", again.Cluster.Makespan(), again.Cluster.Switches(),
				again.Clocks, f.Cluster.Makespan(), f.Cluster.Switches(), f.Clocks)
		}
	})
}

// TestReplayOfWrongDecisions: an impossible decision gives a verdict with a reason.
func TestReplayOfWrongDecisions(t *testing.T) {
	scripts := [][]Op{{Run(50), Sleep(500), Run(10)}, {Run(100)}}
	s := Setting{Cores: 2, Options: sched.Options{Policy: sched.RR, Quantum: 20}, Scripts: scripts, Costs: []arch.Cycles{1, 1}}
	f := s.Machine(t, 1)
	f.Log = &DecisionLog{}
	f.Finish(t)
	timer := slices.IndexFunc(f.Log.List, func(d event.Decision) bool { return d.Kind == event.DecideTimer })
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
		list := slices.Clone(f.Log.List)
		for i := range list {
			list[i].Cores = slices.Clone(list[i].Cores)
		}
		again := replayOf(t, s, &DecisionLog{List: c.change(list)})
		var verdict sched.Verdict
		for {
			at := arch.Cycles(0)
			if len(again.Timers) > 0 {
				at = again.Timers[0].At
			}
			before := deepcopy.Copy(deepcopy.New(), again)
			if _, verdict = before.Cluster.Next(at, len(again.Timers) > 0); verdict != sched.Run && verdict != sched.FireTimer {
				again = before
				break
			}
			again.Step(t)
		}
		if verdict != c.verdict || !strings.HasPrefix(replay.Why(again.Cluster), c.why) {
			t.Errorf("%s: verdict %s: %s; want %s: %s", c.name, verdict, replay.Why(again.Cluster), c.verdict, c.why)
		}
	}
}

// beginOf is the begin of a log: to ask for more is an error.
type beginOf struct {
	*DecisionLog
	t    testing.TB
	most uint64
}

// Decision implements replay.Decisions.
func (b *beginOf) Decision(n uint64) (event.Decision, bool) {
	if n >= b.most {
		b.t.Errorf("decision %d is asked for, after %d", n, b.most)
	}
	return b.DecisionLog.Decision(n)
}

// lowest runs the thread with the lowest number among the reported ones.
type lowest struct{ runnable map[arch.ThreadID]bool }

func (l *lowest) Ready(_ *sched.Cluster, t arch.ThreadID, _ arch.Cycles) { l.runnable[t] = true }
func (l *lowest) Block(_ *sched.Cluster, t arch.ThreadID)                { delete(l.runnable, t) }
func (l *lowest) Exit(_ *sched.Cluster, t arch.ThreadID)                 { delete(l.runnable, t) }
func (l *lowest) Yield(*sched.Cluster, arch.ThreadID)                    {}
func (l *lowest) Ran(*sched.Cluster, sched.Quantum, uint64, arch.Cycles) {}
func (l *lowest) Next(c *sched.Cluster, timer arch.Cycles, has bool) (sched.Quantum, sched.Verdict) {
	if has && timer <= c.Makespan() {
		return sched.Quantum{}, sched.FireTimer
	}
	t := slices.Min(slices.Collect(maps.Keys(l.runnable)))
	core := c.Place(t)
	c.Lift(core, c.Makespan())
	return sched.Quantum{Core: core, Thread: t, Instructions: 20}, sched.Run
}

// TestContinued: a run that continues from a place of a recorded one equals that up to there,
// uses nothing of the log after it, and the other policy then knows who can run.
func TestContinued(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := Settings(sched.PolicyNames()...).Draw(r, "setting")
		seed := rapid.Uint64().Draw(r, "seed")
		f := s.Machine(t, seed)
		f.Log = &DecisionLog{}
		f.Finish(t)
		n := rapid.IntRange(0, len(f.Log.List)-1).Draw(r, "decisions")
		c, err := replay.NewPrefix(s.Cores, &beginOf{f.Log, t, uint64(n)}, uint64(n), &lowest{map[arch.ThreadID]bool{}})
		if err != nil {
			t.Fatal(err)
		}
		whole, part := s.Machine(t, seed), NewMachine(c, s.Scripts...)
		for i, cost := range s.Costs {
			part.Threads[i].Cost = cost
		}
		for range n {
			whole.Step(t)
			part.Step(t)
		}
		if !slices.Equal(part.History, whole.History) {
			r.Fatalf("after %d decisions: history\n%s\nwant\n%s", n, strings.Join(part.History, "\n"), strings.Join(whole.History, "\n"))
		}
		part.Finish(t)
	})
}
