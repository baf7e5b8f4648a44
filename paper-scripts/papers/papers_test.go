package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/paper-scripts/papers/report"
)

const top = "../.."

// The documents agree with the results.
func TestDocumentsAreCurrent(t *testing.T) {
	texts, err := updateDocuments(top)
	if err != nil {
		t.Fatal(err)
	}
	if len(texts) < 3 {
		t.Errorf("%d documents have parts that are made of results", len(texts))
	}
	for file, want := range texts {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is not what %s gives (%v): go run ./paper-scripts/papers --documents", file, resultsFolder, err)
		}
	}
}

// Every value of the results that differs from the paper's by more than two times has a reason, and all results are of
// steps of the plan.
func TestDifferencesHaveReasons(t *testing.T) {
	p, err := load(top, nil)
	if err != nil {
		t.Fatal(err)
	}
	results, err := readResults(top)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i := range p.Papers {
		x := &p.Papers[i]
		section := &report.Paper{Program: x.Program, Why: x.Why}
		for _, r := range results {
			if r.Program != x.Program {
				continue
			}
			section.Results = append(section.Results, r)
			if !slices.ContainsFunc(x.Steps, func(s step) bool { return slices.Equal(s.Artefacts, r.Artefacts) }) {
				t.Errorf("%s %v is no step of %s", r.Program, r.Artefacts, planFile)
			}
		}
		for _, made := range section.Tables() {
			n, _, _ := made.Counts()
			compared += n
			for _, row := range made.Rows {
				if len(row.Unexplained) > 0 {
					t.Errorf("%s has no reason for %s of %s", planFile, strings.Join(row.Unexplained, ", "), made.ID()+" "+row.Cells[0].Text)
				}
			}
			if made.Error != "" {
				t.Errorf("%s: %s", made.ID(), made.Error)
			}
		}
	}
	if compared < 100 {
		t.Errorf("only %d values are compared", compared)
	}
}

// A reason is of tables of the plan.
func TestReasonsAreOfTables(t *testing.T) {
	p, err := load(top, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range p.Papers {
		var names []string
		for _, s := range x.Steps {
			names = append(names, s.Artefacts...)
		}
		for _, why := range x.Why {
			for _, name := range why.In {
				if !slices.Contains(names, name) {
					t.Errorf("%s has no %s, of which a reason is given", x.Program, name)
				}
			}
			if why.Text == "" || len(why.In) == 0 {
				t.Errorf("%s: a reason without a text or tables: %+v", x.Program, why)
			}
		}
	}
}

// fakePrograms makes a plan of two papers, whose programs are scripts, and a runner for it.
func fakePrograms(t *testing.T, first, second string) (*plan, *runner, *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	seconds := map[string]float64{sizeQuick: 1, sizeDefault: 2, sizePaper: 3}
	p := &plan{Papers: []paper{
		{Program: "first", Title: "First", Steps: []step{
			{Artefacts: []string{"table1"}, Quick: "--runs 1", Seconds: seconds},
			{Artefacts: []string{"figure2", "table3"}, Alone: true, Seconds: seconds},
		}},
		{Program: "second", Title: "Second", Steps: []step{{Artefacts: []string{"table1"}, Seconds: seconds}}},
	}}
	for name, script := range map[string]string{"first": first, "second": second} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var messages bytes.Buffer
	return p, &runner{root: dir, programs: dir, store: filepath.Join(dir, "store"), size: sizeQuick, parallel: 2, progress: &progress{to: &messages}}, &messages
}

// printed prints a table with the arguments of the call as a cell.
const printed = `echo "1 of 1: row" >&2
printf '[{"name": "table1", "title": "Table 1", "head": [{"Name": "a", "Key": "a"}], "rows": [["%s"]]}]' "$*"
`

// All wanted steps are done with the flags of the size, and their tables are read.
func TestSteps(t *testing.T) {
	p, r, messages := fakePrograms(t, printed, printed)
	tasks := p.tasks(sizeQuick, nil)
	if err := r.runAll(t.Context(), tasks); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"--runs 1 table1", "figure2 table3", "table1"} {
		if x := tasks[i].result; x.Error != "" || len(x.Sheets) != 1 || !strings.HasSuffix(x.Sheets[0].Rows[0][0], " "+want) || !strings.HasPrefix(x.Sheets[0].Rows[0][0], "--format json --store "+r.store) {
			t.Errorf("%+v, want %s", x, want)
		}
	}
	for _, want := range []string{"first/table1 begins; 0 of 3 steps, about ", "second/table1 done", "first/figure2 done, ", "3 of 3 steps\n"} {
		if !strings.Contains(messages.String(), want) {
			t.Errorf("no %q in\n%s", want, messages)
		}
	}
	if log, err := os.ReadFile(filepath.Join(r.store, "logs", "first-figure2.log")); err != nil || string(log) != "1 of 1: row\n" {
		t.Errorf("%v: %s", err, log)
	}
	for wanted, n := range map[string]int{"first": 2, "first/table3": 1, "second/table1": 1} {
		if got := p.tasks(sizeQuick, []string{wanted}); len(got) != n {
			t.Errorf("%s: %d steps", wanted, len(got))
		}
	}
}

// A step that fails, or prints no tables, does not stop the others; the report has its message, and the rows that
// it has stored.
func TestFailures(t *testing.T) {
	failing := `case "$*" in *--stored*) ` + printed + `exit;; *figure2*) echo "no JSON"; exit;; esac
echo "first: table1: fft: the disk is full" >&2
exit 1
`
	p, r, _ := fakePrograms(t, failing, printed)
	tasks := p.tasks(sizeQuick, nil)
	if err := r.runAll(t.Context(), tasks); err != nil {
		t.Fatal(err)
	}
	made := p.report(sizeQuick, nil, tasks)
	failures := made.Failures()
	if len(failures) != 2 || failures[0] != "first table1: table1: fft: the disk is full" || !strings.Contains(failures[1], "the output of first") {
		t.Errorf("%q", failures)
	}
	if x := tasks[0].result; len(x.Sheets) != 1 || !strings.Contains(x.Sheets[0].Rows[0][0], "--stored") {
		t.Errorf("%+v", x)
	}
	if x := tasks[2].result; x.Error != "" {
		t.Errorf("%+v", x)
	}
	var page bytes.Buffer
	if err := made.WriteHTML(&page); err != nil || !strings.Contains(page.String(), "the disk is full") {
		t.Errorf("%v: the page does not say what failed", err)
	}
}

// An interruption ends the programs that run, and no other begins.
func TestInterruption(t *testing.T) {
	waiting := "trap 'exit 1' INT\necho \"1 of 2: row\" >&2\nwhile :; do sleep 0.05; done\n"
	p, r, messages := fakePrograms(t, waiting, waiting)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := r.runAll(ctx, p.tasks(sizeQuick, nil)); err == nil {
		t.Error("the interruption is no error")
	}
	if strings.Contains(messages.String(), "figure2 begins") {
		t.Errorf("another step begins:\n%s", messages)
	}
}

// The time left is the plan's estimate in ratio to the measured times.
func TestTimeLeft(t *testing.T) {
	seconds := map[string]float64{sizeQuick: 10}
	x := &paper{Program: "p"}
	var tasks []*task
	for _, alone := range []bool{false, false, false, false, true} {
		tasks = append(tasks, &task{paper: x, step: &step{Artefacts: []string{"t"}, Alone: alone, Seconds: seconds}, seconds: 10, result: &report.Result{}})
	}
	p := &progress{to: &bytes.Buffer{}}
	p.begin(tasks, 2)
	defer p.end()
	if left := p.left(); left != 30*time.Second { // four on two cores, then one
		t.Errorf("%v at the start", left)
	}
	p.start(tasks[0])
	p.row(tasks[0], 1, 2)
	p.finish(tasks[0], 20*time.Second) // twice as long
	p.start(tasks[1])
	p.row(tasks[1], 1, 2) // a half of it is done: 5 + 10 + 10 on two cores, and 10
	if left := p.left(); left != 45*time.Second {
		t.Errorf("%v later", left)
	}
}

func TestWrongCommandLines(t *testing.T) {
	t.Chdir(top)
	for args, says := range map[string]string{
		"--quick --paper":        "are two sizes",
		"--parallel 0":           "--parallel is 0",
		"-o report.pdf":          "a name that ends in .html",
		"table4":                 "table4 is no paper, table or figure; there are peregrine/table4, tern/table4, h3/table4",
		"peregrine/table40":      "peregrine/table40 is no paper, table or figure; did you mean peregrine/table4?",
		"/nope":                  "/nope is no paper, table or figure; there are peregrine, tern, frost, h3, dmt, and",
		"tern/bugs-of-servers":   "there are tern/table1, ",
		"--colour":               "there is no flag --colour; see `heddle papers --help`",
		"--qick":                 "did you mean --quick?",
		"--store /dev/null/no":   "the folder of results",
		"peregrine --parallel x": "--parallel is \"x\"; allowed: a whole number",
	} {
		// The programs are not beside the test's.
		err := run(t.Context(), &bytes.Buffer{}, &bytes.Buffer{}, strings.Fields(args))
		if err == nil || !strings.Contains(err.Error(), says) && !strings.Contains(err.Error(), "make papers") || statusOf(err) != exitFailure {
			t.Errorf("%q: %v", args, err)
		}
	}
	t.Chdir(t.TempDir())
	if err := run(t.Context(), &bytes.Buffer{}, &bytes.Buffer{}, nil); err == nil || !strings.Contains(err.Error(), "the list of tables and figures is missing") {
		t.Errorf("outside of the repository: %v", err)
	}
}

// Results replace the earlier ones of the same step, unless the step failed.
func TestKeepResults(t *testing.T) {
	root := t.TempDir()
	x := &paper{Program: "first"}
	keep := func(name, size, failure string) {
		t.Helper()
		r := &report.Result{Program: "first", Artefacts: []string{name}, Size: size, Error: failure}
		if err := keepResults(root, []*task{{paper: x, result: r}}); err != nil {
			t.Fatal(err)
		}
	}
	keep("table1", "quick", "")
	keep("table2", "quick", "")
	keep("table1", "default", "")
	keep("table2", "default", "the disk is full")
	list, err := readResults(root)
	if err != nil || len(list) != 2 || list[0].Size != "default" || list[1].Size != "quick" {
		t.Errorf("%v: %+v", err, list)
	}
}
