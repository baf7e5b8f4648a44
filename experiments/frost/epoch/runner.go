package epoch

import (
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/syncops"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dmt"
	"github.com/heddle-dmt/heddle/sched/partialorder"
)

var errReplicas = errs.Define("run-cannot-have-replicas",
	"Frost does not support {option}",
	"Frost executes each epoch several times from the same state. A recording, a replay and a controller are each for one execution, and an epoch cannot end while stores wait in buffers.",
	"Leave the option out.")

// Runner executes a run epoch by epoch, and each epoch as often as wanted:
// thread-parallel, which makes its partial order of synchronization operations and
// system calls, and from the same state under that order by priorities of
// threads. (Frost, sections 3.1 and 3.2.) The guest's output to standard output
// and standard error stays with the replica.
//
// Thread-parallel replicas are executed on one machine, the leading one, and
// others on Followers, which may run at the same time as it and each other: a
// checkpoint does not change, and its pages are read where they are. Runner is
// for one goroutine, each Follower for one, and both must be closed.
type Runner struct {
	stage
	shared *partialorder.Functions
	config machine.Config
	reads  bool        // Options.Reads
	memory []*mem.RAM  // of followers to come
	live   *Checkpoint // that the machine is at, if it has not run since
	// clients is nil unless ports are published.
	clients *clientHost
}

// stage is a machine that executes replicas.
type stage struct {
	m   *machine.Machine
	tap *tap

	mu   sync.Mutex
	dead []*machine.Snapshot // to be released by who runs the machine
}

// Checkpoint is a state between two epochs. It must be released.
type Checkpoint struct {
	snapshot *machine.Snapshot
	stage    *stage // whose memory it is in
	leads    bool   // the stage is the leading one
	threads  []partialorder.ThreadState
	floors   map[arch.ThreadID]floor
	// objects are the synchronization objects that were used so far. The map does
	// not change.
	objects map[event.ObjectID]object
	peak    uint64          // of the leading machine's memory, in pages
	byOrder bool            // it is that of an epoch-parallel replica
	alone   bool            // the run has had one thread so far
	ended   bool            // the run is over
	outcome machine.Outcome // how, if it is
	idle    uint64          // effort without progress so far
}

// Done reports that the run is over.
func (c *Checkpoint) Done() bool { return c.ended }

// Release gives up the state. One of the leading machine is released by whoever
// has that, others by anybody: their memory goes back when their machine is used
// again.
func (c *Checkpoint) Release() {
	if c.leads {
		c.snapshot.Release()
		return
	}
	c.stage.mu.Lock()
	defer c.stage.mu.Unlock()
	c.stage.dead = append(c.stage.dead, c.snapshot)
}

// releaseAbandoned releases the abandoned checkpoints.
func (s *stage) releaseAbandoned() {
	s.mu.Lock()
	list := s.dead
	s.dead = nil
	s.mu.Unlock()
	for _, x := range list {
		x.Release()
	}
}

// NewRunner builds the leading machine. If the context ends, no replica waits for clients on the host.
func NewRunner(ctx context.Context, c machine.Config, o Options) (*Runner, error) {
	if err := allowsReplicas(&c, &o); err != nil {
		return nil, err
	}
	c.CustomSync = append(append([]syncops.Custom(nil), c.CustomSync...), libraryFunctions()...)
	c.Env = waitPassively(c.Env)
	c.Control = dmt.Control{Policy: dmt.FCFS} // its place is taken in each epoch
	if err := c.Validate(); err != nil {
		return nil, err
	}
	memory, err := mem.NewRAMs(c.MaxMemory+arch.PageSize, 1+o.Followers)
	if err != nil {
		return nil, err
	}
	r := &Runner{shared: sharedFunctions(), config: c, reads: o.Reads, memory: memory[1:]}
	if err := r.buildMachine(c, memory[0], o.Reads); err != nil {
		r.closeMemory()
		return nil, err
	}
	if err := r.openClients(ctx, o.Bound); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// waitPassively has run-times of OpenMP wait in the kernel instead of in loops, unless the environment says how they wait: on
// the one core of an epoch-parallel replica a loop waits for a thread that cannot run meanwhile.
func waitPassively(env []string) []string {
	for _, kv := range env {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME":
			return env
		}
	}
	return append(slices.Clone(env), "OMP_WAIT_POLICY=passive")
}

// buildMachine makes the stage's machine.
func (s *stage) buildMachine(c machine.Config, ram *mem.RAM, reads bool) error {
	s.tap = &tap{}
	c.Stdout, c.Stderr = stream{s.tap, 1}, stream{s.tap, 2}
	m, err := machine.New(c, machine.WithMemory(ram), machine.WithAtomics(), machine.WithOneVisibleCore(), machine.WithOperationsOfThreads(), machine.WithDrivenClients())
	if err != nil {
		return err
	}
	s.m, s.tap.m = m, m
	if reads {
		if s.tap.reads, err = newReadSums(m.CPU()); err != nil {
			m.Close()
			return err
		}
	}
	m.AddRecording(s.tap)
	m.AcceptStates()
	return nil
}

// allowsReplicas returns an error if a run with replicas cannot have an option. One that is
// recorded executes thread-parallel replicas alone.
func allowsReplicas(c *machine.Config, o *Options) error {
	for _, x := range []struct {
		bad    bool
		option string
	}{
		{c.Record != nil && !o.records, "a recording"},
		{len(c.Publish) > 0 && o.Bound == nil, "a published port"},
		{c.Replay != nil, "a replay"},
		{c.Enforce != nil, "a schedule"},
		{c.Control.Policy != "", "a controller"},
		{c.Strace != nil, "a trace of system calls"},
		{c.EventLog != nil, "a log of events"},
		{c.Memory.MemoryModel() != memmodel.SC, "a memory model other than sc"},
	} {
		if x.bad {
			return errReplicas.New(x.option)
		}
	}
	return nil
}

// Close gives everything back but checkpoints.
func (r *Runner) Close() {
	r.clients.close()
	r.m.Close()
	r.tap.reads.closeBuffer()
	r.closeMemory()
}

func (r *Runner) closeMemory() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ram := range r.memory {
		ram.Close()
	}
	r.memory = nil
}

// Start is the state before the first instruction.
func (r *Runner) Start() *Checkpoint {
	return &Checkpoint{snapshot: r.m.Snapshot(), stage: &r.stage, leads: true, alone: true, peak: r.m.Memory().Peak()}
}

// EpochOptions bound an epoch.
type EpochOptions struct {
	// Length is when the epoch is to end, in milliseconds of virtual time.
	Length float64
	// Grace is how long it continues after the guest has written to standard output or error, in
	// milliseconds of virtual time; 0: output does not end it.
	Grace float64
	// Hang is how many instructions a replica may run without a synchronization
	// operation or system call until it counts as hanging.
	Hang uint64
	// Seed, if it is not 0, makes the scheduling policy anew. Priority, if it is not
	// empty, has the thread that comes first in it run on one core until it cannot
	// continue, as in an epoch-parallel replica, but under no order: nothing is
	// preempted.
	Seed     uint64
	Priority []arch.ThreadID
	// Inputs are those of an earlier execution of the epoch; nil: clients on the host act now.
	Inputs *Inputs
}

// Replica is an execution of an epoch.
type Replica struct {
	// End is the state at the end.
	End *Checkpoint
	// Failed is how the replica failed, self-evidently, or empty.
	Failed string
	// Alone reports that a thread-parallel replica has had one thread: nothing in it can race.
	Alone bool
	// Order is the order that a thread-parallel replica found. Diverged describes how an
	// epoch-parallel one left it, and BenignDivergence one that does not count.
	Order                      *partialorder.Order
	Diverged, BenignDivergence string
	Output                     []Output
	// Inputs are the operations of clients on the host at the begin of a thread-parallel replica; nil if no ports are published.
	Inputs *Inputs
	// Instructions are those of all threads. Cycles is the time of a
	// thread-parallel replica on its cores, of an epoch-parallel one on its core.
	// Work is the time that the cores did not stand still.
	Instructions uint64
	Cycles, Work arch.Cycles
	// Effort is instructions with a surcharge for each quantum: Hang bounds it.
	Effort uint64
	// Pages is how many pages an epoch-parallel replica has written, at most at
	// once.
	Pages uint64
	level mem.Level // of the machine's memory when it began
	// Sent sums up, by thread, the data written to files and sockets.
	sent  map[arch.ThreadID]uint64
	used  []partialorder.Use
	gone  map[arch.ThreadID]arch.Addr // stacks of threads that ended
	reads threadReads                 // nil unless they are asked for
}

// Output is something that the guest wrote.
type Output struct {
	FD   int
	Data []byte
}

// OutputSize is how many bytes a replica has written to standard output and error.
func (x *Replica) OutputSize() (n int) {
	for i := range x.Output {
		n += len(x.Output[i].Data)
	}
	return n
}

// beginRun makes an execution that begins where the machine is.
func (s *stage) beginRun(from *Checkpoint, controller sched.Controller) *epochRun {
	m := s.m
	m.SetController(controller)
	if partialorder.AreOne(from.threads) {
		m.ExpectOneThread()
	}
	s.tap.beginEpoch(from)
	m.SetTimeToMakespan()
	return &epochRun{
		stage: s, from: from, m: m, mhz: m.Config().Costs.MHz, instructions: m.Instructions(), began: m.Cluster().Makespan(),
		worked: m.Cluster().Worked(), level: m.Memory().Level(), since: -from.idle,
	}
}

// goToCheckpoint puts the leading machine to a checkpoint.
func (r *Runner) goToCheckpoint(at *Checkpoint) {
	if r.live != at {
		r.m.Restore(at.snapshot)
	}
	r.live = nil
}

// epochRun is a replica that runs.
type epochRun struct {
	*stage
	from         *Checkpoint
	m            *machine.Machine
	mhz          uint32
	instructions uint64
	began        arch.Cycles
	worked       arch.Cycles // by all cores before
	level        mem.Level
	length       arch.Cycles
	closes       bool   // there was output
	steps        uint64 // when progress was last seen
	since        uint64 // effort then, less than 0 if it was in an epoch before
	yielded      uint64 // instructions when Go's scheduler last ran
	quanta       uint64
	closed       uint64 // effort when the epoch was to end
	closedAt     arch.Cycles
	hangs        bool
}

// applyVerdict applies the controller's verdict before anything runs.
func (e *epochRun) applyVerdict() { e.m.ApplyVerdict() }

// instructionsRun is how many instructions the replica has run.
func (e *epochRun) instructionsRun() uint64 { return e.m.Instructions() - e.instructions }

// pauseCost is the cost of a quantum in instructions when loops without end are
// looked for: one that yields has quanta of a few instructions.
const pauseCost = 1000

// effortSpent is how much the replica has run.
func (e *epochRun) effortSpent() uint64 { return e.instructionsRun() + pauseCost*e.quanta }

// yieldProcessor does the same as Machine.Run between its steps.
func (e *epochRun) yieldProcessor() {
	if ran := e.instructionsRun(); ran-e.yielded >= machine.InstructionsBetweenYields {
		e.yielded = ran
		runtime.Gosched()
	}
}

// noteProgress notes progress, and reports whether the replica has gone too far without any.
func (e *epochRun) noteProgress(progress, most uint64) bool {
	e.quanta++
	if progress != e.steps {
		e.steps, e.since = progress, e.effortSpent()
	}
	e.hangs = e.effortSpent()-e.since > most
	return e.hangs
}

// RunThreadParallel executes an epoch thread-parallel, under the run's scheduling policy.
func (r *Runner) RunThreadParallel(ctx context.Context, from *Checkpoint, o EpochOptions) (*Replica, error) {
	rec := partialorder.NewRecorder(r.shared, from.threads)
	r.goToCheckpoint(from)
	e := r.beginRun(from, rec)
	m := e.m
	if from.byOrder {
		m.IgnoreTimeouts(false)
		m.HoldPresentSignals(false)
	}
	if len(o.Priority) > 0 {
		m.Cluster().SwitchPolicy(sched.NewPriority(o.Priority, o.Hang/2))
	} else if o.Seed != 0 || from.byOrder {
		m.Cluster().SwitchPolicy(dmt.NewPolicy(r.config.Cores, cmp.Or(o.Seed, r.config.Seed), r.config.Sched))
	}
	r.tap.recorder = rec
	if from.alone {
		rec.EndAtCreation()
	}
	rec.Begin(m.Gate())
	e.applyVerdict()
	inputs, err := r.beginInputs(ctx, from, o.Inputs)
	if err != nil {
		return nil, err
	}
	waiting := m.Clients().Pending()
	e.length = arch.Cycles(o.Length * 1000 * float64(r.config.Costs.MHz))
	for n := 0; !m.Done() && r.tap.failed == ""; n++ {
		if rec.Closed() && m.Cluster().Runnable() == 0 {
			break
		}
		if !rec.Closing() && e.awaitsClients(inputs) {
			rec.Close()
			continue
		}
		m.Step()
		e.yieldProcessor()
		sent, received := r.haveClientsNews(waiting)
		if o.Grace > 0 && (len(r.tap.output) > 0 || sent) {
			e.endSoon(o.Grace)
		}
		if !rec.Closing() && (received || m.Cluster().Makespan() >= e.began+e.length) {
			rec.Close()
		}
		e.separateThreads(rec)
		if m.Cluster().Runnable() == 0 && rec.AllowSignals() {
			m.HoldPresentSignals(false)
		}
		e.continueEpoch(rec, o.Hang)
		if e.noteProgress(rec.Steps(), o.Hang) {
			break
		}
		if n%256 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	x, err := e.makeReplica(rec, (*machine.Machine).Snapshot)
	if err != nil {
		return nil, err
	}
	x.End.leads, x.End.byOrder, x.End.peak = true, len(o.Priority) > 0, m.Memory().Peak()
	r.live, x.Inputs, x.Alone = x.End, inputs, rec.Alone()
	x.End.alone = from.alone && x.Alone
	x.End.idle = e.effortSpent() - e.since
	x.Order = rec.Order(x.Failed != "" && x.Failed != failedDeadlock)
	x.Order.Endless = e.hangs || x.Failed == failedDeadlock
	x.Cycles = m.Cluster().Makespan() - e.began
	return x, nil
}

// continueEpoch has an epoch continue that does not reach its end: a thread computes, say, that
// reaches no operation before it gets a signal, and the threads that would send it stand.
func (e *epochRun) continueEpoch(rec *partialorder.Recorder, hang uint64) {
	now := e.m.Cluster().Makespan()
	if !rec.Closing() {
		e.closed, e.closedAt = e.effortSpent(), now
		return
	}
	if e.effortSpent()-e.closed < hang/2 && now-e.closedAt < patience {
		return
	}
	e.closed, e.closedAt = e.effortSpent(), now
	rec.Reopen(e.m.Gate())
	e.applyVerdict()
	e.length = 2 * (e.m.Cluster().Makespan() - e.began)
}

// worthEpoch is how many instructions make an epoch that is worth its end.
const worthEpoch = 5_000_000

// separateThreads has a long epoch end where the number of threads becomes one, or will no longer be one: where there is one,
// nothing races.
func (e *epochRun) separateThreads(rec *partialorder.Recorder) {
	switch {
	case rec.Closing() || e.instructionsRun() < worthEpoch:
	case rec.Alone():
		rec.EndAtCreation()
	case rec.OneIsLeft():
		rec.Close()
	}
}

// patience is the time after which an epoch that is to end is continued.
const patience arch.Cycles = 50_000_000

// endSoon has the epoch end after the given number of milliseconds of virtual time.
func (e *epochRun) endSoon(grace float64) {
	if e.closes {
		return
	}
	e.closes = true
	ran := e.m.Cluster().Makespan() - e.began
	e.length = min(e.length, ran+arch.Cycles(grace*1000*float64(e.mhz)))
}

// failedDeadlock is Replica.Failed of one whose threads all wait for ever.
const failedDeadlock = "deadlock"

// orderController is the recorder or the follower of an order.
type orderController interface {
	ThreadStates() []partialorder.ThreadState
	Uses() []partialorder.Use
}

// makeReplica makes the replica of an execution that is over, with the snapshot that save makes of
// the machine's state.
func (e *epochRun) makeReplica(c orderController, save func(*machine.Machine) *machine.Snapshot) (*Replica, error) {
	m, t := e.m, e.tap
	m.LeaveInstructions()
	x := &Replica{
		Failed: t.failed, Output: slices.Clone(t.output), Instructions: e.instructionsRun(), Effort: e.effortSpent(), level: e.level,
		Work: m.Cluster().Worked() - e.worked, sent: maps.Clone(t.sent), gone: maps.Clone(t.gone), used: c.Uses(),
		reads: t.currentReads(),
	}
	switch {
	case x.Failed != "":
	case e.hangs:
		x.Failed = "it does not end"
	case m.Done() && m.Outcome() == machine.OutcomeDeadlock:
		x.Failed = failedDeadlock
	case m.Done() && m.Kernel().Fatal() != "":
		return nil, errStopped.New(m.Kernel().Fatal())
	}
	x.End = &Checkpoint{
		stage: e.stage, ended: m.Done() || x.Failed != "", outcome: m.Outcome(), threads: c.ThreadStates(),
		floors: t.currentFloors(m.Kernel()), objects: knownObjects(e.from.objects, x.used),
	}
	m.SetController(sched.Pass{}) // the state is that between two controllers
	x.End.snapshot = save(m)
	return x, nil
}

var errStopped = errs.Define("run-with-replicas-stopped",
	"the run is stopped: {problem}",
	"The program made a system call that the machine does not have; the rest of the sentence names it.",
	"See heddle syscalls; with --unknown-syscalls=enosys such calls fail instead.")

// Finish ends the run in a state: writable mounts are written to the host, and the
// result is that of a run that had come there by itself. If the program has not ended
// the context has ended the run.
func (r *Runner) Finish(ctx context.Context, at *Checkpoint) (*machine.Result, error) {
	m := r.m
	r.goToCheckpoint(at)
	r.clients.repeatInputs(m, at)
	if at.outcome == "" {
		m.EndByContext(ctx)
	} else {
		m.End(at.outcome)
	}
	result, err := m.Finish()
	if r.clients != nil && err == nil {
		result.Clients.Undelivered = r.clients.finish(m)
	}
	return result, err
}

// PeakMemory is the largest number of bytes that all states of the leading machine
// held together: the execution ahead of an epoch that was rolled back does not
// count.
func (r *Runner) PeakMemory() uint64 { return r.m.Memory().Peak() * arch.PageSize }

// Scarce reports that more than half of the leading machine's memory is in use.
func (r *Runner) Scarce() bool { return 2*r.m.Memory().Used() > r.m.Memory().Limit() }

// Return puts the leading machine to a checkpoint that it has passed, to continue from
// there. Its execution after the end of an epoch does not count for PeakMemory;
// checkpoints that were made later have been released.
func (r *Runner) Return(to, end *Checkpoint) {
	r.goToCheckpoint(to)
	r.live = to
	r.m.Memory().SetPeak(end.peak)
}
