package prediction

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/predict"
	racereport "github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// compile compiles a program of testdata.
func compile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name+".c"))
	if err != nil {
		t.Fatal(err)
	}
	return gcctest.File(t, path, "-g")
}

func configOf(bin string) machine.Config {
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.Stdout, c.Stderr = []string{bin}, filepath.Dir(bin), io.Discard, io.Discard
	peregrine.BindNow(&c)
	return c
}

// record records a run for a prediction, and returns the trace.
func record(t *testing.T, c machine.Config) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c.Control, c.Record = peregrine.ControlConfig(), peregrine.RecordConfig(file)
	if r, err := machine.Run(t.Context(), c); err != nil || r.Outcome != machine.OutcomeExit {
		t.Fatalf("%v: %+v", err, r)
	}
	return file.Name()
}

func options(folder string) Options {
	o := DefaultOptions()
	o.Report = racereport.Options{Benign: racereport.Mark, Words: racereport.AutoWords}
	o.Folder = folder
	return o
}

// linesOf are the source lines of a race, the lower first.
func linesOf(r *racereport.Race) string {
	a, b := r.First.Stack[0].Line, r.Second.Stack[0].Line
	return fmt.Sprint(min(a, b), "-", max(a, b))
}

var marked = regexp.MustCompile(`// predicted: (\d+)$`)

// expected are the pairs of lines that a source marks with the same number.
func expected(t *testing.T, name string) (pairs []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".c"))
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]int{}
	for i, line := range strings.Split(string(text), "\n") {
		m := marked.FindStringSubmatch(line)
		switch {
		case m == nil:
		case first[m[1]] == 0:
			first[m[1]] = i + 1
		default:
			pairs = append(pairs, fmt.Sprint(first[m[1]], "-", i+1))
		}
	}
	return pairs
}

// TestPrograms: the programs have no race in the order of their run but for atomic.c, and exactly the marked ones in
// others; each is there again when the program runs under the file of its witness on another machine.
func TestPrograms(t *testing.T) {
	for _, name := range []string{"sections", "reads", "reversed", "nested", "condition", "barrier", "heap", "three", "atomic", "untouched"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin := compile(t, name)
			path := record(t, configOf(bin))
			folder := t.TempDir()
			r, err := Predict(t.Context(), path, name, options(folder))
			if err != nil {
				t.Fatal(err)
			}
			var predicted []string
			own := 0
			for _, race := range r.Races {
				if race.Witness == nil {
					own++
					continue
				}
				predicted = append(predicted, linesOf(race))
				again := underWitness(t, configOf(bin), filepath.Join(folder, fmt.Sprint(len(predicted))+".schedule"))
				if !slices.ContainsFunc(again.Races, func(x *racereport.Race) bool { return linesOf(x) == linesOf(race) }) {
					t.Errorf("the run under the witness has %d races, and not that of the lines %s", len(again.Races), linesOf(race))
				}
			}
			if own > 0 && name != "atomic" {
				t.Errorf("the run itself has %d races", own)
			}
			if want := expected(t, name); !slices.Equal(predicted, want) {
				t.Errorf("predicted at the lines %v, want %v", predicted, want)
			}
			if p := r.Prediction; p.Refuted > 0 || p.Confirmed != len(predicted) || p.Cut {
				t.Errorf("%+v", *p)
			}
		})
	}
}

// underWitness runs a program under the file of a witness, on a machine of another kind.
func underWitness(t *testing.T, c machine.Config, path string) *racereport.Report {
	t.Helper()
	f, err := peregrine.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	live := racereport.NewLive("", racereport.Options{Benign: racereport.Mark})
	defer live.Close()
	c.Seed, c.Cores = 99, 2
	if err := peregrine.Enforce(&c, f, path, enforce.Options{Free: true}); err != nil {
		t.Fatal(err)
	}
	c.Record = &machine.Record{Listener: live, Sync: &machine.SyncRecord{Heap: true}, Memory: &recorder.MemoryConfig{}}
	if _, err := machine.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r, err := live.Report()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRefuted: a prediction that takes no notice of values is refuted by the run of its witness. In reads.c it would
// have the second access without the section whose value it depends on.
func TestRefuted(t *testing.T) {
	for name, refuted := range map[string]bool{"reads": true, "sections": false} {
		path := record(t, configOf(compile(t, name)))
		o, err := peregrine.OpenOrdered(path)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		r, err := readRun(t.Context(), o, DefaultOptions().Accesses, DefaultOptions().Shared)
		if err != nil {
			t.Fatal(err)
		}
		p := &prediction{Options: options(""), run: r, path: path, report: &racereport.Report{}, known: map[pair]bool{}}
		naive := p.naiveRace(t)
		w := p.newWitness(naive)
		if err := o.Locate(t.Context(), w.schedule.Constraints); err != nil {
			t.Fatal(err)
		}
		if err := p.confirm(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		if (p.counts.Refuted == 1) != refuted || p.counts.Confirmed+p.counts.Refuted != 1 {
			t.Errorf("%s: %+v", name, p.counts)
		}
	}
}

// libraries is an address between those of the program and those of its libraries.
const libraries = 0x600000000000

// naiveRace is the pair of writes to the variable that both threads write outside of sections, as if values did
// not matter: each thread has all that it did before, and no other.
func (p *prediction) naiveRace(t *testing.T) predict.Race {
	t.Helper()
	writes := map[uint64][]keptAccess{}
	for _, k := range p.kept {
		if at := k.page<<pageShift | uint64(k.offset); k.thread > 0 && k.kind == event.Store && k.pc < libraries && !slices.ContainsFunc(writes[at], func(x keptAccess) bool { return x.thread == k.thread }) {
			writes[at] = append(writes[at], k)
		}
	}
	for _, list := range writes {
		if len(list) != 2 {
			continue
		}
		first, second := list[0].event, list[1].event
		prefix := make(predict.Clock, len(p.o.IDs))
		main := p.b.At(int(list[1].thread), 0)
		for n := range prefix {
			for local := int32(0); n == 0; local++ { // the main thread until it has started both
				prefix[0] = local
				if p.b.IsEnabled(main, prefix) {
					break
				}
			}
		}
		prefix[list[0].thread], prefix[list[1].thread] = p.b.Local(first), p.b.Local(second)
		return predict.Race{First: first, Second: second, Code: [2]uint64{uint64(list[0].pc), uint64(list[1].pc)}, Prefix: prefix}
	}
	t.Fatal("no two writes")
	return predict.Race{}
}

// TestDeterministic: the same trace has the same report, and bounds are kept and said.
func TestDeterministic(t *testing.T) {
	path := record(t, configOf(compile(t, "heap")))
	var first []byte
	for range testsize.Pick(1, 2, 4) + 1 {
		r, err := Predict(t.Context(), path, "heap", options(""))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = r.JSON()
		}
		if !bytes.Equal(r.JSON(), first) {
			t.Errorf("the report differs:\n%s\n%s", r.JSON(), first)
		}
	}
	o := options("")
	o.Accesses = 1000
	if r, err := Predict(t.Context(), path, "heap", o); err != nil || !r.Prediction.Cut || r.Prediction.Accesses != 1000 || r.Prediction.Confirmed > 0 {
		t.Errorf("%v: %+v", err, r)
	}
	o = options("")
	o.Shared = 10
	if r, err := Predict(t.Context(), path, "heap", o); err != nil || !r.Prediction.Cut || r.Prediction.Confirmed > 0 {
		t.Errorf("%v: %+v", err, r)
	}
}

// TestRefusals: what cannot be done right is refused.
func TestRefusals(t *testing.T) {
	bin := compile(t, "sections")
	c := configOf(bin)
	file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c.Record = peregrine.RecordConfig(file)
	if _, err := machine.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	_, err = Predict(t.Context(), file.Name(), "", options(""))
	if err == nil || !strings.Contains(err.Error(), "one at a time") {
		t.Errorf("of a run whose operations overlap: %v", err)
	}
	forks := gcctest.C(t, `#include <sys/wait.h>
#include <unistd.h>
int main(void) { if (fork() == 0) _exit(0); wait(0); return 0; }`)
	_, err = Predict(t.Context(), record(t, configOf(forks)), "", options(""))
	if err == nil || !strings.Contains(err.Error(), "several processes") {
		t.Errorf("of two processes: %v", err)
	}
}
