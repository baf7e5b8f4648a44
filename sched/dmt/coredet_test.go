package dmt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched"
	. "github.com/heddle-dmt/heddle/sched/schedtest"
)

// turnsOf is a history without cores: thread and instructions of each quantum.
func turnsOf(f *Machine) []string {
	var list []string
	for _, h := range f.History {
		if thread, rest, found := strings.Cut(h, " on "); found {
			_, n, _ := strings.Cut(rest, ": ")
			list = append(list, thread+":"+n)
		}
	}
	return list
}

// Rounds of a parallel and a serial phase, by hand: quanta of 10 in the order of ids; a thread that
// stops early at a sync point runs one instruction after all others.
func TestCoreDetRounds(t *testing.T) {
	o := sched.Options{Policy: sched.CoreDet, Quantum: 10, Jitter: Fraction(0)}
	f := NewMachine(NewCluster(t, 4, 1, o),
		[]Op{Run(25)},
		[]Op{Run(3), Locked(0), Run(20)},
		[]Op{Run(12), Yield(0)})
	f.Finish(t)
	want := []string{
		"1:10", "2:4", "3:10", "2:1", // the machine's thread stops after its sync point
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
	for cores, want := range map[int]arch.Cycles{8: 1000, 4: 1000, 2: 2000, 1: 4000} {
		o := sched.Options{Policy: sched.CoreDet, Quantum: 100, Jitter: Fraction(0)}
		f := NewMachine(NewCluster(t, cores, 1, o), Compute(4, 1000)...).Finish(t)
		if got := f.Cluster.Makespan(); got != want {
			t.Errorf("%d cores: makespan %d, want %d", cores, got, want)
		}
	}
}

// The costs of barriers and serial turns are those of SetCosts.
func TestCoreDetCosts(t *testing.T) {
	o := sched.Options{Policy: sched.CoreDet, Quantum: 100, Jitter: Fraction(0)}
	c := NewCluster(t, 2, 1, o)
	c.SetCosts(sched.Costs{Sync: 7, SpinCheck: 3})
	f := NewMachine(c, []Op{Run(9), Locked(0), Run(1)}, []Op{Run(99), Locked(0), Run(1)}).Finish(t)
	// The parallel phase of 100, its barrier, one turn of the first thread, which
	// ends there, and one barrier: the second thread had its whole quantum. Its
	// last instruction is a round of its own.
	if got, want := f.Cluster.Makespan(), arch.Cycles(100+3+(7+3+1)+3+1); got != want {
		t.Errorf("makespan %d, want %d: %v", got, want, f.History)
	}
}

// A thread keeps its core while the cores are as many as the threads, also if others, whose threads wait, are behind.
func TestCoreDetKeepsCores(t *testing.T) {
	o := sched.Options{Policy: sched.CoreDet, Quantum: 100, Jitter: Fraction(0)}
	c := NewCluster(t, 3, 1, o)
	c.SetSwitchCost(1000)
	c.SetCosts(sched.Costs{Sync: 7, SpinCheck: 3})
	var waiting, working, setting []Op
	for range 5 {
		waiting = append(waiting, Await(0))
		working = append(working, Run(250), Locked(0), Run(30))
		setting = append(setting, Run(400), Set(0))
	}
	f := NewMachine(c, waiting, working, setting).Finish(t)
	if n := f.Cluster.Switches(); n != 0 {
		t.Errorf("%d switches of threads: %v", n, f.History)
	}
}

// The order of quanta is the same for every seed, noise, delay, number of cores and cost, if no
// timer has a part in it: the clocks alone change.
func TestCoreDetOrderIsFixed(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tb := RapidTB(t, r)
		s := Settings(sched.CoreDet).Draw(r, "setting")
		for _, script := range s.Scripts {
			for i := range script {
				if script[i].UsesTime() {
					script[i] = Run(5)
				}
			}
		}
		var want []string
		for range 3 {
			s.Cores = rapid.IntRange(1, 8).Draw(r, "cores")
			s.Options.Jitter = Fraction(rapid.Float64Range(0, 1).Draw(r, "jitter"))
			s.Options.DelayRate = rapid.Float64Range(0, 0.5).Draw(r, "delay rate")
			got := turnsOf(s.Machine(tb, rapid.Uint64().Draw(r, "seed")).Finish(tb))
			if want == nil {
				want = got
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				r.Fatalf("got  %v\nwant %v", got, want)
			}
		}
	})
}
