package minimize

import (
	"bytes"
	"context"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/loader"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/minimize"
)

var (
	errNoFailure = errs.Define("run-does-not-fail",
		"the run in {file} does not fail: it ended with {outcome}",
		"Only the schedule of a run that fails can be made smaller: one that ends by a signal, with a status other than 0, in a deadlock or at its limit of instructions.",
		"Record a run that fails, or say with --stdout the expected output.")
	errNotRepeatable = errs.Define("recording-cannot-be-repeated",
		"the run in {file} cannot be repeated in another order: {problem}",
		"The recording does not reach the end of the run, its replay is not the recorded run, or its stores were kept by pages and not one by one.",
		"Record the run again with heddle record.")
)

// trackerHook reports quanta to a tracker, or to the follower that leads the run.
type trackerHook struct {
	machine.NoHook
	m        *machine.Machine
	tracker  *minimize.Tracker
	follower *minimize.Follower // nil in a replay
	quantum  sched.Quantum
	free     []minimize.Hold // stores of other cores that could leave their buffers at the quantum
	blocked  []minimize.Hold // stores of other cores that could not
	reported uint64          // instructions of the quantum that were reported to the tracker
	// onQuantum, when set, is called at the end of each quantum.
	onQuantum func(*kernel.Task, arch.Regs, arch.Stop)
}

// FollowerOptions are the options of a run that a follower leads.
func FollowerOptions(f *minimize.Follower) []machine.Option {
	return (&trackerHook{tracker: f.Tracker, follower: f}).runOptions()
}

// runOptions are those of the run that the hook watches.
func (h *trackerHook) runOptions() []machine.Option {
	list := []machine.Option{machine.WithHook(h), machine.Isolated()}
	if f := h.follower; f != nil {
		list = append(list, machine.WithPolicy(f), machine.WithStoresKept(func(t arch.ThreadID, at arch.Addr) int {
			return f.Held(minimize.Store{Thread: t, Addr: at})
		}, nil))
	}
	return list
}

// isOver reports whether the rest of the run is of no use.
func (h *trackerHook) isOver() bool {
	if h.follower == nil {
		return false
	}
	_, _, over := h.follower.Probed()
	return over
}

// Prepare implements machine.Hook.
func (h *trackerHook) Prepare(m *machine.Machine) error {
	h.m = m
	m.StopAtPauses()
	return nil
}

// BeforeQuantum implements machine.Hook.
func (h *trackerHook) BeforeQuantum(q sched.Quantum, decided []event.Commit) {
	h.quantum, h.free, h.blocked = q, h.free[:0], h.blocked[:0]
	h.m.VisitWaitingStores(q.Core, func(t arch.ThreadID, at arch.Addr, free bool, newest int) {
		x := minimize.Hold{Store: minimize.Store{Thread: t, Addr: at}, Newest: newest}
		if free {
			h.free = append(h.free, x)
		} else {
			h.blocked = append(h.blocked, x)
		}
	})
	others := slices.ContainsFunc(decided, func(c event.Commit) bool { return c.Core != q.Core })
	h.tracker.Begin(q.Thread, q.Core, h.free, h.blocked, others)
}

// EngineStopped implements machine.Hook: it reports to the tracker a PAUSE that does not end the
// quantum.
func (h *trackerHook) EngineStopped(_ *kernel.Task, s arch.Stop) machine.Reaction {
	if s.Reason == arch.StopPause && !h.m.EndsAtPause(h.quantum, s) {
		h.tracker.Paused(h.m.CPU().PC(), s.Instructions-h.reported)
		h.reported = s.Instructions
	}
	return machine.Proceed
}

// AfterQuantum implements machine.Hook.
func (h *trackerHook) AfterQuantum(t *kernel.Task, s arch.Stop) {
	var regs arch.Regs
	h.m.CPU().Regs(&regs)
	how := minimize.AtAction
	switch {
	case s.Reason == arch.StopBudget || s.Reason == arch.StopSync:
		how = minimize.AtBudget
	case s.Reason == arch.StopPause:
		how = minimize.AtPause
	case s.Reason == arch.StopSyscall && regs.GPR[arch.RAX] == unix.SYS_SCHED_YIELD:
		how = minimize.AtYield
	}
	pc, left := arch.Addr(regs.RIP), s.Instructions-h.reported
	h.reported = 0
	if in, ok := h.m.CPU().Interrupted(); ok && s.Inside > 0 {
		pc = in.PC
	}
	if h.follower != nil {
		h.follower.Ended(how, pc, left, s.Inside)
	} else {
		h.tracker.Ended(how, pc, left, s.Inside)
	}
	if h.onQuantum != nil {
		h.onQuantum(t, regs, s)
	}
}

// Trial repeats a recorded run that failed in other orders of its threads and
// of its stores, to see whether it fails in the same way. It is for one goroutine.
type Trial struct {
	replay   *machine.Replay
	right    Right
	failure  machine.Failure
	waits    minimize.Waits
	schedule minimize.Schedule
	most     uint64 // instructions of a run
	all      bool   // see CountAll
}

// Right says which runs that exit do not fail.
type Right struct {
	// Stdouts are the right standard outputs; nil: any is right.
	Stdouts [][]byte
	// Status is an exit status that is no failure, besides 0.
	Status int
}

// NewTrial replays the recorded run to see how it failed and under which schedule.
// The Replay must stay open, and be used for nothing else.
func NewTrial(ctx context.Context, r *machine.Replay, right Right) (*Trial, error) {
	if r.Cut() {
		return nil, errNotRepeatable.New(r.Path(), "the recording does not reach the end of the run")
	}
	c, err := r.Config()
	if err != nil {
		return nil, err
	}
	if engine := c.Memory.Engine; engine == storebuffer.Pages {
		return nil, errNotRepeatable.New(r.Path(), "it was recorded with --tso-engine "+engine+"; record it with --tso-engine "+storebuffer.Exact)
	}
	h := &Trial{replay: r, right: right}
	// The waits that the first replay finds decide how the second
	// counts.
	for range 2 {
		if err := h.watchRecorded(ctx); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// CountAll has places in threads count all instructions, those of rounds of waiting too. Some
// recorded schedules are only then those of a run that fails: where others see a thread's
// stores, say, in such rounds.
func (h *Trial) CountAll(ctx context.Context) error {
	h.all = true
	return h.watchRecorded(ctx)
}

// watchRecorded replays the recorded run and takes its failure and its schedule.
func (h *Trial) watchRecorded(ctx context.Context) error {
	tracker := h.newTracker()
	result, failure, failed, err := h.repeatRecorded(ctx, &trackerHook{tracker: tracker})
	if err != nil {
		return err
	}
	if !failed {
		return errNoFailure.New(h.replay.Path(), endingText(result))
	}
	h.failure, h.waits, h.schedule = failure, tracker.Waits(), tracker.Schedule()
	h.most = 4*result.Instructions + 1_000_000
	return nil
}

// newTracker makes the tracker of a run, and follower one that carries out a schedule.
func (h *Trial) newTracker() *minimize.Tracker {
	t := minimize.NewTracker(h.waits)
	if h.all {
		t.CountAll()
	}
	return t
}

func (h *Trial) newFollower(s minimize.Schedule) *minimize.Follower {
	f := minimize.NewFollower(s, h.waits)
	if h.all {
		f.CountAll()
	}
	return f
}

// repeatRecorded replays the recorded run.
func (h *Trial) repeatRecorded(ctx context.Context, hook *trackerHook) (*machine.Result, machine.Failure, bool, error) {
	c, err := h.replay.Config()
	if err != nil {
		return nil, machine.Failure{}, false, err
	}
	result, failure, failed, err := h.executeRun(ctx, c, hook)
	if err == nil && (result.Outcome == machine.OutcomeDiverged || result.Outcome == machine.OutcomeInterrupted || result.Outcome == machine.OutcomeDamaged) {
		err = errNotRepeatable.New(h.replay.Path(), result.Message)
	}
	return result, failure, failed, err
}

// endingText names the end of a run that did not fail.
func endingText(r *machine.Result) string {
	if r.Outcome == machine.OutcomeExit {
		return "exit status 0"
	}
	return r.Outcome.String()
}

// Failure is how the recorded run failed.
func (h *Trial) Failure() machine.Failure { return h.failure }

// Schedule is that of the recorded run.
func (h *Trial) Schedule() minimize.Schedule { return h.schedule }

// programConfig is the configuration of the recorded program for a run under another schedule.
func (h *Trial) programConfig() (machine.Config, error) {
	c, err := h.replay.Config()
	c.Replay = nil
	return c, err
}

// Run carries out a schedule: minimize.Try. The run has failed when it did in the
// same way as the recorded one. Its recording is a trace.
func (h *Trial) Run(ctx context.Context, s minimize.Schedule) (minimize.Outcome, error) {
	return h.followSchedule(ctx, h.newFollower(s))
}

// singles is how many instructions at the end of each step RunExact runs one by one.
const singles = 64

// RunExact is Run with exact times of the stores that wait at the end of a step:
// those of the last instructions. Its recording is longer.
func (h *Trial) RunExact(ctx context.Context, s minimize.Schedule) (minimize.Outcome, error) {
	f := h.newFollower(s)
	f.Single(singles)
	return h.followSchedule(ctx, f)
}

func (h *Trial) followSchedule(ctx context.Context, f *minimize.Follower) (minimize.Outcome, error) {
	c, err := h.programConfig()
	if err != nil {
		return minimize.Outcome{}, err
	}
	var recording bytes.Buffer
	c.Record = &machine.Record{To: &recording}
	_, failure, failed, err := h.executeRun(ctx, c, &trackerHook{tracker: f.Tracker, follower: f})
	return minimize.Outcome{
		Fails: failed && failure == h.failure, Schedule: f.Schedule(), Recording: recording.Bytes(), Drifted: f.Drifted(),
	}, err
}

// Probe carries out a schedule up to a step and returns how far from its end, in
// instructions, the place is where it ended in the run that the schedule comes from.
func (h *Trial) Probe(ctx context.Context, s minimize.Schedule, step int) (off int64, found bool, err error) {
	f := h.newFollower(s)
	f.Probe(step)
	c, err := h.programConfig()
	if err != nil {
		return 0, false, err
	}
	_, _, _, err = h.executeRun(ctx, c, &trackerHook{tracker: f.Tracker, follower: f})
	off, found, _ = f.Probed()
	return off, found, err
}

// executeRun runs a configuration under a hook and returns how it failed, if it did.
func (h *Trial) executeRun(ctx context.Context, c machine.Config, hook *trackerHook) (result *machine.Result, f machine.Failure, failed bool, err error) {
	var stdout bytes.Buffer
	var stderr tail
	c.Stdout, c.Stderr = &stdout, &stderr
	m, err := machine.New(c, hook.runOptions()...)
	if err != nil {
		return nil, f, false, err
	}
	defer m.Close()
	for n := 0; !m.Done(); n++ {
		m.Step()
		if n%256 == 0 && ctx.Err() != nil || h.most > 0 && m.Instructions() > h.most || hook.isOver() {
			m.End(machine.OutcomeInterrupted)
		}
	}
	result, err = m.Finish()
	if err != nil {
		return nil, f, false, err
	}
	if err := ctx.Err(); err != nil && result.Outcome == machine.OutcomeInterrupted {
		return nil, f, false, err
	}
	f, failed = result.Failure(stderr)
	if result.Outcome == machine.OutcomeExit && (!failed || result.ExitCode == h.right.Status) {
		f, failed = h.right.compare(stdout.Bytes())
	}
	return result, f, failed, m.CloseTrace()
}

// compare returns the failure of a run that exits with a right status, if its output is wrong.
func (r *Right) compare(stdout []byte) (f machine.Failure, failed bool) {
	if r.Stdouts == nil || slices.ContainsFunc(r.Stdouts, func(x []byte) bool { return bytes.Equal(x, stdout) }) {
		return f, false
	}
	return machine.Failure{Class: machine.FailureWrong, Text: "standard output"}, true
}

// tail keeps the end of the text that is written to it.
type tail []byte

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	const most = 1 << 16
	*t = append(*t, p...)
	if n := len(*t) - most; n > most {
		*t = append((*t)[:0], (*t)[n:]...)
	}
	return len(p), nil
}

// Stop is the end of a step.
type Stop struct {
	// Places are the functions that the thread is in, the innermost first.
	Places []loader.Place
	// Why is the thread's act: "pause", the name of a system call, or "fault";
	// empty if it was only stopped.
	Why string
}

// maxFrames is how many functions a Stop has at most.
const maxFrames = 16

// Stops replays the recorded run and finds where in the program each step of its
// schedule ends, with the schedule.
func (h *Trial) Stops(ctx context.Context) (minimize.Schedule, []Stop, error) {
	var stops []Stop
	u := loader.NewUnwinder()
	hook := &trackerHook{tracker: h.newTracker()}
	hook.onQuantum = func(t *kernel.Task, regs arch.Regs, s arch.Stop) {
		n := len(hook.tracker.Schedule())
		stops = append(stops, make([]Stop, max(0, n-len(stops)))...)
		stops[n-1] = Stop{t.Process().Places(u, regs, maxFrames), nameStop(regs, s)}
	}
	_, _, _, err := h.repeatRecorded(ctx, hook)
	stops = append(stops, make([]Stop, len(hook.tracker.Schedule())-len(stops))...)
	return hook.tracker.Schedule(), stops, err
}

// nameStop names the act of a thread that ended its quantum.
func nameStop(regs arch.Regs, s arch.Stop) string {
	switch s.Reason {
	case arch.StopBudget, arch.StopSync:
		return ""
	case arch.StopPause:
		return "pause"
	case arch.StopSyscall:
		number := regs.GPR[arch.RAX]
		return linux.NameOrNumber(number)
	}
	return "fault"
}
