package sched_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"pgregory.net/rapid"
)

// turnsOf is a history without cores: thread and instructions of each slice.
func turnsOf(f *fake) []string {
	var list []string
	for _, h := range f.history {
		if thread, rest, found := strings.Cut(h, " on "); found {
			_, n, _ := strings.Cut(rest, ": ")
			list = append(list, thread+":"+n)
		}
	}
	return list
}

// Rounds of a parallel and a serial phase, by hand: quanta of 10 in the order of
// ids; who stops early at a sync point goes on by one instruction behind all.
func TestCoreDetRounds(t *testing.T) {
	o := sched.Options{Policy: sched.CoreDet, Quantum: 10, Jitter: fraction(0)}
	f := newFake(newCluster(t, 4, 1, o),
		[]op{{run, 25}},
		[]op{{run, 3}, {locked, 0}, {run, 20}},
		[]op{{run, 12}, {yield, 0}})
	f.finish(t)
	want := []string{
		"1:10", "2:4", "3:10", "2:1", // the fake's thread stops behind its sync point
		"1:10", "2:10", "3:3",
		"1:5", "2:9",
	}
	if got := turnsOf(f); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// The quanta of a round overlap on the cores: the makespan of equal threads is
// that of one, and twice that on half as many cores.
func TestCoreDetRunsInParallel(t *testing.T) {
	for cores, want := range map[int]event.Cycles{8: 1000, 4: 1000, 2: 2000, 1: 4000} {
		o := sched.Options{Policy: sched.CoreDet, Quantum: 100, Jitter: fraction(0)}
		f := newFake(newCluster(t, cores, 1, o), compute(4, 1000)...).finish(t)
		if got := f.c.Makespan(); got != want {
			t.Errorf("%d cores: makespan %d, want %d", cores, got, want)
		}
	}
}

// Barriers and serial turns cost what the cluster was told.
func TestCoreDetCosts(t *testing.T) {
	o := sched.Options{Policy: sched.CoreDet, Quantum: 100, Jitter: fraction(0)}
	c := newCluster(t, 2, 1, o)
	c.SetCosts(sched.Costs{Sync: 7, SpinCheck: 3})
	f := newFake(c, []op{{run, 9}, {locked, 0}, {run, 1}}, []op{{run, 99}, {locked, 0}, {run, 1}}).finish(t)
	// The parallel phase of 100, its barrier, one turn of the first thread, which
	// ends there, and one barrier: the second thread had its whole quantum. Its
	// last instruction is a round of its own.
	if got, want := f.c.Makespan(), event.Cycles(100+3+(7+3+1)+3+1); got != want {
		t.Errorf("makespan %d, want %d: %v", got, want, f.history)
	}
}

// The order of slices is the same for every seed, noise, delay, number of cores
// and cost, if no timer has a part in it: the clocks alone change.
func TestCoreDetOrderIsFixed(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tb := r2t(t, r)
		s := settings(sched.CoreDet).Draw(r, "setting")
		for _, script := range s.scripts {
			for i := range script {
				if k := script[i].kind; k == sleep || k == pin || k == herd {
					script[i] = op{run, 5}
				}
			}
		}
		var want []string
		for range 3 {
			s.cores = rapid.IntRange(1, 8).Draw(r, "cores")
			s.options.Jitter = fraction(rapid.Float64Range(0, 1).Draw(r, "jitter"))
			s.options.DelayRate = rapid.Float64Range(0, 0.5).Draw(r, "delay rate")
			got := turnsOf(s.fake(tb, rapid.Uint64().Draw(r, "seed")).finish(tb))
			if want == nil {
				want = got
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				r.Fatalf("got  %v\nwant %v", got, want)
			}
		}
	})
}
