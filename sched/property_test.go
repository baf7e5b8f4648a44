package sched_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/internal/deepcopy"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"pgregory.net/rapid"
)

// A setting is a machine and the scripts that it runs.
type setting struct {
	cores      int
	options    sched.Options
	switchCost event.Cycles
	scripts    [][]op
	costs      []event.Cycles
}

func (s setting) fake(t testing.TB, seed uint64) *fake {
	c := newCluster(t, s.cores, seed, s.options)
	c.SetSwitchCost(s.switchCost)
	f := newFake(c, s.scripts...)
	for i, cost := range s.costs {
		f.threads[i].cost = cost
	}
	return f
}

func settings(policies ...string) *rapid.Generator[setting] {
	return rapid.Custom(func(t *rapid.T) setting {
		s := setting{
			cores:      rapid.IntRange(1, 5).Draw(t, "cores"),
			options:    drawOptions(t, policies),
			switchCost: event.Cycles(rapid.IntRange(0, 40).Draw(t, "switch cost")),
		}
		n := rapid.IntRange(1, 12).Draw(t, "threads")
		for i := range n {
			s.scripts = append(s.scripts, drawScript(t, i, n, s.cores))
			s.costs = append(s.costs, event.Cycles(rapid.IntRange(1, 3).Draw(t, "cost")))
		}
		return s
	})
}

func drawOptions(t *rapid.T, policies []string) sched.Options {
	o := sched.Options{
		Policy:      rapid.SampledFrom(policies).Draw(t, "policy"),
		Quantum:     rapid.Uint64Range(1, 300).Draw(t, "quantum"),
		TimeSlice:   rapid.Uint64Range(1, 2000).Draw(t, "time slice"),
		Jitter:      fraction(rapid.SampledFrom([]float64{0, 0.1, 1}).Draw(t, "jitter")),
		DelayRate:   rapid.SampledFrom([]float64{0, 0.05}).Draw(t, "delay rate"),
		DelayCycles: rapid.Uint64Range(1, 3000).Draw(t, "delay"),
		Granularity: rapid.SampledFrom(sched.Granularities()).Draw(t, "granularity"),
		Depth:       rapid.IntRange(1, 6).Draw(t, "depth"),
		Length:      rapid.Uint64Range(6, 5000).Draw(t, "length"),
	}
	o.Fairness = max(o.Quantum, rapid.Uint64Range(1, 3000).Draw(t, "fairness"))
	return o
}

// drawScript draws what thread i does. It waits only for flags of threads
// before it, and raises its own at the end, so that every fair schedule ends.
func drawScript(t *rapid.T, i, n, cores int) []op {
	kinds := []kind{run, run, sleep, yield, pin, locked, stop, herd}
	if i > 0 {
		kinds = append(kinds, await, spin, pause)
	}
	var script []op
	for range rapid.IntRange(0, 8).Draw(t, "operations") {
		o := op{kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		switch o.kind {
		case run:
			o.n = rapid.Uint64Range(1, 500).Draw(t, "instructions")
		case sleep:
			o.n = rapid.Uint64Range(0, 5000).Draw(t, "cycles")
		case pin:
			o.n = rapid.Uint64Range(1, 1<<cores-1).Draw(t, "mask")
		case stop, herd:
			o.n = rapid.Uint64Range(0, uint64(n-1)).Draw(t, "other thread")
		case await, spin, pause:
			o.n = rapid.Uint64Range(0, uint64(i-1)).Draw(t, "flag")
		}
		script = append(script, o)
	}
	return append(script, op{set, uint64(i)})
}

var untimedPolicies = []string{sched.RR, sched.Random, sched.PCT}

// Every thread finishes, under the checks of the fake machine (invariants 3
// and 4), and the same seed makes the same slices (invariant 1).
func TestSameSeedSameSlices(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := settings(sched.PolicyNames()...).Draw(r, "setting")
		seed := rapid.Uint64().Draw(r, "seed")
		first, second := s.fake(r2t(t, r), seed).finish(r2t(t, r)), s.fake(r2t(t, r), seed).finish(r2t(t, r))
		if !slices.Equal(first.history, second.history) {
			r.Fatalf("two runs differ:\n%v\n%v", first.history, second.history)
		}
	})
}

// A deep copy in mid-run goes on as the original does (invariant 2), and is not
// changed by it.
func TestCopyGoesOnAlike(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tb := r2t(t, r)
		f := settings(sched.PolicyNames()...).Draw(r, "setting").fake(tb, rapid.Uint64().Draw(r, "seed"))
		for range rapid.IntRange(0, 60).Draw(r, "steps") {
			f.step(tb)
		}
		copied := deepcopy.Copy(deepcopy.New(), f)
		f.finish(tb)
		copied.finish(tb)
		if !slices.Equal(f.history, copied.history) {
			r.Fatalf("original and copy differ:\n%v\n%v", f.history, copied.history)
		}
	})
}

// No runnable thread waits for longer than the documented bound (invariant 5).
// Slices end late by a block at most.
func TestFairness(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := settings(untimedPolicies...).Draw(r, "setting")
		f := s.fake(r2t(t, r), rapid.Uint64().Draw(r, "seed")).finish(r2t(t, r))
		n := uint64(f.peak)
		bound := 2*s.options.Fairness + n + (n+1)*blockLength
		if s.options.Policy == sched.RR && s.options.Granularity != sched.Sync {
			bound = n * (s.options.Quantum + blockLength)
		}
		if f.longest > bound {
			r.Fatalf("a thread waited for %d instructions, bound %d (%d threads)", f.longest, bound, n)
		}
	})
}

// The seed has no effect on rr, nor on timed without jitter and delays.
func TestSeedWithoutEffect(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tb := r2t(t, r)
		s := settings(sched.RR, sched.Timed).Draw(r, "setting")
		s.options.Jitter, s.options.DelayRate = fraction(0), 0
		first := s.fake(tb, rapid.Uint64().Draw(r, "seed")).finish(tb)
		second := s.fake(tb, rapid.Uint64().Draw(r, "other seed")).finish(tb)
		if !slices.Equal(first.history, second.history) {
			r.Fatalf("two seeds differ:\n%v\n%v", first.history, second.history)
		}
	})
}

// The makespan of a run is at least its longest thread's time, and at least the
// work divided by the cores, for every policy.
func TestMakespanIsPossible(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tb := r2t(t, r)
		s := settings(sched.PolicyNames()...).Draw(r, "setting")
		var work, longest event.Cycles
		for i := range s.scripts {
			n := rapid.Uint64Range(1, 5000).Draw(r, "instructions")
			s.scripts[i] = []op{{run, n}}
			alone := event.Cycles(n) * s.costs[i]
			work, longest = work+alone, max(longest, alone)
		}
		f := s.fake(tb, rapid.Uint64().Draw(r, "seed")).finish(tb)
		if span := f.c.Makespan(); span < longest || span*event.Cycles(s.cores) < work {
			r.Fatalf("makespan %d on %d cores, longest thread %d, work %d", span, s.cores, longest, work)
		}
	})
}

// A recorded run, replayed slice by slice by a policy from outside the package,
// gives the same slices: the Policy interface carries a decision log.
func TestReplayByOwnPolicy(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tb := r2t(t, r)
		s := settings(untimedPolicies...).Draw(r, "setting")
		s.options.TimeSlice, s.switchCost = 1_000_000_000, 0
		f := s.fake(tb, rapid.Uint64().Draw(r, "seed")).finish(tb)
		policy := &replay{log: f.history}
		c, err := sched.NewWithPolicy(s.cores, policy)
		if err != nil {
			r.Fatal(err)
		}
		again := newFake(c, s.scripts...)
		for i, cost := range s.costs {
			again.threads[i].cost = cost
		}
		policy.position = func() int { return len(again.history) }
		again.finish(tb)
		if !slices.Equal(f.history, again.history) {
			r.Fatalf("recorded and replayed differ:\n%v\n%v", f.history, again.history)
		}
	})
}

// replay follows the history of a fake machine.
type replay struct {
	log      []string
	position func() int
}

func (*replay) Ready(*sched.Cluster, event.ThreadID, event.Cycles)    {}
func (*replay) Block(*sched.Cluster, event.ThreadID)                  {}
func (*replay) Exit(*sched.Cluster, event.ThreadID)                   {}
func (*replay) Yield(*sched.Cluster, event.ThreadID)                  {}
func (*replay) Ran(*sched.Cluster, sched.Slice, uint64, event.Cycles) {}
func (p *replay) Next(c *sched.Cluster, timer event.Cycles, _ bool) (sched.Slice, sched.Verdict) {
	s := sched.Slice{Exact: true}
	if _, err := fmt.Sscanf(p.log[p.position()], "%d on %d: %d", &s.Thread, &s.Core, &s.Instructions); err != nil {
		return s, sched.FireTimer
	}
	if !c.PlaceOn(s.Thread, s.Core) {
		panic("replayed thread cannot run")
	}
	return s, sched.Run
}

// r2t makes a rapid test usable where a testing.TB is asked for.
func r2t(t *testing.T, r *rapid.T) testing.TB { return rapidTB{t, r} }

type rapidTB struct {
	*testing.T
	r *rapid.T
}

func (x rapidTB) Helper()                           {}
func (x rapidTB) Fatalf(format string, args ...any) { x.r.Fatalf(format, args...) }
func (x rapidTB) Fatal(args ...any)                 { x.r.Fatal(args...) }
