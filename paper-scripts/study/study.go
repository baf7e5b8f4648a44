// Package study is what the scripts for the papers' tables share: it builds the
// programs of the suite, records runs of them, makes schedules and enforces
// those in many runs.
//
// It lays out nothing: the scripts do, with experiments/table.
package study

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/guest/programs"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// Subject is a program of the suite with its arguments.
type Subject struct {
	// Paper is the name of the program that the paper has in its place.
	Paper   string
	Program programs.Program
	Form    programs.Form
	// Threads is the number of worker threads.
	Threads int
	// Sched is how recorded runs are scheduled, and Cores how many cores they
	// have; 0: as many as worker threads.
	Sched sched.Options
	Cores int
	// BindNow has the dynamic linker look all functions up before the run, as
	// `heddle schedule record` does, so that its own races take no constraints.
	BindNow bool
	file    string
	args    []string
}

// Size chooses a program's arguments: one of those below, or a command line.
type Size string

// The sizes: those of the program's description.
const (
	Test    Size = "test"    // of tests
	Trigger Size = "trigger" // with which the bug shows
	Paper   Size = "paper"   // that of the papers
)

// arguments are those of a size.
func (size Size) arguments(p *programs.Program) string {
	switch size {
	case Test:
		return p.Arguments.Test
	case Trigger:
		return p.Trigger()
	case Paper:
		return p.Arguments.Paper
	}
	return string(size)
}

// New builds a program of the suite, optimized and with debug information.
func New(paper, name string, form programs.Form, size Size, threads int) (*Subject, error) {
	p, err := programs.Find(name)
	if err != nil {
		return nil, err
	}
	file, err := p.Build(programs.Variant{Form: form, Optimize: 2, Debug: true})
	if err != nil {
		return nil, err
	}
	return &Subject{
		Paper: paper, Program: p, Form: form, Threads: threads, Sched: heddle.DefaultConfig().Sched,
		file: file, args: p.CommandLine(size.arguments(&p), threads),
	}, nil
}

// With is the subject with other arguments, {threads} in them being its number.
func (s *Subject) With(arguments string) *Subject {
	other := *s
	other.args = s.Program.CommandLine(arguments, s.Threads)
	return &other
}

// Config is the configuration of a run on the subject's number of cores.
func (s *Subject) Config(seed uint64) heddle.Config {
	c := heddle.DefaultConfig()
	c.Args, c.Dir = append([]string{s.file}, s.args...), "/"
	c.Cores, c.Seed = max(cmp.Or(s.Cores, s.Threads), 1), seed
	if s.BindNow {
		schedules.BindNow(&c)
	}
	return c
}

// Varied is configuration number i of those that are to make a difference:
// another seed and number of cores each. Three of six run short slices with delays,
// under which most of the suite's bugs show; the others have long delays, turns at
// random, short to long, or threads that are held back for long.
func (s *Subject) Varied(i int) heddle.Config {
	c := s.Config(uint64(1000 + i))
	c.Cores = 2 + i*7%15
	switch i % 6 {
	case 1:
		c.Sched.DelayRate, c.Sched.DelayCycles = 0.5, 100_000<<(i/6%6)
	case 3:
		c.Sched = sched.Options{Policy: sched.Random, Quantum: []uint64{200, 2000, 20_000, 200_000}[i/6%4]}
	case 5:
		c.Sched = sched.Options{Policy: sched.PCT, Depth: 4, Length: 1_000_000}
	default:
		c.Sched.Quantum, c.Sched.DelayRate, c.Sched.DelayCycles = 200, 0.02, 20_000
	}
	return c
}

// Outcome is what a run came to, in all that another run can differ in from
// outside.
type Outcome struct {
	ExitCode int
	Outcome  string
	Output   string
}

// Run runs a configuration.
func Run(ctx context.Context, c heddle.Config) (Outcome, *heddle.Result, error) {
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	r, err := heddle.Run(ctx, c)
	if err != nil {
		return Outcome{}, r, err
	}
	return Outcome{r.ExitCode, r.Outcome, out.String()}, r, nil
}

// Native runs the subject on the host.
func (s *Subject) Native(ctx context.Context) (out string, spent time.Duration, err error) {
	return Natively(ctx, "/", append([]string{s.file}, s.args...)...)
}

// Natively runs a program on the host in a folder, and returns what it writes to its
// standard output and error, and its processor time.
func Natively(ctx context.Context, dir string, command ...string) (out string, spent time.Duration, err error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir = dir
	text, err := c.CombinedOutput()
	if err != nil {
		return "", 0, fmt.Errorf("%q natively: %w: %.500s", command, err, text)
	}
	return string(text), c.ProcessState.UserTime() + c.ProcessState.SystemTime(), nil
}

// Recorded is a recorded run of a subject.
type Recorded struct {
	*Subject
	Outcome Outcome
	Result  *heddle.Result
	config  heddle.Config
	trace   string
}

// Record records a run for schedules, its trace in dir. Close removes it.
func (s *Subject) Record(ctx context.Context, dir string, seed uint64) (*Recorded, error) {
	file, err := os.CreateTemp(dir, s.Program.Name+"-*.trace")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r := &Recorded{Subject: s, config: s.Config(seed), trace: file.Name()}
	c := r.config
	c.Sched = s.Sched
	c.Control = schedules.Control()
	c.Record = schedules.Recording(file)
	if r.Outcome, r.Result, err = Run(ctx, c); err != nil {
		r.Close()
		return nil, fmt.Errorf("record %s: %w", s.Program.Name, err)
	}
	return r, nil
}

// Close removes the trace.
func (r *Recorded) Close() error { return os.Remove(r.trace) }

// Trace is the name of the trace's file.
func (r *Recorded) Trace() string { return r.trace }

// Make makes a schedule of the run.
func (r *Recorded) Make(ctx context.Context, o schedules.Options) (*schedules.Made, error) {
	made, err := schedules.Make(ctx, r.trace, o)
	if err != nil {
		return nil, fmt.Errorf("schedule of %s: %w", filepath.Base(r.Program.Name), err)
	}
	return made, nil
}

// patience is after how many cycles, a third of a virtual second, a run leaves a
// schedule of which nothing happens. Injected delays are far shorter.
const patience = event.Cycles(1e9)

// Under is a configuration with a schedule of the recorded run enforced. A run
// that goes on for twenty times as long as the recorded one ends.
func (r *Recorded) Under(c heddle.Config, m *schedules.Made, o sched.EnforceOptions) heddle.Config {
	o.BreakOut = patience
	c.MaxInstructions = 20*r.Result.Instructions + 1e6
	c.Enforce = &heddle.Enforce{Schedule: m.Schedule, Options: o, Seed: r.config.Seed, Cores: r.config.Cores}
	return c
}

// Each calls do for 0 to n-1, as many at once as the host has cores. It returns
// the error of the lowest number that has one; after an error it calls no more.
func Each(ctx context.Context, n int, do func(i int) error) error {
	errs := make([]error, n)
	var group sync.WaitGroup
	var failed atomic.Bool
	slots := make(chan struct{}, runtime.NumCPU())
	for i := range n {
		if failed.Load() || ctx.Err() != nil {
			break
		}
		group.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; group.Done() }()
			if errs[i] = do(i); errs[i] != nil {
				failed.Store(true)
			}
		}()
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
