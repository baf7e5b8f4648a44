package memo

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/symbolic/exec"
	"github.com/heddle-dmt/heddle/experiments/follow"
	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

var (
	errFollow = errs.Define("memoizer-lost-the-run",
		"no preconditions can be computed for {program}",
		"The recorded run could not be repeated, or not be followed on expressions to its end; the rest of the sentence says where.",
		"Use the program without --memoize, or report the sentence if the program is an ordinary one.")
	errAhead = errs.Define("preconditions-not-known-ahead",
		"the schedule of {program} depends on what is not known before a run",
		"The program's decisions depend on what a socket, a pipe or a mark in the program brings, so that no input can be checked beforehand. The rest of the sentence names it.",
		"Run the program without --memoize.")
	errUnstable = errs.Define("memoized-schedule-not-followed",
		"the schedule of {program} is not kept: the recorded run, repeated, does not follow it: {problem}",
		"The program does something that a schedule does not order; the rest of the sentence says where it left.",
		"Run the program without --memoize; docs/schedules.md lists what has no place in a schedule.")
)

// Options say how a schedule is made.
type Options struct {
	// Summaries are those of functions; nil: the C library's.
	Summaries []exec.Summary
	// Variables are the names of those of the environment that are inputs; others must
	// be as they were.
	Variables []string
}

// Made is a schedule with what it took.
type Made struct {
	File *hybrid.File
	// Constraints came up, Kept of them were in the slice, and Terms are left.
	Constraints, Kept, Terms int
	Stats                    exec.Stats
}

// Record runs a program as it must be run for a schedule to be made of it, and writes
// the trace.
func Record(ctx context.Context, c heddle.Config, to io.Writer) (*heddle.Result, error) {
	c.Control = sched.Control{Policy: sched.FCFS}
	c.Record = schedules.Recording(to)
	return heddle.Run(ctx, c)
}

// Make makes the schedule of a recorded run.
func Make(ctx context.Context, path string, o Options) (*Made, error) {
	f, err := schedules.Compute(ctx, path, schedules.Options{Portable: true})
	if err != nil {
		return nil, err
	}
	if o.Summaries == nil {
		o.Summaries = exec.DefaultSummaries()
	}
	m := &Made{File: f}
	x, err := m.execute(ctx, path, o)
	if err != nil {
		return nil, errFollow.Wrap(err, f.Args[0])
	}
	if err := m.conditions(x, &o); err != nil {
		return nil, err
	}
	return m, m.verify(ctx, path)
}

// divide takes out of the recorded run's files the program's, and those that another
// run may have others of: they get their names for symbols.
func (m *Made) divide(c *heddle.Config) {
	f := m.File
	own := ProgramFile(c)
	var fixed []hybrid.Input
	for _, in := range f.Inputs {
		name := ""
		for i, a := range c.Args {
			if i > 0 && hosts(c, a) == in.Path {
				name = "argv[" + strconv.Itoa(i) + "]"
			}
		}
		switch {
		case in.Path == "-":
			f.Varying = append(f.Varying, "stdin")
		case in.Path == own:
			f.Program = in.SHA256
		case name != "":
			f.Varying = append(f.Varying, name)
		default:
			fixed = append(fixed, in)
		}
	}
	f.Inputs = fixed
}

// executed is a run that was repeated on expressions.
type executed struct {
	pool     *symbolic.Pool
	terms    []*symbolic.Expr
	derived  map[string]*exec.Derived
	recorded symbolic.Assignment
}

// execute repeats the recorded run on expressions.
func (m *Made) execute(ctx context.Context, path string, o Options) (*executed, error) {
	r, err := heddle.OpenReplay(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c, err := r.Config()
	if err != nil {
		return nil, err
	}
	f := follow.Options{Args: c.Args, Env: c.Env, Dir: c.Dir, Summaries: o.Summaries}
	if named, ok := c.Stdin.(interface{ Name() string }); ok {
		f.Stdin = named.Name()
	}
	f.Choose = func(e *event.Input) bool { return o.chosen(&f, e) }
	m.divide(&c)
	watch := follow.New(f)
	defer watch.Close()
	x := &executed{pool: watch.Executor.Pool, recorded: watch.Executor.Recorded}
	watch.Executor.Constraint = func(k *exec.Constraint) { x.terms = append(x.terms, k.Expr) }
	c.Stdout, c.Stderr = io.Discard, io.Discard
	c.Record = &heddle.Record{To: io.Discard, Watch: []recorder.Recording{watch}}
	if _, err := heddle.Run(ctx, c); err != nil {
		return nil, err
	}
	x.derived, m.Stats, m.Constraints = watch.Executor.Derived(), watch.Executor.Stats, len(x.terms)
	m.Kept = len(x.terms)
	return x, watch.Err()
}

// chosen tells which inputs are symbols: arguments but for the program's name,
// some variables, standard input, what sockets bring, and files that arguments name.
func (o *Options) chosen(f *follow.Options, e *event.Input) bool {
	switch e.Source {
	case event.InputArgs:
		return e.Offset > 0
	case event.InputEnv:
		name, _, _ := strings.Cut(string(e.Data), "=")
		return slices.Contains(o.Variables, name)
	case event.InputStdin, event.InputSocket:
		return true
	case event.InputFile:
		return f.FileName(e.Name) != e.Name
	}
	return false
}

// conditions makes the preconditions.
func (m *Made) conditions(x *executed, o *Options) error {
	f := m.File
	set := &preconditions.Set{Args: len(f.Args), Derived: x.derived}
	for _, v := range f.Env {
		if name, _, _ := strings.Cut(v, "="); slices.Contains(o.Variables, name) {
			v = name
		}
		set.Env = append(set.Env, v)
	}
	set.Terms = preconditions.Simplify(x.pool, x.terms, x.recorded, preconditions.DefaultLimit)
	m.Terms = len(set.Terms)
	if _, err := preconditions.NewChecker(set); err != nil {
		return errAhead.Wrap(err, f.Args[0])
	}
	f.Preconditions = set.Lines()
	return nil
}

// verify has the recorded run follow its schedule.
func (m *Made) verify(ctx context.Context, path string) error {
	r, err := heddle.OpenReplay(path)
	if err != nil {
		return err
	}
	defer r.Close()
	c, err := r.Config()
	if err != nil {
		return err
	}
	c.Replay, c.Stdout, c.Stderr = nil, io.Discard, io.Discard
	c.Control = sched.Control{}
	Harmless(&c)
	if why := Admits(&c, m.File); why != "" {
		return errUnstable.New(m.File.Args[0], why)
	}
	Enforce(&c, m.File, sched.EnforceOptions{})
	result, err := heddle.Run(ctx, c)
	if err != nil {
		return err
	}
	if !result.Schedule.Followed {
		return errUnstable.New(m.File.Args[0], result.Schedule.Reason)
	}
	return nil
}

// Harmless keeps a run from changing the host's files.
func Harmless(c *heddle.Config) {
	c.ExportDir = ""
	c.Mounts = slices.Clone(c.Mounts)
	for i := range c.Mounts {
		c.Mounts[i].Writable = false
	}
}

// ProgramFile is the host's file of the program that a configuration runs, or empty.
func ProgramFile(c *heddle.Config) string {
	name := c.Args[0]
	if strings.Contains(name, "/") {
		return hosts(c, name)
	}
	for _, v := range c.Env {
		list, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range strings.Split(list, ":") {
			path := hosts(c, filepath.Join(dir, name))
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path
			}
		}
	}
	return ""
}

// hosts is where the host has a file of the guest.
func hosts(c *heddle.Config, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	for _, m := range slices.Backward(c.Mounts) {
		if path == m.Guest {
			return m.Host
		}
		if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(m.Guest, "/")+"/"); ok {
			return filepath.Join(m.Host, rest)
		}
	}
	return filepath.Join(c.RootFS, path)
}
