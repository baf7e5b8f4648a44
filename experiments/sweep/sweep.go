package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/experiments/minimize"
	"github.com/heddle-dmt/heddle/experiments/sweep/store"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// Options tune a sweep; they make no difference to its results.
type Options struct {
	// Store is the store's file, in place of the experiment's.
	Store string
	// Workers is the number of runs at a time, in place of the experiment's.
	Workers int
	// Again also carries out stored runs, and compares.
	Again bool
	// Shard, unless zero, is the part of the plan that is carried out, into a store of its own.
	Shard Shard
	// Runs, unless empty, are the numbers of the runs in the plan that are carried out.
	Runs []Range
	// Inputs is the folder of the inputs, in place of one beside the store.
	Inputs string
	// NativesOnly carries out the commands on the host alone.
	NativesOnly bool
	// Progress, if not nil, gets reports of the sweep's course.
	Progress Progress
	// Version of heddle, for the store.
	Version string
}

// Progress gets reports of a sweep's course, from one goroutine.
type Progress interface {
	// Start is called first, with the number of tasks to do and of
	// those that are stored.
	Start(tasks, stored int)
	// Done comes after each task, with one line on it; trouble marks a line
	// that must not be missed.
	Done(line string, trouble bool)
	// Stop comes last.
	Stop()
}

// Summary is the result of a sweep.
type Summary struct {
	// Total counts the runs of the plan, or of the part that the options choose; Stored those whose results were used
	// again; Ran those carried out now; Failed those of them without a result.
	Total, Stored, Ran, Failed int
	// Conflicts are the runs that gave another digest than an equal run.
	Conflicts []string
	// FirstFailure is the run and the sentence of the first failure.
	FirstFailure string
	// Damaged are sentences on rows of the store that were damaged: their runs were
	// carried out again.
	Damaged []string
}

// Err is the error of a summary, if any.
func (s Summary) Err() error {
	var err error
	if s.Failed > 0 {
		err = errFailed.New(s.Failed, s.Total, s.FirstFailure)
	}
	if len(s.Conflicts) > 0 {
		err = errors.Join(errConflict.New(len(s.Conflicts), s.Conflicts[0]), err)
	}
	return err
}

// StorePath is the file of the experiment's results under the options.
func (x *Experiment) StorePath(o Options) string {
	switch {
	case o.Store != "":
		return o.Store
	case o.Shard.Of > 0:
		return o.Shard.storePath(x.Store)
	}
	return x.Store
}

// InputsPath is the folder of the experiment's inputs under the options: beside the store, or, of shards,
// beside the experiment's.
func (x *Experiment) InputsPath(o Options) string {
	store := x.StorePath(o)
	if o.Shard.Of > 0 && o.Store == "" {
		store = x.Store
	}
	return cmp.Or(o.Inputs, strings.TrimSuffix(store, ".sqlite")+".inputs")
}

// Plan prepares the inputs and expands the experiment.
func (x *Experiment) Plan(o Options) (*Plan, error) {
	dir, err := filepath.Abs(x.InputsPath(o))
	if err != nil {
		return nil, errFolder.Wrap(err)
	}
	digests, err := x.prepareInputs(dir)
	if err != nil {
		return nil, err
	}
	return x.expandPlan(dir, digests)
}

// Sweep carries out the runs that the store lacks. It returns early, with
// ctx's error, when ctx is done; the finished runs are then stored. Failed runs
// and conflicts are no error here: see Summary.Err.
func (x *Experiment) Sweep(ctx context.Context, o Options) (Summary, error) {
	plan, err := x.Plan(o)
	if err != nil {
		return Summary{}, err
	}
	for _, r := range o.Runs {
		if r.High > uint64(len(plan.Runs)*x.Repetitions) {
			return Summary{}, errChoice.New("--runs", r, fmt.Sprintf("numbers of runs from 1 to %d", len(plan.Runs)*x.Repetitions))
		}
	}
	results, err := store.Open(x.StorePath(o))
	if err != nil {
		return Summary{}, err
	}
	defer results.Close()
	if err := results.PutBuild(plan.build, o.Version); err != nil {
		return Summary{}, err
	}
	s := &sweep{plan: plan, store: results, again: o.Again, progress: o.Progress, chosen: plan.choose(o)}
	if s.progress == nil {
		s.progress = silent{}
	}
	if err := s.noteDamage(results.DropDamagedConflicts()); err != nil {
		return s.summary, err
	}
	tasks, err := s.listTasks()
	if err == nil && o.Shard.Of > 0 {
		tasks, err = s.leaveStored(tasks, x.Store)
	}
	if err != nil {
		return s.summary, err
	}
	if o.NativesOnly {
		s.countFailures()
		tasks = slices.DeleteFunc(tasks, func(t task) bool { return !t.native })
	}
	s.progress.Start(len(tasks), s.summary.Stored)
	err = s.carryOutTasks(ctx, tasks, x.workerCount(o))
	s.progress.Stop()
	if err == nil && ctx.Err() == nil && s.chosen == nil && !o.NativesOnly {
		err = s.shortenAll(ctx, x.failureFolder(o), x.workerCount(o))
	}
	return s.summary, errors.Join(err, ctx.Err(), results.Close())
}

// workerCount is how many runs are carried out at a time: as many as are asked for, if the
// host allows this process the descriptors for them.
func (x *Experiment) workerCount(o Options) int {
	return min(cmp.Or(o.Workers, x.Workers, runtime.NumCPU()), startableProcesses())
}

// Descriptors that a sweep has open, and the number that starting a process takes.
const (
	sweepDescriptors   = 10
	processDescriptors = 8
)

// startableProcesses is how many processes at a time the host's limit on open files allows.
func startableProcesses() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 1<<20 {
		return math.MaxInt
	}
	return max(1, (int(limit.Cur)-sweepDescriptors)/processDescriptors)
}

// sweep is one call of Sweep.
type sweep struct {
	plan     *Plan
	store    *store.Store
	again    bool
	progress Progress
	summary  Summary
	states   []runState
	readOnly bool                    // nothing is written to the store
	chosen   map[int]bool            // numbers of the runs to carry out; nil for all
	natives  map[string]store.Native // by key
	failing  firstFailures           // if the file asks for the first ones alone
	stored   map[string][]task       // the runs that have a result, by the key of the native run
}

// task is a run to carry out, on the machine or on the host.
type task struct {
	run        Run
	repetition int
	native     bool
	shorten    *shortening // look for the shortest schedule of the run instead
}

// outcome is the result of a task.
type outcome struct {
	task     task
	report   job.Report
	native   store.Native
	shortest *minimize.Report
	windows  map[string]float64
	failure  string
	seconds  float64
	skipped  bool // an earlier run of the row fails
	// lost is set when the host could not start a process: nothing is known of the run.
	lost error
}

// listTasks lists the tasks: first the commands on the host, which are
// quick, then the runs. Where only some runs are carried out, those commands are among them that
// the first run that needs them is, so that the parts of a sweep do them once together.
func (s *sweep) listTasks() ([]task, error) {
	x := s.plan.Experiment
	states, err := s.readStore()
	if err != nil {
		return nil, err
	}
	s.states = states
	var natives, runs []task
	seen := map[string]bool{}
	number := 0
	for _, run := range s.plan.Runs {
		for repetition := 1; repetition <= x.Repetitions; repetition++ {
			number++
			if s.chosen != nil && !s.chosen[number] {
				seen[run.NativeKey] = true
				continue
			}
			if run.hasNative(x) && !seen[run.NativeKey] {
				seen[run.NativeKey] = true
				if native, ok := s.natives[run.NativeKey]; !ok || native.Failure != "" {
					natives = append(natives, task{run: run, native: true})
				}
			}
			t := task{run: run, repetition: repetition}
			s.summary.Total++
			if states[number-1].stored && !s.again {
				s.summary.Stored++
				s.stored[run.NativeKey] = append(s.stored[run.NativeKey], t)
			} else {
				runs = append(runs, t)
			}
		}
	}
	return append(natives, runs...), nil
}

// runState is what the store has of a run as it is now: a result that still holds, or the sentence
// of a failure.
type runState struct {
	stored  bool
	failure string
}

// countFailures notes the failures of runs that are not carried out now.
func (s *sweep) countFailures() {
	for i, state := range s.states {
		if state.failure == "" {
			continue
		}
		s.summary.Failed++
		if s.summary.FirstFailure == "" {
			s.summary.FirstFailure = s.plan.Runs[i/s.plan.Experiment.Repetitions].Point.String() + ": " + state.failure
		}
	}
}

// readStore reads the store once: the native results, and the states of the runs of the plan, by their
// numbers less 1.
func (s *sweep) readStore() (states []runState, err error) {
	s.natives, err = s.store.Natives()
	if err := s.noteDamage(err); err != nil {
		return nil, err
	}
	s.stored = map[string][]task{}
	places := s.plan.places()
	states = make([]runState, len(s.plan.Runs)*s.plan.Experiment.Repetitions)
	files := manifest{}
	for record, err := range s.store.Runs() {
		if err != nil {
			if err := s.noteDamage(err); err != nil {
				return nil, err
			}
			continue
		}
		i, planned := places[record.Slot]
		if !planned || record.Repetition > s.plan.Experiment.Repetitions {
			continue
		}
		run, number := s.plan.Runs[i], i*s.plan.Experiment.Repetitions+record.Repetition
		if record.Failure != "" && record.Key == run.Key {
			states[number-1].failure = record.Failure
		}
		if !files.stillHolds(record, run) {
			continue
		}
		kept, err := s.keepsOutputs(record)
		if err == nil && kept {
			states[number-1].stored = true
			err = s.classify(record, run)
		}
		if err != nil {
			return nil, err
		}
	}
	return states, nil
}

// noteDamage notes a damaged row, which counts as one that is missing, and returns other
// errors.
func (s *sweep) noteDamage(err error) error {
	if errors.Is(err, store.ErrDamaged) {
		s.summary.Damaged = append(s.summary.Damaged, err.Error())
		return nil
	}
	return err
}

// classify updates the class of a stored run to that of the table: it depends on the
// native run, which may be stored before or after.
func (s *sweep) classify(record store.Record, run Run) error {
	if record.Key != run.Key || record.Failure != "" || record.Report.Result == nil {
		return nil
	}
	class := s.classOf(record, run)
	if class == record.Class || s.readOnly {
		return nil
	}
	record.Labels, record.Class = pointLabels(run.Point), class
	return s.store.Put(record)
}

// classOf is the class of a record, as far as the native run is known.
func (s *sweep) classOf(record store.Record, run Run) string {
	native, ok := s.natives[run.NativeKey]
	hasNative := run.hasNative(s.plan.Experiment)
	class := classOf(record, native, ok && hasNative && native.Failure == "")
	if class != "" && s.plan.Experiment.Failures.First && (ok || !hasNative) {
		s.failing.note(run)
	}
	return class
}

// manifest remembers the digests of host files, and, by the digest of a list of files, whether
// all are unchanged.
type manifest map[string]string

const (
	unchangedFiles = "unchanged"
	changedFiles   = "changed"
)

// stillHolds reports whether a record is a result of the run as it is now: same key,
// and no file that was read has changed.
func (m manifest) stillHolds(record store.Record, run Run) bool {
	if record.Key != run.Key || record.Failure != "" || record.Report.Result == nil {
		return false
	}
	if verdict, known := m[record.Manifest]; known {
		return verdict == unchangedFiles
	}
	verdict := unchangedFiles
	for _, input := range record.Report.Result.Inputs {
		if !m.isUnchanged(input) {
			verdict = changedFiles
		}
	}
	m[record.Manifest] = verdict
	return verdict == unchangedFiles
}

func (m manifest) isUnchanged(input machine.Input) bool {
	if !filepath.IsAbs(input.Path) {
		return true // an input of the experiment, which the key covers
	}
	sum, known := m[input.Path]
	if !known {
		sum, _ = fileDigest(input.Path) // a file that cannot be read has no digest
		m[input.Path] = sum
	}
	return sum == input.SHA256
}

// carryOutTasks does the tasks in this number of processes at a time.
func (s *sweep) carryOutTasks(ctx context.Context, tasks []task, workers int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	queue := make(chan task)
	go func() {
		defer close(queue)
		for _, t := range tasks {
			select {
			case queue <- t:
			case <-ctx.Done():
				return
			}
		}
	}()
	done := make(chan outcome)
	var group sync.WaitGroup
	for range min(workers, len(tasks)) {
		group.Add(1)
		go func() {
			defer group.Done()
			for t := range queue {
				if result := s.carryOutTask(ctx, t); ctx.Err() == nil {
					done <- result
				}
			}
		}()
	}
	go func() {
		group.Wait()
		close(done)
	}()
	var first error
	for result := range done {
		err := result.lost
		if err == nil {
			err = s.keepOutcome(result)
		}
		if err != nil && first == nil {
			first = err
			cancel()
		}
	}
	return first
}

// carryOutTask carries out one task.
func (s *sweep) carryOutTask(ctx context.Context, t task) outcome {
	limit := time.Duration(s.plan.Experiment.TimeLimit)
	if limit > 0 && t.shorten == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	start := time.Now()
	result := outcome{task: t}
	if !t.native && t.shorten == nil && s.failing.precedes(t.run) {
		result.skipped = true
		return result
	}
	var err error
	switch {
	case t.native:
		result.native, err = runNative(ctx, t.run, s.plan.inputs)
	case t.shorten != nil:
		var reply shortened
		reply, err = t.shorten.spawn(ctx)
		result.shortest, result.failure = reply.Report, reply.Failure
	default:
		job := t.run.Job
		job.KeepOutput = len(s.plan.Experiment.Values) > 0 || t.run.server != nil
		if s.plan.Experiment.Windows.AreGiven() {
			reply, spawning := s.plan.Experiment.runInWindows(ctx, job)
			result.report, result.windows, err = reply.Report, reply.Windows, spawning
		} else {
			result.report, err = job.Spawn(ctx, nil, nil)
		}
		result.failure = result.report.Failure
		if t.run.server != nil && result.failure == "" {
			result.failure = failureOfServer(t.run.server, result.report)
		}
	}
	result.seconds = time.Since(start).Seconds()
	switch {
	case errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE):
		result.lost = errDescriptors.Wrap(err)
	case errors.Is(err, context.DeadlineExceeded):
		result.failure = fmt.Sprintf("it took longer than the time limit of %v", limit)
	case err != nil:
		result.failure = err.Error()
	}
	return result
}

// keepOutcome stores an outcome and reports it.
func (s *sweep) keepOutcome(o outcome) error {
	switch {
	case o.task.native:
		return s.keepNative(o)
	case o.task.shorten != nil:
		return s.keepShortest(o)
	case o.skipped:
		s.progress.Done(fmt.Sprintf("%v: not executed, since an earlier seed fails", o.task.run.Point), false)
		return nil
	}
	run := o.task.run
	s.summary.Ran++
	record := store.Record{
		Slot: run.slot, Key: run.Key, Repetition: o.task.repetition,
		Labels: pointLabels(run.Point), Failure: o.failure,
	}
	if o.failure != "" {
		s.summary.Failed++
		if s.summary.FirstFailure == "" {
			s.summary.FirstFailure = run.Point.String() + ": " + o.failure
		}
		s.progress.Done(fmt.Sprintf("%v: FAILED: %s", run.Point, o.failure), true)
		return s.store.Put(record)
	}
	record.Report = store.Report{Result: o.report.Result, Stdout: o.report.Stdout, Stderr: o.report.Stderr, Region: o.report.Region, Compared: o.report.Compared, Windows: o.windows}
	s.plan.nameInputs(record.Report.Result.Inputs)
	record.Manifest = digestJSON(o.report.Result.Inputs)
	conflict, err := s.findConflict(record)
	if err != nil {
		return err
	}
	record.Class = s.classOf(record, run)
	result := o.report.Result
	line := fmt.Sprintf("%v: %s, %d instructions, %d cycles, %.1f s", run.Point, describeEnd(result), result.Instructions, result.Cycles, o.seconds)
	if conflict != "" {
		line += ": NOT REPEATABLE: digest " + result.Digest + ", was " + conflict
		s.summary.Conflicts = append(s.summary.Conflicts, run.Point.String())
	}
	s.progress.Done(line, conflict != "")
	if err := s.keepTexts(o.report); err != nil {
		return err
	}
	s.stored[run.NativeKey] = append(s.stored[run.NativeKey], o.task)
	return s.store.Put(record)
}

func describeEnd(r *machine.Result) string {
	if r.Outcome == "exit" {
		return "exit " + strconv.Itoa(r.ExitCode)
	}
	return r.Outcome.String()
}

// findConflict compares a new result with the stored ones of the same key that read
// the same files, and notes in the store when one differs.
func (s *sweep) findConflict(r store.Record) (other string, err error) {
	digests, err := s.store.Digests(r.Key, r.Manifest)
	if err != nil {
		return "", err
	}
	for _, digest := range digests {
		if digest != r.Report.Result.Digest {
			return digest, s.store.PutConflict(r.Key, r.Slot, r.Report.Result.Digest, digest)
		}
	}
	return "", nil
}

func (s *sweep) keepNative(o outcome) error {
	o.native.Failure = o.failure
	line := fmt.Sprintf("%s natively: exit %d, %.1f s", strings.Join(o.task.run.Job.Args, " "), o.native.ExitCode, o.seconds)
	if o.failure != "" {
		line = fmt.Sprintf("%s natively: FAILED: %s", strings.Join(o.task.run.Job.Args, " "), o.failure)
	}
	s.progress.Done(line, o.failure != "")
	if err := s.store.PutNative(o.task.run.NativeKey, o.native); err != nil {
		return err
	}
	s.natives[o.task.run.NativeKey] = o.native
	for _, t := range s.stored[o.task.run.NativeKey] {
		record, ok, err := s.store.Get(t.run.slot, t.repetition)
		if ok {
			err = s.classify(record, t.run)
		}
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return err
		}
	}
	return nil
}

func pointLabels(p Point) store.Labels {
	var arguments []string
	for _, a := range p.Arguments {
		arguments = append(arguments, a.Name+"="+a.Value)
	}
	return store.Labels{
		Program: p.Program, Arguments: strings.Join(arguments, " "), Policy: p.Policy,
		Cores: p.Cores, Threads: p.Threads, Seed: strconv.FormatUint(p.Seed, 10),
		Model: p.Memory.Model, Commit: p.Memory.Commit, Capacity: p.Memory.Capacity,
	}
}

// silent is the Progress that reports nothing.
type silent struct{}

func (silent) Start(int, int)    {}
func (silent) Done(string, bool) {}
func (silent) Stop()             {}
