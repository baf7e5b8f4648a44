package sched_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/sched"
	. "github.com/heddle-dmt/heddle/sched/schedtest"
)

// orderedThread starts threads that compute, with ranks, on a cluster without noise.
func orderedThread(t *testing.T, cores int, instructions uint64, list ...sched.Precedence) *Machine {
	t.Helper()
	c := NewCluster(t, cores, 1, sched.Options{Jitter: Fraction(0), Quantum: 100, TimeSlice: 1000})
	for i, p := range list {
		c.SetPrecedence(ID(i), p)
	}
	return NewMachine(c, Compute(len(list), instructions)...)
}

// ends lists the threads in the order in which they exited.
func ends(t *testing.T, f *Machine) string {
	t.Helper()
	var order []string
	for f.Step(t) {
		for i := range f.Threads {
			name := fmt.Sprint(ID(i))
			if f.Threads[i].Exited() && !slices.Contains(order, name) {
				order = append(order, name)
			}
		}
	}
	return strings.Join(order, " ")
}

func TestPrecedence(t *testing.T) {
	for _, c := range []struct {
		name  string
		cores int
		list  []sched.Precedence
		want  string
	}{
		{"by rank", 1, []sched.Precedence{{Rank: 1}, {Rank: 5}, {}, {Rank: 3}}, "2 4 1 3"},
		{"first come of one rank", 1, []sched.Precedence{{Rank: 2}, {Rank: 2}, {Rank: 2}, {Rank: 3}}, "4 1 2 3"},
		{"the two highest of two cores", 2, []sched.Precedence{{Rank: 1}, {}, {Rank: 9}, {Rank: 8}}, "3 4 1 2"},
		{"earliest deadline", 1, []sched.Precedence{
			{Rank: 100, Runtime: 9000, Deadline: 30_000, Period: 40_000},
			{Rank: 100, Runtime: 9000, Deadline: 10_000, Period: 40_000},
			{Rank: 99},
			{Rank: 100, Runtime: 9000, Deadline: 20_000, Period: 40_000},
		}, "2 4 1 3"},
		// The first has used up its runtime before it is done, and its deadline is put off.
		{"runtime used up", 1, []sched.Precedence{
			{Rank: 100, Runtime: 1000, Deadline: 10_000, Period: 100_000},
			{Rank: 100, Runtime: 9000, Deadline: 20_000, Period: 40_000},
		}, "2 1"},
	} {
		if got := ends(t, orderedThread(t, c.cores, 7000, c.list...)); got != c.want {
			t.Errorf("%s: threads end in the order %s, want %s", c.name, got, c.want)
		}
	}
}

// Threads of one rank with slices take turns.
func TestPrecedenceSlices(t *testing.T) {
	p := sched.Precedence{Rank: 4, Slice: 700}
	f := orderedThread(t, 1, 7000, p, p, sched.Precedence{}).Finish(t)
	turns := slices.Compact(slices.Clone(f.History))
	if got := len(slices.Compact(mapped(turns, func(h string) string { return strings.Fields(h)[0] }))); got != 21 {
		t.Errorf("%d turns, want 10 of each of the two threads and one of the last: %q", got, turns)
	}
}

func mapped(list []string, f func(string) string) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}

// A thread that is woken takes the core of one that comes after it at once, and the
// latter continues before others of its rank.
func TestPrecedencePreempts(t *testing.T) {
	c := NewCluster(t, 1, 1, sched.Options{Jitter: Fraction(0), Quantum: 100, TimeSlice: 1_000_000})
	for i, r := range []int{9, 5, 5} {
		c.SetPrecedence(ID(i), sched.Precedence{Rank: r})
	}
	f := NewMachine(c, []Op{Sleep(3000), Run(700)}, []Op{Run(7000)}, []Op{Run(70)}).Finish(t)
	got := strings.Join(slices.Compact(mapped(f.History, func(h string) string { return strings.Fields(h)[0] })), " ")
	if want := "1 2 timer 1 2 3"; got != want {
		t.Errorf("turns %s, want %s", got, want)
	}
}

// Ordinary threads have the rest of each period, as long as they wait.
func TestRealtimeShare(t *testing.T) {
	f := orderedThread(t, 1, 70_000, sched.Precedence{Rank: 1}, sched.Precedence{})
	f.Cluster.SetRealtimeShare(9000, 10_000)
	ran := map[string]int{}
	for range 60 {
		f.Step(t)
	}
	for _, h := range f.History {
		var n int
		if _, err := fmt.Sscanf(h[strings.LastIndex(h, ":")+2:], "%d", &n); err != nil {
			t.Fatal(err)
		}
		ran[strings.Fields(h)[0]] += n
	}
	if share := float64(ran["2"]) / float64(ran["1"]+ran["2"]); share < 0.08 || share > 0.12 {
		t.Errorf("the ordinary thread had %.2f of the core: %v", share, ran)
	}
	f.Finish(t)
}

// Under pct, threads that would not have a core take no part.
func TestPrecedenceUnderPCT(t *testing.T) {
	for seed := range uint64(50) {
		c := NewCluster(t, 2, seed, sched.Options{Policy: sched.PCT, Length: 50_000})
		for i, r := range []int{0, 5, 0, 7, 5} {
			c.SetPrecedence(ID(i), sched.Precedence{Rank: r})
		}
		f := NewMachine(c, Compute(5, 7000)...)
		order := strings.Fields(ends(t, f))
		if slices.Index(order, "1") < 2 || slices.Index(order, "3") < 2 {
			t.Errorf("seed %d: threads end in the order %q", seed, order)
		}
	}
}

// At every slice of timed without noise, no thread waits for a core on which one runs that
// comes after it, but for an ordinary thread's share.
func TestPrecedenceIsStrict(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cores := rapid.IntRange(1, 4).Draw(rt, "cores")
		c := NewCluster(t, cores, 1, sched.Options{Jitter: Fraction(0), Quantum: 50, TimeSlice: 500})
		n := rapid.IntRange(1, 7).Draw(rt, "threads")
		scripts, ranks := make([][]Op, n), make([]int, n)
		for i := range scripts {
			ranks[i] = rapid.IntRange(0, 3).Draw(rt, "rank")
			c.SetPrecedence(ID(i), sched.Precedence{Rank: ranks[i]})
			for range rapid.IntRange(1, 6).Draw(rt, "operations") {
				operation := rapid.SampledFrom([]func(uint64) Op{Run, Run, Sleep, Yield}).Draw(rt, "operation")
				scripts[i] = append(scripts[i], operation(rapid.Uint64Range(1, 2000).Draw(rt, "n")))
			}
		}
		f := NewMachine(c, scripts...)
		for f.Step(t) {
			last := f.History[len(f.History)-1]
			var thread, core int
			if _, err := fmt.Sscanf(last, "%d on %d:", &thread, &core); err != nil {
				continue // a timer
			}
			for i := range f.Threads {
				if waited, waits := f.WaitsForCore(i); waits && waited > 200 && ranks[i] > ranks[thread-1] {
					rt.Fatalf("thread %d of rank %d runs, and thread %d of rank %d waits: %q", thread, ranks[thread-1], ID(i), ranks[i], f.History)
				}
			}
		}
	})
}
