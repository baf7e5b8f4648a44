package minimize

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/minimize"
)

// bug is a program of the suite, and how its buggy form is made to fail.
type bug struct {
	program, args string
	model         string
	sched         sched.Options
	class         string
	// switches and delays are bounds of the shortest schedule.
	switches, delays int
	long             bool // left out of short tests
}

var wild = sched.Options{Policy: sched.Random, Quantum: 20}

// The bounds: a thread is stopped, the other runs, the first continues, which is 2 switches; each
// round that threads hand over needs more.
var bugs = []bug{
	{program: "dekker", args: "-r 10", model: "tso", sched: wild, class: machine.FailureAssertion, switches: 4, delays: 2},
	{program: "message", args: "-r 3", model: "pso", sched: wild, class: machine.FailureAssertion, switches: 8, delays: 1},
	{program: "deadlock", args: "-p 2 -r 20", model: "sc", sched: sched.Options{Policy: sched.Random, Granularity: sched.Sync}, class: machine.FailureDeadlock, switches: 2},
	{program: "peterson", args: "-r 10", model: "tso", sched: wild, class: machine.FailureAssertion, switches: 4, delays: 2, long: true},
	{program: "ticket-lock", args: "-p 2 -r 10", model: "pso", sched: wild, class: machine.FailureAssertion, switches: 20, delays: 2, long: true},
	{program: "seqlock", args: "-p 2 -r 20", model: "pso", sched: wild, class: machine.FailureAssertion, switches: 6, delays: 4, long: true},
	{program: "apache-25520", args: "-p 2 -n 60", model: "sc", sched: sched.Options{Policy: sched.Timed, Quantum: 200, DelayRate: 0.02, DelayCycles: 20000}, class: machine.FailureWrong, switches: 8, long: true},
	{program: "frost-figure-1a", model: "sc", sched: wild, class: machine.FailureCrash, switches: 4, long: true},
}

// failing records a run that fails as the bug says, and returns its trace.
func failing(t *testing.T, b bug) string {
	t.Helper()
	p, err := suite.Find(b.program)
	if err != nil {
		t.Fatal(err)
	}
	bin, err := p.Build(suite.Variant{Form: suite.Buggy, Optimize: 2, Static: true, Debug: true})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "failing.trace")
	for seed := uint64(1); seed <= 200; seed++ {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		c := machine.DefaultConfig()
		c.Args, c.Dir, c.Seed, c.Sched = append([]string{bin}, strings.Fields(b.args)...), "/", seed, b.sched
		c.Memory, c.MaxInstructions = storebuffer.Options{Model: b.model}, 3_000_000
		c.Stderr, c.Record = &stderr, &machine.Record{To: f}
		r, err := machine.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if failure, failed := r.Failure(stderr.Bytes()); failed && failure.Class == b.class {
			return path
		}
	}
	t.Fatalf("%s does not fail by %s in 200 seeds", b.program, b.class)
	return ""
}

// TestShortest cites invariant 1: the trace replays to the same failure, with no
// more switches than it began with, in a schedule that is short and of which
// nothing can be left out.
func TestShortest(t *testing.T) {
	for i, b := range bugs {
		if b.long && testing.Short() {
			continue
		}
		t.Run(b.program, func(t *testing.T) {
			from := failing(t, b)
			to, timeline := from+".short", from+".json"
			p, err := Minimize(t.Context(), from, to, Options{Perfetto: timeline})
			if err != nil {
				t.Fatal(err)
			}
			if !p.Complete || !p.Reproduced || p.Failure.Class != b.class || p.Before.Less(p.After) {
				t.Errorf("%+v", p)
			}
			if p.After.Switches > b.switches || p.After.Delays > b.delays || (b.model != "sc") != (p.After.Delays > 0) {
				t.Errorf("from %+v to %+v, want %d switches and %d delays at most", p.Before, p.After, b.switches, b.delays)
			}
			replays(t, to, p.Failure)
			checkReport(t, b, p)
			if i < 2 { // two small ones, by the machine itself
				isMinimal(t, to, p.After)
			}
		})
	}
}

// replays demands that a plain replay of the trace is the recorded run.
func replays(t *testing.T, path string, want machine.Failure) {
	t.Helper()
	r, err := machine.OpenReplay(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := r.Config()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	c.Stderr = &stderr
	result, err := machine.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if got, failed := result.Failure(stderr.Bytes()); !failed || got != want {
		t.Errorf("the replay ends with %v (%s), want %v", got, result.Message, want)
	}
}

// isMinimal runs every schedule that is one change away.
func isMinimal(t *testing.T, path string, cost minimize.Cost) {
	t.Helper()
	r, err := machine.OpenReplay(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h, err := NewTrial(t.Context(), r, Right{})
	if err != nil {
		t.Fatal(err)
	}
	if got := h.Schedule().Cost(); got != cost {
		t.Errorf("the trace costs %+v, the report says %+v", got, cost)
	}
	for i, s := range h.Schedule().Neighbours() {
		o, err := h.Run(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if o.Fails && o.Schedule.Cost().Less(cost) {
			t.Errorf("change %d fails at %+v, less than %+v", i, o.Schedule.Cost(), cost)
		}
	}
}

// checkReport examines the text for people.
func checkReport(t *testing.T, b bug, p *Report) {
	t.Helper()
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{"failure: " + b.class, fmt.Sprintf("context switches  %d", p.Before.Switches), b.program + ".c:"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	switches := 0
	for i := 1; i < len(p.Steps); i++ {
		if p.Steps[i].Thread != p.Steps[i-1].Thread {
			switches++
		}
	}
	if switches != p.After.Switches {
		t.Errorf("%d switches in the report, want %d", switches, p.After.Switches)
	}
	named := func(s Step) bool {
		return slices.ContainsFunc(s.Waiting, func(w Waiting) bool { return w.Variable != "" })
	}
	if b.model != "sc" && !slices.ContainsFunc(p.Steps, named) {
		t.Errorf("no delayed store has a name: %+v", p.Steps)
	}
}

// TestInterruptedKeepsTheBest cites invariant 2.
func TestInterruptedKeepsTheBest(t *testing.T) {
	from := failing(t, bugs[0])
	for _, after := range []int{1, 4, 9} {
		ctx, cancel := context.WithCancel(t.Context())
		to := fmt.Sprintf("%s.%d", from, after)
		p, err := Minimize(ctx, from, to, Options{Progress: func(runs int, _ minimize.Cost) {
			if runs >= after { // a try can be several runs
				cancel()
			}
		}})
		cancel()
		if err != nil || p.Complete || p.Runs < after || p.Runs > 4*after || p.Before.Less(p.After) {
			t.Fatalf("after %d: %+v, %v", after, p, err)
		}
		replays(t, to, p.Failure)
	}
	p, err := Minimize(t.Context(), from, from+".budget", Options{Runs: 3})
	if err != nil || p.Complete || p.Runs != 3 {
		t.Errorf("a budget of 3: %+v, %v", p, err)
	}
}
