package find

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/find/heapcheck"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/sched/dmt"
	"github.com/heddle-dmt/heddle/sched/points"
)

var (
	errStopped = errs.Define("find-run-stopped",
		"a run is stopped: {problem}",
		"The program made a system call that the machine does not have; the rest of the sentence names it.",
		"See heddle syscalls; with --unknown-syscalls=enosys such calls fail instead.")
	errOneThread = errs.Define("find-one-thread",
		"{program} creates no second thread and exits with status {status}: it has one schedule",
		"heddle find looks for an order of threads in which a program fails. A program with one thread has only one order.",
		"Name a program with threads or processes.")
	errOption = errs.Define("find-option",
		"heddle find does not support {option}",
		"A search executes the program many times from one state, each time under a schedule of its own.",
		"Leave the option out.")
	errStatic = errs.Define("find-heap-check-static",
		"{program} is linked statically: `heddle find --heap-check` cannot check it",
		"The allocator that checks the heap is a shared library that is preloaded.",
		"Link the program dynamically, or search without it.")
	errFile = errs.Define("find-file",
		"cannot use {file} for the failing run",
		"The file or its folder cannot be read or written, or the disk is full.",
		"Make room, or name another file with -o.")
	errUnstable = errs.Define("find-not-repeated",
		"the failure {failure} was found, and its {repetition} ends with {found}",
		"A run and its repetition differ: this is a mistake in heddle.",
		"Report the sentence, with the program.")
)

// Options tune a search.
type Options struct {
	// Schedules is the greatest number of schedules that are tried, 1 or more.
	Schedules int
	// Time ends the search after a time of the host; 0: it does not.
	Time time.Duration
	// Models are the memory models that take turns, one or more.
	Models []memmodel.Model
	// Strategies are those of package points that take turns; empty: all that it names.
	Strategies []string
	// Workers is the number of schedules that are executed at the same time; no result depends on it.
	Workers int
	// Expect is the right standard output; nil: outputs are compared with each other (type outputs).
	Expect []byte
	// Native: the right output is that of the program on the host, where it runs twice before the search.
	Native bool
	// AnyOutput: no output is wrong.
	AnyOutput bool
	// HeapCheck has the program use an allocator under which overflows, uses of freed memory and double frees
	// are failures at the instruction (package heapcheck).
	HeapCheck bool
	// All: a failure does not end the search, which reports all that differ in how or where the program fails.
	All bool
	// Minimize is the greatest number of runs that look for a shorter schedule of a failure; 0: none do.
	Minimize int
	// Trace is the file that gets the recording of the failing run; those of further failures have numbers
	// before the ending.
	Trace string
	// Progress, when set, is called after each batch of schedules, with the numbers of schedules and of
	// instructions at which they decide.
	Progress func(tried, instructions int)

	modelNames []string // of a flag
}

// Default values of options.
const (
	DefaultSchedules = 10_000
	DefaultMinimize  = 300
	DefaultTrace     = "failure.trace"
)

// search is a search under way.
type search struct {
	config      machine.Config
	environment []string   // without what the search adds
	native      *nativeRun // nil unless asked for
	options     Options
	input       *sharedInput
	points      decisionPoints
	most        uint64 // points of a run, at most
	length      uint64 // instructions of a run from the start of the schedules
	least       uint64 // those of the shortest profile that has not failed
	limits      limits
	// undisturbed is the number of instructions of the undisturbed run, and hasWhole reports whether a profile has not failed.
	undisturbed uint64
	hasWhole    bool
	profiler    *stage
	workers     []worker
	outputs     outputs
	mutexes     []arch.Addr       // that were found, in ascending order
	drawn       [2]map[uint64]int // schedules of PCT2 and PCT3 for each number of points among which they draw
	planner     planner
	suspects    []*schedule        // executions for points that failed: they are the next schedules
	failures    map[failureKey]int // places in the report's failures
	report      Report
	digest      string // of the undisturbed run
}

// worker executes schedules, on one machine for each memory model.
type worker map[memmodel.Model]*stage

// Find searches for a schedule under which a program fails. Stdin, which may be nil, is its standard
// input. If ctx is done, the report has the schedules that were tried until then.
func Find(ctx context.Context, c machine.Config, stdin io.Reader, o Options) (*Report, error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if o.Time > 0 {
		limited, cancel = context.WithTimeout(ctx, o.Time)
	}
	defer cancel()
	s, err := newSearch(c, stdin, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	err = s.carryOut(limited)
	if isEndOf(limited, err) {
		err = nil
		s.report.Ended = EndedByTime
		if ctx.Err() != nil {
			s.report.Ended = EndedByCaller
		}
	}
	s.describe()
	return &s.report, err
}

// newSearch makes a search that has not begun.
func newSearch(c machine.Config, stdin io.Reader, o Options) (*search, error) {
	if err := allowsSearch(&c); err != nil {
		return nil, err
	}
	if o.Native {
		if err := allowsNative(&c); err != nil {
			return nil, err
		}
	}
	s := &search{config: c, environment: c.Env, options: o, outputs: outputs{expect: o.Expect, any: o.AnyOutput}, failures: map[failureKey]int{}}
	s.config.Env = append(slices.Clone(c.Env), bindNow)
	if o.HeapCheck {
		library, err := heapcheck.Library()
		if err != nil {
			return nil, err
		}
		s.config.Env = heapcheck.Preload(s.config.Env)
		s.config.Mounts = append(slices.Clone(c.Mounts), machine.Mount{Host: library, Guest: heapcheck.GuestPath})
	}
	if stdin != nil {
		s.input = &sharedInput{from: stdin}
	}
	for n := range mostFailures {
		if path, err := filepath.Abs(traceName(o.Trace, n)); err == nil {
			s.config.Outputs = append(s.config.Outputs, path)
		}
	}
	s.report.isOfAll, s.report.checksHeap = o.All, o.HeapCheck
	s.planner = newPlanner(&s.options)
	return s, nil
}

// isEndOf reports whether an error is the end of a context.
func isEndOf(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// allowsSearch returns an error if a search cannot have an option.
func allowsSearch(c *machine.Config) error {
	for _, x := range []struct {
		bad    bool
		option string
	}{
		{len(c.Publish) > 0, "a published port"},
		{c.Record != nil, "a recording"},
		{c.Replay != nil, "a replay"},
		{c.Enforce != nil, "a schedule"},
		{c.Control.Policy != "", "a controller"},
		{dmt.OrdersOperations(c.Sched.Policy), "a policy that orders operations"},
	} {
		if x.bad {
			return errOption.New(x.option)
		}
	}
	return nil
}

// bindNow has the dynamic linker look all functions up at the start: otherwise the first call of each
// accesses memory that threads share, and no program depends on which thread makes it.
const bindNow = "LD_BIND_NOW=1"

func (s *search) close() {
	if s.profiler != nil {
		s.profiler.close()
	}
	for _, w := range s.workers {
		for _, stage := range w {
			stage.close()
		}
	}
}

// carryOut carries out the search.
func (s *search) carryOut(ctx context.Context) error {
	if done, err := s.runUndisturbed(ctx); done || err != nil {
		return err
	}
	if err := s.findPoints(ctx); err != nil {
		return err
	}
	s.workers = make([]worker, max(1, s.options.Workers))
	s.outputs.chooseSerial(s.length)
	for refined := 0; s.report.Tried < s.options.Schedules; {
		list := s.planBatch()
		results, err := s.runBatch(ctx, list, s.options.All)
		for i, x := range results {
			done, err := s.noteResult(ctx, list[i], x)
			if done || err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		if s.options.Progress != nil {
			s.options.Progress(s.report.Tried, len(s.points.at))
		}
		s.most = max(s.most, s.report.Points)
		if n := s.report.Tried; n >= max(firstRefined, 3*refined) {
			if err := s.refinePoints(ctx, refined, (n-refined)/schedulesPerProfile); err != nil {
				return err
			}
			refined = n
		}
	}
	return nil
}

// firstRefined is the number of schedules after which the points are refined for the first time.
const firstRefined = 24

// schedulesPerProfile is the number of schedules for which there is one profile.
const schedulesPerProfile = 12

// noteResult takes the result of a schedule, and reports whether the search is over. Results are taken in
// the order of their numbers.
func (s *search) noteResult(ctx context.Context, plan *schedule, x execution) (done bool, err error) {
	s.report.Tried++
	s.report.Points = max(s.report.Points, x.points)
	s.report.Decisions += x.points
	s.noteKind(plan.kind)
	s.planner.noteResult(plan, x.newPairs, x.observed)
	if i := slices.Index([]string{points.PCT2, points.PCT3}, plan.kind.Strategy); i >= 0 && plan.kind == (Kind{Strategy: plan.kind.Strategy}) {
		if s.drawn[i] == nil {
			s.drawn[i] = map[uint64]int{}
		}
		s.drawn[i][plan.estimate.Points]++
	}
	if !x.failed {
		s.noteOutput(plan, x.printed)
		if x.failed, err = s.isOfWeakModel(ctx, plan, x.printed); err != nil {
			return false, err
		}
		x.failure = wrongOutput
	}
	if !x.failed {
		return false, nil
	}
	err = s.keepFailure(ctx, plan, x)
	return !s.options.All || len(s.report.Failures) == mostFailures, err
}

// noteKind counts a schedule of a kind.
func (s *search) noteKind(kind Kind) {
	i := slices.IndexFunc(s.report.Counts, func(c Count) bool { return c.Kind == kind })
	if i < 0 {
		i = len(s.report.Counts)
		s.report.Counts = append(s.report.Counts, Count{Kind: kind})
	}
	s.report.Counts[i].Schedules++
}

// configFor is the configuration of a machine under a memory model.
func (s *search) configFor(model memmodel.Model) machine.Config {
	c := s.config
	c.Stdin = nil
	if s.input != nil {
		c.Stdin = s.input.reader()
	}
	c.Memory = storebuffer.Options{Model: model.String()}
	return c
}

// execution is the result of a schedule.
type execution struct {
	done, failed     bool
	failure          machine.Failure
	where            string    // the program fails
	mutex            arch.Addr // that is not released
	points, switches uint64
	instructions     uint64 // of the whole run
	printed          printed
	newPairs         []switchPair
	observed         *points.Observation
}

// isSame reports whether two executions have the same result. The number of instructions is one for a hang.
func (x execution) isSame(as execution) bool {
	return x.failed == as.failed && x.failure == as.failure && x.where == as.where && x.mutex == as.mutex &&
		x.points == as.points && x.switches == as.switches && x.printed == as.printed &&
		(x.failure.Class != machine.FailureHang || x.instructions == as.instructions)
}

// runBatch executes schedules, and returns the results up to the first that fails, unless all are asked for,
// or up to the first that was not executed because of an error.
func (s *search) runBatch(ctx context.Context, list []*schedule, all bool) ([]execution, error) {
	b := &batch{search: s, all: all, plans: list, end: len(list), list: make([]execution, len(list))}
	var wait sync.WaitGroup
	for i := range s.workers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			b.work(ctx, &s.workers[i])
		}()
	}
	wait.Wait()
	for i, x := range b.list {
		if !x.done {
			return b.list[:i], b.err
		}
		if x.failed && !all {
			return b.list[:i+1], nil
		}
	}
	return b.list, b.err
}

// batch is schedules that workers share out.
type batch struct {
	search *search
	all    bool
	plans  []*schedule
	list   []execution

	mu        sync.Mutex
	next, end int
	err       error
}

// take returns the place of the next schedule.
func (b *batch) take() (n int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = b.next
	b.next++
	return n, n < b.end && b.err == nil
}

// put takes a result: unless all are asked for, no later schedule is begun after a failure.
func (b *batch) put(n int, x execution, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		if b.err == nil {
			b.err = err
		}
		return
	}
	b.list[n] = x
	if x.failed && !b.all {
		b.end = min(b.end, n)
	}
}

func (b *batch) work(ctx context.Context, w *worker) {
	for n, ok := b.take(); ok; n, ok = b.take() {
		x, err := b.search.execute(ctx, w, b.plans[n])
		b.put(n, x, err)
	}
}

// execute executes a schedule.
func (s *search) execute(ctx context.Context, w *worker, plan *schedule) (x execution, err error) {
	if ctx.Err() != nil {
		return x, ctx.Err()
	}
	stage, err := s.stageOf(ctx, w, plan.kind.Model)
	if err != nil {
		return x, err
	}
	stage.begin(plan)
	return s.finish(ctx, stage, plan)
}

// finish runs a schedule to its end and returns its result.
func (s *search) finish(ctx context.Context, stage *stage, plan *schedule) (x execution, err error) {
	if err := stage.run(ctx, plan); err != nil {
		return x, err
	}
	x = execution{done: true, points: stage.policy.Points(), switches: stage.policy.Switches(), instructions: stage.m.Instructions()}
	x.printed, x.newPairs, x.observed = newPrinted(stage.stdout.Bytes()), stage.newPairs, stage.policy.Observed()
	x.failure, x.failed, err = stage.failure(s.report.Accepted)
	if err == nil && !x.failed && s.outputs.isWrong(stage.stdout.Bytes()) {
		x.failure, x.failed = wrongOutput, true
	}
	if x.failure.Class == FailureLeak {
		x.mutex = stage.leaks.leaked
	} else if x.failed {
		x.where = stage.placeOfFailure()
	}
	return x, err
}

// failureOf returns how an execution on a machine of the caller's ended that is over, and whether it failed.
func (s *search) failureOf(m *machine.Machine, stdout, stderr []byte) (f machine.Failure, failed bool, err error) {
	r, err := resultOf(m)
	switch {
	case err != nil:
		return f, false, err
	case r.Outcome != machine.OutcomeExit || r.ExitCode != s.report.Accepted:
		f, failed = failureOfResult(&r, stderr)
	case s.outputs.isWrong(stdout):
		return wrongOutput, true, nil
	}
	return f, failed, nil
}

// stageOf returns a worker's machine for a memory model.
func (s *search) stageOf(ctx context.Context, w *worker, model memmodel.Model) (*stage, error) {
	if x := (*w)[model]; x != nil {
		return x, nil
	}
	x, err := newStage(s.configFor(model), false)
	if err != nil {
		return nil, err
	}
	if _, err := x.runToSecondThread(ctx); err != nil {
		x.close()
		return nil, err
	}
	x.keepStart()
	if *w == nil {
		*w = worker{}
	}
	(*w)[model] = x
	return x, nil
}

// describe fills in the counts of the report.
func (s *search) describe() {
	r := &s.report
	r.Instructions, r.Points = len(s.points.at), max(r.Points, s.most)
	for i, depth := range []int{2, 3} {
		g := Guarantee{Depth: depth}
		for k, schedules := range s.drawn[i] {
			if k >= r.Points {
				g.Points, g.Schedules = max(g.Points, k), g.Schedules+schedules
			}
		}
		r.Guarantees = append(r.Guarantees, g)
	}
}
