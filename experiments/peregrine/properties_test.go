package peregrine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// PEREGRINE's table 3: without constraints the programs with races that matter
// differ from run to run, and streamcluster's result does not.
func TestSyncOnlyIsNotEnough(t *testing.T) {
	for name, differs := range map[string]bool{"racey": true, "fft": true, "lu-non-contig": true, "streamcluster": false} {
		t.Run(name, func(t *testing.T) {
			if differs && name != "racey" {
				testsize.SkipQuick(t)
			}
			c := suiteConfig(t, name)
			m := made(t, c, peregrine.Options{})
			found := map[string]int{}
			for _, v := range varied(c, testsize.Runs(8, 8, 8)) {
				r, out := enforced(t, v, m, enforce.Options{SyncOnly: true})
				key := out
				if differs {
					key = r.StateDigest
				}
				found[key]++
			}
			if (len(found) > 1) != differs {
				t.Errorf("%d different runs, and the paper says: %v", len(found), differs)
			}
		})
	}
}

// Every constraint that is kept matters: without it some run has its instructions
// the other way around.
func TestEveryConstraintMatters(t *testing.T) {
	names := []string{
		"aba", "lost-wakeup", "mysql-12848", "lu-non-contig", "frost-figure-1b", "fft", "benign-redundant-write", "string-buffer",
		"mysql-3596", "glibc-12486",
	}
	for _, name := range testsize.Sample(names, testsize.Pick(2, len(names), len(names)), 0) {
		t.Run(name, func(t *testing.T) {
			c := suiteConfig(t, name)
			m := made(t, c, peregrine.Options{})
			for i := range m.Schedule.Constraints {
				if !flips(t, c, m, i) {
					t.Errorf("constraint %d holds without being enforced: %+v", i, m.Schedule.Constraints[i])
				}
			}
		})
	}
}

// flips reports whether one of many runs has a constraint the other way around when it is not
// enforced.
func flips(t *testing.T, c machine.Config, m *peregrine.Schedule, i int) bool {
	t.Helper()
	for k, v := range varied(c, 40) {
		v.Sched = sched.Options{DelayRate: 0.5, DelayCycles: 100_000 << (k % 6)}
		if k%2 == 1 {
			v.Sched = sched.Options{Policy: sched.PCT}
		}
		if r, _ := enforced(t, v, m, enforce.Options{Loose: []int{i}}); r.Schedule.Flipped > 0 {
			return true
		}
	}
	return false
}

// Constraints that were pruned follow from the kept ones: with them the runs are the same.
func TestPrunedConstraintsChangeNothing(t *testing.T) {
	testsize.SkipQuick(t)
	for _, name := range []string{"racey", "fft", "scanner"} {
		t.Run(name, func(t *testing.T) {
			c := suiteConfig(t, name)
			path := record(t, c, true)
			found := map[string]int{}
			kept := -1
			for _, prune := range []hybrid.Prune{hybrid.PruneReduce, hybrid.PruneSubsume, hybrid.PruneNone} {
				m, err := peregrine.Make(t.Context(), path, peregrine.Options{Prune: prune})
				if err != nil {
					t.Fatal(err)
				}
				if len(m.Schedule.Constraints) < kept {
					t.Errorf("%d constraints with less pruning, and %d with more", len(m.Schedule.Constraints), kept)
				}
				kept = len(m.Schedule.Constraints)
				for state, n := range states(t, c, m, 2, enforce.Options{}) {
					found[state] += n
				}
			}
			if len(found) != 1 {
				t.Errorf("states: %v", found)
			}
		})
	}
}

// Each way to enforce has one state; the relay changes nothing but the time.
func TestRelaysAndSkippedWaits(t *testing.T) {
	c := suiteConfig(t, "lu-non-contig")
	m := made(t, c, peregrine.Options{})
	cycles := map[string]uint64{}
	for _, skip := range []bool{false, true} {
		found := map[string]int{}
		for _, relay := range []string{enforce.SemaphoreRelay, enforce.FlagRelay} {
			o := enforce.Options{Relay: relay, SkipWait: skip}
			for state, n := range states(t, c, m, 3, o) {
				found[state] += n
			}
			r, _ := enforced(t, c, m, o)
			cycles[fmt.Sprint(relay, skip)] = r.Cycles
			if (r.Schedule.Skipped > 0) != skip {
				t.Errorf("%d waits were skipped", r.Schedule.Skipped)
			}
		}
		if len(found) != 1 {
			t.Errorf("skip %v: %v", skip, found)
		}
	}
	if cycles["flagfalse"] >= cycles["semaphorefalse"] || cycles["flagtrue"] >= cycles["flagfalse"] {
		t.Errorf("flags and skipped waits are not faster: %v", cycles)
	}
}

// A mem-schedule orders more, and is as deterministic.
func TestMemSchedule(t *testing.T) {
	c := suiteConfig(t, "fft")
	path := record(t, c, true)
	all, err := peregrine.Make(t.Context(), path, peregrine.Options{Every: true})
	if err != nil {
		t.Fatal(err)
	}
	few, err := peregrine.Make(t.Context(), path, peregrine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Schedule.Constraints) <= len(few.Schedule.Constraints) {
		t.Errorf("%d constraints, and %d in the hybrid schedule", len(all.Schedule.Constraints), len(few.Schedule.Constraints))
	}
	if found := states(t, c, all, 3, enforce.Options{}); len(found) != 1 {
		t.Errorf("states: %v", found)
	}
	slow, _ := enforced(t, c, all, enforce.Options{})
	fast, _ := enforced(t, c, few, enforce.Options{})
	if slow.Cycles <= fast.Cycles {
		t.Errorf("%d cycles, and %d under the hybrid schedule", slow.Cycles, fast.Cycles)
	}
}

// A schedule that does not fit ends the run with the first operation that does not match, or lets
// it continue; it never hangs.
func TestDivergence(t *testing.T) {
	bin := gcctest.File(t, "testdata/sync.c", "-g")
	c := config(bin)
	m := made(t, c, peregrine.Options{SyncOnly: true})
	n := len(m.Schedule.Operations)
	for at := n / 4; at < n-2; at += n / 12 {
		bad := *m
		s := *m.Schedule
		s.Operations = append(s.Operations[:at:at], s.Operations[at+1:]...)
		bad.Schedule = &s
		r, _ := enforced(t, c, &bad, enforce.Options{})
		if r.Outcome != "diverged" || r.ExitCode != 125 || r.Schedule.Reason == "" || r.Schedule.Position == 0 {
			t.Errorf("without operation %d: %s %d at %d: %s", at, r.Outcome, r.ExitCode, r.Schedule.Position, r.Message)
		}
		r, out := enforced(t, c, &bad, enforce.Options{Free: true})
		if r.Outcome != "exit" || out != "210 1\n" || r.Schedule.Followed || r.Schedule.Reason == "" {
			t.Errorf("without operation %d, free: %s %q: %s", at, r.Outcome, out, r.Message)
		}
	}
}

// A thread that spins for ever where the schedule waits for it ends the run after the break-out
// cycles.
func TestBreakOut(t *testing.T) {
	c := config(gcctest.File(t, "testdata/spin.c", "-g"))
	m := made(t, c, peregrine.Options{})
	o := enforce.Options{BreakOut: 20_000_000}
	if r, _ := enforced(t, c, m, o); !r.Schedule.Followed {
		t.Fatal(r.Message)
	}
	// The thread takes the lock before main does, and so before there is a flag.
	var first, second []event.Operation
	for _, p := range m.Schedule.Operations {
		lock := p.Op == event.OpMutexLock || p.Op == event.OpMutexUnlock
		if lock && p.Thread == 0 && len(first) > 0 {
			second = append(second, p)
			continue
		}
		first = append(first, p)
		if p.Op == event.OpMutexUnlock && p.Thread == 1 {
			first = append(first, second...)
		}
	}
	bad := peregrine.Schedule{Schedule: &event.Schedule{Threads: m.Schedule.Threads, Operations: first}}
	r, _ := enforced(t, c, &bad, o)
	if r.Outcome != "diverged" || !strings.Contains(r.Schedule.Reason, "for 20000000 cycles nothing of the schedule has happened") {
		t.Errorf("%s: %s", r.Outcome, r.Message)
	}
}

// A schedule file is read as it was written, and refused when anything in it, or in the run that it
// is enforced on, was changed.
func TestFile(t *testing.T) {
	c := suiteConfig(t, "racey")
	path := record(t, c, true)
	f, err := peregrine.ComputeFile(t.Context(), path, peregrine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "schedule")
	if err := peregrine.Save(f, name); err != nil {
		t.Fatal(err)
	}
	again, err := peregrine.Load(name)
	if err != nil || fmt.Sprintf("%+v", *again.Schedule) != fmt.Sprintf("%+v", *f.Schedule) {
		t.Fatalf("%v: differs from the written schedule", err)
	}
	if err := peregrine.Enforce(&c, again, name, enforce.Options{}); err != nil {
		t.Fatal(err)
	}
	if r, err := machine.Run(t.Context(), c); err != nil || !r.Schedule.Followed {
		t.Fatalf("%v: %+v", err, r)
	}
	text, _ := os.ReadFile(name)
	lines := strings.SplitAfter(string(text), "\n")
	for i := 0; i < len(lines); i += 1 + len(lines)/40 {
		for _, bad := range []string{
			strings.Join(lines[:i], ""), strings.Join(lines[:i], "") + strings.Join(lines[i+1:], ""),
			strings.Join(lines[:i], "") + strings.Replace(lines[i], " ", " 1", 1) + strings.Join(lines[i+1:], ""),
		} {
			if bad == string(text) {
				continue
			}
			if err := os.WriteFile(name, []byte(bad), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := peregrine.Load(name); err == nil {
				t.Errorf("line %d was changed, and the schedule is read", i+1)
			}
		}
	}
	refused(t, c, f)
}

// refused checks that a schedule is not enforced on something else.
func refused(t *testing.T, c machine.Config, f *hybrid.File) {
	t.Helper()
	for name, change := range map[string]func(*machine.Config, *hybrid.File){
		"arguments":   func(c *machine.Config, _ *hybrid.File) { c.Args = append(c.Args, "-x") },
		"environment": func(c *machine.Config, _ *hybrid.File) { c.Env = append(c.Env, "A=b") },
		"folder":      func(c *machine.Config, _ *hybrid.File) { c.Dir = "/" },
		"layout":      func(c *machine.Config, _ *hybrid.File) { c.RandomizeLayout = true },
		"model":       func(c *machine.Config, _ *hybrid.File) { c.Memory.Model = "tso" },
		"program":     func(_ *machine.Config, f *hybrid.File) { f.Inputs[0].SHA256 = strings.Repeat("0", 64) },
		"file":        func(_ *machine.Config, f *hybrid.File) { f.Inputs[0].Path = "/nonexistent" },
	} {
		other, file := c, *f
		other.Args, other.Env = append([]string(nil), c.Args...), append([]string(nil), c.Env...)
		file.Inputs = append([]hybrid.Input(nil), f.Inputs...)
		change(&other, &file)
		err := peregrine.Enforce(&other, &file, "FILE", enforce.Options{})
		if err == nil || !strings.Contains(err.Error(), "the schedule FILE is of another run") {
			t.Errorf("another %s: %v", name, err)
		}
	}
}

// Programs of Debian, as they come, have one state each under their schedules.
func TestRealProgramsAreDeterministic(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(data, []byte(strings.Repeat("some text that compresses, more or less; ", 3000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"pigz": {"pigz", "-p4", "-b128", "-c", data}, "zstd": {"zstd", "-T4", "-c", data},
		"pbzip2": {"pbzip2", "-c", "-k", "-b1", "-p4", data},
		"python3": {"/usr/bin/python3", "-S", "-E", "-c", `
import _thread
count, done = [], _thread.allocate_lock()
def work(n):
    for i in range(20): count.append(n)
    if len(count) == 80: done.release()
done.acquire()
for n in range(4): _thread.start_new_thread(work, (n,))
done.acquire()
print(count)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "pigz" {
				testsize.SkipQuick(t)
			}
			c := config(args...)
			m := made(t, c, peregrine.Options{})
			if found := states(t, c, m, testsize.Runs(2, 4, 10), enforce.Options{}); len(found) != 1 {
				t.Errorf("states: %v", found)
			}
		})
	}
}
