package tern_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

func config(dir string, args ...string) machine.Config {
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.Stdout, c.Stderr = args, dir, &bytes.Buffer{}, &bytes.Buffer{}
	c.Mounts = append(c.Mounts, machine.Mount{Host: dir, Guest: dir})
	c.MaxInstructions = 500_000_000
	return c
}

// record records a run, and returns the trace.
func record(t *testing.T, c machine.Config) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := tern.Record(context.Background(), c, file); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

// memoize records a run and makes its schedule.
func memoize(t *testing.T, c machine.Config, o tern.Options) *tern.Schedule {
	t.Helper()
	m, err := tern.Make(context.Background(), record(t, c), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// enforced runs a configuration under a schedule.
func enforced(t *testing.T, c machine.Config, m *tern.Schedule) (*machine.Result, string) {
	t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	tern.Enforce(&c, m.File, enforce.Options{})
	r, err := machine.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r, out.String()
}

// figure4 is the trace of a run under the schedule of figure 4: the first thread leaves its
// critical section before the second one reaches it, and the second adds its sum before the
// first prints the result.
func figure4(t *testing.T, bin string) string {
	t.Helper()
	for seed := range uint64(40) {
		c := config(t.TempDir(), bin, "2", "2", "0")
		c.Seed, c.Sched = seed, sched.Options{Policy: sched.Random, Quantum: 200}
		path := record(t, c)
		m, err := peregrine.Make(context.Background(), path, peregrine.Options{Portable: true})
		if err != nil {
			t.Fatal(err)
		}
		first := slices.IndexFunc(m.Schedule.Operations, func(o event.Operation) bool { return o.Op == event.OpMutexLock })
		ordered := slices.ContainsFunc(m.Schedule.Constraints, func(c event.Constraint) bool {
			return c.First.Thread == 1 && c.Second.Thread == 0 && c.First.PC>>20 == 4 && c.Second.PC>>20 == 4
		})
		if ordered && m.Schedule.Operations[first].Thread == 0 {
			t.Logf("seed %d", seed)
			return path
		}
	}
	t.Fatal("no schedule is that of figure 4")
	return ""
}

// The same program has the same preconditions however it is compiled: with atoi inlined or not, with any addresses.
// In static programs malloc is code like any other, so the sizes of its blocks are among them.
func TestBuildsWithoutFlags(t *testing.T) {
	builds := [][]string{{}, {"-static"}, {"-O2"}, {"-O2", "-static"}, {"-O3", "-fno-pie", "-no-pie"}, {"-O1", "-g"}}
	for _, flags := range builds[:testsize.Pick(2, 4, 6)] {
		bin := gcctest.File(t, "../concolicrun/testdata/divide.c", flags...)
		m := memoize(t, config(t.TempDir(), bin, "2", "2", "0"), tern.Options{})
		set, err := preconditions.Parse(m.File.Preconditions, symbolic.NewPool())
		if err != nil {
			t.Fatal(err)
		}
		const want = "atoi(argv[1]) ≤ atoi(argv[2]) ∧ atoi(argv[1]) = 2"
		if !slices.Contains(flags, "-static") && set.String() != want {
			t.Errorf("%q: %s\nwant %s", flags, set, want)
		}
		for args, admitted := range map[[3]string]bool{{"2", "3", "-12"}: true, {"02", "2", "0"}: true, {"2", "1", "0"}: false, {"3", "3", "0"}: false} {
			c := config(t.TempDir(), bin, args[0], args[1], args[2])
			why := tern.Admits(&c, m.File)
			if (why == "") != admitted {
				t.Errorf("%q: %q: %q", flags, args, why)
			}
			if r, out := enforced(t, c, m); admitted && !r.Schedule.Followed {
				t.Errorf("%q: %q: %s %s", flags, args, r.Schedule.Reason, out)
			}
		}
	}
}

// The program of PEREGRINE's figure 3, recorded on "2 2 0", has figure 5's preconditions,
// and follows the schedule on "2 1000 8", as the paper says; "2 2 1" would race.
func TestFigure5(t *testing.T) {
	testsize.SkipQuick(t)
	bin := gcctest.File(t, "../concolicrun/testdata/divide.c", "-fno-inline", "-no-pie", "-DLATE")
	m, err := tern.Make(context.Background(), figure4(t, bin), tern.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := preconditions.Parse(m.File.Preconditions, symbolic.NewPool())
	if err != nil {
		t.Fatal(err)
	}
	const want = "atoi(argv[1]) ≤ atoi(argv[2]) ∧ atoi(argv[1]) = 2 ∧ atoi(argv[3]) ≠ 1"
	if set.String() != want {
		t.Errorf("%s\nwant %s", set, want)
	}
	for args, admitted := range map[[3]string]bool{
		{"2", "2", "0"}: true, {"2", "1000", "8"}: true, {"2", "77777", "-123456"}: true,
		{"3", "3", "0"}: false, {"2", "1", "0"}: false, {"2", "2", "1"}: false,
	} {
		c := config(t.TempDir(), bin, args[0], args[1], args[2])
		why := tern.Admits(&c, m.File)
		if (why == "") != admitted {
			t.Errorf("%q: %q", args, why)
		}
		for _, seed := range []uint64{1, 2, 3} {
			c.Seed, c.Sched.DelayRate = seed, 0.2
			if r, out := enforced(t, c, m); r.Schedule.Followed != admitted && why == "" {
				t.Errorf("%q: %s %s", args, r.Schedule.Reason, out)
			}
		}
	}
}
