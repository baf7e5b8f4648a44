package heddle

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/loader"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/memmodel/buffers"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/guide"
	"github.com/heddle-dmt/heddle/sched/minimize"
)

var (
	errNoFailure = errs.Define("run-does-not-fail",
		"the run in {file} does not fail: it ended with {outcome}",
		"Only the schedule of a run that fails can be made smaller: one that ends by a signal, with a status other than 0, in a deadlock or at its limit of instructions.",
		"Record a run that fails, or say with --stdout what its output should have been.")
	errNoRehearsal = errs.Define("recording-cannot-be-rehearsed",
		"the run in {file} cannot be repeated in another order: {problem}",
		"The recording does not reach the end of the run, its replay is not the recorded run, or its stores were kept by pages and not one by one.",
		"Record the run again with heddle record.")
)

// rehearsal watches a run's schedule, and may make it. A nil rehearsal does
// nothing.
type rehearsal struct {
	*minimize.Tracker
	follower *minimize.Follower // nil in a replay
	guide    *guide.Guide       // instead, for a schedule that was computed
	before   sched.Decisions    // what the run does before that, if it does something
	held     []minimize.Hold    // at the last slice
	behind   []minimize.Hold
	told     uint64 // instructions of the slice that the tracker was told of
	// places, when set, is told of the end of each slice.
	places func(*kernel.Task, emu.Regs, emu.Stop)
}

// over tells that the run is of no use any more.
func (r *rehearsal) over() bool {
	if r.follower == nil {
		return false
	}
	_, _, over := r.follower.Probed()
	return over
}

// policy is the scheduling policy, nil if the rehearsal only watches.
func (r *rehearsal) policy() sched.Policy {
	switch {
	case r == nil:
		return nil
	case r.guide != nil:
		return r.guide
	case r.follower != nil:
		return r.follower
	}
	return nil
}

// continues tells that the run begins with decisions of a recorded one.
func (r *rehearsal) continues() bool { return r != nil && r.before != nil }

// hold tells how many stores to an address stay in their buffers; nil if that is
// not decided here.
func (r *rehearsal) hold() func(event.ThreadID, event.Addr) int {
	if r != nil && r.guide != nil {
		return func(t event.ThreadID, at event.Addr) int { return r.guide.Held(minimize.Store{Thread: t, Addr: at}) }
	}
	if r == nil || r.follower == nil {
		return nil
	}
	return func(t event.ThreadID, at event.Addr) int { return r.follower.Held(minimize.Store{Thread: t, Addr: at}) }
}

// begin tells of a slice, and of the commits before it.
func (r *rehearsal) begin(s sched.Slice, b *buffers.Cores, commits []event.Commit) {
	if r == nil {
		return
	}
	r.held, r.behind = r.held[:0], r.behind[:0]
	if b != nil {
		b.Withheld(s.Core, func(t event.ThreadID, at event.Addr, may bool, n int) {
			h := minimize.Hold{Store: minimize.Store{Thread: t, Addr: at}, Newest: n}
			if may {
				r.held = append(r.held, h)
			} else {
				r.behind = append(r.behind, h)
			}
		})
	}
	others := slices.ContainsFunc(commits, func(c event.Commit) bool { return c.Core != s.Core })
	r.Begin(s.Thread, s.Core, r.held, r.behind, others)
}

// paused tells of a PAUSE that does not end the slice, as in the recorded run.
func (r *rehearsal) paused(m *Machine, s emu.Stop) {
	r.Paused(m.cpu.PC(), s.Instructions-r.told)
	r.told = s.Instructions
}

// ended tells how the slice of a thread, which is loaded still, ended.
func (r *rehearsal) ended(m *Machine, t *kernel.Task, s emu.Stop) {
	if r == nil {
		return
	}
	var regs emu.Regs
	m.cpu.Regs(&regs)
	how := minimize.AtAction
	switch {
	case s.Reason == emu.StopBudget || s.Reason == emu.StopSync:
		how = minimize.AtBudget
	case s.Reason == emu.StopPause:
		how = minimize.AtPause
	case s.Reason == emu.StopSyscall && regs.GPR[emu.RAX] == unix.SYS_SCHED_YIELD:
		how = minimize.AtYield
	}
	pc, left := event.Addr(regs.RIP), s.Instructions-r.told
	r.told = 0
	if in, ok := m.cpu.Interrupted(); ok && s.Inside > 0 {
		pc = in.PC
	}
	if r.follower != nil {
		r.follower.Ended(how, pc, left, s.Inside)
	} else {
		r.Ended(how, pc, left, s.Inside)
	}
	if r.guide != nil {
		r.guide.Ended(pc, left, s.Inside)
	}
	if r.places != nil {
		r.places(t, regs, s)
	}
}

// Rehearsal repeats a recorded run that failed in other orders of its threads and
// of its stores, to see whether it fails in the same way. It is for one goroutine.
type Rehearsal struct {
	replay   *Replay
	stdout   []byte // that is right, unless nil
	failure  Failure
	waits    minimize.Waits
	schedule minimize.Schedule
	most     uint64 // instructions of a run
	all      bool   // see CountAll
}

// NewRehearsal replays the recorded run to see how it failed and what its schedule
// was. If stdout is not nil, a run whose standard output is something else fails.
// The Replay must stay open, and be used for nothing else.
func NewRehearsal(ctx context.Context, r *Replay, stdout []byte) (*Rehearsal, error) {
	if r.Cut() {
		return nil, errNoRehearsal.New(r.path, "the recording does not reach the end of the run")
	}
	if engine := r.manifest.Memory.Engine; engine == buffers.Pages {
		return nil, errNoRehearsal.New(r.path, "it was recorded with --tso-engine "+engine+"; record it with --tso-engine "+buffers.Exact)
	}
	h := &Rehearsal{replay: r, stdout: stdout}
	// What is known of waiting after the first replay decides how the second
	// counts.
	for range 2 {
		if err := h.watch(ctx); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// CountAll has places in threads count all instructions, those of rounds of waiting too. Some
// recorded schedules are only then those of a run that fails: where what a thread does in such
// rounds (stores, above all) is seen by others.
func (h *Rehearsal) CountAll(ctx context.Context) error {
	h.all = true
	return h.watch(ctx)
}

// watch replays the recorded run and takes its failure and its schedule.
func (h *Rehearsal) watch(ctx context.Context) error {
	tracker := h.tracker()
	result, failure, failed, err := h.repeat(ctx, &rehearsal{Tracker: tracker})
	if err != nil {
		return err
	}
	if !failed {
		return errNoFailure.New(h.replay.path, result.ending())
	}
	h.failure, h.waits, h.schedule = failure, tracker.Waits(), tracker.Schedule()
	h.most = 4*result.Instructions + 1_000_000
	return nil
}

// tracker makes the tracker of a run, and follower one that carries out a schedule.
func (h *Rehearsal) tracker() *minimize.Tracker {
	t := minimize.NewTracker(h.waits)
	if h.all {
		t.CountAll()
	}
	return t
}

func (h *Rehearsal) follower(s minimize.Schedule) *minimize.Follower {
	f := minimize.NewFollower(s, h.waits)
	if h.all {
		f.CountAll()
	}
	return f
}

// repeat replays the recorded run.
func (h *Rehearsal) repeat(ctx context.Context, watch *rehearsal) (*Result, Failure, bool, error) {
	c, err := h.config(watch)
	if err != nil {
		return nil, Failure{}, false, err
	}
	c.Replay = h.replay
	result, failure, failed, err := h.carryOut(ctx, c)
	if err == nil && (result.Outcome == outcomeDiverged || result.Outcome == outcomeInterrupted || result.Outcome == outcomeDamaged) {
		err = errNoRehearsal.New(h.replay.path, result.Message)
	}
	return result, failure, failed, err
}

// ending names the end of a run that did not fail.
func (r *Result) ending() string {
	if r.Outcome == outcomeExit {
		return "exit status 0"
	}
	return r.Outcome
}

// Failure is how the recorded run failed.
func (h *Rehearsal) Failure() Failure { return h.failure }

// Schedule is that of the recorded run.
func (h *Rehearsal) Schedule() minimize.Schedule { return h.schedule }

// config is the configuration of the recorded run for a watched one.
func (h *Rehearsal) config(watch *rehearsal) (Config, error) {
	if in := h.replay.stdin; in != nil {
		h.replay.stdin = nil
		_ = in.Close() // it was read only
	}
	c, err := h.replay.Config()
	c.Replay, c.rehearsal = nil, watch
	return c, err
}

// Run carries out a schedule: minimize.Try. The run has failed when it did in the
// same way as the recorded one. Its recording is a trace.
func (h *Rehearsal) Run(ctx context.Context, s minimize.Schedule) (minimize.Outcome, error) {
	return h.follow(ctx, h.follower(s))
}

// singles is how many instructions at the end of each step RunExact runs one by one.
const singles = 64

// RunExact is Run with exact times of the stores that wait at the end of a step:
// those of the last instructions. Its recording is longer.
func (h *Rehearsal) RunExact(ctx context.Context, s minimize.Schedule) (minimize.Outcome, error) {
	f := h.follower(s)
	f.Single(singles)
	return h.follow(ctx, f)
}

func (h *Rehearsal) follow(ctx context.Context, f *minimize.Follower) (minimize.Outcome, error) {
	c, err := h.config(&rehearsal{Tracker: f.Tracker, follower: f})
	if err != nil {
		return minimize.Outcome{}, err
	}
	var recording bytes.Buffer
	c.Record = &Record{To: &recording}
	_, failure, failed, err := h.carryOut(ctx, c)
	return minimize.Outcome{
		Fails: failed && failure == h.failure, Schedule: f.Schedule(), Recording: recording.Bytes(), Drifted: f.Drifted(),
	}, err
}

// Probe carries out a schedule up to a step and returns how far from its end, in
// instructions, the place is where it ended in the run that the schedule comes from.
func (h *Rehearsal) Probe(ctx context.Context, s minimize.Schedule, step int) (off int64, found bool, err error) {
	f := h.follower(s)
	f.Probe(step)
	c, err := h.config(&rehearsal{Tracker: f.Tracker, follower: f})
	if err != nil {
		return 0, false, err
	}
	_, _, _, err = h.carryOut(ctx, c)
	off, found, _ = f.Probed()
	return off, found, err
}

// carryOut runs a configuration and tells how it failed.
func (h *Rehearsal) carryOut(ctx context.Context, c Config) (result *Result, f Failure, failed bool, err error) {
	var stdout bytes.Buffer
	var stderr tail
	c.Stdout, c.Stderr = &stdout, &stderr
	m, err := New(c)
	if err != nil {
		return nil, f, false, err
	}
	defer m.Close()
	for n := 0; !m.done; n++ {
		m.Step()
		if n%256 == 0 && ctx.Err() != nil || h.most > 0 && m.state.digest.instructions > h.most || c.rehearsal.over() {
			m.end(outcomeInterrupted)
		}
	}
	if err := m.finish(); err != nil {
		return nil, f, false, err
	}
	if err := ctx.Err(); err != nil && m.result.Outcome == outcomeInterrupted {
		return nil, f, false, err
	}
	f, failed = m.result.Failure(stderr)
	if !failed && m.result.Outcome == outcomeExit && h.stdout != nil && !bytes.Equal(stdout.Bytes(), h.stdout) {
		f, failed = Failure{FailureWrong, "standard output"}, true
	}
	return &m.result, f, failed, m.CloseTrace()
}

// tail keeps the end of what is written to it.
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
	// Why is what the thread did: "pause", the name of a system call, or "fault";
	// empty if it was only stopped.
	Why string
}

// maxFrames is how many functions a Stop has at most.
const maxFrames = 16

// Stops replays the recorded run and tells where in the program each step of its
// schedule ends, with the schedule.
func (h *Rehearsal) Stops(ctx context.Context) (minimize.Schedule, []Stop, error) {
	var stops []Stop
	u := loader.NewUnwinder()
	watch := &rehearsal{Tracker: h.tracker()}
	watch.places = func(t *kernel.Task, regs emu.Regs, s emu.Stop) {
		n := len(watch.Schedule())
		stops = append(stops, make([]Stop, max(0, n-len(stops)))...)
		stops[n-1] = Stop{t.Process().Places(u, regs, maxFrames), why(regs, s)}
	}
	_, _, _, err := h.repeat(ctx, watch)
	stops = append(stops, make([]Stop, len(watch.Schedule())-len(stops))...)
	return watch.Schedule(), stops, err
}

// why names what a thread did that ended its slice.
func why(regs emu.Regs, s emu.Stop) string {
	switch s.Reason {
	case emu.StopBudget, emu.StopSync:
		return ""
	case emu.StopPause:
		return "pause"
	case emu.StopSyscall:
		number := regs.GPR[emu.RAX]
		return cmp.Or(kernel.SyscallName(number), fmt.Sprintf("system call %d", number))
	}
	return "fault"
}
