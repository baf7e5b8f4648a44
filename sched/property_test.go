package sched_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
	"github.com/heddle-dmt/heddle/sched"
	. "github.com/heddle-dmt/heddle/sched/schedtest"
)

var untimedPolicies = []string{sched.RR, sched.Random, sched.PCT}

// Every thread finishes, under the checks of the fake machine (invariants 3
// and 4), and the same seed makes the same quanta (invariant 1).
func TestSameSeedSameQuanta(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := Settings(sched.PolicyNames()...).Draw(r, "setting")
		seed := rapid.Uint64().Draw(r, "seed")
		first, second := s.Machine(RapidTB(t, r), seed).Finish(RapidTB(t, r)), s.Machine(RapidTB(t, r), seed).Finish(RapidTB(t, r))
		if !slices.Equal(first.History, second.History) {
			r.Fatalf("two runs differ:\n%v\n%v", first.History, second.History)
		}
	})
}

// A deep copy in mid-run continues as the original does (invariant 2), and is not
// changed by it.
func TestCopyContinuesAlike(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tb := RapidTB(t, r)
		f := Settings(sched.PolicyNames()...).Draw(r, "setting").Machine(tb, rapid.Uint64().Draw(r, "seed"))
		for range rapid.IntRange(0, 60).Draw(r, "steps") {
			f.Step(tb)
		}
		copied := deepcopy.Copy(deepcopy.New(), f)
		f.Finish(tb)
		copied.Finish(tb)
		if !slices.Equal(f.History, copied.History) {
			r.Fatalf("original and copy differ:\n%v\n%v", f.History, copied.History)
		}
	})
}

// No runnable thread waits for longer than the documented bound (invariant 5).
// Slices end late by a block at most.
func TestFairness(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := Settings(untimedPolicies...).Draw(r, "setting")
		f := s.Machine(RapidTB(t, r), rapid.Uint64().Draw(r, "seed")).Finish(RapidTB(t, r))
		n := uint64(f.MostRunnable)
		bound := 2*s.Options.Fairness + n + (n+1)*BlockLength
		if s.Options.Policy == sched.RR && s.Options.Granularity != sched.Sync {
			bound = n * (s.Options.Quantum + BlockLength)
		}
		if f.LongestWait > bound {
			r.Fatalf("a thread waited for %d instructions, bound %d (%d threads)", f.LongestWait, bound, n)
		}
	})
}

// The seed has no effect on rr, nor on timed without jitter and delays.
func TestSeedWithoutEffect(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tb := RapidTB(t, r)
		s := Settings(sched.RR, sched.Timed).Draw(r, "setting")
		s.Options.Jitter, s.Options.DelayRate = Fraction(0), 0
		first := s.Machine(tb, rapid.Uint64().Draw(r, "seed")).Finish(tb)
		second := s.Machine(tb, rapid.Uint64().Draw(r, "other seed")).Finish(tb)
		if !slices.Equal(first.History, second.History) {
			r.Fatalf("two seeds differ:\n%v\n%v", first.History, second.History)
		}
	})
}

// The makespan of a run is at least its longest thread's time, and at least the
// work divided by the cores, for every policy.
func TestMakespanIsPossible(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tb := RapidTB(t, r)
		s := Settings(sched.PolicyNames()...).Draw(r, "setting")
		var work, longest arch.Cycles
		for i := range s.Scripts {
			n := rapid.Uint64Range(1, 5000).Draw(r, "instructions")
			s.Scripts[i] = []Op{Run(n)}
			alone := arch.Cycles(n) * s.Costs[i]
			work, longest = work+alone, max(longest, alone)
		}
		f := s.Machine(tb, rapid.Uint64().Draw(r, "seed")).Finish(tb)
		if span := f.Cluster.Makespan(); span < longest || span*arch.Cycles(s.Cores) < work {
			r.Fatalf("makespan %d on %d cores, longest thread %d, work %d", span, s.Cores, longest, work)
		}
	})
}

// A recorded run, replayed quantum by quantum by a policy from outside the package,
// gives the same quanta: the Policy interface carries a decision log.
func TestReplayByOwnPolicy(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tb := RapidTB(t, r)
		s := Settings(untimedPolicies...).Draw(r, "setting")
		s.Options.TimeSlice, s.SwitchCost = 1_000_000_000, 0
		f := s.Machine(tb, rapid.Uint64().Draw(r, "seed")).Finish(tb)
		policy := &replay{log: f.History}
		c, err := sched.NewWithPolicy(s.Cores, policy)
		if err != nil {
			r.Fatal(err)
		}
		again := NewMachine(c, s.Scripts...)
		for i, cost := range s.Costs {
			again.Threads[i].Cost = cost
		}
		policy.position = func() int { return len(again.History) }
		again.Finish(tb)
		if !slices.Equal(f.History, again.History) {
			r.Fatalf("recorded and replayed differ:\n%v\n%v", f.History, again.History)
		}
	})
}

// replay follows the history of a fake machine.
type replay struct {
	log      []string
	position func() int
}

func (*replay) Ready(*sched.Cluster, arch.ThreadID, arch.Cycles)       {}
func (*replay) Block(*sched.Cluster, arch.ThreadID)                    {}
func (*replay) Exit(*sched.Cluster, arch.ThreadID)                     {}
func (*replay) Yield(*sched.Cluster, arch.ThreadID)                    {}
func (*replay) Ran(*sched.Cluster, sched.Quantum, uint64, arch.Cycles) {}
func (p *replay) Next(c *sched.Cluster, timer arch.Cycles, _ bool) (sched.Quantum, sched.Verdict) {
	s := sched.Quantum{Exact: true}
	if _, err := fmt.Sscanf(p.log[p.position()], "%d on %d: %d", &s.Thread, &s.Core, &s.Instructions); err != nil {
		return s, sched.FireTimer
	}
	if !c.PlaceOn(s.Thread, s.Core) {
		panic("replayed thread cannot run")
	}
	return s, sched.Run
}
