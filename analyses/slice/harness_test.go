package slice_test

import (
	"bytes"
	"context"
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/path"
	"github.com/heddle-dmt/heddle/analyses/simplify"
	"github.com/heddle-dmt/heddle/analyses/slice"
	sym "github.com/heddle-dmt/heddle/analyses/symbolic/exec"
	"github.com/heddle-dmt/heddle/experiments/follow"
	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
)

// recorded is a run with its schedule and path.
type recorded struct {
	config heddle.Config
	made   *schedules.Made
	trace  *path.Trace
	input  *slice.Input
	output string
}

// record records a run, makes its schedule, and has its replay followed.
func record(t testing.TB, c heddle.Config, choose func(*event.Input) bool) *recorded {
	t.Helper()
	r := &recorded{config: c}
	file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out bytes.Buffer
	c.Control = sched.Control{Policy: sched.FCFS}
	schedules.BindNow(&c)
	c.Record, c.Stdout, c.Stderr = schedules.Recording(file), &out, &out
	if res, err := heddle.Run(context.Background(), c); err != nil || res.Outcome == "stopped" {
		t.Fatalf("%v: %+v", err, res)
	}
	r.output = out.String()
	if r.made, err = schedules.Make(context.Background(), file.Name(), schedules.Options{Portable: true}); err != nil {
		t.Fatal(err)
	}
	r.follow(t, file.Name(), choose)
	image, err := cfg.OpenImage(c.Args[0], bias(t, file.Name(), c.Args[0]))
	if err != nil {
		t.Fatal(err)
	}
	r.input = &slice.Input{
		Trace: r.trace, Events: simplify.NewEvents(r.made.Schedule, r.made.Marks, r.made.IDs),
		Image: image, Models: cfg.DefaultModels(),
	}
	return r
}

// bias is where a recorded run has put the program.
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
	f, err := follow.Repeat(context.Background(), name, func(*heddle.Config) (follow.Options, error) {
		return follow.Options{Choose: choose, Path: true, Summaries: sym.DefaultSummaries()}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r.trace = f.Path.Trace()
}

// arguments chooses the arguments but for the program's name.
func arguments(e *event.Input) bool { return e.Source == event.InputArgs && e.Offset > 0 }

func config(t testing.TB, args ...string) heddle.Config {
	c := heddle.DefaultConfig()
	c.Args, c.Dir, c.Stdin = args, t.TempDir(), bytes.NewReader(nil)
	return c
}
