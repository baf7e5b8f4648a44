package sweep

import (
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// TestSchedulingOptionsAreAnAxis: every option of the scheduler can be varied, for a program alone too, and is varied only
// under policies that use it.
func TestSchedulingOptionsAreAnAxis(t *testing.T) {
	x := mustLoad(t, `
programs:
- {name: a, command: [echo]}
- {name: b, command: [echo], sched: {length: [500, 600, 700]}}
grid:
  policy: [pct, rr, timed]
  sched: {depth: [2, 3], length: [1000], quantum: [100, 200], granularity: [sync], jitter: [0, 0.5], delay_rate: [0.1]}
`)
	plan, err := x.Plan(Options{})
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, run := range plan.Runs {
		p, o := run.Point, run.Job.Options.Sched
		count[p.Program+" "+p.Policy]++
		switch p.Policy {
		case "pct":
			if o.Quantum != 0 || o.Depth < 2 || (p.Program == "a") != (o.Length == 1000) {
				t.Errorf("%v: %+v", p, o)
			}
		case "rr":
			if o.Depth != 0 || o.Quantum%100 != 0 || o.Granularity != "sync" {
				t.Errorf("%v: %+v", p, o)
			}
		case "timed":
			if o.Granularity != "" || o.DelayRate != 0.1 || *o.Jitter != 0 && *o.Jitter != 0.5 {
				t.Errorf("%v: %+v", p, o)
			}
		}
	}
	want := map[string]int{"a pct": 2, "a rr": 2, "a timed": 4, "b pct": 6, "b rr": 2, "b timed": 4}
	total := 0
	for name, n := range want {
		if total += n; count[name] != n {
			t.Errorf("%s has %d runs, should have %d", name, count[name], n)
		}
	}
	if x.Size() != float64(total) || len(plan.Runs) != total {
		t.Errorf("%d runs, size %v, should be %d", len(plan.Runs), x.Size(), total)
	}
	if got := plan.Runs[0].Point.String(); got != "a depth=2 length=1000 cores=4 policy=pct seed=1" {
		t.Errorf("point %s", got)
	}
}

func TestErrorsOfSchedulingOptions(t *testing.T) {
	one := "programs: [{command: [echo]}]\ngrid:\n  "
	for text, want := range map[string]string{
		one + "sched: {speed: [1]}":                                "x.yaml:3: grid.sched.speed is ",
		one + "sched: {quantum: []}":                               "x.yaml:3: grid.sched.quantum is ",
		one + "sched: {quantum: [10, 0]}":                          "x.yaml:3: grid.sched.quantum[1] is ",
		one + "sched: {jitter: [high]}":                            "x.yaml:3: grid.sched.jitter[0] is ",
		one + "sched: {depth: [2]}":                                "x.yaml:3: grid.sched.depth is ",
		one + "sched: {jitter: [2]}":                               "x.yaml:3: grid.sched.jitter[0] is ",
		"programs: [{command: [echo], sched: {granularity: [z]}}]": "x.yaml:1: programs[0].sched.granularity is ",
	} {
		if _, err := load(t, text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// TestFirstFailureEndsARow: of a program that always fails one seed is executed, and one that never does has all.
func TestFirstFailureEndsARow(t *testing.T) {
	fails := gcctest.C(t, "int main(void) { __builtin_trap(); }")
	x := mustLoad(t, `
programs: [{name: bad, command: [`+fails+`]}, {name: good, command: ["true"]}]
grid: {seeds: 1-4}
native: false
workers: 1
failures: {first: true}
`)
	for range 2 {
		s, err := x.Sweep(t.Context(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n := s.Ran + s.Stored; n > 6 { // a second seed may have begun when the first one's result is kept
			t.Errorf("%d runs, should be 5 or 6", n)
		}
		table, err := x.Table(Options{}, Selection{})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := table.Write(&b, "csv"); err != nil {
			t.Fatal(err)
		}
		want := "program,runs,failures,assertion,crash,hang,deadlock,wrong_output,seeds\nbad,1,1,-,1,-,-,-,1\ngood,4,0,-,-,-,-,-,-\n"
		if b.String() != want {
			t.Errorf("got\n%swant\n%s", &b, want)
		}
	}
}
