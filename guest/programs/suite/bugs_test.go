package suite

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// bugSeeds is within how many seeds each bug must show under some policy.
const bugSeeds = 200

// hangFactor is how many times as long as the fixed form a buggy one may run
// before it counts as hanging.
const hangFactor = 20

// sweeps are the schedules that the frequencies of docs/program-bugs.md are of. The
// length of pct is the number of instructions of the program's first run.
var sweeps = []string{
	"--sched timed",
	"--sched timed --quantum 200 --delay-rate 0.02 --delay-cycles 20000",
	"--sched random",
	"--sched random --quantum 200",
	"--sched random --granularity sync",
	"--sched random --granularity instruction --quantum 40",
	"--sched pct --depth 2 --length LENGTH",
	"--sched pct --depth 3 --length LENGTH",
}

// trial runs the trigger of a program's buggy form.
type trial struct {
	Program
	buggy, fixed string // executables
	output       string // of the fixed form
	instructions uint64 // that the fixed form takes
}

func newTrial(t testing.TB, p Program) trial {
	t.Helper()
	tr := trial{
		Program: p,
		buggy:   build(t, p, Variant{Form: Buggy, Optimize: 2, Static: true}),
		fixed:   build(t, p, Variant{Form: Fixed, Optimize: 2, Static: true}),
	}
	tr.output, tr.instructions = tr.runFixed(t, nil, 1)
	return tr
}

func (tr trial) runFixed(t testing.TB, schedule []string, seed uint64) (output string, instructions uint64) {
	t.Helper()
	m := machineSetup{cores: 4, seed: seed, sched: parseSchedule(t, schedule)}
	r, h := emulate(t, m, append([]string{tr.fixed}, tr.CommandLine(tr.Trigger(), 4)...)...)
	if got := emulated(r, h, ""); got != Correct {
		t.Errorf("the fixed form on %v: %s, %v", m, got, r)
	}
	return r.stdout, h.Instructions
}

// run returns the outcome of the buggy form under a schedule with a seed.
func (tr trial) run(t testing.TB, schedule []string, seed uint64) Outcome {
	t.Helper()
	m := machineSetup{cores: 4, seed: seed, sched: parseSchedule(t, schedule), limit: hangFactor * tr.instructions}
	r, h := emulate(t, m, append([]string{tr.buggy}, tr.CommandLine(tr.Trigger(), 4)...)...)
	got := emulated(r, h, tr.output)
	if !slices.Contains(tr.Outcomes, got) {
		t.Errorf("the outcome on %v is %s, of which program.yaml knows nothing: %v", m, got, r)
	}
	return got
}

// TestBugsShowUnderHeddle runs each buggy form under the schedule that
// program.yaml names, until it fails in one of the ways that program.yaml names.
// The fixed form must be right under the same schedule and seed.
func TestBugsShowUnderHeddle(t *testing.T) {
	eachBug(t, func(t *testing.T, p Program) {
		tr := newTrial(t, p)
		for seed := uint64(1); seed <= bugSeeds; seed++ {
			got := tr.run(t, p.Schedule, seed)
			if got != Correct {
				tr.runFixed(t, p.Schedule, seed)
			}
			if got != Correct || len(p.Outcomes) == 1 || t.Failed() {
				t.Logf("%s with seed %d", got, seed)
				return
			}
		}
		t.Errorf("the bug did not show in %d seeds under %q", bugSeeds, p.Schedule)
	})
}

// TestMeasureBugs counts, with -update, how many of 200 seeds show each bug
// under each schedule, and puts the best one into program.yaml.
func TestMeasureBugs(t *testing.T) {
	if !*update {
		t.Skip("the sweep takes many minutes; -update carries it out")
	}
	eachBug(t, func(t *testing.T, p Program) {
		if len(p.Outcomes) == 1 {
			return
		}
		tr := newTrial(t, p)
		var all []shown
		for _, schedule := range sweeps {
			words := strings.Fields(strings.ReplaceAll(schedule, "LENGTH", roundUp(tr.instructions)))
			all = append(all, tr.sweep(t, words))
			t.Logf("%v", all[len(all)-1])
		}
		best := slices.MaxFunc(all, func(a, b shown) int { return a.total() - b.total() })
		if best.total() == 0 {
			t.Error("the bug did not show")
		}
		rewriteSchedule(t, p, best.Schedule)
		updated(t, func(m *measured) { m.Bugs[p.Name] = all })
	})
}

// sweep runs the buggy form under a schedule with every seed.
func (tr trial) sweep(t *testing.T, schedule []string) shown {
	s := shown{Schedule: strings.Join(schedule, " "), Seeds: bugSeeds, Outcomes: map[Outcome]int{}}
	for seed := uint64(1); seed <= bugSeeds; seed++ {
		got := tr.run(t, schedule, seed)
		if got == Correct {
			continue
		}
		if s.First == 0 {
			s.First = seed
		}
		s.Outcomes[got]++
	}
	return s
}

// roundUp makes a number of instructions one that is easy to type.
func roundUp(n uint64) string {
	unit := uint64(1)
	for n/unit >= 100 {
		unit *= 10
	}
	return fmt.Sprint((n/unit + 1) * unit)
}

func rewriteSchedule(t *testing.T, p Program, schedule string) {
	t.Helper()
	file := p.Folder + "/program.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.ReplaceAll(schedule, " ", ", ")
	text = regexp.MustCompile(`(?m)^schedule: .*$`).ReplaceAll(text, []byte("schedule: ["+words+"]"))
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
