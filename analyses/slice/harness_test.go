package slice_test

import (
	"bytes"
	"context"
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	sym "github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/analyses/specialize"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched/dmt"
)

// recorded is a run with its schedule and block trace.
type recorded struct {
	config machine.Config
	made   *peregrine.Schedule
	trace  *blocktrace.Trace
	input  *slice.Input
	output string
}

// record records a run, makes its schedule, and executes its replay concolically.
func record(t testing.TB, c machine.Config, choose func(*event.Input) bool) *recorded {
	t.Helper()
	r := &recorded{config: c}
	file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out bytes.Buffer
	c.Control = dmt.Control{Policy: dmt.FCFS}
	peregrine.BindNow(&c)
	c.Record, c.Stdout, c.Stderr = peregrine.RecordConfig(file), &out, &out
	if res, err := machine.Run(context.Background(), c); err != nil || res.Outcome == "stopped" {
		t.Fatalf("%v: %+v", err, res)
	}
	r.output = out.String()
	if r.made, err = peregrine.Make(context.Background(), file.Name(), peregrine.Options{Portable: true}); err != nil {
		t.Fatal(err)
	}
	r.follow(t, file.Name(), choose)
	image, err := cfg.OpenImage(c.Args[0], bias(t, file.Name(), c.Args[0]))
	if err != nil {
		t.Fatal(err)
	}
	r.input = &slice.Input{
		Trace: r.trace, Events: specialize.NewEvents(r.made.Schedule, r.made.Marks, r.made.IDs),
		Image: image, Models: cfg.DefaultModels(),
	}
	return r
}

// bias is the address at which a recorded run mapped the program.
func bias(t testing.TB, name, program string) uint64 {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Type == elf.ET_EXEC {
		return 0
	}
	r, err := trace.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for m, err := range trace.Get[event.Mapping](r, trace.Key{Kind: trace.Mappings}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Name == program {
			return uint64(m.Addr) - m.Offset
		}
	}
	t.Fatalf("%s was not mapped", program)
	return 0
}

func (r *recorded) follow(t testing.TB, name string, choose func(*event.Input) bool) {
	t.Helper()
	f, err := concolicrun.Repeat(context.Background(), name, func(*machine.Config) (concolicrun.Options, error) {
		return concolicrun.Options{Choose: choose, Path: true, Summaries: sym.DefaultSummaries()}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r.trace = f.Path.Trace()
}

// arguments chooses the arguments except the program's name.
func arguments(e *event.Input) bool { return e.Source == event.InputArgs && e.Offset > 0 }

func config(t testing.TB, args ...string) machine.Config {
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.Stdin = args, t.TempDir(), bytes.NewReader(nil)
	return c
}
