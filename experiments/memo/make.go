package memo

import (
	"context"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/simplify"
	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/symbolic/exec"
	"github.com/heddle-dmt/heddle/experiments/follow"
	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
)

var (
	errFollow = errs.Define("memoizer-lost-the-run",
		"no preconditions can be computed for {program}",
		"The recorded run could not be repeated, or not be followed on expressions to its end; the rest of the sentence says where.",
		"Use the program with heddle run and without --memoize, or report the sentence if the program is an ordinary one.")
	errAhead = errs.Define("preconditions-not-known-ahead",
		"the schedule of {program} depends on what is not known before a run",
		"The program's decisions depend on what a socket, a pipe or a mark in the program brings, so that no input can be checked beforehand. The rest of the sentence names it.",
		"Run the program with heddle run and without --memoize.")
	errUnstable = errs.Define("memoized-schedule-not-followed",
		"the schedule of {program} is not kept: the recorded run, repeated, does not follow it: {problem}",
		"The program does something that a schedule does not order; the rest of the sentence says where it left.",
		"Run the program with heddle run and without --memoize; docs/schedules.md lists what has no place in a schedule.")
)

// Options say how a schedule is made.
type Options struct {
	// Summaries are those of functions; nil: the C library's.
	Summaries []exec.Summary
	// Mode says which constraints matter to the schedule.
	Mode slice.Mode
	// Variables are the names of those of the environment that are inputs; others must
	// be as they were.
	Variables []string
}

// Made is a schedule with what it took.
type Made struct {
	File *hybrid.File
	// Constraints came up, Kept of them were in the slice, and Terms are left.
	Constraints, Kept uint64
	Terms             int
	// Assumed are how many of those in the slice are about what opaque functions give
	// (exec.Summary): they are taken for true, as it is of no input.
	Assumed int
	Stats   exec.Stats
	Slice   slice.Stats
}

// Record runs a program as it must be run for a schedule to be made of it, and writes
// the trace. The dynamic linker looks all functions up at the start: threads would race
// for their addresses.
func Record(ctx context.Context, c heddle.Config, to io.Writer) (*heddle.Result, error) {
	c.Control = sched.Control{Policy: sched.FCFS}
	schedules.BindNow(&c)
	c.Record = schedules.Recording(to)
	c.Record.Sync.Heap = true
	return heddle.Run(ctx, c)
}

// Make makes the schedule of a recorded run.
func Make(ctx context.Context, path string, o Options) (*Made, error) {
	options := schedules.Options{Portable: true}
	schedule, err := schedules.Make(ctx, path, options)
	if err != nil {
		return nil, err
	}
	f, err := schedules.Describe(schedule, path, options)
	if err != nil {
		return nil, err
	}
	m := &Made{File: f}
	if err := m.execute(ctx, path, schedule, &o); err != nil {
		return nil, err
	}
	return m, m.verify(ctx, path)
}

// allocators are summaries that say: where memory is allocated is no input, and what
// an allocator does about it concerns nobody (PEREGRINE section 2.3). Realloc, which
// copies, is not among them.
func allocators() []exec.Summary {
	var list []exec.Summary
	for _, name := range []string{"malloc", "calloc", "free", "memalign", "aligned_alloc", "posix_memalign", "valloc"} {
		list = append(list, exec.Summary{Function: name, Result: "none"})
	}
	return list
}

// compressors are summaries that say: what comes out of compression decides nothing
// about schedules.
func compressors() []exec.Summary {
	var list []exec.Summary
	for _, name := range []string{"BZ2_bzBuffToBuffCompress", "BZ2_bzBuffToBuffDecompress"} {
		list = append(list, exec.Summary{Function: name, Result: "opaque", Bits: 32, Writes: []int{1, 2}})
	}
	return list
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

// Followed is a recorded run that was repeated on expressions, with all that a slice of it
// is made of. It must be closed.
type Followed struct {
	// Config is the recorded run's.
	Config heddle.Config
	// Recording has the expressions, and Input what is sliced.
	Recording *follow.Recording
	Input     *slice.Input
}

// Close gives back what it holds.
func (f *Followed) Close() { f.Recording.Close() }

// Follow repeats the recorded run of a trace on expressions; s is its schedule.
func Follow(ctx context.Context, path string, s *schedules.Made, o Options) (*Followed, error) {
	f := &Followed{Input: &slice.Input{Events: simplify.NewEvents(s.Schedule, s.Marks, s.IDs), Models: cfg.DefaultModels()}}
	var err error
	f.Recording, err = follow.Repeat(ctx, path, func(c *heddle.Config) (follow.Options, error) {
		f.Config = *c
		if f.Input.Image, err = programImage(c, path); err != nil {
			return follow.Options{}, err
		}
		return o.follow(c), nil
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && f.Config.Args != nil:
		return nil, errFollow.Wrap(err, f.Config.Args[0])
	case err != nil:
		return nil, err
	}
	f.Input.Trace = f.Recording.Path.Trace()
	return f, nil
}

// follow are the options with which a run of a configuration is repeated.
func (o *Options) follow(c *heddle.Config) follow.Options {
	f := follow.Options{Dir: c.Dir, Summaries: o.Summaries, Path: true}
	if f.Summaries == nil {
		f.Summaries = slices.Concat(exec.DefaultSummaries(), allocators(), compressors())
	}
	if named, ok := c.Stdin.(interface{ Name() string }); ok {
		f.Stdin = named.Name()
	}
	names := f
	names.Args = c.Args
	f.Choose = func(e *event.Input) bool { return o.chosen(&names, e) }
	return f
}

// execute repeats the recorded run on expressions, and makes the preconditions of those
// that the schedule depends on.
func (m *Made) execute(ctx context.Context, path string, s *schedules.Made, o *Options) error {
	f, err := Follow(ctx, path, s, *o)
	if err != nil {
		return err
	}
	defer f.Close()
	m.divide(&f.Config)
	x := f.Recording.Executor
	m.Stats = x.Stats
	terms := m.assume(x, m.slice(f.Input, o))
	return m.conditions(x, slices.Concat(terms, folders(x.Pool, &f.Config)), o)
}

// slice are the constraints that the schedule depends on.
func (m *Made) slice(in *slice.Input, o *Options) []*symbolic.Expr {
	options := slice.DefaultOptions()
	options.Mode = o.Mode
	s := slice.Make(in, options)
	m.Slice, m.Constraints, m.Kept = s.Stats, s.Stats.Constraints, s.Stats.KeptConstraints
	return Terms(s, in)
}

// Terms are the constraints that a slice keeps, as expressions.
func Terms(s *slice.Slice, in *slice.Input) []*symbolic.Expr {
	var terms []*symbolic.Expr
	for i := range in.Trace.Threads {
		kept := s.Constraints(i)
		for k := range kept {
			terms = append(terms, kept[k].Expr())
		}
	}
	return terms
}

// assume leaves out the terms about what opaque functions give.
func (m *Made) assume(x *exec.Executor, terms []*symbolic.Expr) []*symbolic.Expr {
	n := len(terms)
	terms = slices.DeleteFunc(terms, x.Opaque)
	m.Assumed = n - len(terms)
	return terms
}

// programImage reads the program's file, as it lay in the recorded run's memory.
func programImage(c *heddle.Config, path string) (*cfg.Image, error) {
	r, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	file := ProgramFile(c)
	for m, err := range trace.Get[event.Mapping](r, trace.Key{Kind: trace.Mappings}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		if m.Offset == 0 && hosts(c, m.Name) == file {
			return cfg.OpenImage(file, bias(file, uint64(m.Addr)))
		}
	}
	return cfg.OpenImage(file, 0)
}

// bias is how far above its own addresses a file lies that begins at an address.
func bias(file string, at uint64) uint64 {
	f, err := elf.Open(file)
	if err != nil {
		return 0 // OpenImage says what is wrong
	}
	defer f.Close()
	if f.Type != elf.ET_DYN {
		return 0
	}
	return at
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
func (m *Made) conditions(x *exec.Executor, terms []*symbolic.Expr, o *Options) error {
	f := m.File
	set := &preconditions.Set{Args: len(f.Args), Derived: x.Derived()}
	for _, v := range f.Env {
		if name, _, _ := strings.Cut(v, "="); slices.Contains(o.Variables, name) {
			v = name
		}
		set.Env = append(set.Env, v)
	}
	set.Terms = preconditions.Simplify(x.Pool, terms, x.Recorded, preconditions.DefaultLimit)
	m.Terms = len(set.Terms)
	if _, err := preconditions.NewChecker(set); err != nil {
		return errAhead.Wrap(err, f.Args[0])
	}
	f.Preconditions = set.Lines()
	return nil
}

// verify has the recorded run follow its schedule.
func (m *Made) verify(ctx context.Context, path string) error {
	result, err := heddle.RepeatTrace(ctx, path, func(c *heddle.Config) error {
		c.Replay, c.Control = nil, sched.Control{}
		Harmless(c)
		if why := Admits(c, m.File); why != "" {
			return errUnstable.New(m.File.Args[0], why)
		}
		Enforce(c, m.File, sched.EnforceOptions{})
		return nil
	})
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
