package sweep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/sweep/store"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/output"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

func TestModelsAreAnAxis(t *testing.T) {
	x := mustLoad(t, `
programs: [{name: a, command: [echo]}]
machine: {memory: {rate: 0.5}}
grid: {model: [sc, TSO, pso], commit: [random, lazy], capacity: [56, 3], seeds: 1-2}
`)
	plan, err := x.Plan(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, run := range plan.Runs {
		got = append(got, run.Point.String())
		o := run.Job.Options.Memory
		if o.Model != run.Point.Memory.Model || o.Rate != 0.5 || o.Commit != run.Point.Memory.Commit || o.Capacity != run.Point.Memory.Capacity {
			t.Errorf("%v is run with %+v", run.Point, o)
		}
	}
	want := []string{
		"", " model=tso", " model=tso capacity=3", " model=tso commit=lazy", " model=tso commit=lazy capacity=3",
		" model=pso", " model=pso capacity=3", " model=pso commit=lazy", " model=pso commit=lazy capacity=3",
	}
	if len(got) != 2*len(want) || x.Size() != float64(len(got)) {
		t.Fatalf("%d runs, of a size of %v: %v", len(got), x.Size(), got)
	}
	for i, memory := range want {
		if text := fmt.Sprintf("a cores=4 policy=timed%s seed=1", memory); got[2*i] != text {
			t.Errorf("run %d is %q, want %q", 2*i, got[2*i], text)
		}
	}
}

func TestErrorsOfModelsAndFailures(t *testing.T) {
	const one = "programs: [{command: [echo]}]\n"
	for text, want := range map[string]string{
		one + "grid: {model: [sc, rmo]}":             `x.yaml:2: grid.model[1] is "rmo"; allowed: sc, tso, pso`,
		one + "grid: {model: [tso], commit: [soon]}": `x.yaml:2: grid.commit[0] is "soon"; allowed: eager, random, timed, lazy`,
		one + "grid: {model: [tso], capacity: [0]}":  `x.yaml:2: grid.capacity[0] is 0; allowed: 1 to 1048576`,
		one + "failures:\n  minimize: -1":            `x.yaml:3: failures.minimize is -1; allowed: 0 to 1000`,
		one + "failures:\n  runs: -1":                `x.yaml:3: failures.runs is -1; allowed: 0 to 1000000`,
		one + "failures: {folder: out}":              `x.yaml:2: failures.folder is `,
		one + "failures: {perfetto: out}":            `x.yaml:2: unknown field failures.perfetto; allowed here: count, minimize, runs, first, folder`,
	} {
		if _, err := load(t, text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// TestFailuresAreCounted fills a store by hand.
func TestFailuresAreCounted(t *testing.T) {
	x := mustLoad(t, `
programs: [{name: a, command: [echo]}]
grid: {model: [sc, tso], seeds: 1-9}
failures: {count: true}
`)
	s, err := store.Open(x.Store)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	plan, err := x.Plan(Options{})
	if err != nil {
		t.Fatal(err)
	}
	right := output.Sum{SHA256: "right"}
	for _, run := range plan.Runs {
		result, out := machine.Result{Outcome: "exit"}, right
		if run.Point.Memory.Model == "tso" {
			switch run.Point.Seed {
			case 1, 2:
				result = machine.Result{Outcome: "signal", Signal: 6}
			case 4:
				result = machine.Result{Outcome: "signal", Signal: 11}
			case 5:
				result = machine.Result{Outcome: "instruction limit"}
			case 6:
				result = machine.Result{Outcome: "deadlock"}
			case 7:
				result.ExitCode = 3
			case 8:
				out = output.Sum{SHA256: "other"}
			}
		}
		record := store.Record{Slot: run.slot, Repetition: 1, Key: run.Key, Report: store.Report{Result: &result, Stdout: out}}
		if err := s.Put(record); err != nil {
			t.Fatal(err)
		}
		if err := s.PutNative(run.NativeKey, store.Native{Stdout: right}); err != nil {
			t.Fatal(err)
		}
	}
	table, err := x.Table(Options{}, Selection{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := table.Write(&b, "csv"); err != nil {
		t.Fatal(err)
	}
	want := `program,model,runs,failures,assertion,crash,hang,deadlock,wrong_output,seeds
a,sc,9,0,-,-,-,-,-,-
a,tso,9,7,2,1,1,1,2,1-2 4-8
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	if _, err := x.Table(Options{}, Selection{Base: "model=sc"}); !errors.Is(err, errOfFailures) {
		t.Errorf("ratios of failures: %v", err)
	}
}

func TestRanges(t *testing.T) {
	many := make([]uint64, 40)
	for i := range many {
		many[i] = uint64(2 * i)
	}
	for want, list := range map[string][]uint64{
		"-": nil, "7": {7}, "1-3 5": {5, 2, 1, 3}, "0 2 4 6 8 10 12 14 16 18 20 22 ...": many,
	} {
		if got := formatRanges(list); got != want {
			t.Errorf("%v is %q, want %q", list, got, want)
		}
	}
}

// memoryBugs is an experiment on programs of the suite, both forms of each.
func memoryBugs(t *testing.T, seeds string, minimize int, names ...string) (*Experiment, map[string]suite.Program) {
	t.Helper()
	var list []string
	byName := map[string]suite.Program{}
	arguments := map[string]string{"dekker": "-r, 10", "message": "-r, 3", "peterson": "-r, 10", "ring": "-n, 10"}
	for _, name := range names {
		p, err := suite.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		byName[name] = p
		for _, form := range p.Forms {
			bin, err := p.Build(suite.Variant{Form: form, Optimize: 2, Static: true, Debug: true})
			if err != nil {
				t.Fatal(err)
			}
			words, known := arguments[name]
			if !known {
				words = `"` + strings.Join(p.CommandLine(p.Trigger(), 2), `", "`) + `"`
			}
			list = append(list, fmt.Sprintf("  - {name: %s-%s, command: [%s, %s]}", name, form, bin, words))
		}
	}
	return mustLoad(t, fmt.Sprintf(`
programs:
%s
machine: {cores: 4, sched: {policy: random, quantum: 20}, max_instructions: 3000000}
grid: {model: [sc, tso, pso], seeds: %s}
native: false
failures: {minimize: %d, runs: 500}
`, strings.Join(list, "\n"), seeds, minimize)), byName
}

// TestMemoryBugs: the fixed forms never fail, the buggy ones under the models that
// program.yaml names and no other, and each failure has a shortest schedule, with a
// trace, a timeline and a report.
func TestMemoryBugs(t *testing.T) {
	names := testsize.Sample([]string{"message", "dekker", "ring", "peterson"}, testsize.Pick(1, 3, 4), 0)
	seeds := testsize.Pick("1-8", "1-8", "1-12")
	x, byName := memoryBugs(t, seeds, 1, names...)
	summary, told := sweepAll(t, x, false)
	if err := summary.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := x.Table(Options{}, Selection{})
	if err != nil {
		t.Fatal(err)
	}
	column := func(row []string, key string) string {
		for i, c := range table.Head {
			if c.Key == key {
				return row[i]
			}
		}
		t.Fatalf("no column %s", key)
		return ""
	}
	shortest := 0
	for _, row := range table.Rows {
		name, form, _ := strings.Cut(row[0], "-")
		model := column(row, "model")
		can := form == string(suite.Buggy) && slices.Contains(byName[name].Models, suite.Model(model))
		if failures := column(row, "failures"); (failures != "0") != can {
			t.Errorf("%s under %s: %s failures, can fail: %v", row[0], model, failures, can)
		}
		if !can {
			continue
		}
		shortest++
		after, err := strconv.Atoi(column(row, "shortest_switches"))
		before, _ := strconv.Atoi(column(row, "recorded_switches"))
		if err != nil || after > before || after < 2 || column(row, "shortest_delayed_stores") == "0" {
			t.Errorf("%s under %s: %v", row[0], model, row)
		}
	}
	for _, end := range []string{".trace", ".json", ".txt"} {
		files, err := filepath.Glob(filepath.Join(x.failureFolder(Options{}), "*"+end))
		if err != nil || len(files) != shortest {
			t.Errorf("%d files %s, want %d: %v", len(files), end, shortest, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(x.failureFolder(Options{}), "*.recording")); left != nil {
		t.Errorf("left: %v", left)
	}
	// Stored schedules are not looked for again.
	n := len(told.lines)
	if _, again := sweepAll(t, x, false); len(again.lines) != 0 {
		t.Errorf("%d lines, and again: %q", n, again.lines)
	}
}

// TestFailuresOfShortening: a folder that cannot be written is one failed task.
func TestFailuresOfShortening(t *testing.T) {
	x, _ := memoryBugs(t, "1-6", 1, "dekker")
	if err := os.WriteFile(strings.TrimSuffix(x.Store, ".sqlite")+".failures", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	summary, told := sweepAll(t, x, false)
	if summary.Failed != 2 || told.trouble != 2 || !strings.Contains(summary.FirstFailure, "cannot write the files") {
		t.Errorf("%+v, %q", summary, told.lines[len(told.lines)-2:])
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := x.Sweep(ctx, Options{}); err == nil {
		t.Error("an interrupted sweep has no error")
	}
}
