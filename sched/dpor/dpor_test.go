package dpor_test

import (
	"encoding/json"
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
