package explore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/explore"
	"github.com/heddle-dmt/heddle/analyses/h3/model"
)

const (
	x, y = 0, 1
	// limit is far above the number of states of these programs.
	limit = 100_000
)

func write(at int) explore.Op  { return explore.Op{Kind: model.Write, Addr: at, Size: 1, Value: 1} }
func read(at int) explore.Op   { return explore.Op{Kind: model.Read, Addr: at, Size: 1} }
func update(at int) explore.Op { return explore.Op{Kind: model.Update, Addr: at, Size: 1, Value: 1} }

// The litmus tests of the x86-TSO and SPARC papers, with an outcome that is forbidden under SC.
var litmusTests = []struct {
	name    string
	threads [][]explore.Op
	reads   []uint64 // the values of all reads, by thread
	allowed map[model.MemoryModel]bool
}{
	{
		"SB",
		[][]explore.Op{{write(x), read(y)}, {write(y), read(x)}},
		[]uint64{0, 0},
		map[model.MemoryModel]bool{model.TSO: true, model.PSO: true},
	},
	{
		"SB with fences",
		[][]explore.Op{{write(x), {Kind: model.Fence}, read(y)}, {write(y), {Kind: model.Fence}, read(x)}},
		[]uint64{0, 0},
		nil,
	},
	{
		"SB with locked instructions", [][]explore.Op{{update(x), read(y)}, {update(y), read(x)}}, []uint64{0, 0, 0, 0}, nil,
	},
	{
		"MP",
		[][]explore.Op{{write(x), write(y)}, {read(y), read(x)}},
		[]uint64{1, 0},
		map[model.MemoryModel]bool{model.PSO: true},
	},
	{
		"MP with a store fence", [][]explore.Op{{write(x), {Kind: model.StoreFence}, write(y)}, {read(y), read(x)}}, []uint64{1, 0}, nil,
	},
	{
		"LB", [][]explore.Op{{read(x), write(y)}, {read(y), write(x)}}, []uint64{1, 1}, nil,
	},
	{
		"IRIW", [][]explore.Op{{write(x)}, {write(y)}, {read(x), read(y)}, {read(y), read(x)}}, []uint64{1, 0, 1, 0}, nil,
	},
	{
		"a read of the thread's own store",
		[][]explore.Op{{write(x), read(x), read(y)}, {write(y), read(y), read(x)}},
		[]uint64{1, 0, 1, 0},
		map[model.MemoryModel]bool{model.TSO: true, model.PSO: true},
	},
}

// record runs a program once to its end.
func record(t *testing.T, threads [][]explore.Op) *explore.Recording {
	t.Helper()
	p := &explore.Program{Threads: threads, Units: map[int]int{}}
	events := 0
	for _, code := range threads {
		events += len(code)
	}
	for seed := range uint64(100) {
		r := explore.Record(p, model.SC, len(threads), 100, rand.New(rand.NewPCG(seed, 0)))
		if len(r.Trace.Events) == events {
			return r
		}
	}
	t.Fatal("no run comes to its end")
	return nil
}

func TestLitmusTests(t *testing.T) {
	for _, test := range litmusTests {
		r := record(t, test.threads)
		goal, n := explore.Goal{}, 0
		for _, reads := range r.Reads {
			for _, id := range reads {
				goal[id] = test.reads[n]
				n++
			}
		}
		if n != len(test.reads) {
			t.Fatalf("%s has %d reads", test.name, n)
		}
		for _, m := range []model.MemoryModel{model.SC, model.TSO, model.PSO} {
			possible, decided := r.Possible(m, goal, false, limit)
			if !decided || possible != test.allowed[m] {
				t.Errorf("%s under %v: possible %v (decided %v), want %v", test.name, m, possible, decided, test.allowed[m])
			}
		}
	}
}

// A run that was recorded is possible, in the recorded order of its cores too, under the model
// that it was recorded under and under weaker ones (invariant 1).
func TestRecordedRunsArePossible(t *testing.T) {
	models := []model.MemoryModel{model.SC, model.TSO, model.PSO}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		p := explore.Random(random, 5)
		at := int(seed % 3)
		r := explore.Record(p, models[at], 2, 12, random)
		goal := explore.Goal{}
		for th := range r.Reads {
			for i, id := range r.Reads[th] {
				goal[id] = r.Got[th][i]
			}
		}
		for _, m := range models[at:] {
			if possible, decided := r.Possible(m, goal, false, limit); decided && !possible {
				t.Errorf("seed %d: the run recorded under %v is impossible under %v", seed, models[at], m)
			}
		}
		if possible, decided := r.Possible(models[at], goal, true, limit); decided && !possible {
			t.Errorf("seed %d: the run recorded under %v is impossible in the order of its cores", seed, models[at])
		}
	}
}

// A search that is cut short does not answer.
func TestLimitOfTheSearch(t *testing.T) {
	r := record(t, [][]explore.Op{{write(x), read(y)}, {write(y), read(x)}})
	goal := explore.Goal{r.Reads[0][0]: 0, r.Reads[1][0]: 0}
	if possible, decided := r.Possible(model.SC, goal, false, 3); possible || decided {
		t.Errorf("after three states: possible %v, decided %v", possible, decided)
	}
}

// Follow executes a schedule step by step and returns the values that are read; a step that
// cannot be taken is an error.
func TestFollow(t *testing.T) {
	r := record(t, [][]explore.Op{{write(x), read(y)}, {write(y), read(x)}})
	a, b := r.Trace.Threads[0].Events, r.Trace.Threads[1].Events
	for _, test := range []struct {
		model model.MemoryModel
		steps []explore.Step
		want  string
	}{
		{model.SC, []explore.Step{{Event: a[0]}, {Event: a[1]}, {Event: b[0]}, {Event: b[1]}}, "0 1"},
		{model.TSO, []explore.Step{{Event: a[0]}, {Event: b[0]}, {Event: a[1]}, {Event: b[1]}, {Event: a[0], Commit: true}, {Event: b[0], Commit: true}}, "0 0"},
		{model.TSO, []explore.Step{{Event: a[0]}, {Event: b[0]}, {Event: a[0], Commit: true}, {Event: a[1]}, {Event: b[1]}, {Event: b[0], Commit: true}}, "0 1"},
		{model.SC, []explore.Step{{Event: a[1]}}, "step 0"},
		{model.SC, []explore.Step{{Event: a[0]}, {Event: a[0], Commit: true}}, "step 1"},
	} {
		values, err := r.Follow(test.model, test.steps)
		got := fmt.Sprint(values[a[1]], values[b[1]])
		if err != nil {
			got = err.Error()[:len("step 0")]
		}
		if got != test.want {
			t.Errorf("%v %v: %s (%v), want %s", test.model, test.steps, got, err, test.want)
		}
	}
}
