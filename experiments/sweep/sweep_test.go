package sweep

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/sweep/store"
	"github.com/heddle-dmt/heddle/experiments/windows/settings"
	windowsworker "github.com/heddle-dmt/heddle/experiments/windows/worker"
	"github.com/heddle-dmt/heddle/internal/job"
)

// TestMain makes the test binary a worker, as heddle's own is: sweeps start
// their own program file again. With crashVariable in its environment the
// worker of a matching run panics.
func TestMain(m *testing.M) {
	if len(os.Args) != 2 {
		os.Exit(m.Run())
	}
	serve := map[string]func(io.Reader, io.Writer) error{job.WorkerCommand: job.ServeWorker, ShortenCommand: ServeShortening, settings.Command: windowsworker.Serve}[os.Args[1]]
	if serve == nil {
		os.Exit(m.Run())
	}
	if os.Getenv(crashVariable) != "" {
		panic("bug: crash on purpose")
	}
	if err := serve(os.Stdin, os.Stdout); err != nil {
		panic(err)
	}
	os.Exit(0)
}

const crashVariable = "HEDDLE_TEST_CRASH"

// recorded is a Progress that keeps the reports.
type recorded struct {
	tasks, stored int
	lines         []string
	trouble       int
	after         func(n int)
}

func (r *recorded) Start(tasks, stored int) { r.tasks, r.stored = tasks, stored }

func (r *recorded) Done(line string, trouble bool) {
	r.lines = append(r.lines, line)
	if trouble {
		r.trouble++
	}
	if r.after != nil {
		r.after(len(r.lines))
	}
}

func (*recorded) Stop() {}

const small = `
programs: [{name: cat, command: [cat, text]}]
inputs: [{name: text, generate: text, size: 1K}]
grid: {seeds: 1-3}
`

func sweepAll(t *testing.T, x *Experiment, again bool) (Summary, *recorded) {
	t.Helper()
	r := &recorded{}
	summary, err := x.Sweep(context.Background(), Options{Again: again, Progress: r})
	if err != nil {
		t.Fatal(err)
	}
	return summary, r
}

func TestSweepStoresAndResumes(t *testing.T) {
	x := mustLoad(t, small)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first, err := x.Sweep(ctx, Options{Workers: 1, Progress: &recorded{after: func(n int) {
		if n == 3 { // the native run and two of ours
			cancel()
		}
	}}})
	if !errors.Is(err, context.Canceled) || first.Ran < 2 || first.Ran > 3 {
		t.Fatalf("interrupted: %+v, %v", first, err)
	}
	second, _ := sweepAll(t, x, false)
	if second.Stored != first.Ran || second.Stored+second.Ran != 3 || second.Err() != nil {
		t.Errorf("resumed: %+v", second)
	}
	third, told := sweepAll(t, x, true)
	if third.Ran != 3 || third.Err() != nil || told.trouble != 0 {
		t.Errorf("again: %+v, %q", third, told.lines)
	}
}

func TestSweepRunsAnewWhatHasChanged(t *testing.T) {
	dir := t.TempDir()
	extra := filepath.Join(dir, "extra")
	if err := os.WriteFile(extra, []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	x := mustLoad(t, strings.Replace(small, "cat, text", "cat, /extra/extra", 1)+"machine: {mounts: ['"+dir+":/extra']}\nnative: false\n")
	if summary, _ := sweepAll(t, x, false); summary.Ran != 3 || summary.Err() != nil {
		t.Fatalf("first: %+v", summary)
	}
	// A file that no key covers, but that the manifest of the results names.
	if err := os.WriteFile(extra, []byte("two"), 0o644); err != nil {
		t.Fatal(err)
	}
	if summary, _ := sweepAll(t, x, false); summary.Ran != 3 || summary.Stored != 0 || summary.Err() != nil {
		t.Errorf("after a change of a host file: %+v", summary)
	}
	if summary, _ := sweepAll(t, x, false); summary.Stored != 3 {
		t.Errorf("without a change: %+v", summary)
	}
}

func TestCrashOfAWorkerIsOneFailedRun(t *testing.T) {
	x := mustLoad(t, small+"native: false\n")
	t.Setenv(crashVariable, "1")
	summary, told := sweepAll(t, x, false)
	if summary.Failed != 3 || !errors.Is(summary.Err(), errFailed) || told.trouble != 3 {
		t.Errorf("%+v, %q", summary, told.lines)
	}
	if want := "the worker process of a run ended with exit status 2: panic: bug: crash on purpose"; !strings.Contains(summary.FirstFailure, want) {
		t.Errorf("the first failure is %q", summary.FirstFailure)
	}
	os.Unsetenv(crashVariable)
	if summary, _ := sweepAll(t, x, false); summary.Ran != 3 || summary.Failed != 0 {
		t.Errorf("after the cause is gone: %+v", summary)
	}
}

func TestUnequalDigestsOfEqualRunsAreReported(t *testing.T) {
	x := mustLoad(t, small+"native: false\n")
	sweepAll(t, x, false)
	// Falsify a stored digest, as if the run had been another one.
	plan, err := x.Plan(Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(x.Store)
	if err != nil {
		t.Fatal(err)
	}
	record, _, err := s.Get(plan.Runs[1].Point.storeSlot(), 1)
	if err != nil {
		t.Fatal(err)
	}
	record.Report.Result.Digest = "another"
	if err := errors.Join(s.Put(record), s.Close()); err != nil {
		t.Fatal(err)
	}
	summary, told := sweepAll(t, x, true)
	if len(summary.Conflicts) != 1 || !errors.Is(summary.Err(), errConflict) || told.trouble != 1 {
		t.Errorf("%+v, %q", summary, told.lines)
	}
	table, err := x.Table(Options{}, Selection{})
	if err != nil || !strings.Contains(strings.Join(table.Notes, "\n"), "NOT REPEATABLE: 1 runs") {
		t.Errorf("the table's notes are %q, %v", table.Notes, err)
	}
}

func TestNativeRunsSeeTheSame(t *testing.T) {
	x := mustLoad(t, `
programs:
  - {name: output, command: [sh, -c, 'cat text; pwd >&2; echo "$A $HOME"; ls'], stdin: text}
  - {name: status, command: [sh, -c, 'exit 9']}
  - {name: signal, command: [sh, -c, 'kill -9 $$']}
  - {name: cores, command: [nproc]}
inputs: [{name: text, generate: text, size: 1K}]
machine: {cores: 61, env: [A=b]}
`)
	summary, _ := sweepAll(t, x, false)
	if err := summary.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := x.Table(Options{}, Selection{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"yes", "yes", "yes", "no (0 of 1)"} {
		if row := table.Rows[i]; row[len(row)-1] != want {
			t.Errorf("%s is as native: %s, want %s", row[0], row[len(row)-1], want)
		}
	}
}

// inStore executes a query on the experiment's store and returns its rows.
func inStore(t *testing.T, x *Experiment, query string) (rows []string) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+x.Store)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	list, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	for list.Next() {
		var text string
		if err := list.Scan(&text); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, text)
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestDamagedResultsAreRunAgain(t *testing.T) {
	x := mustLoad(t, small)
	if summary, _ := sweepAll(t, x, false); summary.Err() != nil {
		t.Fatalf("%+v", summary)
	}
	before, err := x.Table(Options{}, Selection{})
	if err != nil {
		t.Fatal(err)
	}
	inStore(t, x, "UPDATE runs SET report = replace(report, 'exit', 'exif') WHERE seed = '2' RETURNING ''")
	inStore(t, x, "UPDATE native SET report = report || ' ' RETURNING ''")
	inStore(t, x, "INSERT INTO conflicts VALUES ('key', 'slot', 'd', 'e', 'wrong') RETURNING ''")
	if _, err := x.Table(Options{}, Selection{}); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("the table: %v", err)
	}
	summary, _ := sweepAll(t, x, false)
	if summary.Ran != 1 || summary.Stored != 2 || summary.Err() != nil || len(summary.Damaged) != 3 {
		t.Errorf("%+v", summary)
	}
	if after, err := x.Table(Options{}, Selection{}); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("the table is %+v, %v; it was %+v", after, err, before)
	}
	if summary, _ := sweepAll(t, x, false); summary.Stored != 3 || len(summary.Damaged) > 0 {
		t.Errorf("once more: %+v", summary)
	}
}

// TestStoredClasses: the store says of each run how it failed, as the table does.
func TestStoredClasses(t *testing.T) {
	const programs = `
programs:
  - {name: good, command: [cat, text]}
  - {name: status, command: [sh, -c, "exit 3"]}
  - {name: other, command: [cat, /proc/uptime]}
  - {name: assertion, command: [sh, -c, "kill -ABRT $$"]}
  - {name: crash, command: [sh, -c, "kill -SEGV $$"]}
  - {name: missing, command: [sh, -c, "exec /no/such"]}
inputs: [{name: text, generate: text, size: 1K}]
`
	const query = "SELECT program || ' ' || class FROM runs ORDER BY rowid"
	alone := []string{"good ", "status wrong output", "other ", "assertion assertion", "crash crash", "missing wrong output"}
	x := mustLoad(t, programs+"native: false\n")
	sweepAll(t, x, false)
	sort := func(rows []string) []string { return slices.Sorted(slices.Values(rows)) }
	if got := sort(inStore(t, x, query)); !slices.Equal(got, sort(alone)) {
		t.Errorf("without native runs: %q", got)
	}
	// A native run that is stored later decides, too.
	x.Native = true
	for _, again := range []bool{false, true} {
		sweepAll(t, x, again)
		want := []string{"good ", "status ", "other wrong output", "assertion assertion", "crash crash", "missing "}
		if got := sort(inStore(t, x, query)); !slices.Equal(got, sort(want)) {
			t.Errorf("with native runs, again=%v: %q", again, got)
		}
	}
	x.Native = false
	if sweepAll(t, x, false); !slices.Equal(sort(inStore(t, x, query)), sort(alone)) {
		t.Errorf("without native runs again: %q", inStore(t, x, query))
	}
}
