package h3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/analyses/h3/schedule"
	"github.com/heddle-dmt/heddle/analyses/h3/search"
	"github.com/heddle-dmt/heddle/analyses/h3/solve"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace"
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
	"github.com/heddle-dmt/heddle/experiments/h3/pathsearch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched/guided"
)

var (
	errCutRun = errs.Define("reproduce-recording-cut",
		"the recording in {file} does not reach the end of the run",
		"Without its end it is not known how the run failed, and the branch traces may be cut.",
		"Record the run again.")
	errDamaged = errs.Define("reproduce-recording-damaged",
		"the recording in {file} is damaged: {problem}",
		"A part of the file was changed or lost.",
		"Record the run again.")
	errNoFailure = errs.Define("reproduce-without-failure",
		"the run in {file} did not fail; if its output is wrong, name the right one with --stdout FILE",
		"It exited with status 0, and printed the output that --stdout names; without --stdout the output is not compared.",
		"Record a run that fails, or say with --stdout the expected output.")
	errOtherFailure = errs.Define("reproduce-other-failure",
		"the run in {file} ended with {found}, not {expected}",
		"The failure that --bug names is not that of the recording.",
		"Leave --bug out, or record a run that fails in that way.")
	errCheckpointModel = errs.Define("reproduce-checkpoint-of-another-model",
		"the run in {file} was recorded under {found}, and its checkpoints cannot be used under {expected}",
		"The part before a checkpoint ran under the recorded memory model.",
		"Leave --model or --checkpoint out.")
	errNoVariable = errs.Define("reproduce-without-variable",
		"--shared names {name}, and neither the program in {file} nor a library of it has a variable of that name",
		"The name is misspelt, or the program has no symbols.",
		"Name global variables as the symbol table has them (nm prints it).")
	errNotFollowed = errs.Define("reproduce-path-not-followed",
		"the threads cannot be followed along their paths: {reason}",
		"The threads do something after the second one is created that the symbolic execution does not support, or the trace is another program's; docs/reproduce.md lists the limits.",
		"Record another failing run; if the reason is the same, the program is beyond the limits. Link it with -static if the thread is in the dynamic linker.")
	errNotFound = errs.Define("reproduce-nothing-found",
		"executing the program along the paths of its threads has led to no failing run in {moves} moves, and a symbolic trace is not possible",
		"The order of the threads was not found within the limits of the search, and the symbolic execution does not support what the rest of the sentence names.",
		"Record the failure earlier in the run, or with fewer threads or cores (--cores 2); heddle find and heddle minimize make short failing runs. docs/reproduce.md lists the limits.")
)

// Options of Reproduce.
type Options struct {
	// Bug is the class of the failure; empty: as the recording says.
	Bug string
	// Stdout is the right output, if the failure is another one.
	Stdout []byte
	// Model is the memory model; empty: that of the recorded run.
	Model string
	// Encoding is "heddle", "clap" or "h3"; empty means "heddle".
	Encoding string
	// Timeout bounds Reproduce; 0: no bound.
	Timeout time.Duration
	// Memory bounds the memory of this process while threads are followed and while a schedule is
	// looked for, in bytes; 0: no bound.
	Memory uint64
	// Now is the host's clock, for Timeout and the times that are reported.
	Now func() time.Time
	// Shared are names of variables that threads share. If there are some, nothing
	// else is shared.
	Shared []string
	// Profile is the trace of a run that did not fail, with its accesses to memory. If there is
	// one, memory that its threads did not share is not shared.
	Profile string
	// Checkpoints says from where the trace is solved; the zero value: from where the
	// second thread is made.
	Checkpoints Checkpoints
	// Symbolic leaves out the search by execution. So do Shared, Profile and an encoding of the papers,
	// which are about the symbolic trace.
	Symbolic bool
	// FreeCores takes no order from the cores.
	FreeCores bool
	// Formula, if set, gets the formula in SMT-LIB 2.
	Formula io.Writer
}

// Encodings lists the values of Options.Encoding.
func Encodings() []string { return []string{"heddle", "clap", "h3"} }

// Recording is the part of a recording that is used.
type Recording struct {
	file, branches string // the trace, and the one that has its branches
	replay         *machine.Replay
	profile        *paths.Profile
	// begin is where the second thread is made, start where the trace is solved from. If the program makes
	// it in a way that no symbolic trace begins with, or its instructions are not known symbolically, begin is nil and
	// withoutBegin is the reason.
	begin, start *startPoint
	withoutBegin error
	model        string
	// Failure is how the run failed. Its text is known for signals and statuses.
	Failure machine.Failure
	// Bytes are those of all branch traces.
	Bytes uint64
}

// Open reads a recording, and runs the program up to its second thread.
func Open(ctx context.Context, file string) (*Recording, error) {
	return OpenWithBranches(ctx, file, file)
}

// OpenWithBranches is Open for a recording without branches, which the trace of its replay has.
func OpenWithBranches(ctx context.Context, file, branches string) (*Recording, error) {
	r := &Recording{file: file, branches: branches}
	var err error
	if r.replay, err = machine.OpenProgram(file); err != nil {
		return nil, err
	}
	if err = r.replay.CheckWhole(); err == nil {
		err = r.readTrace(ctx)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Recording) readTrace(ctx context.Context) error {
	if r.replay.Cut() {
		return errCutRun.New(r.file)
	}
	for _, damage := range r.replay.Damage() {
		return errDamaged.Wrap(damage, r.file, damage)
	}
	r.Failure, _ = r.replay.Recorded().Failure(nil)
	t, err := trace.Open(r.branches)
	if err != nil {
		return err
	}
	defer t.Close()
	l := &limiter{ctx: ctx}
	if r.profile, err = LoadPaths(ctx, t, r.file); err != nil {
		return l.limitError(err, readingPaths)
	}
	c, err := r.replay.Config()
	if err != nil {
		return err
	}
	r.model = c.Memory.MemoryModel().String()
	if r.withoutBegin = concolicrun.CheckFollowed(r.file, &c); r.withoutBegin != nil {
		return nil
	}
	if r.begin, err = newStartPoint(ctx, r.replay, r.file, c.RootFS); errors.Is(err, errNoCreate) {
		r.withoutBegin, err = err, nil
	}
	return l.limitError(err, startingAnew)
}

// Close gives everything back.
func (r *Recording) Close() {
	if r.begin != nil {
		r.begin.closeMachine()
	}
	_ = r.replay.Close() // it was read only
}

// Outcome is the result of an attempt.
type Outcome struct {
	Failure machine.Failure
	Model   model.MemoryModel
	Trace   *symtrace.Result
	// Sharing describes how the shared memory was found, and how much was left out.
	Sharing string
	// Checkpoint is the one from which the trace was solved, 0: none, and CheckpointInstructions
	// how many instructions of all threads precede it. SkippedCheckpoints says why later
	// checkpoints could not be used.
	Checkpoint             int
	CheckpointInstructions uint64
	SkippedCheckpoints     []string
	decisions              uint64 // of the recorded run, before the checkpoint
	// Answer is whether there is a schedule.
	Answer smt.Answer
	// States is how many states were searched; System is the formula, if there was
	// one, Rounds how often the solver was asked if it has the constraints of some reads
	// alone, and Conflict the families that contradict each other.
	States   int
	Rounds   int
	System   *constraints.System
	Conflict []constraints.Family
	// Limit is the limit that ended the search and the solver, if that is why there is no answer:
	// LimitTime or LimitMemory; or the assumption under which alone an answer holds: LimitChosen or
	// LimitSharing.
	Limit string
	// OtherAttempts is how often other values were tried for assumptions, as there was no schedule.
	OtherAttempts int
	// alternatives are values other than the assumed ones.
	alternatives []search.Alternative
	// Schedule is the abstract schedule, and Plan its translation to the program.
	Schedule schedule.Schedule
	Plan     *guided.Plan
	// Verified: a run under the plan failed in the same way. Ending is how it ended, Divergence
	// where it left the plan. Recording is the trace of that run.
	Verified   bool
	Ending     string
	Divergence string
	Recording  []byte
	// Executed is the search by execution that has found the plan; nil: the symbolic trace has.
	Executed *pathsearch.Result
	// hasSearched is the bound of the last search by execution, in moves, and fruitless how many it made without a result.
	hasSearched, fruitless int
	// messages are the assertions that fail on the threads' paths.
	messages []string
	// Traced and Solved are times of the host.
	Traced, Solved time.Duration

	profile *Profile
}

// parseModel is a memory model by its name.
func parseModel(name string) model.MemoryModel {
	switch strings.ToLower(name) {
	case "tso":
		return model.TSO
	case "pso":
		return model.PSO
	}
	return model.SC
}

// Reproduce looks for a schedule, and runs the program under it.
func (r *Recording) Reproduce(ctx context.Context, o Options) (*Outcome, error) {
	out := &Outcome{Failure: r.Failure}
	if o.Model == "" {
		o.Model = r.model
	}
	out.Model = parseModel(o.Model)
	if err := r.classifyFailure(out, &o); err != nil {
		return nil, err
	}
	l := newLimiter(ctx, &o)
	if r.withoutBegin != nil {
		if err := r.searchByExecution(l, out, &o, manyMoves); err != nil || out.Executed != nil {
			return out, err
		}
		return nil, out.addSearch(r.withoutBegin)
	}
	if err := r.checkShared(&o); err != nil {
		return nil, err
	}
	if err := r.loadProfile(out, &o); err != nil {
		return nil, err
	}
	if o.Checkpoints.Every > 0 && out.Model != parseModel(r.model) {
		return nil, errCheckpointModel.New(r.file, r.model, o.Model)
	}
	if r.isLong() {
		if err := r.searchByExecution(l.shareOf(false), out, &o, manyMoves); err != nil || out.Executed != nil {
			return out, err
		}
	}
	err := r.tryCheckpoints(l.symbolicShare(o.isSymbolic()), out, &o)
	l.releaseMemory()
	isLimited := (errors.Is(err, errTimeout) || errors.Is(err, errMemory)) && !l.isReached()
	if err == nil && !out.Verified && out.Answer != smt.Unsatisfiable || errors.Is(err, errNotFollowed) || isLimited {
		if err := r.searchByExecution(l, out, &o, manyMoves); err != nil {
			return nil, err
		}
		if out.Executed != nil {
			return out, nil
		}
	}
	if errors.Is(err, errNotFollowed) {
		err = out.addSearch(err)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// longPaths is the number of instructions after the second thread's creation from which on the threads are
// executed along their paths before they are followed symbolically, which takes minutes then.
const longPaths = 1_000_000

// isLong reports whether the paths after the second thread's creation are long.
func (r *Recording) isLong() bool {
	n := uint64(0)
	for i := range r.profile.Threads {
		for _, t := range r.profile.Threads[i].Turns {
			for _, b := range t.Blocks {
				n += uint64(len(r.profile.Blocks[b].Instructions))
			}
		}
	}
	return n > r.begin.instructions+longPaths
}

// findSchedule looks for a schedule from the point where the trace is solved, without guesses if
// it finds none with them.
func (r *Recording) findSchedule(l *limiter, out *Outcome, o *Options) error {
	if err := r.tryFaultingThreads(l, out, o, false); err != nil {
		return err
	}
	if (out.Answer == smt.Unsatisfiable || out.Limit == LimitChosen) && out.Trace.Guesses > 0 {
		guessed := *out
		switch err := r.tryFaultingThreads(l, out, o, true); {
		case errors.Is(err, errNotFollowed):
			*out = guessed
		case err != nil:
			return err
		}
	}
	if out.Answer == smt.Unsatisfiable && (len(o.Shared) > 0 || out.Trace.Excluded > 0) {
		out.Answer, out.Limit = smt.Unknown, LimitSharing
	}
	return nil
}

// tryFaultingThreads looks for a schedule under which one of the threads that can fault does so.
// It finds none if none of them has one.
func (r *Recording) tryFaultingThreads(l *limiter, out *Outcome, o *Options, plain bool) error {
	open, limit := false, ""
	for n := 0; ; n++ {
		if err := r.tryAssumptions(l, out, o, traceOptions{faulting: n, plain: plain}); err != nil {
			return err
		}
		if out.Verified {
			return nil
		}
		if out.Answer != smt.Unsatisfiable {
			open, limit = true, out.Limit
		}
		if n+1 >= out.Trace.Faults {
			break
		}
	}
	if open && out.Answer == smt.Unsatisfiable {
		out.Answer, out.Limit = smt.Unknown, limit
	}
	return nil
}

// attemptOnce looks for a schedule.
func (r *Recording) attemptOnce(l *limiter, out *Outcome, o *Options, how traceOptions) error {
	began := o.Now()
	out.Limit = ""
	if err := r.buildTrace(l, out, o, how); err != nil {
		return err
	}
	out.Traced = o.Now().Sub(began)
	began = o.Now()
	interrupts, end := l.watchLimits()
	err := r.solveTrace(l, interrupts, out, o)
	limit := end()
	if err != nil {
		return err
	}
	out.Solved = o.Now().Sub(began)
	switch out.Answer {
	case smt.Satisfiable:
		return l.limitError(r.verifySchedule(l, out, o), runningPlan)
	case smt.Unknown:
		out.Limit = limit
	}
	return nil
}

// classifyFailure determines the failure.
func (r *Recording) classifyFailure(out *Outcome, o *Options) error {
	recorded := r.replay.Recorded()
	if out.Failure.Class == "" && recorded.Outcome == "exit" && o.Stdout != nil && recorded.StdoutDigest != machine.StdoutDigest(o.Stdout) {
		out.Failure = machine.Failure{Class: machine.FailureWrong, Text: "standard output"}
	}
	if out.Failure.Class == "" {
		return errNoFailure.New(r.file)
	}
	if o.Bug != "" && o.Bug != out.Failure.Class {
		return errOtherFailure.New(r.file, out.Failure.Class, o.Bug)
	}
	return nil
}

// explainPath says where and why a thread cannot be followed.
func (r *Recording) explainPath(err error) string {
	var at *symtrace.PathError
	if !errors.As(err, &at) {
		return err.Error()
	}
	names := r.begin.names
	return fmt.Sprintf("thread %d in %s, after %d instructions: %s", at.Thread, names.describePlace(at.PC), at.Instructions, names.describeAddresses(at.Err.Error()))
}

// failingStatus is the exit status of a run that failed by it, otherwise 0.
func (r *Recording) failingStatus() int {
	if result := r.replay.Recorded(); result.Outcome == machine.OutcomeExit {
		return result.ExitCode
	}
	return 0
}

// buildTrace makes the symbolic trace.
func (r *Recording) buildTrace(l *limiter, out *Outcome, o *Options, how traceOptions) error {
	s := symtrace.Options{
		Deadlock: out.Failure.Class == machine.FailureDeadlock, Hang: out.Failure.Class == machine.FailureHang,
		Fault: out.Failure.Class == machine.FailureCrash, Faulting: how.faulting, WeakMemory: out.Model != model.SC, Output: o.Stdout,
		Status: r.failingStatus(), Stop: l.isReached, NoGuesses: how.plain, Prefer: how.preferredValues(), Facts: how.known,
	}
	if len(o.Shared) > 0 {
		s.OnlyShared, s.Shared = true, r.start.names.variableRanges(o.Shared)
	}
	if out.profile != nil {
		s.MayShare = out.profile.isShared
	}
	followed, err := symtrace.Build(r.start.image, r.profile, r.start.thread, r.start.instructions, s)
	switch {
	case errors.Is(err, symtrace.ErrStopped):
		return l.limitError(err, followingPaths)
	case err != nil:
		return errNotFollowed.New(r.explainPath(err))
	}
	out.Trace = followed
	out.Sharing = out.describeSharing(o)
	if out.Failure.Class != machine.FailureAssertion {
		return nil
	}
	aborts := false
	out.messages = nil
	for i := range out.Trace.Threads {
		t := &out.Trace.Threads[i]
		if t.Message != "" {
			out.messages = append(out.messages, t.Message)
			out.Failure.Text = t.Message
		}
		aborts = aborts || t.Ending == symtrace.Failed || t.Last != nil && (t.Last.Role == symtrace.Fail || t.Last.Role == symtrace.Stop)
	}
	if !aborts {
		return errNotFollowed.New("none of them ends with a failed assertion, an exit or a double free: the C library ended the run for another reason, or the branch traces are incomplete")
	}
	return nil
}

// solveTrace looks for a schedule.
func (r *Recording) solveTrace(l *limiter, interrupts <-chan struct{}, out *Outcome, o *Options) error {
	out.alternatives = []search.Alternative{{}} // the solver alone knows no other values
	out.System, out.Rounds = nil, 0
	limits := smt.Limits{Milliseconds: uint(l.timeLeft().Milliseconds()), Interrupts: interrupts}
	encodings := map[string]constraints.Encoding{"clap": constraints.CLAP{}, "h3": constraints.Cores{}, "heddle": constraints.Pruned{FreeCores: o.FreeCores}}
	encoding := encodings[o.Encoding]
	if encoding == nil {
		encoding = encodings["heddle"]
	}
	count := map[string]func(*model.Trace) int{"clap": constraints.CountCLAP, "h3": constraints.CountCores}[o.Encoding]
	if count != nil && o.Formula == nil && count(out.Trace.Trace) > maxWholeFormula {
		return out.solveLazily(encoding, l, limits)
	}
	if o.Formula != nil || count != nil {
		var err error
		if out.System, err = constraints.New(out.Trace.Trace, out.Model, encoding, 0); err != nil {
			return err
		}
	}
	if o.Formula != nil {
		if _, err := io.WriteString(o.Formula, solve.SMTLIB(out.System, solve.Options{Limits: limits})); err != nil {
			return err
		}
	}
	if count != nil {
		return out.solveWhole(limits)
	}
	p := solve.Portfolio{FreeCores: o.FreeCores, Stop: l.isReached, Constraints: solve.Options{Limits: limits}}
	found, err := p.Find(out.Trace.Trace, out.Model)
	if err != nil {
		return err
	}
	out.Answer, out.States, out.Schedule = found.Answer, found.States, found.Schedule
	if found.System != nil {
		out.System = found.System
	}
	if found.System == nil {
		out.alternatives = found.Alternatives
	}
	if found.Answer == smt.Satisfiable {
		out.Plan = newPlan(out.Trace, found.Schedule, found.Values, out.Model, out.decisions)
	}
	return nil
}

// slack is how many more instructions a run under a plan may have than four times the recorded run: one that leaves the plan
// need not end.
const slack = 10_000_000

// verifySchedule runs the program under the plan.
func (r *Recording) verifySchedule(l *limiter, out *Outcome, o *Options) error {
	ctx := l.ctx
	if left := l.timeLeft(); left > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, left)
		defer cancel()
	}
	g := guided.New(out.Plan)
	c, options, err := guidedConfig(r.replay, g, o.Model)
	if err != nil {
		return err
	}
	var stdout, stderr, recording bytes.Buffer
	c.Stdout, c.Stderr, c.Record = &stdout, &stderr, &machine.Record{To: &recording}
	if most := 4*r.replay.Recorded().Instructions + slack; c.MaxInstructions == 0 || c.MaxInstructions > most {
		c.MaxInstructions = most
	}
	result, err := machine.Run(ctx, c, options...)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	found, failed := o.failureOf(result, stdout.Bytes(), stderr.Bytes())
	out.Verified = failed && found.Class == out.Failure.Class && out.isSameAssertion(found.Text)
	out.Ending, out.Divergence, out.Recording = found.String(), g.Why(), recording.Bytes()
	if !failed {
		out.Ending = "exit status 0"
	}
	if out.Verified {
		out.Failure = found
	}
	return nil
}

// failureOf returns how a run has failed that printed something, if it has.
func (o *Options) failureOf(r *machine.Result, stdout, stderr []byte) (f machine.Failure, failed bool) {
	f, failed = r.Failure(stderr)
	if !failed && o.Stdout != nil && !bytes.Equal(o.Stdout, stdout) {
		f, failed = machine.Failure{Class: machine.FailureWrong, Text: "standard output"}, true
	}
	return f, failed
}

// isSameAssertion reports whether a failure's text is that of an assertion that failed in the
// recording; of several it is not known which was first.
func (out *Outcome) isSameAssertion(text string) bool {
	if len(out.messages) < 2 {
		return strings.Contains(text, out.Failure.Text)
	}
	return slices.ContainsFunc(out.messages, func(m string) bool { return strings.Contains(text, m) })
}

// KeepRecording writes the trace of the verifying run to a file.
func (out *Outcome) KeepRecording(file string) error {
	return outfile.WriteBytes(file, out.Recording)
}

// checkShared returns an error if a variable that is said to be shared does not exist.
func (r *Recording) checkShared(o *Options) error {
	for _, name := range o.Shared {
		if !slices.ContainsFunc(r.begin.names.variables, func(v variable) bool { return v.name == name }) {
			return errNoVariable.New(name, r.file)
		}
	}
	return nil
}

// variableRanges are where variables are.
func (n *symbolNames) variableRanges(wanted []string) []symtrace.Range {
	var all []symtrace.Range
	for _, v := range n.variables {
		for _, name := range wanted {
			if v.name == name {
				all = append(all, symtrace.Range{Start: v.Addr, End: v.Addr + v.Size})
			}
		}
	}
	return all
}
