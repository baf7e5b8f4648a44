package follow_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle"
	sym "github.com/heddle-dmt/heddle/analyses/symbolic/exec"
	"github.com/heddle-dmt/heddle/experiments/follow"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// followed is a run with the constraints that came up.
type followed struct {
	*follow.Recording
	constraints []sym.Constraint
	result      *heddle.Result
	output      string
}

func run(t *testing.T, choose func(*event.Input) bool, change func(*heddle.Config), args ...string) *followed {
	t.Helper()
	return runWith(t, func(*follow.Recording) {}, choose, change, sym.DefaultSummaries(), args...)
}

// runWith is run with something changed about the recording, and with these
// summaries.
func runWith(t *testing.T, set func(*follow.Recording), choose func(*event.Input) bool, change func(*heddle.Config), summaries []sym.Summary, args ...string) *followed {
	t.Helper()
	c := heddle.DefaultConfig()
	var out bytes.Buffer
	c.Args, c.Dir, c.Stdout, c.Stderr, c.Stdin = args, t.TempDir(), &out, &out, bytes.NewReader(nil)
	if change != nil {
		change(&c)
	}
	f := &followed{Recording: follow.New(follow.Options{Args: c.Args, Env: c.Env, Choose: choose, Check: true, Summaries: summaries})}
	t.Cleanup(f.Close)
	set(f.Recording)
	f.Executor.Constraint = func(k *sym.Constraint) { f.constraints = append(f.constraints, *k) }
	c.Record = &heddle.Record{To: io.Discard, Watch: []recorder.Recording{f.Recording}}
	var err error
	if f.result, err = heddle.Run(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	if f.Err() != nil {
		t.Fatal(f.Err())
	}
	f.output = out.String()
	return f
}

// arguments chooses the arguments but for the program's name.
func arguments(e *event.Input) bool { return e.Source == event.InputArgs && e.Offset > 0 }

// Real programs on a small file, every byte of which is a symbol: each expression
// has the recorded value (Check), the threads can be followed to their ends, and
// the programs do depend on the file.
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
			f := run(t, mine, func(c *heddle.Config) {
				c.Mounts = append(c.Mounts, heddle.Mount{Host: dir, Guest: dir})
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
