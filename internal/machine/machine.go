package machine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"time"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/procfs"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
	"github.com/heddle-dmt/heddle/internal/machine/override"
	"github.com/heddle-dmt/heddle/internal/machine/publish"
	"github.com/heddle-dmt/heddle/internal/machine/streams"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dmt"
	schedreplay "github.com/heddle-dmt/heddle/sched/replay"
)

// Machine is an emulated computer with one program on it. It is for one
// goroutine, and must be closed.
type Machine struct {
	config Config
	ram    *mem.RAM
	cpu    emu.CPU
	host   *streams.Host
	trace  *trace.Writer // nil unless the run is recorded
	export *vfs.ExportFolder
	// clientHost is nil unless programs on the host can connect to the guest.
	clientHost *publish.Host
	with       collaborators
	// breakpoints, watching and seesPauses are requests of hooks.
	breakpoints []arch.Addr
	watching    []recorder.Recording
	seesPauses  bool
	bounded     *recorder.Bounds // of the recorded stretch, or nil
	// bound and files are those of AcceptStates.
	bound            []deepcopy.Bound
	files            *vfs.FS
	decided          []event.Commit // of the last quantum; kept so that it takes no memory
	state            *state
	done             bool
	endedFromOutside bool // by neither the program nor a recording
	// bounds is the context of Run, which can end the run within a long quantum; nil
	// elsewhere.
	bounds context.Context
	result Result
}

// state is the part of the machine that a snapshot copies: everything that changes except guest
// memory and registers, which have copies of their own.
type state struct {
	kernel    *kernel.Kernel
	override  *override.Override
	fs        *vfs.FS
	cluster   *sched.Cluster
	clock     *coreClock
	digest    *digest
	recording *recording
	stores    memmodel.StoreBuffer
	control   *control         // nil unless threads are controlled
	clients   *publish.Clients // nil unless ports are published
	// interrupted are the threads that are inside an instruction.
	interrupted interrupted
}

// coreClock is the scheduler as the kernel sees it: the kernel's calls happen at the time of the
// core that is being stepped.
type coreClock struct {
	cluster  *sched.Cluster
	now      arch.Cycles
	latest   arch.Cycles        // time that was given to the kernel
	recorder *recorder.Recorder // nil unless the run is recorded
	control  *control           // nil unless threads are controlled
	oneCore  bool               // the guest sees every thread on core 0
	mhz      uint64             // cycles of a microsecond
	ordered  bool               // a policy or a schedule orders operations
	// yielded is by how much a Yield in the quantum has moved its core's clock: to the time at
	// which the next thread can start there.
	yielded arch.Cycles
}

func (c *coreClock) Ready(t arch.ThreadID) {
	c.cluster.Ready(t, c.now)
	c.control.noteReady(t)
	if c.recorder != nil {
		c.recorder.Ready(t)
	}
}

func (c *coreClock) Block(t arch.ThreadID) {
	c.cluster.Block(t)
	c.control.noteBlocked(t)
}

func (c *coreClock) Exit(t arch.ThreadID) {
	c.cluster.Exit(t)
	c.control.noteExited(t)
	if c.recorder != nil {
		c.recorder.Gone(t)
	}
}

func (c *coreClock) Yield(t arch.ThreadID) {
	core := c.cluster.CoreOf(t)
	if core == arch.NoCore {
		c.cluster.Yield(t)
		return
	}
	before := c.cluster.Now(core)
	c.cluster.Yield(t)
	c.yielded += c.cluster.Now(core) - before
}

func (c *coreClock) SetAffinity(t arch.ThreadID, mask uint64) { c.cluster.SetAffinity(t, mask) }

// SetPrecedence has no effect where operations are ordered: a thread would keep those
// whose turn it is from running.
func (c *coreClock) SetPrecedence(t arch.ThreadID, p kernel.Precedence) {
	if c.ordered {
		return
	}
	c.cluster.SetPrecedence(t, sched.Precedence{
		Rank: p.Rank, Slice: c.cycles(p.Slice), Runtime: c.cycles(p.Runtime), Deadline: c.cycles(p.Deadline),
		Period: c.cycles(p.Period),
	})
}

func (c *coreClock) cycles(ns int64) arch.Cycles { return toCycles(c.mhz, ns) }

func (c *coreClock) Core(t arch.ThreadID) arch.CoreID {
	if c.oneCore {
		return 0
	}
	return c.cluster.LastCoreOf(t)
}

// New builds the machine and loads the program; nothing of it has run yet.
func New(c Config, options ...Option) (*Machine, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := &Machine{config: c}
	for _, set := range options {
		set(&m.with)
	}
	if err := m.build(); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *Machine) build() (err error) {
	c := &m.config
	if m.ram = m.with.memory; m.ram == nil {
		if m.ram, err = mem.NewRAM(c.MaxMemory + arch.PageSize); err != nil {
			return err
		}
	}
	_, cores := m.guestInputs()
	if m.cpu, err = engines.New(c.Engine, c.CPU, m.ram, cores, c.Costs); err != nil {
		return err
	}
	if c.Enforce.isInstrumented() {
		m.cpu.CheckCalls(c.Costs.SlotCheck)
	}
	cluster, err := m.newCluster()
	if err != nil {
		return err
	}
	cluster.SetSwitchCost(arch.Cycles(c.Costs.ContextSwitch))
	cluster.SetCosts(m.orderCosts())
	cluster.SetRealtimeShare(m.toCycles(realtimeRuntimeNS), m.toCycles(realtimePeriodNS))
	m.host = m.newHostSide()
	s := &state{cluster: cluster, clock: &coreClock{cluster: cluster, mhz: uint64(c.Costs.MHz), ordered: dmt.OrdersOperations(c.Sched.Policy)}, digest: newDigest(m.host), recording: &recording{}}
	m.state = s
	if s.control, err = m.newControl(); err != nil {
		return err
	}
	s.clock.control, s.clock.oneCore = s.control, m.with.oneCore || c.Control.Schedules || c.Enforce != nil
	if s.clock.oneCore {
		m.cpu.CountInstructions()
	}
	s.clock.ordered = s.clock.ordered || c.Enforce != nil
	if err := m.bufferStores(); err != nil {
		return err
	}
	if err := m.openClients(); err != nil {
		return err
	}
	if s.fs, err = m.mountFiles(); err != nil {
		return err
	}
	for _, h := range m.with.hooks {
		if err := h.Prepare(m); err != nil {
			return err
		}
	}
	if err := cmp.Or(m.setUpRecording(), m.setStopPoints()); err != nil {
		return err
	}
	observer := &kernelObserver{s.digest, s.recording}
	s.kernel = kernel.New(m.cpu, m.ram, s.fs, s.clock, observer, c.Costs, m.kernelConfig())
	s.recording.attach(s.kernel)
	procfs.Mount(s.fs, s.kernel.Proc())
	s.override = &override.Override{NoFutexTimeouts: c.Enforce != nil, HoldsAll: c.Enforce != nil}
	s.kernel.SetOverride(s.override)
	if s.control != nil {
		s.control.override = s.override
	}
	if err := m.start(); err != nil {
		// A failure of the host is the reason why the program is not found.
		return cmp.Or(s.fs.Failed(), err)
	}
	if c.ExportDir == "" {
		return nil
	}
	m.export, err = vfs.OpenExport(c.ExportDir)
	return err
}

func (m *Machine) newCluster() (*sched.Cluster, error) {
	c := &m.config
	if c.Replay != nil {
		return schedreplay.New(c.Cores, c.Replay.log)
	}
	if m.with.start != nil {
		return schedreplay.NewPrefix(c.Cores, m.with.start.decisions, m.with.start.count, m.with.policy)
	}
	if m.with.policy != nil {
		return sched.NewWithPolicy(c.Cores, m.with.policy)
	}
	return dmt.New(c.Cores, c.Seed, c.Sched)
}

// Threads of real-time classes may take so much of a core in each period while others
// wait: sched_rt_runtime_us and sched_rt_period_us of Linux.
const (
	realtimeRuntimeNS = 950_000_000
	realtimePeriodNS  = 1_000_000_000
)

// Close frees the machine, which must not be used afterwards.
func (m *Machine) Close() {
	// CloseTrace returns the error, for callers that need it.
	_ = m.CloseTrace()
	if files := m.hostFiles(); files != nil {
		// A host file that changed during the run was reported by complete.
		_ = files.Close()
	}
	if m.export != nil {
		m.export.Close()
	}
	if m.clientHost != nil {
		m.clientHost.Close()
	}
	if m.cpu != nil {
		m.cpu.Close()
	}
	if m.ram != nil {
		m.ram.Close()
	}
}

// hostFiles returns the guest's files with the host's that they hold open, or nil.
func (m *Machine) hostFiles() *vfs.FS {
	if m.files != nil || m.state == nil {
		return m.files
	}
	return m.state.fs
}

// toCycles converts nanoseconds of virtual time to cycles, rounding up so that
// a timer is never early.
func (m *Machine) toCycles(ns int64) arch.Cycles { return toCycles(uint64(m.config.Costs.MHz), ns) }

func toCycles(mhz uint64, ns int64) arch.Cycles {
	if uint64(ns)/1000 >= math.MaxInt64/mhz {
		return math.MaxInt64 // decades away at least; more would overflow
	}
	return arch.Cycles(uint64(ns)/1000*mhz + (uint64(ns)%1000*mhz+999)/1000)
}

func (m *Machine) toNS(c arch.Cycles) int64 {
	mhz := uint64(m.config.Costs.MHz)
	return int64(uint64(c)/mhz*1000 + uint64(c)%mhz*1000/mhz)
}

// Done reports whether the run has ended.
func (m *Machine) Done() bool { return m.done }

// Step takes the next scheduling decision and carries it out: a quantum of one thread, or a
// timer.
func (m *Machine) Step() {
	s := m.state
	if s.clients != nil && !m.letClientsAct() {
		return
	}
	m.beforeDecision()
	if m.pausesForClients() {
		return
	}
	deadline, has := s.kernel.NextTimer()
	timer := arch.Cycles(0)
	if has {
		timer = m.toCycles(deadline)
	}
	q, verdict := s.cluster.Next(timer, has)
	switch verdict {
	case sched.FireTimer:
		s.recording.noteTimer(timer, s.cluster)
		s.cluster.PassTo(timer)
		s.clock.now = max(s.clock.now, timer)
		s.kernel.FireTimers(max(m.toNS(timer), deadline))
		m.resolveStall(arch.NoThread, arch.NoCore, arch.Stop{})
	case sched.Idle:
		if m.MayClientsAct() && !m.with.driven {
			m.stopReplay(sched.End) // of a run that was ended while it waited for them
		} else {
			m.end(OutcomeDeadlock)
		}
		return
	case sched.Diverged, sched.End:
		m.stopReplay(verdict)
		return
	default:
		s.recording.noteQuantum(q, s.cluster)
		if !m.commitStores(q) {
			return
		}
		if m.runQuantum(q) == AbandonQuantum {
			return
		}
	}
	s.recording.completeDecision()
	if s.clients != nil {
		s.clients.CountDecision()
	}
	m.compareDecision()
	if s.kernel.Done() && !m.done {
		m.end(OutcomeExit)
	}
}

// runQuantum carries out a quantum. It returns AbandonQuantum if nothing of it counts.
func (m *Machine) runQuantum(q sched.Quantum) Reaction {
	s := m.state
	s.clock.yielded = 0
	m.setTime(q.Core)
	t := s.kernel.Task(q.Thread)
	s.digest.beginQuantum(q.Thread)
	s.control.withholdSignals(s.override, t)
	m.completeInstructions(q.Core, t)
	if t.HasKernelWork() {
		m.showScheduleTime(q.Thread)
	}
	if m.runPendingSyscall(t) || !m.askOnWake(t) || !s.kernel.Prepare(t) || s.kernel.Done() || !m.askOnResume(t) {
		s.cluster.Charge(q.Core, s.kernel.TakeCost())
		m.resolveStall(q.Thread, q.Core, arch.Stop{})
		return Proceed
	}
	stepped := t.IsStepped() && !s.interrupted.mustComplete(t.ID())
	if stepped && !t.AtInstruction() {
		s.cluster.Charge(q.Core, s.kernel.TakeCost())
		m.resolveStall(q.Thread, q.Core, arch.Stop{})
		return Proceed
	}
	stop, reaction := m.execute(q, t)
	if reaction == AbandonQuantum {
		return AbandonQuantum
	}
	t.AddUserTime(stop.Cycles)
	s.digest.countQuantum(stop.Instructions, stop.Inside)
	s.cluster.Ran(q, stop.Instructions, stop.Cycles)
	m.setTime(q.Core)
	s.recording.noteEnd(t, stop, s.clock.now)
	if stepped {
		t.AfterInstruction(stop)
	}
	if m.changesMemory(t, stop) {
		m.completeAllStores()
	}
	m.handleStop(t, stop)
	cost := s.kernel.TakeCost()
	t.AddKernelTime(cost)
	s.cluster.Charge(q.Core, cost)
	m.resolveStall(q.Thread, q.Core, stop)
	if limit := m.config.MaxInstructions; limit > 0 && s.digest.instructions >= limit && !s.kernel.Done() {
		m.end(OutcomeLimit)
	}
	return Proceed
}

// runEngine has the engine run the thread, which is loaded, to the end of a quantum.
func (m *Machine) runEngine(q sched.Quantum, t *kernel.Task) (arch.Stop, Reaction) {
	s := m.state
	m.setCore(q.Core, t.ID())
	s.recording.noteStart(t)
	m.askAfterOperation(t)
	switch {
	case s.control.endsQuantum(t.ID()):
		return arch.Stop{Reason: arch.StopBreakpoint}, Proceed
	case q.AccessesOnly && q.Accesses == 0:
		return arch.Stop{Reason: arch.StopBudget}, Proceed
	}
	if m.engineStarts(t) == AbandonQuantum {
		return arch.Stop{}, AbandonQuantum
	}
	m.admitAtomic(t)
	limit := m.engineLimit(q)
	if t.IsStepped() {
		limit.Most, limit.Inside, limit.Immediately = 1, 0, false
	}
	limit.From = m.takeInterrupted(t.ID())
	s.recording.noteContinue()
	stop := m.cpu.Run(limit)
	reaction := m.actOnEngineStop(q, t, stop)
	for ; reaction == ResumeEngine; reaction = m.actOnEngineStop(q, t, stop) {
		s.recording.noteContinue()
		stop = m.cpu.Resume()
	}
	if reaction == AbandonQuantum {
		return stop, AbandonQuantum
	}
	if reaction == EndQuantum || stop.Reason == arch.StopLog && m.isCut() {
		stop.Reason = arch.StopBudget // as if this had been the quantum's budget
	}
	m.keepInterrupted(q.Core, t.ID(), stop)
	return stop, m.engineFinished(t, stop)
}

// actOnEngineStop acts on a stop of the engine within a quantum. It returns ResumeEngine if the
// quantum continues, and Proceed if it is over.
func (m *Machine) actOnEngineStop(q sched.Quantum, t *kernel.Task, stop arch.Stop) Reaction {
	m.noteComparison(t)
	m.state.recording.noteStop(t, stop)
	m.askAtAtomic(t, stop)
	if r := m.engineStopped(t, stop); r != Proceed {
		return r
	}
	switch stop.Reason {
	case arch.StopLog, arch.StopBreakpoint:
		m.askAtBreakpoint(t, stop)
		if !m.state.control.endsQuantum(t.ID()) && !(stop.Reason == arch.StopLog && m.isCut()) {
			return ResumeEngine
		}
	case arch.StopPause:
		if !m.EndsAtPause(q, stop) {
			return ResumeEngine
		}
	case arch.StopFault:
		m.state.kernel.SetNow(m.toNS(m.state.cluster.Now(q.Core) + stop.Cycles)) // for the times of mapped files
		if m.state.kernel.PageIn(t, stop) {
			return ResumeEngine
		}
		if stop.Ahead {
			m.cpu.StepAhead()
			return ResumeEngine
		}
	}
	return Proceed
}

// setTime sets the kernel's clock to that of the core. For the kernel a thread's quantum ends
// before the core switches to the next thread: a replay places that thread when it runs, and
// would have another time until then.
func (m *Machine) setTime(core arch.CoreID) {
	c := m.state.clock
	c.now = m.state.cluster.Now(core)
	if ended := c.now - c.yielded; ended > c.latest {
		c.latest = ended
		m.state.kernel.SetNow(m.toNS(ended))
	}
}

// endsAtPause reports whether a quantum ends after a PAUSE, and from how many instructions on:
// a recorded one does if it did, and there.
func (m *Machine) endsAtPause(q sched.Quantum) (ends bool, after uint64) {
	if _, d := schedreplay.Current(m.state.cluster); d != nil {
		return !d.Budget && arch.StopReason(d.Stop) == arch.StopPause, d.Instructions
	}
	return q.StopAtPause, q.PauseAfter
}

// EndsAtPause reports whether a quantum ends at the PAUSE at which the engine has stopped.
func (m *Machine) EndsAtPause(q sched.Quantum, stop arch.Stop) bool {
	ends, after := m.endsAtPause(q)
	return ends && stop.Instructions >= after
}

// engineLimit returns the limits of the engine for a quantum.
func (m *Machine) engineLimit(q sched.Quantum) arch.Limit {
	l := arch.Limit{
		Instructions: q.Instructions, Cycles: q.Cycles, Exact: q.Exact,
		AtSync: q.StopAtSync, Pass: true, Immediately: q.AccessesOnly,
	}
	l.AtPause, l.PauseAfter = m.endsAtPause(q)
	if m.seesPauses {
		l.AtPause, l.PauseAfter = true, 0
	}
	if q.Accesses > 0 {
		l.Inside = arch.InsideAfter(q.Accesses)
	} else if q.InsideChoice != 0 {
		l.Inside = arch.InsideByChance(q.InsideChoice)
	}
	if most := m.config.MaxInstructions; most > 0 {
		left := most - m.state.digest.instructions
		if l.Instructions == 0 || l.Instructions > left {
			l.Instructions, l.Exact = left, true
		}
	}
	m.state.control.limitQuantum(q.Thread, &l)
	return l
}

// InstructionsBetweenYields is the number of instructions after which Run yields to Go's
// scheduler, and stepsBetweenYields the number of steps. Most of the time is spent in C, and Go's
// monitor of such calls tries to preempt a goroutine that has not been scheduled for 10 ms,
// repeatedly until it returns: thousands of switches between the process's threads. Both numbers
// take 2 to 8 ms; a yield itself may cost 15 us.
const (
	InstructionsBetweenYields = 4_000_000
	stepsBetweenYields        = 2048
)

// Run checks whether it is to end after stepsBetweenChecks steps or, because a hook may take
// microseconds for an instruction, after instructionsBetweenChecks instructions.
const (
	stepsBetweenChecks        = 256
	instructionsBetweenChecks = 100_000
)

// instructionsBetweenCuts is the number of instructions after which a quantum can be cut short:
// they take no longer than half a second.
const instructionsBetweenCuts = 1 << 24

// isCut reports whether the run is to end within the current quantum.
func (m *Machine) isCut() bool { return m.bounds != nil && m.bounds.Err() != nil }

// Run steps the machine to the end of the program, or until ctx is done, and returns the result.
// Changes to writable mounts are written to the host, also when ctx ends the run.
func (m *Machine) Run(ctx context.Context) (*Result, error) {
	start := time.Now()
	m.bounds = ctx
	m.cpu.SetPollInterval(instructionsBetweenCuts)
	if m.clientHost != nil {
		stop := context.AfterFunc(ctx, m.clientHost.Interrupt)
		defer stop()
	}
	yielded := m.state.digest.instructions
	looked := yielded
	for n := 0; !m.done; n++ {
		m.Step()
		done := m.state.digest.instructions
		if done-yielded >= InstructionsBetweenYields || n%stepsBetweenYields == stepsBetweenYields-1 {
			yielded = done
			runtime.Gosched()
		}
		if n%stepsBetweenChecks == 0 || done-looked >= instructionsBetweenChecks {
			looked = done
			if !m.done && (ctx.Err() != nil || m.host.IsInvalid()) {
				m.endFromOutside(ctx)
			}
		}
	}
	err := m.complete()
	m.result.HostSeconds = time.Since(start).Seconds()
	return &m.result, err
}

// Run builds a machine, runs the program on it and returns the result.
func Run(ctx context.Context, c Config, options ...Option) (*Result, error) {
	m, err := New(c, options...)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	r, err := m.Run(ctx)
	if err != nil {
		return r, err
	}
	return r, m.CloseTrace()
}

// Snapshot is a state of a machine to which it can return any number of times.
// It must be released.
type Snapshot struct {
	state      *state
	generation uint64 // of the memory, in which it was taken
}

// Snapshot saves the machine's state. It costs time for the kernel's own data;
// guest memory is copied page by page when either side writes to it.
func (m *Machine) Snapshot() *Snapshot {
	m.state.recording.noteSnapshot()
	m.state.stores.Save()
	s := &Snapshot{deepcopy.Copy(deepcopy.New(), m.state), m.ram.Generation()}
	m.state.stores.Forget()
	m.ram.NextGeneration()
	return s
}

// Restore returns the machine to the state of the snapshot. Output that the guest has written to
// the host since stays written.
func (m *Machine) Restore(s *Snapshot) {
	deepcopy.Release(m.state)
	m.state = deepcopy.Copy(deepcopy.New(), s.state)
	m.state.recording.noteRestore()
	m.state.stores.Load(func(t arch.ThreadID) *mem.Space { return m.state.kernel.Task(t).Space() })
	m.ram.NextGeneration()
	m.done, m.endedFromOutside = false, false
	m.result = Result{}
}

// Release frees the state of the snapshot.
func (s *Snapshot) Release() {
	deepcopy.Release(s.state)
	s.state = nil
}

// complete completes the result of the run, its trace and the files on the host.
func (m *Machine) complete() error {
	if err := m.report(); err != nil {
		return err
	}
	m.finishClients()
	if m.config.Replay != nil || m.with.isolated {
		m.checkReplay()
		return errors.Join(m.finishRecording(), m.host.Err())
	}
	return errors.Join(m.finishRecording(), m.writeChanges(), m.host.Err())
}

// writeChanges writes the guest's changes of files to the host.
func (m *Machine) writeChanges() error {
	s := m.state
	if err := s.fs.Commit(); err != nil {
		return wrapUnlessExplained(errExport, err)
	}
	if m.export != nil {
		if err := s.fs.Export(m.export); err != nil {
			return wrapUnlessExplained(errExport, err)
		}
		m.result.OverlayFiles = nil
	}
	return nil
}
