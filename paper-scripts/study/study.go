// Package study has the common parts of the scripts for the papers' tables: it builds the
// programs of the suite, records runs of them, makes schedules and enforces
// those in many runs.
//
// It lays out nothing: the scripts do, with experiments/sweep/table.
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

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// Subject is a program of the suite with its arguments.
type Subject struct {
	// Paper is the name of the program that the paper has in its place.
	Paper   string
	Program suite.Program
	Form    suite.Form
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
func (size Size) arguments(p *suite.Program) string {
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
func New(paper, name string, form suite.Form, size Size, threads int) (*Subject, error) {
	return NewVariant(paper, name, suite.Variant{Form: form, Optimize: 2, Debug: true}, size, threads)
}

// NewVariant builds a program of the suite as a variant says.
func NewVariant(paper, name string, v suite.Variant, size Size, threads int) (*Subject, error) {
	p, err := suite.Find(name)
	if err != nil {
		return nil, err
	}
	file, err := p.Build(v)
	if err != nil {
		return nil, err
	}
	return &Subject{
		Paper: paper, Program: p, Form: v.Form, Threads: threads, Sched: machine.DefaultConfig().Sched,
		file: file, args: p.CommandLine(size.arguments(&p), threads),
	}, nil
}

// WithArguments is the subject with other arguments, {threads} in them being its number.
func (s *Subject) WithArguments(arguments string) *Subject {
	other := *s
	other.args = s.Program.CommandLine(arguments, s.Threads)
	return &other
}

// Config is the configuration of a run on the subject's number of cores.
func (s *Subject) Config(seed uint64) machine.Config {
	c := machine.DefaultConfig()
	c.Args, c.Dir = append([]string{s.file}, s.args...), "/"
	c.Cores, c.Seed = max(cmp.Or(s.Cores, s.Threads), 1), seed
	if s.BindNow {
		peregrine.BindNow(&c)
	}
	return c
}

// VariedConfig is configuration number i of a set that is to make a difference: another seed and
// number of cores each. Three of six run short turns with delays, under which most of the suite's
// bugs show; the others have long delays, turns at random, short to long, or threads that are held
// back for long.
func (s *Subject) VariedConfig(i int) machine.Config {
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

// Outcome is the result of a run, as it can be compared from outside.
type Outcome struct {
	ExitCode int
	Outcome  machine.Outcome
	Output   string
}

// Run runs a configuration.
func Run(ctx context.Context, c machine.Config) (Outcome, *machine.Result, error) {
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	r, err := machine.Run(ctx, c)
	if err != nil {
		return Outcome{}, r, err
	}
	return Outcome{r.ExitCode, r.Outcome, out.String()}, r, nil
}

// Native runs the subject on the host.
func (s *Subject) Native(ctx context.Context) (out string, spent time.Duration, err error) {
	return RunNatively(ctx, "/", append([]string{s.file}, s.args...)...)
}

// RunNatively runs a program on the host in a folder, and returns its standard output and error,
// and its processor time.
func RunNatively(ctx context.Context, dir string, command ...string) (out string, spent time.Duration, err error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir = dir
	text, err := c.CombinedOutput()
	if err != nil {
		return "", 0, fmt.Errorf("%q natively: %w: %.500s", command, err, text)
	}
	return string(text), c.ProcessState.UserTime() + c.ProcessState.SystemTime(), nil
}

// RecordedRun is a recorded run of a subject.
type RecordedRun struct {
	*Subject
	Outcome Outcome
	Result  *machine.Result
	config  machine.Config
	trace   string
}

// Record records a run for schedules, its trace in dir. Close removes it.
func (s *Subject) Record(ctx context.Context, dir string, seed uint64) (*RecordedRun, error) {
	file, err := os.CreateTemp(dir, s.Program.Name+"-*.trace")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r := &RecordedRun{Subject: s, config: s.Config(seed), trace: file.Name()}
	c := r.config
	c.Sched = s.Sched
	c.Control = peregrine.ControlConfig()
	c.Record = peregrine.RecordConfig(file)
	if r.Outcome, r.Result, err = Run(ctx, c); err != nil {
		r.Close()
		return nil, fmt.Errorf("record %s: %w", s.Program.Name, err)
	}
	return r, nil
}

// Close removes the trace.
func (r *RecordedRun) Close() error { return os.Remove(r.trace) }

// Trace is the name of the trace's file.
func (r *RecordedRun) Trace() string { return r.trace }

// Make makes a schedule of the run.
func (r *RecordedRun) Make(ctx context.Context, o peregrine.Options) (*peregrine.Schedule, error) {
	made, err := peregrine.Make(ctx, r.trace, o)
	if err != nil {
		return nil, fmt.Errorf("schedule of %s: %w", filepath.Base(r.Program.Name), err)
	}
	return made, nil
}

// breakOutCycles is after how many cycles, a third of a virtual second, a run leaves a
// schedule of which nothing happens. Injected delays are far shorter.
const breakOutCycles = arch.Cycles(1e9)

// ConfigUnder is a configuration with a schedule of the recorded run enforced. A run that takes
// twenty times as long as the recorded one ends.
func (r *RecordedRun) ConfigUnder(c machine.Config, m *peregrine.Schedule, o enforce.Options) machine.Config {
	o.BreakOut = breakOutCycles
	c.MaxInstructions = 20*r.Result.Instructions + 1e6
	c.Enforce = &machine.Enforce{Schedule: m.Schedule, Options: o, Seed: r.config.Seed, Cores: r.config.Cores}
	return c
}

// RunParallel calls do for 0 to n-1, as many at once as the host has cores. It returns
// the error of the lowest number that has one; after an error it calls no more.
func RunParallel(ctx context.Context, n int, do func(i int) error) error {
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
