package find

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/bits"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/rand"
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
	// Workers is the number of schedules that are executed at the same time; no result depends on it.
	Workers int
	// Expect is the right standard output; nil: any is right.
	Expect []byte
	// Trace is the file that gets the recording of the failing run.
	Trace string
	// Progress, when set, is called after each batch of schedules, with the numbers of schedules and of
	// instructions at which they decide.
	Progress func(tried, instructions int)
}

// Default values of options.
const (
	DefaultSchedules = 10_000
	DefaultTrace     = "failure.trace"
)

// search is a search under way.
type search struct {
	config   machine.Config
	options  Options
	input    *sharedInput
	points   decisionPoints
	most     uint64 // points of a run, at most
	length   uint64 // instructions of a run from the start of the schedules
	limits   limits
	profiler *stage
	workers  []worker
	outputs  map[[sha256.Size]byte]int // places in the report's outputs
	report   Report
	digest   string // of the undisturbed run
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
	s := &search{config: c, options: o}
	s.config.Env = append(slices.Clone(c.Env), bindNow)
	if stdin != nil {
		s.input = &sharedInput{from: stdin}
	}
	if path, err := filepath.Abs(o.Trace); err == nil {
		s.config.Outputs = append(s.config.Outputs, path)
	}
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
	for first, size := 0, firstBatch; first < s.options.Schedules; size *= 2 {
		next := min(first+size, s.options.Schedules)
		list, err := s.runBatch(ctx, first, next)
		for i, x := range list {
			s.report.Tried++
			s.report.Points = max(s.report.Points, x.points)
			s.noteOutput(first+i, x.printed)
			if x.failed {
				return s.keepFailure(first+i, x)
			}
		}
		if err != nil {
			return err
		}
		if s.options.Progress != nil {
			s.options.Progress(next, len(s.points.at))
		}
		first = next
		s.most = max(s.most, s.report.Points)
		if err := s.refinePoints(ctx, first, size/schedulesPerProfile); err != nil {
			return err
		}
	}
	return nil
}

// firstBatch is the number of schedules after which the points are refined for the first time.
const firstBatch = 24

// schedulesPerProfile is the number of schedules for which there is one profile.
const schedulesPerProfile = 12

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

// numberedSchedule is the schedule with a number, from 0 on. Models take turns, then strategies. In one
// of two rounds of these a schedule decides only at accesses to one line, which the seed draws, and so
// do all schedules of SURW, which select that line.
func (s *search) numberedSchedule(n int) (*schedule, memmodel.Model) {
	kind := s.kindOf(n)
	x := &schedule{
		strategy: kind.Strategy, seed: rand.Mix(s.seedBase() ^ uint64(n)), limits: s.limits,
		at: s.points.at, stops: s.points.stops, estimate: points.Estimate{Points: s.most},
	}
	if kind.Focused && len(s.points.focuses) > 0 {
		l := s.drawFocus(rand.SplitMix(x.seed))
		x.at, x.estimate = l.at, points.Estimate{Points: l.total, Left: l.operations}
	}
	return x, kind.Model
}

// seedBase sets the seeds of schedules apart from those of a search with another seed.
func (s *search) seedBase() uint64 { return bits.RotateLeft64(s.config.Seed, 32) }

// drawFocus draws the line at which a schedule decides: in three of four cases one that the program's own
// file accesses, since most failures are its own and not of libraries.
func (s *search) drawFocus(draw rand.SplitMix) *line {
	among := s.points.focuses
	if len(s.points.ownFocuses) > 0 && draw.Below(4) > 0 {
		among = s.points.ownFocuses
	}
	return among[draw.Below(uint64(len(among)))]
}

// kindOf is the kind of the schedule with a number.
func (s *search) kindOf(n int) Kind {
	names, models := points.Names(), s.options.Models
	kind := Kind{Model: models[n%len(models)], Strategy: names[n/len(models)%len(names)]}
	kind.Focused = kind.Strategy == points.SURW || n/len(models)/len(names)%2 == 1
	return kind
}

// execution is the result of a schedule.
type execution struct {
	done, failed     bool
	failure          machine.Failure
	points, switches uint64
	instructions     uint64 // of the whole run
	printed          printed
}

// runBatch executes the schedules from first to next, next excluded, and returns the results up to the
// first that fails, or up to the first that was not executed because of an error.
func (s *search) runBatch(ctx context.Context, first, next int) ([]execution, error) {
	b := &batch{search: s, first: first, next: first, end: next, list: make([]execution, next-first)}
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
		if x.failed {
			return b.list[:i+1], nil
		}
	}
	return b.list, b.err
}

// batch is schedules that workers share out.
type batch struct {
	search *search
	first  int
	list   []execution

	mu        sync.Mutex
	next, end int
	err       error
}

// take returns the number of the next schedule.
func (b *batch) take() (n int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = b.next
	b.next++
	return n, n < b.end && b.err == nil
}

// put takes a result: after a failure no schedule with a greater number is begun.
func (b *batch) put(n int, x execution, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		if b.err == nil {
			b.err = err
		}
		return
	}
	b.list[n-b.first] = x
	if x.failed {
		b.end = min(b.end, n)
	}
}

func (b *batch) work(ctx context.Context, w *worker) {
	for n, ok := b.take(); ok; n, ok = b.take() {
		x, err := b.search.execute(ctx, w, n)
		b.put(n, x, err)
	}
}

// execute executes the schedule with a number.
func (s *search) execute(ctx context.Context, w *worker, n int) (x execution, err error) {
	if ctx.Err() != nil {
		return x, ctx.Err()
	}
	plan, model := s.numberedSchedule(n)
	stage, err := s.stageOf(ctx, w, model)
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
	x.printed = newPrinted(stage.stdout.Bytes())
	x.failure, x.failed, err = s.failureOf(stage.m, stage.stdout.Bytes(), stage.stderr.Bytes())
	return x, err
}

// failureOf returns how an execution ended that is over, and whether it failed.
func (s *search) failureOf(m *machine.Machine, stdout, stderr []byte) (f machine.Failure, failed bool, err error) {
	r := machine.Result{Outcome: m.Outcome()}
	if r.Outcome == machine.OutcomeExit {
		if why := m.Kernel().Fatal(); why != "" {
			return f, false, errStopped.New(why)
		}
		if r.ExitCode, r.Signal = m.Kernel().Status(); r.Signal != 0 {
			r.Outcome = machine.OutcomeSignal
		} else if r.ExitCode == s.report.Accepted {
			if s.isWrong(stdout) {
				return wrongOutput, true, nil
			}
			return f, false, nil
		}
	}
	f, failed = r.Failure(stderr)
	return f, failed, nil
}

// wrongOutput is the failure of a run with another output than the expected one.
var wrongOutput = machine.Failure{Class: machine.FailureWrong, Text: "standard output"}

func (s *search) isWrong(stdout []byte) bool {
	return s.options.Expect != nil && !bytes.Equal(stdout, s.options.Expect)
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
	r.Instructions, r.Points, r.Trace = len(s.points.at), max(r.Points, s.most), s.options.Trace
	index := map[Kind]int{}
	for n := range r.Tried {
		kind := s.kindOf(n)
		if _, known := index[kind]; !known {
			index[kind] = len(r.Counts)
			r.Counts = append(r.Counts, Count{Kind: kind})
		}
		r.Counts[index[kind]].Schedules++
	}
}
