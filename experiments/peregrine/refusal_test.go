package peregrine_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// scheduled is a program with races and operations that reads a file, and the file of
// its schedule.
func scheduled(t *testing.T) (c machine.Config, f *hybrid.File, text string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "input"), []byte("4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c = config(gcctest.File(t, "testdata/refusal.c", "-g", "-O1"), "input")
	c.Dir = dir
	c.Cores, c.Sched = 4, sched.Options{Quantum: 500}
	peregrine.BindNow(&c)
	f, err := peregrine.ComputeFile(t.Context(), record(t, c, true), peregrine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.Sched = machine.DefaultConfig().Sched
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return c, f, b.String()
}

// resealed is a schedule file's text with the checksum that it has to have.
func resealed(text string) string {
	body := text[:strings.LastIndex(text, "end ")]
	return body + fmt.Sprintf("end %016x\n", xxh3.HashString(body))
}

// Another program or input file is refused before the run, whatever else is the same.
func TestOtherInputIsRefused(t *testing.T) {
	c, f, _ := scheduled(t)
	for _, name := range []string{c.Args[0], filepath.Join(c.Dir, "input")} {
		before, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, append(slices.Clone(before), '\n'), info.Mode()); err != nil {
			t.Fatal(err)
		}
		other := c
		err = peregrine.Enforce(&other, f, "FILE", enforce.Options{})
		if err == nil || !strings.Contains(err.Error(), "the schedule FILE is of another run: "+name+" is of SHA-256 ") {
			t.Errorf("%s was changed: %v", name, err)
		}
		if err := os.WriteFile(name, before, info.Mode()); err != nil {
			t.Fatal(err)
		}
		if err := peregrine.Enforce(&other, f, "FILE", enforce.Options{}); err != nil {
			t.Errorf("%s is as it was: %v", name, err)
		}
	}
}

// A file of another version, cut, or with references to threads and operations that do not exist is
// refused, though its checksum is right.
func TestForgedFilesAreNotRead(t *testing.T) {
	_, f, text := scheduled(t)
	first := strings.Index(text, "\nconstraint ") + 1
	line, _, _ := strings.Cut(text[first:], "\n")
	for name, bad := range map[string]string{
		"a newer version":           strings.Replace(text, fmt.Sprintf("schedule %d\n", hybrid.Version), fmt.Sprintf("schedule %d\n", hybrid.Version+1), 1),
		"an older version":          strings.Replace(text, fmt.Sprintf("schedule %d\n", hybrid.Version), fmt.Sprintf("schedule %d\n", hybrid.Version-1), 1),
		"a constraint of no thread": strings.Replace(text, line, "constraint 99"+line[len("constraint 0"):], 1),
		"half a constraint":         strings.Replace(text, line, line[:strings.Index(line, " ->")], 1),
		"a line of its own":         strings.Replace(text, line, "colour red", 1),
		"no thread":                 strings.Replace(text, "thread 3 ", "# 3 ", 1),
		"one thread less": strings.Replace(text, fmt.Sprintf("thread %d %s\n", len(f.Schedule.Threads)-1,
			f.Schedule.Threads[len(f.Schedule.Threads)-1]), "", 1),
	} {
		if bad == text {
			t.Errorf("%s: nothing was changed", name)
			continue
		}
		if _, err := hybrid.Parse(resealed(bad)); err == nil {
			t.Errorf("%s: the file is read", name)
		}
	}
	if _, err := hybrid.Parse(resealed(text)); err != nil {
		t.Errorf("the file as it was: %v", err)
	}
	// The last byte ends the last line, which says as much without it.
	whole := len(text) - 1
	for i := 0; i < whole; i++ {
		if i%(1+whole/200) != 0 && whole-i > 100 {
			continue
		}
		if _, err := hybrid.Parse(text[:i]); err == nil {
			t.Errorf("the file is read that was cut after %d of %d bytes", i, len(text))
		}
	}
	var again strings.Builder
	g, err := hybrid.Parse(text[:whole])
	if err == nil {
		err = g.Write(&again)
	}
	if err != nil || again.String() != text {
		t.Errorf("the file without its last byte is another: %v", err)
	}
}

// A schedule that was changed by hand, and that is well formed, is left with a reason when a thread
// reaches a place where it does not fit. The run ends.
func TestForgedSchedulesDiverge(t *testing.T) {
	c, f, _ := scheduled(t)
	if len(f.Schedule.Constraints) < 2 {
		t.Fatalf("%d constraints", len(f.Schedule.Constraints))
	}
	second := func(change func(*event.Point)) func(*event.Schedule) {
		return func(s *event.Schedule) {
			for i := range s.Constraints {
				if p := &s.Constraints[i].Second; p.PC != 0 && !p.Ends {
					change(p)
					return
				}
			}
		}
	}
	for name, change := range map[string]func(*event.Schedule){
		"a constraint's instruction": second(func(p *event.Point) { p.PC++ }),
		"how far it is":              second(func(p *event.Point) { p.Instructions++ }),
		"its operation":              second(func(p *event.Point) { p.Instructions += 1 << 40 }),
		"the order of two operations of a thread": func(s *event.Schedule) {
			i := slices.IndexFunc(s.Operations, func(o event.Operation) bool { return o.Op == event.OpMutexLock })
			j := i + 1 + slices.IndexFunc(s.Operations[i+1:], func(o event.Operation) bool { return o.Thread == s.Operations[i].Thread })
			s.Operations[i], s.Operations[j] = s.Operations[j], s.Operations[i]
		},
		"a join before the thread's end": func(s *event.Schedule) {
			i := slices.IndexFunc(s.Operations, func(o event.Operation) bool { return o.Op == event.OpJoin })
			j := slices.IndexFunc(s.Operations, func(o event.Operation) bool { return o.Part == event.StartPart && o.Thread == 1 })
			join := s.Operations[i]
			s.Operations = slices.Insert(slices.Delete(s.Operations, i, i+1), j, join)
		},
		"a result":        func(s *event.Schedule) { s.Operations[len(s.Operations)/2].Result += 17 },
		"a thread's name": func(s *event.Schedule) { s.Threads[len(s.Threads)-1] += ".9" },
		"one thread more": func(s *event.Schedule) {
			s.Threads = append(s.Threads, "1.99")
			s.Operations = append(s.Operations, event.Operation{Thread: len(s.Threads) - 1, Part: event.StartPart})
		},
	} {
		forged := *f.Schedule
		forged.Threads, forged.Operations = slices.Clone(forged.Threads), slices.Clone(forged.Operations)
		forged.Constraints = slices.Clone(forged.Constraints)
		change(&forged)
		other := c
		other.Enforce = &machine.Enforce{Schedule: &forged, Seed: f.Seed, Cores: f.Cores}
		other.MaxInstructions = 100_000_000
		r, err := machine.Run(t.Context(), other)
		if err != nil {
			t.Fatal(err)
		}
		if r.Outcome != "diverged" || r.ExitCode != machine.ExitFailure || r.Schedule.Followed || r.Schedule.Reason == "" {
			t.Errorf("%s was changed: %s with status %d: %q", name, r.Outcome, r.ExitCode, r.Schedule.Reason)
		}
	}
}

// Another machine does not matter to a schedule: the guest sees the recorded one.
func TestOtherMachines(t *testing.T) {
	testsize.SkipQuick(t)
	c, f, _ := scheduled(t)
	found := map[string]bool{}
	for _, cores := range []int{1, 3, 64} {
		other := c
		other.Cores, other.Seed = cores, uint64(cores)
		if err := peregrine.Enforce(&other, f, "FILE", enforce.Options{}); err != nil {
			t.Fatal(err)
		}
		r, err := machine.Run(t.Context(), other)
		if err != nil || !r.Schedule.Followed {
			t.Fatalf("%d cores: %v: %+v", cores, err, r)
		}
		found[r.StateDigest] = true
	}
	if len(found) != 1 {
		t.Errorf("states: %v", found)
	}
}

// Under a weaker memory model the order of instructions is not that of their effects:
// no schedule is made of such a run, nor enforced on one, by either engine.
func TestWeakModelsAreRefused(t *testing.T) {
	c, f, _ := scheduled(t)
	const says = "there are no schedules under the memory model "
	for _, weak := range []storebuffer.Options{{Model: "tso"}, {Model: "pso"}, {Model: "tso", Engine: storebuffer.Pages}} {
		other := c
		other.Memory = weak
		other.Enforce = &machine.Enforce{Schedule: f.Schedule, Seed: f.Seed, Cores: f.Cores}
		if _, err := machine.Run(t.Context(), other); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v", weak, err)
		}
		other.Enforce = nil
		if weak.Engine == storebuffer.Pages {
			continue // there is no record of memory
		}
		if _, err := peregrine.Make(t.Context(), record(t, other, true), peregrine.Options{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v", weak, err)
		}
	}
}
