package memo_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/experiments/memo"
	"github.com/heddle-dmt/heddle/sched"
)

func compile(t *testing.T, source string, flags ...string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("gcc", append(flags, "-pthread", "-o", bin, source, "-lm")...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return bin
}

func config(dir string, args ...string) heddle.Config {
	c := heddle.DefaultConfig()
	c.Args, c.Dir, c.Stdout, c.Stderr = args, dir, &bytes.Buffer{}, &bytes.Buffer{}
	c.Mounts = append(c.Mounts, heddle.Mount{Host: dir, Guest: dir})
	c.MaxInstructions = 500_000_000
	return c
}

// memoize records a run and makes its schedule.
func memoize(t *testing.T, c heddle.Config, o memo.Options) *memo.Made {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := memo.Record(context.Background(), c, file); err != nil {
		t.Fatal(err)
	}
	m, err := memo.Make(context.Background(), file.Name(), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// enforced runs a configuration under a schedule that may follow it.
func enforced(t *testing.T, c heddle.Config, m *memo.Made) (*heddle.Result, string) {
	t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	memo.Enforce(&c, m.File, sched.EnforceOptions{})
	r, err := heddle.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r, out.String()
}

func TestDivide(t *testing.T) {
	bin := compile(t, "../follow/testdata/divide.c", "-O1", "-fno-inline", "-no-pie")
	m := memoize(t, config(t.TempDir(), bin, "2", "2", "0"), memo.Options{})
	t.Logf("%d constraints, %d terms: %v", m.Constraints, m.Terms, m.File.Preconditions)
	for args, want := range map[[3]string]bool{{"2", "2", "0"}: true, {"2", "2", "7"}: true, {"3", "3", "0"}: false, {"2", "2", "1"}: false} {
		c := config(t.TempDir(), bin, args[0], args[1], args[2])
		why := memo.Admits(&c, m.File)
		if (why == "") != want {
			t.Errorf("%q: %q", args, why)
		}
		if want {
			if r, out := enforced(t, c, m); !r.Schedule.Followed {
				t.Errorf("%q: %s %s", args, r.Schedule.Reason, out)
			}
		}
	}
}
