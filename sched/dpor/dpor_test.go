package dpor_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/heddle-dmt/heddle/sched/dpor"
)

// explore returns the classes of all executions of an exploration.
func explore(t *testing.T, p program) map[string]bool {
	t.Helper()
	classes := map[string]bool{}
	x := dpor.New()
	for more := true; more; {
		var m *machine
		var complete bool
		m, complete, more = run(x, p)
		if !complete {
			t.Fatalf("an execution is redundant:\n%v%v", p, m.events)
		}
		key := m.key()
		if classes[key] {
			t.Fatalf("a class is executed twice:\n%v%s", p, key)
		}
		classes[key] = true
	}
	return classes
}

// TestContinue: an exploration that is stored and continued between executions is the same.
func TestContinue(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for n := 0; n < 20; n++ {
		p := randomProgram(r, model(n%3))
		want := explore(t, p)
		x := dpor.New()
		got := 0
		for more := true; more; got++ {
			text, err := json.Marshal(x.State())
			if err != nil {
				t.Fatal(err)
			}
			var s dpor.State
			if err := json.Unmarshal(text, &s); err != nil {
				t.Fatal(err)
			}
			x = dpor.Continue(&s)
			var m *machine
			if m, _, more = run(x, p); !want[m.key()] {
				t.Fatalf("program %d: another execution:\n%v", n, p)
			}
		}
		if got != len(want) {
			t.Fatalf("program %d: %d executions, want %d:\n%v", n, got, len(want), p)
		}
	}
}

// TestGuesses: many executions are guessed before they are asked for, with the same events, and no two that are asked
// for have the same key.
func TestGuesses(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	all, guessed, right := 0, 0, 0
	for n := range 60 {
		p := randomProgram(r, model(n%3))
		x := dpor.New()
		ran, keys := map[dpor.Key]*machine{}, map[dpor.Key]bool{}
		for more := true; more; all++ {
			key := x.Key()
			if keys[key] {
				t.Fatalf("program %d: key %s twice", n, key)
			}
			keys[key] = true
			list, names := x.Guesses(3)
			for i, g := range list {
				if ran[names[i]] == nil {
					ran[names[i]], _ = carryOut(g, p)
				}
			}
			var m *machine
			m, _, more = run(x, p)
			if ran[key] != nil {
				guessed++
				if fmt.Sprint(ran[key].events) == fmt.Sprint(m.events) {
					right++
				}
			}
		}
	}
	if guessed < all/3 || right < guessed*9/10 {
		t.Errorf("%d of %d executions are guessed, %d of them right", guessed, all, right)
	}
}

// TestRandomPrograms: an exploration executes each class of executions once, as an enumeration of all
// interleavings says.
func TestRandomPrograms(t *testing.T) {
	for m := sc; m <= pso; m++ {
		r := rand.New(rand.NewPCG(uint64(m), 1))
		for n := 0; n < 170; {
			p := randomProgram(r, m)
			want, ok := bruteForce(p, 6_000)
			if !ok {
				continue
			}
			n++
			got := explore(t, p)
			for key := range want {
				if !got[key] {
					t.Fatalf("program %d: a class is not executed (%d of %d):\n%v%s", n, len(got), len(want), p, key)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("program %d: %d classes, want %d:\n%v", n, len(got), len(want), p)
			}
		}
	}
}

// TestKnownPrograms: the numbers of classes of small programs, under SC, TSO and PSO; 0: there are too many interleavings
// for a test. The comments say for which models tests of Nidhugg list them.
func TestKnownPrograms(t *testing.T) {
	load := func(at int) op { return op{opLoad, at, 0} }
	store := func(at, value int) op { return op{opStore, at, value} }
	fence := op{opFence, 0, 0}
	const x, y, z = 0, 1, 2
	for _, k := range []struct {
		name    string
		threads [][]op
		want    [3]int
	}{
		{"SB", [][]op{{store(x, 1), load(y)}, {store(y, 1), load(x)}}, [3]int{3, 4, 4}},                           // TSO
		{"SB with fences", [][]op{{store(x, 1), fence, load(y)}, {store(y, 1), fence, load(x)}}, [3]int{3, 3, 3}}, // PSO
		{"two readers", [][]op{{store(x, 1)}, {load(x)}, {load(x)}}, [3]int{4, 4, 4}},                             // TSO
		{"LB", [][]op{{load(x), store(y, 1)}, {load(y), store(x, 1)}}, [3]int{3, 3, 3}},                           // TSO
		{"IRIW", [][]op{{store(x, 1)}, {store(y, 1)}, {load(x), load(y)}, {load(y), load(x)}}, [3]int{15, 0, 0}},
		{
			"fib", // TSO, PSO
			[][]op{{load(x), load(y), store(x, 1)}, {load(x), load(y), store(y, 1)}, {load(x), load(y)}}, [3]int{11, 0, 0},
		},
		{
			"Peterson",
			[][]op{{store(x, 1), store(z, 1), load(z), load(y)}, {store(y, 1), store(z, 2), load(z), load(x)}},
			[3]int{6, 18, 32},
		},
	} {
		for m := sc; m <= pso; m++ {
			if k.want[m] == 0 {
				continue
			}
			p := program{m, k.threads, 3}
			classes, ok := bruteForce(p, 1_000_000)
			if got := explore(t, p); !ok || len(classes) != k.want[m] || len(got) != len(classes) {
				t.Errorf("%s: enumerated %d (%v), explored %d, want %d:\n%v", k.name, len(classes), ok, len(got), k.want[m], p)
			}
		}
	}
}
