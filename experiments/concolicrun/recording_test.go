package concolicrun_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	sym "github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// symbolicRun is a run with its constraints.
type symbolicRun struct {
	*concolicrun.Recording
	constraints []sym.Constraint
	result      *machine.Result
	output      string
}

func run(t *testing.T, choose func(*event.Input) bool, change func(*machine.Config), args ...string) *symbolicRun {
	t.Helper()
	return runWith(t, func(*concolicrun.Recording) {}, choose, change, sym.DefaultSummaries(), args...)
}

// runWith is run with changed options and the given summaries.
func runWith(t *testing.T, set func(*concolicrun.Recording), choose func(*event.Input) bool, change func(*machine.Config), summaries []sym.Summary, args ...string) *symbolicRun {
	t.Helper()
	c := machine.DefaultConfig()
	var out bytes.Buffer
	c.Args, c.Dir, c.Stdout, c.Stderr, c.Stdin = args, t.TempDir(), &out, &out, bytes.NewReader(nil)
	if change != nil {
		change(&c)
	}
	f := &symbolicRun{Recording: concolicrun.New(concolicrun.Options{Args: c.Args, Env: c.Env, Choose: choose, Check: true, Summaries: summaries})}
	t.Cleanup(f.Close)
	set(f.Recording)
	f.Executor.OnConstraint = func(k *sym.Constraint) { f.constraints = append(f.constraints, *k) }
	c.Record = &machine.Record{To: io.Discard}
	var err error
	if f.result, err = machine.Run(context.Background(), c, machine.WithRecordings(f.Recording)); err != nil {
		t.Fatal(err)
	}
	if f.Err() != nil {
		t.Fatal(f.Err())
	}
	f.output = out.String()
	return f
}

// arguments chooses the arguments except the program's name.
func arguments(e *event.Input) bool { return e.Source == event.InputArgs && e.Offset > 0 }

// Real programs on a small file, every byte of which is a symbol: each expression has the
// recorded value (Check), the threads are executed to their ends, and the programs depend
// on the file.
func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.WriteFile(data, []byte("three\n1.5 apples\n-2 pears\n10 plums\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	programs := [][]string{{"sort", data}, {"bzip2", "-c", data}, {"md5sum", data}, {"wc", data}}
	if !testing.Short() {
		programs = append(programs, [][]string{
			{"gawk", "{ s += $1 * 2.5; if ($1 > 1) n[$2]++ } END { print s, length(n) }", data},
			{"grep", "-E", "p(l|e)+", data},
			{"pigz", "-c", "-p2", data},
			{"sqlite3", ":memory:", ".read " + data},
			{"zstd", "-c", data},
			{"perl", "-ne", "print if /p/; $s += $_; END { print $s }", data},
		}...)
	}
	for _, args := range programs {
		t.Run(args[0], func(t *testing.T) {
			mine := func(e *event.Input) bool { return e.Name == data }
			f := run(t, mine, func(c *machine.Config) {
				c.Mounts = append(c.Mounts, machine.Mount{Host: dir, Guest: dir})
			}, args...)
			s := f.Executor.Stats
			t.Logf("%+v; %d expressions", s, f.Executor.Pool.Len())
			symbols := len(f.Executor.Symbols()) - len(f.Executor.Derived())
			if s.Symbolic < 1000 || len(f.constraints) < 30 || symbols != 41 {
				t.Errorf("%d symbols, %d constraints", symbols, len(f.constraints))
			}
		})
	}
}
