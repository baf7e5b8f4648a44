package tern

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/effort"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched/dmt"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

var (
	errFollow = errs.Define("memoizer-lost-the-run",
		"no preconditions can be computed for {program}",
		"The recorded run could not be repeated, or not be followed on expressions to its end; the rest of the sentence says where.",
		"Use the program with heddle run and without --memoize, or report the sentence if the program is an ordinary one.")
	errAhead = errs.Define("preconditions-not-known-ahead",
		"the schedule of {program} depends on input that is not known before a run",
		"The program's decisions depend on input from a socket, a pipe or a mark in the program, so that no input can be checked beforehand. The rest of the sentence names it.",
		"Run the program with heddle run and without --memoize.")
	errUnstable = errs.Define("memoized-schedule-not-followed",
		"the schedule of {program} is not kept: the recorded run, repeated, does not follow it: {problem}",
		"The program does something that a schedule does not order; the rest of the sentence says where it left.",
		"Run the program with heddle run and without --memoize; docs/schedules.md lists the operations that no schedule can have.")
)

// errExact is why a schedule is for one input.
var errExact = errs.Define("memoized-schedule-for-one-input",
	"{program} follows only a schedule that has every system call of the recorded run",
	"The recorded run, repeated, does not follow a schedule that other inputs could follow: what it does depends on times or addresses.",
	"Memoize the inputs that you need one by one; each run with a memoized input follows its schedule.")

// errLevel is why the schedule of a run with AVX is for one input.
var errLevel = errs.Define("memoized-level-for-one-input",
	"inputs are not followed through the run of {program}: its processor is of level {level}, and preconditions know the instructions of x86-64-v2",
	"The preconditions are computed by libVEX, without AVX: the schedule is then for the recorded input alone.",
	"Use --cpu x86-64-v2 if the program runs with it, or memoize the inputs that you need one by one.")

// Options choose how a schedule is made.
type Options struct {
	// Summaries are those of functions; nil: the C library's.
	Summaries []concolic.Summary
	// Mode chooses the constraints that matter to the schedule.
	Mode slice.Mode
	// Variables are the names of environment variables that are inputs; others must be as
	// recorded.
	Variables []string
	// Budget bounds the computation of preconditions.
	Budget Budget
	// Progress, if set, is told what is being done.
	Progress func(what string)
}

// Schedule is a schedule with statistics of its computation.
type Schedule struct {
	File *hybrid.File
	// Constraints is the number of constraints of the run, Kept of those in the slice, and
	// Terms of the simplified terms.
	Constraints, Kept uint64
	Terms             int
	// AssumedTerms is the number of terms in the slice about results of opaque functions
	// (concolic.Summary): they are assumed to hold.
	AssumedTerms int
	// Pinned are the inputs that must have their recorded content, named as in symbols, because the budget ended or
	// the run could not be followed on expressions.
	// Cause says why, if that is something else than the number of terms or of operations. TimeUp is set if
	// Budget.Time ended: then another host may have other preconditions.
	Pinned []string
	Cause  error
	TimeUp bool
	Stats  concolic.Stats
	Slice  slice.Stats

	contents map[string]string // SHA-256 of inputs, by their names
	folders  []int             // numbers of the arguments that name folders of inputs
	stages   *stages
}

// Record runs a program with operations in first-come order, as Make requires, and writes
// the trace. The dynamic linker resolves all functions at the start: otherwise threads
// would race for their addresses.
func Record(ctx context.Context, c machine.Config, to io.Writer) (*machine.Result, error) {
	c.Control = dmt.Control{Policy: dmt.FCFS}
	peregrine.BindNow(&c)
	c.Record = peregrine.RecordConfig(to)
	c.Record.Sync.Heap = true
	return machine.Run(ctx, c)
}

// Make makes the schedule of a recorded run. If the run, repeated, does not follow it, another one is tried that orders
// the allocation of memory, for programs that choose locks by addresses, and then one for the recorded input alone.
func Make(ctx context.Context, path string, o Options) (*Schedule, error) {
	stages := newStages(ctx, &o)
	if n, program, err := lengthOf(path); err != nil || o.Budget.Run > 0 && n > o.Budget.Run {
		return nil, cmp.Or(err, errRunTooLong.New(program, n))
	}
	m, first := makeSchedule(ctx, path, o, stages, peregrine.Options{Portable: true})
	if !errors.Is(first, errUnstable) {
		return m, first
	}
	stages.say("trying again with memory allocated in the recorded order")
	m, err := makeSchedule(ctx, path, o, stages, peregrine.Options{Portable: true, OrderMemory: true})
	if !errors.Is(err, errUnstable) {
		return m, err
	}
	stages.say("trying again for the recorded input alone")
	if m, err = makeExact(ctx, path, o, stages); errors.Is(err, errUnstable) {
		return nil, first
	}
	return m, err
}

// lengthOf returns the number of instructions of a recorded run, and its program.
func lengthOf(path string) (instructions uint64, program string, err error) {
	r, err := machine.OpenReplay(path)
	if err != nil {
		return 0, "", err
	}
	defer r.Close()
	c, err := r.Config()
	if err != nil {
		return 0, "", err
	}
	if x := r.Recorded(); x != nil {
		instructions = x.Instructions
	}
	return instructions, c.Args[0], nil
}

// makeExact makes a schedule for the recorded input alone, of another run on it in which all that may have a position
// in such a schedule happens one at a time.
func makeExact(ctx context.Context, path string, o Options, stages *stages) (*Schedule, error) {
	file, err := os.CreateTemp("", "heddle-memoize-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if _, err := machine.RepeatTrace(ctx, path, func(c *machine.Config) ([]machine.Option, error) {
		MakeReadOnly(c)
		c.Replay, c.Control, c.Record = nil, peregrine.ControlConfig(), peregrine.RecordConfig(file)
		c.Hidden = append(c.Hidden, file.Name())
		return nil, nil
	}); cmp.Or(err, ctx.Err()) != nil {
		return nil, cmp.Or(err, ctx.Err())
	}
	return makeSchedule(ctx, file.Name(), o, stages, peregrine.Options{})
}

// makeSchedule makes a schedule in one of these ways.
func makeSchedule(ctx context.Context, path string, o Options, stages *stages, options peregrine.Options) (*Schedule, error) {
	stages.say("ordering the run's operations and races")
	schedule, err := peregrine.Make(ctx, path, options)
	if err != nil {
		return nil, err
	}
	f, err := peregrine.NewFile(schedule, path, options)
	if err != nil {
		return nil, err
	}
	m := &Schedule{File: f, contents: map[string]string{}, stages: stages}
	m.stages.say("following the schedule as a test")
	if err := m.verifySchedule(ctx, path); err != nil {
		return nil, err
	}
	c, done, err := recordedConfig(path)
	if err != nil {
		return nil, err
	}
	defer done()
	folders, err := inputFolders(c, path)
	if err != nil {
		return nil, err
	}
	m.folders = folders
	m.splitInputs(c)
	n, _, err := lengthOf(path)
	switch {
	case err != nil:
	case !options.Portable:
		err = m.pinAll(c, &o, errExact.New(f.Args[0]))
	case concolicrun.CheckFollowed("", c) != nil:
		err = m.pinAll(c, &o, errLevel.New(f.Args[0], c.CPU.String()))
	case o.Budget.Instructions > 0 && n > o.Budget.Instructions:
		err = m.pinAll(c, &o, concolicrun.ErrTooLong.New())
	default:
		err = m.computePreconditions(ctx, path, schedule, &o)
	}
	if err != nil {
		return nil, err
	}
	if why := Admits(c, f); why != "" {
		return nil, errUnstable.New(f.Args[0], why)
	}
	return m, nil
}

// recordedConfig returns the configuration of a recorded run, in which it would write no file; done closes what it has
// open.
func recordedConfig(path string) (c *machine.Config, done func(), err error) {
	r, err := machine.OpenReplay(path)
	if err != nil {
		return nil, nil, err
	}
	config, err := r.Config()
	if err != nil {
		r.Close()
		return nil, nil, err
	}
	MakeReadOnly(&config)
	return &config, func() { r.Close() }, nil
}

// splitInputs removes the program's file from the recorded run's files, and the files that may
// differ in another run: these are named as in symbols. The others get the guest's paths, since another run may
// mount other folders of the host.
func (m *Schedule) splitInputs(c *machine.Config) {
	f := m.File
	names := concolicrun.Options{Args: c.Args, Dir: c.Dir, Folders: m.folders}
	own := ProgramFile(c)
	var fixed []hybrid.Input
	for _, in := range f.Inputs {
		name := ""
		for i, a := range c.Args {
			if i > 0 && isFile(hostPath(c, a), in.Path) {
				name = "argv[" + strconv.Itoa(i) + "]"
			}
		}
		if guest := guestPath(c, in.Path); name == "" && names.FileName(guest) != guest {
			name = names.FileName(guest)
		}
		switch {
		case in.Path == "-":
			f.Varying = append(f.Varying, "stdin")
			m.contents["stdin"] = in.SHA256
		case isFile(own, in.Path):
			f.Program = in.SHA256
		case name != "":
			f.Varying = append(f.Varying, name)
			m.contents["file("+name+")"] = in.SHA256
		default:
			fixed = append(fixed, hybrid.Input{SHA256: in.SHA256, Path: guestPath(c, in.Path)})
		}
	}
	f.Inputs = fixed
}

// isFile reports whether a path names a file, perhaps by symbolic links, as that of the program does for
// Debian's alternatives.
func isFile(path, file string) bool {
	if path == file {
		return true
	}
	target, err := filepath.EvalSymlinks(path)
	return err == nil && target == file
}

// computePreconditions repeats the recorded run on expressions, and simplifies the
// constraints that the schedule depends on.
func (m *Schedule) computePreconditions(ctx context.Context, path string, s *peregrine.Schedule, o *Options) error {
	f, err := RunConcolic(ctx, path, s, *o)
	if endsEarly(err) || errors.Is(err, errFollow) {
		return m.pinAll(&f.Config, o, err)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	x := f.Recording.Executor
	m.Stats = x.Stats
	m.stages.say("slicing %d instructions", x.Stats.Instructions)
	kept, err := m.sliceConstraints(f.Input, o)
	if endsEarly(err) {
		return m.pinAll(&f.Config, o, err)
	}
	if err != nil {
		return err
	}
	x.PinUntracked(keptConditions(kept, f.Input))
	if o.Budget.Operations > 0 {
		x.Fit(keptConditions(kept, f.Input), o.Budget.Operations)
	}
	m.Pinned = x.Pinned()
	mapped := m.mappedTerms(x.Pool, f.Recording.Mapped())
	if err := m.stages.isOver(); err != nil {
		if !endsEarly(err) {
			return err
		}
		return m.pinAll(&f.Config, o, err)
	}
	terms := m.dropOpaqueTerms(x, Terms(kept, f.Input))
	return m.simplifyTerms(x, slices.Concat(terms, mapped, m.folderTerms(x.Pool, &f.Config)), &f.Config, o)
}

// sliceConstraints returns the constraints that the schedule depends on.
func (m *Schedule) sliceConstraints(in *slice.Input, o *Options) (*slice.Slice, error) {
	options := slice.DefaultOptions()
	options.Mode = o.Mode
	var s *slice.Slice
	err := effort.Bound(o.Budget.Slicing, errSliceTooLong.New(), m.stages.isOver, func(meter *effort.Meter) {
		options.Meter = meter
		s = slice.Make(in, options)
	})
	if err != nil {
		return nil, err
	}
	m.Slice, m.Constraints, m.Kept = s.Stats, s.Stats.Constraints, s.Stats.KeptConstraints
	return s, nil
}

// keptConditions returns the constraints that a slice keeps, as the executor's terms.
func keptConditions(s *slice.Slice, in *slice.Input) []concolic.Term {
	var terms []concolic.Term
	for i := range in.Trace.Threads {
		kept := s.Constraints(i)
		for k := range kept {
			terms = append(terms, kept[k].Term())
		}
	}
	return terms
}

// Terms returns the constraints that a slice keeps, as expressions, but for those about pinned inputs alone.
func Terms(s *slice.Slice, in *slice.Input) []*symbolic.Expr {
	var terms []*symbolic.Expr
	for i := range in.Trace.Threads {
		kept := s.Constraints(i)
		for k := range kept {
			if !kept[k].IsSettled() {
				terms = append(terms, kept[k].Expr())
			}
		}
	}
	return terms
}

// dropOpaqueTerms removes the terms about results of opaque functions.
func (m *Schedule) dropOpaqueTerms(x *concolic.Executor, terms []*symbolic.Expr) []*symbolic.Expr {
	n := len(terms)
	terms = slices.DeleteFunc(terms, x.IsOpaque)
	m.AssumedTerms = n - len(terms)
	return terms
}

// simplifyTerms makes the preconditions: terms, simplified, and that pinned inputs have their recorded contents.
func (m *Schedule) simplifyTerms(x *concolic.Executor, terms []*symbolic.Expr, c *machine.Config, o *Options) error {
	m.stages.say("simplifying %d terms", len(terms))
	set := &preconditions.Set{Derived: x.Derived(), Terms: terms}
	recorded, complete := set.NameDigits(x.Pool, set.NameNumbers(x.Pool, x.Recorded))
	set.Terms = preconditions.Simplify(x.Pool, set.Terms, recorded, preconditions.Limits{
		Steps: preconditions.DefaultLimit, Questions: o.Budget.Questions, Stop: func() bool { return m.stages.isOver() != nil },
	})
	complete()
	switch err := m.stages.isOver(); {
	case endsEarly(err):
		m.TimeUp = true
	case err != nil:
		return err
	}
	set.Terms = append(set.Terms, m.pinTerms(x.Pool, c, m.Pinned)...)
	return m.keepTerms(set, o)
}

// keepTerms makes a set the file's preconditions.
func (m *Schedule) keepTerms(set *preconditions.Set, o *Options) error {
	f := m.File
	set.Args = len(f.Args)
	for _, v := range f.Env {
		if name, _, _ := strings.Cut(v, "="); slices.Contains(o.Variables, name) {
			v = name
		}
		set.Env = append(set.Env, v)
	}
	m.Terms = len(set.Terms)
	if _, err := preconditions.NewChecker(set); err != nil {
		return errAhead.Wrap(err, f.Args[0])
	}
	f.Preconditions = set.Lines()
	return nil
}

// verifySchedule has the recorded run follow its schedule.
func (m *Schedule) verifySchedule(ctx context.Context, path string) error {
	result, err := machine.RepeatTrace(ctx, path, func(c *machine.Config) ([]machine.Option, error) {
		c.Replay, c.Control = nil, dmt.Control{}
		MakeReadOnly(c)
		Enforce(c, m.File, enforce.Options{})
		return nil, nil
	})
	if err := cmp.Or(err, ctx.Err()); err != nil {
		return err
	}
	if !result.Schedule.Followed {
		return errUnstable.New(m.File.Args[0], result.Schedule.Reason)
	}
	return nil
}
