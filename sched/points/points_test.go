package points

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/rand"
	"github.com/heddle-dmt/heddle/sched"
)

// toy is a program whose threads, numbered from 0, make operations and nothing else.
type toy [][]Operation

// generous are bounds that no run of a toy reaches.
var generous = Bounds{Points: 1 << 40, Instructions: 1 << 40}

// run executes the program under a policy and returns the threads in the order of their operations.
func (p toy) run(t *testing.T, policy *Policy) (order string) {
	t.Helper()
	c, err := sched.NewWithPolicy(len(p), policy)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p {
		c.Ready(arch.ThreadID(i), 0)
	}
	done, stopped := make([]int, len(p)), make([]bool, len(p))
	for {
		q, verdict := c.Next(0, false)
		if verdict != sched.Run {
			return order
		}
		n, ended := q.Thread, false
		ran := uint64(1)
		for done[n] < len(p[n]) {
			if !stopped[n] && policy.AtPoint(c, n, p[n][done[n]], false) {
				stopped[n], ended = true, true
				break
			}
			stopped[n] = false
			done[n]++
			ran++
			order += fmt.Sprint(n)
		}
		policy.Ended(ended)
		c.Ran(q, ran, arch.Cycles(ran))
		if !ended {
			c.Block(n)
			c.Exit(n)
		}
	}
}

// share returns the part of the seeds under which a program has an order for which holds is true.
func (p toy) share(t *testing.T, strategy string, e Estimate, holds func(order string) bool) float64 {
	t.Helper()
	const seeds = 20_000
	n := 0
	for seed := range uint64(seeds) {
		if holds(p.run(t, NewPolicy(New(strategy, seed, e), generous))) {
			n++
		}
	}
	return float64(n) / seeds
}

// checkShare compares a part of 20,000 seeds with a probability, within four standard deviations.
func checkShare(t *testing.T, got, want float64) {
	t.Helper()
	if deviation := math.Sqrt(want * (1 - want) / 20_000); math.Abs(got-want) > 4*deviation {
		t.Errorf("probability %.4f, should be %.4f", got, want)
	}
}

func isOrder(want string) func(string) bool { return func(order string) bool { return order == want } }

// repeat is a thread that makes an operation several times.
func repeat(o Operation, n int) (list []Operation) {
	for range n {
		list = append(list, o)
	}
	return list
}

var (
	write = Operation{Addr: 8, Size: 8, Writes: true, Selected: true}
	other = Operation{Addr: 16, Size: 8, Writes: true}
)

// TestWalk: thread 0 needs two choices to make its operation, to reach it and to make it, and thread 1
// four for three operations. Thread 0 is the last if thread 1 is chosen four times before it is twice:
// 1/16 + 4/32.
func TestWalk(t *testing.T) {
	p := toy{repeat(write, 1), repeat(write, 3)}
	checkShare(t, p.share(t, Walk, Estimate{}, isOrder("1110")), 3./16)
}

// TestSURWIsUniform: two and three operations have ten interleavings, each with probability 1/10.
func TestSURWIsUniform(t *testing.T) {
	p := toy{repeat(write, 2), repeat(write, 3)}
	e := Estimate{Left: map[arch.ThreadID]uint64{0: 2, 1: 3}}
	for _, order := range []string{"00111", "01011", "01101", "01110", "10011", "10101", "10110", "11001", "11010", "11100"} {
		checkShare(t, p.share(t, SURW, e, isOrder(order)), 0.1)
	}
}

// TestSURWLeavesOthersFree: the interleavings of the selected operations are equally likely where threads make others
// between them, and the orders of those are not fixed by that of the selected ones.
func TestSURWLeavesOthersFree(t *testing.T) {
	p := toy{{other, write, other}, {other, write, write}}
	e := Estimate{Left: map[arch.ThreadID]uint64{0: 1, 1: 2}}
	selected := func(order string) (list string) {
		done := [2]int{}
		for _, x := range order {
			n := int(x - '0')
			if p[n][done[n]].Selected {
				list += string(x)
			}
			done[n]++
		}
		return list
	}
	orders := map[string]bool{}
	for _, want := range []string{"011", "101", "110"} {
		checkShare(t, p.share(t, SURW, e, func(order string) bool {
			orders[order] = true
			return selected(order) == want
		}), 1./3)
	}
	if len(orders) != 20 { // 6! / (3! 3!)
		t.Errorf("%d of 20 orders", len(orders))
	}
}

// TestPeriods: an operation of thread 0 is between the two of thread 1 if these are in different ones of two periods,
// with probability 1/3, and if it is then after the first one in its period or before the second one, 1/2.
func TestPeriods(t *testing.T) {
	p := toy{repeat(write, 1), repeat(write, 2)}
	e := Estimate{Bound: 1, Left: map[arch.ThreadID]uint64{0: 1, 1: 2}}
	checkShare(t, p.share(t, Period, e, isOrder("101")), 1./6)
}

// TestPreemptionsAreBounded: runs have no more preemptions than the bound, and with one of them all orders with one are
// found: a thread of four operations is preempted at one of the places between them.
func TestPreemptionsAreBounded(t *testing.T) {
	p := toy{repeat(write, 4), repeat(write, 4)}
	for bound := range 3 {
		orders := map[string]bool{}
		for seed := range uint64(4000) {
			order := p.run(t, NewPolicy(New(Preempt, seed, Estimate{Points: 10, Bound: bound}), generous))
			turns := 1
			for i := 1; i < len(order); i++ {
				if order[i] != order[i-1] {
					turns++
				}
			}
			if turns > 2+bound {
				t.Errorf("bound %d: %s", bound, order)
			}
			orders[order] = true
		}
		// Turns of two threads with four operations each: 2 of 2 turns, 2*3 of 3, 2*3*3 of 4.
		if want := []int{2, 2 + 6, 2 + 6 + 18}[bound]; len(orders) != want {
			t.Errorf("bound %d: %d orders, should be %d", bound, len(orders), want)
		}
	}
}

// TestRanksOfDelays: the ranks of a bound give each multiset of points once.
func TestRanksOfDelays(t *testing.T) {
	for bound, k := range map[int]uint64{0: 5, 1: 7, 2: 9, 3: 6} {
		seen := map[string]bool{}
		for rank := range DelaySchedules(bound, k) {
			list := placeDelays(bound, k, rank)
			if len(list) != bound || !slices.IsSorted(list) || bound > 0 && (list[0] < 1 || list[bound-1] > k) {
				t.Fatalf("bound %d of %d, rank %d: %v", bound, k, rank, list)
			}
			seen[fmt.Sprint(list)] = true
		}
		all := map[string]bool{}
		countMultisets(bound, k, nil, all)
		if len(seen) != len(all) {
			t.Errorf("bound %d of %d: %d of %d multisets", bound, k, len(seen), len(all))
		}
	}
}

// countMultisets lists the multisets by brute force.
func countMultisets(left int, k uint64, list []uint64, all map[string]bool) {
	if left == 0 {
		sorted := slices.Sorted(slices.Values(list))
		all[fmt.Sprint(sorted)] = true
		return
	}
	for x := uint64(1); x <= k; x++ {
		countMultisets(left-1, k, append(slices.Clone(list), x), all)
	}
}

// TestConstraintsAreSatisfied: one reader and five writers, each an instruction of its own: with a constraint the reader reads
// from the demanded writer, or from none, in every run; with a forbidden one, from others.
func TestConstraintsAreSatisfied(t *testing.T) {
	p := toy{{{Addr: 8, Size: 8, PC: 100, Reads: true}}}
	writes := []arch.Addr{}
	for pc := arch.Addr(1); pc <= 5; pc++ {
		p = append(p, repeat(Operation{Addr: 8, Size: 8, PC: pc, Writes: true}, 1))
		writes = append(writes, pc)
	}
	for w := arch.Addr(0); w <= 5; w++ {
		for _, forbidden := range []bool{false, true} {
			x := Constraint{ReadsFrom: ReadsFrom{Write: w, Read: 100}, Forbidden: forbidden, Writes: writes}
			for seed := range uint64(50) {
				policy := NewPolicy(New(RFF, seed, Estimate{Constraints: []Constraint{x}}), generous)
				p.run(t, policy)
				if got := policy.Observed().Pairs[x.ReadsFrom]; got == forbidden {
					t.Errorf("%+v, seed %d: %v", x, seed, policy.Observed().Pairs)
				}
			}
		}
	}
}

// TestPOS: the operation of thread 0 conflicts with the last of thread 1 only, so its priority is drawn
// once; it is the last if that is the least of all k+2 priorities (Yuan and others, section 3).
func TestPOS(t *testing.T) {
	const k = 5
	p := toy{repeat(write, 1), append(repeat(other, k), write)}
	checkShare(t, p.share(t, POS, Estimate{}, isOrder("1111110")), 1./(k+2))
}

// TestPCTBounds: an operation between two certain ones of another thread is a bug of depth 2, and one
// operation between two of each other is one of depth 3 with the order 1, 0, 1, 0. Each is found at
// least as often as the theorem of Burckhardt and others says, 1/(n k^(d-1)).
func TestPCTBounds(t *testing.T) {
	for _, x := range []struct {
		strategy string
		p        toy
		depth    float64
		holds    func(string) bool
	}{
		{PCT2, toy{repeat(write, 6), repeat(write, 1)}, 2, isOrder("0001000")},
		{PCT3, toy{repeat(write, 3), repeat(write, 3)}, 3, isOrder("101100")},
	} {
		points := 2 + len(x.p[0]) + len(x.p[1]) // the starts of threads are points
		k := float64(points)
		got := x.p.share(t, x.strategy, Estimate{Points: uint64(points)}, x.holds)
		least := 1 / (2 * math.Pow(k, x.depth-1))
		if deviation := math.Sqrt(least / 20_000); got < least-4*deviation {
			t.Errorf("%s: probability %.4f, should be at least %.4f (k %v)", x.strategy, got, least, k)
		}
	}
}

// TestDelays: without delays threads run one after the other; two delays let at most two threads lose
// their turn, which leaves at most four turns of two threads.
func TestDelays(t *testing.T) {
	p := toy{repeat(write, 4), repeat(write, 4)}
	if got := p.run(t, NewPolicy(New(Turns, 7, Estimate{}), generous)); got != "00001111" {
		t.Errorf("turns: %s", got)
	}
	orders := map[string]bool{}
	for seed := range uint64(2000) {
		order := p.run(t, NewPolicy(New(Delay, seed, Estimate{Points: 9, Bound: 2, Rank: seed}), generous))
		turns := 1
		for i := 1; i < len(order); i++ {
			if order[i] != order[i-1] {
				turns++
			}
		}
		if turns > 4 {
			t.Errorf("seed %d: %s", seed, order)
		}
		orders[order] = true
	}
	if len(orders) < 15 {
		t.Errorf("only %d orders", len(orders))
	}
}

// TestBoundsEndSpinning: a thread with five times as many points as the bound does not keep another from running, under any
// strategy, and neither does one in a run whose end is fair.
func TestBoundsEndSpinning(t *testing.T) {
	p := toy{repeat(write, 500), repeat(write, 1)}
	for _, strategy := range append(Names(), Turns) {
		for _, fair := range []bool{false, true} {
			for seed := range uint64(50) {
				policy := NewPolicy(New(strategy, seed, Estimate{Points: 10}), Bounds{Points: 100, Instructions: 1 << 40})
				if fair {
					policy.BeFair()
				}
				order := p.run(t, policy)
				first := 0
				for order[first] == '0' {
					first++
				}
				if first > 2*101 {
					t.Errorf("%s, seed %d, fair %v: thread 1 waits for %d operations", strategy, seed, fair, first)
				}
			}
		}
	}
}

// TestInside: a point inside an instruction is asked about, and its quantum is one access.
func TestInside(t *testing.T) {
	found := false
	for seed := range uint64(20) {
		policy := NewPolicy(New(Walk, seed, Estimate{}), generous)
		c, err := sched.NewWithPolicy(2, policy)
		if err != nil {
			t.Fatal(err)
		}
		c.Ready(1, 0)
		c.Ready(2, 0)
		q, _ := c.Next(0, false)
		if !policy.AtPoint(c, q.Thread, write, true) {
			continue
		}
		policy.Ended(true)
		c.Ran(q, 1, 1)
		next, _ := c.Next(0, false)
		if !next.AccessesOnly {
			continue
		}
		found = true
		if next.Thread != q.Thread || next.Accesses != 1 || next.Instructions != 0 {
			t.Errorf("quantum %+v after %+v", next, q)
		}
		policy.Ended(true)
		c.Ran(next, 0, 1)
		if last, _ := c.Next(0, false); last.Thread == q.Thread {
			t.Errorf("the thread continues after its instruction was interrupted")
		}
	}
	if !found {
		t.Error("no seed interrupts an instruction")
	}
}

// TestTimersFireEarly: a timer that is due within the time fires after a point with the chance, at most a number of
// times, and one that is due later does not.
func TestTimersFireEarly(t *testing.T) {
	for _, x := range []struct {
		timer, within arch.Cycles
		want          bool
	}{{50, 100, true}, {500, 100, false}, {500, 1000, true}} {
		policy := NewPolicy(New(Walk, 1, Estimate{}), generous)
		policy.FireEarly(rand.NewStream(1, 1), rand.NewShare(1), 100)
		policy.FireWithin(x.within)
		c, err := sched.NewWithPolicy(2, policy)
		if err != nil {
			t.Fatal(err)
		}
		c.Ready(1, 0)
		c.Ready(2, 0)
		fired := 0
		for range 4 * mostEarly {
			q, verdict := c.Next(c.Makespan()+x.timer, true)
			if verdict == sched.FireTimer {
				fired++
				continue
			}
			policy.Ended(policy.AtPoint(c, q.Thread, write, false))
			c.Ran(q, 0, 0)
		}
		if want := map[bool]int{true: mostEarly}[x.want]; fired != want {
			t.Errorf("a timer that is due in %d cycles fires early %d times, should be %d", x.timer, fired, want)
		}
	}
}
