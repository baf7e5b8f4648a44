package find

import (
	"bytes"
	"context"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/sharing"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/loader"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/rand"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/points"
)

// stage is a machine on which a program is executed under schedules. It stops at decision points,
// and keeps the program's output. It is for one goroutine, and must be closed.
type stage struct {
	machine.NoHook
	m        *machine.Machine
	policy   *points.Policy
	at       map[arch.Addr]accessKind
	stops    int // the number of breakpoints
	commits  commits
	stdout   bytes.Buffer
	stderr   bytes.Buffer
	start    *machine.Snapshot // at the creation of the second thread; nil in a run that is recorded
	started  started
	profiled *profile // nil unless the execution looks for points
	log      *memlog.Buffer
	last     pointReached
	plan     *schedule
	follows  bool // sees the operands of the next instructions
	// switchedAt is the instruction before which the last quantum ended, or 0, and newPairs are the pairs of
	// instructions at which threads have switched and that are not known.
	switchedAt arch.Addr
	newPairs   []switchPair
	unwinder   *loader.Unwinder
	// Of the program and its files, to say where it fails; lastPlaces is the stack at the last stop at which the
	// run may have ended.
	root, executable string
	files            map[string]*debuginfo.File
	lastPlaces       []loader.Place
	leaks            leaks
	// exited: the execution is over where the program exits with a status.
	exited bool
	// sleeps: long sleeps may end early.
	sleeps       bool
	status       int
	own, ofFiber map[arch.Addr]bool // known answers of isOwn and actsForGoroutine
	bias         uint64             // added to addresses in the program's file, if isOwn has met one
	goroutines   goroutines
	handlers     handlers
}

// started is the state of the streams at the start of the schedules.
type started struct {
	stdout, stderr int
	instructions   uint64
}

// newStage makes the machine of a configuration. Profiles says that it is to find points.
func newStage(c machine.Config, profiles bool) (*stage, error) {
	s := &stage{unwinder: loader.NewUnwinder(), own: map[arch.Addr]bool{}, ofFiber: map[arch.Addr]bool{}, root: c.RootFS, files: map[string]*debuginfo.File{}}
	if profiles {
		s.log = memlog.NewBuffer()
	}
	c.Stdout, c.Stderr = &s.stdout, &s.stderr
	options := []machine.Option{machine.WithHook(s), machine.Isolated(), machine.WithPolicy(prefix{})}
	if c.Memory.MemoryModel() != memmodel.SC {
		options = append(options, machine.WithStoresKept(s.commits.keep, nil))
	}
	m, err := machine.New(c, options...)
	if err != nil {
		s.closeLog()
		return nil, err
	}
	s.m, s.leaks.m = m, m
	return s, nil
}

func (s *stage) closeLog() {
	if s.log != nil {
		s.log.Close()
	}
}

// close frees the machine.
func (s *stage) close() {
	if s.start != nil {
		s.start.Release()
	}
	s.m.Close()
	s.closeLog()
}

// Prepare implements machine.Hook.
func (s *stage) Prepare(m *machine.Machine) error {
	if s.log == nil {
		return nil
	}
	if err := m.CPU().LogMemory(memlog.Filter{Partial: true}); err != nil {
		return err
	}
	m.CPU().MuteMemory(true)
	return nil
}

// runToSecondThread runs the program to the creation of its second thread, and reports whether it
// creates one.
func (s *stage) runToSecondThread(ctx context.Context) (bool, error) {
	for n := 0; !s.m.Done(); n++ {
		if tasks := s.m.Kernel().Tasks(); len(tasks) > 1 {
			s.executable = tasks[0].Process().Executable()
			s.started = started{s.stdout.Len(), s.stderr.Len(), s.m.Instructions()}
			return true, nil
		}
		if n%256 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		s.m.Step()
	}
	return false, nil
}

// keepStart keeps the machine's state, from which all schedules start.
func (s *stage) keepStart() { s.start = s.m.Snapshot() }

// functionAt names the function of an instruction.
func (s *stage) functionAt(pc arch.Addr) string {
	places := s.start.Kernel().Tasks()[0].Process().Places(s.unwinder, arch.Regs{RIP: uint64(pc)}, 1)
	if len(places) == 0 {
		return ""
	}
	return places[0].Function
}

// isOwn reports whether an instruction is of the program's own file; of a Go program, of its own functions and of those
// by which its goroutines notice each other.
func (s *stage) isOwn(pc arch.Addr) bool {
	own, known := s.own[pc]
	if !known {
		process := s.start.Kernel().Tasks()[0].Process()
		places := process.Places(s.unwinder, arch.Regs{RIP: uint64(pc)}, 1)
		if own = len(places) > 0 && places[0].Path == process.Executable(); own {
			s.bias = places[0].Bias
			own = !s.openFile(places[0].Path).IsGo() || isOfGoProgram(places[0].Function)
		}
		s.own[pc] = own
	}
	return own
}

// actsForGoroutine reports whether an instruction acts for the goroutine that a thread carries.
func (s *stage) actsForGoroutine(pc arch.Addr) bool {
	acts, known := s.ofFiber[pc]
	if !known {
		acts = actsForGoroutine(s.functionAt(pc))
		s.ofFiber[pc] = acts
	}
	return acts
}

// schedule is the choice of an execution: its kind and its seed.
type schedule struct {
	number   int // from 0 on; -1: the schedule is not one of the search
	kind     Kind
	seed     uint64
	estimate points.Estimate
	limits   limits
	at       map[arch.Addr]accessKind // the points at which it decides
	stops    []arch.Addr              // all points that are known: a set that only grows
	mutexes  []arch.Addr              // that are known
	lines    map[uint64]*line         // shared memory
	selected uint64                   // the line whose operations are selected; 0: those of all lines are
	pairs    map[switchPair]bool      // that are known, or nil
}

// limits bound an execution, counted from the start of the schedules. After fairPoints or fairInstructions its end is fair:
// threads take short turns, and stores are committed.
type limits struct{ points, instructions, fairPoints, fairInstructions uint64 }

// limit sets the limits after which an execution hangs, and has its end be fair after half of one of them.
func (l *limits) limit(points, instructions uint64) {
	*l = limits{points, instructions, points / 2, instructions / 2}
}

// begin puts the machine to the start of a schedule.
func (s *stage) begin(x *schedule) {
	if s.start != nil {
		s.m.Restore(s.start)
		s.stdout.Truncate(s.started.stdout)
		s.stderr.Truncate(s.started.stderr)
	}
	bounds := points.Bounds{Points: x.limits.fairPoints / 4, Instructions: x.limits.fairInstructions / 4}
	s.exited = false
	s.lastPlaces, s.leaks.mutexes, s.leaks.leaked = nil, x.mutexes, 0
	s.policy = points.NewPolicy(points.New(x.kind.Strategy, x.seed, x.estimate), bounds)
	s.fireEarly(x)
	s.commits.begin(x.seed, x.estimate.Points)
	s.plan, s.switchedAt, s.newPairs = x, 0, nil
	s.follows = slices.Contains([]string{points.POS, points.SURW, points.RFF}, x.kind.Strategy)
	s.m.Cluster().SwitchPolicy(s.policy)
	s.at = x.at
	// Changes of breakpoints take long: the machine stops at the points of all schedules.
	if s.stops != len(x.stops) {
		s.stops = len(x.stops)
		list := x.stops
		if s.profiled != nil {
			list = slices.Concat(list, s.goroutines.stops())
			slices.Sort(list)
			list = slices.Compact(list)
		}
		s.m.CPU().SetBreakpoints(list)
	}
}

// Times, in microseconds, within which timers may fire early: one for which an operating system may well keep a thread
// from running, and one of sleeps, with which programs wait for other threads though nothing promises it.
const (
	earlyTimer = 100
	earlySleep = 1_000_000
)

// fireEarly has timers fire early in half of the schedules that may preempt; in half of these long sleeps do, too.
func (s *stage) fireEarly(x *schedule) {
	s.sleeps = false
	draw := rand.NewStream(x.seed, 'T')
	kind := draw.Below(4)
	if kind < 2 || x.kind.Strategy == points.Serial || x.kind.Strategy == points.Turns {
		return
	}
	s.sleeps = draw.Below(2) == 1
	s.policy.FireEarly(draw, rand.NewShare([]float64{0.25, 0.75}[kind-2]), s.cyclesOf(earlyTimer))
}

// chooseEarly sets the time within which the next timer may fire early.
func (s *stage) chooseEarly() {
	within := earlyTimer
	if s.m.Kernel().NextTimerIsSleep() {
		within = earlySleep
	}
	s.policy.FireWithin(s.cyclesOf(within))
}

// cyclesOf is a time in microseconds in cycles of the machine.
func (s *stage) cyclesOf(microseconds int) arch.Cycles {
	return arch.Cycles(microseconds) * arch.Cycles(s.m.Config().Costs.MHz)
}

// run executes a schedule from its start to its end, or until one of its limits is reached or ctx is
// done.
func (s *stage) run(ctx context.Context, x *schedule) error {
	if s.profiled != nil {
		s.m.CPU().ForgetMemory()
		s.m.CPU().MuteMemory(false)
		s.noteThreads()
		s.handlers.begin()
		s.goroutines.begin(s.m.Kernel().Tasks()[0].ID(), s.profiled.births)
	}
	fair := false
	for n := 0; !s.m.Done() && !s.exited; n++ {
		if s.sleeps {
			s.chooseEarly()
		}
		s.m.Step()
		if s.profiled != nil {
			s.noteThreads()
		}
		ran, asked := s.m.Instructions()-s.started.instructions, s.policy.Points()
		if !fair && (ran > x.limits.fairInstructions || asked > x.limits.fairPoints) {
			fair = true
			s.policy.BeFair()
			s.commits.endDelays()
		}
		if !s.m.Done() && !s.exited && (ran > x.limits.instructions || asked > x.limits.points) {
			s.m.End(machine.OutcomeLimit)
		}
		if n%16 == 15 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (s *stage) noteThreads() {
	for _, t := range s.m.Kernel().Tasks() {
		s.profiled.noteThread(t.ID())
	}
}

// resultOf is the end of a run that is over.
func resultOf(m *machine.Machine) (r machine.Result, err error) {
	if r.Outcome = m.Outcome(); r.Outcome != machine.OutcomeExit {
		return r, nil
	}
	if why := m.Kernel().Fatal(); why != "" {
		return r, errStopped.New(why)
	}
	if r.ExitCode, r.Signal = m.Kernel().Status(); r.Signal != 0 {
		r.Outcome = machine.OutcomeSignal
	}
	return r, nil
}

// failure returns how the execution ended that is over, and whether it failed; accepted is the exit
// status of a run that does not fail, besides 0.
func (s *stage) failure(accepted int) (f machine.Failure, failed bool, err error) {
	r, err := resultOf(s.m)
	if s.exited {
		r, err = machine.Result{Outcome: machine.OutcomeExit, ExitCode: s.status}, nil
	}
	if err != nil {
		return f, false, err
	}
	if r.Outcome == machine.OutcomeExit {
		if s.leaks.leaked != 0 {
			return machine.Failure{Class: FailureLeak}, true, nil
		}
		if r.ExitCode == accepted {
			return f, false, nil
		}
	}
	f, failed = failureOfResult(&r, s.stderr.Bytes())
	return f, failed, nil
}

// EngineStarts implements machine.Hook.
func (s *stage) EngineStarts(t *kernel.Task) machine.Reaction {
	if s.profiled != nil {
		s.profiled.beginThread(t)
		s.profiled.fiber = s.goroutines.carried[t.ID()]
		// Go's run-time system uses signals itself.
		s.profiled.handler = s.handlers.starts(t.ID(), s.m.CPU().PC()) && s.goroutines.stops() == nil
	}
	s.last = pointReached{pc: s.m.CPU().PC()}
	if s.switchedAt != 0 {
		s.noteSwitch(switchPair{s.switchedAt, s.last.pc})
		s.switchedAt = 0
	}
	return machine.Proceed
}

// pointReached is the instruction that a thread was at last within a quantum, or at its start, and the
// number of instructions of the quantum before it.
type pointReached struct {
	pc   arch.Addr
	done uint64
}

// isRepetition notes where the thread is, and reports whether it is before another iteration of the
// repeated string instruction that it was at: engines differ in whether they stop there.
func (s *stage) isRepetition(pc arch.Addr, done uint64) bool {
	repeats := pc == s.last.pc && done == s.last.done+1
	s.last = pointReached{pc, done}
	return repeats
}

// EngineStopped implements machine.Hook: it takes the log, and asks the policy at points.
func (s *stage) EngineStopped(t *kernel.Task, stop arch.Stop) machine.Reaction {
	s.takeLog()
	if stop.Reason != arch.StopBreakpoint || s.policy == nil {
		return machine.Proceed
	}
	pc := s.m.CPU().PC()
	if s.profiled != nil && slices.Contains(s.goroutines.stops(), pc) {
		s.followGoroutine(t)
	}
	repeats := s.isRepetition(pc, stop.Instructions)
	kind, isPoint := s.at[pc]
	if !isPoint || repeats {
		return machine.Proceed
	}
	if s.policy.AtPoint(s.m.Cluster(), t.ID(), s.operation(t, pc, kind), kind.hasParts()) {
		s.switchedAt = pc
		return machine.EndQuantum
	}
	if s.commits.isDue(s.m) {
		return machine.EndQuantum
	}
	return machine.ResumeEngine
}

// EngineFinished implements machine.Hook: a schedule from a snapshot is over where its only process is about to exit, since
// it takes long to take the process apart and to put it together again.
func (s *stage) EngineFinished(t *kernel.Task, stop arch.Stop) machine.Reaction {
	if s.start == nil || s.policy == nil || s.profiled != nil || stop.Reason != arch.StopSyscall {
		return machine.Proceed
	}
	var r arch.Regs
	s.m.CPU().Regs(&r)
	if r.GPR[arch.RAX] != unix.SYS_EXIT_GROUP || s.m.Kernel().Stats().Processes > 1 {
		return machine.Proceed
	}
	s.leaks.check(t, unix.SYS_EXIT_GROUP)
	s.exited, s.status = true, int(r.GPR[arch.RDI]&0xff)
	return machine.AbandonQuantum
}

// followGoroutine notes what a thread is about to do with goroutines.
func (s *stage) followGoroutine(t *kernel.Task) {
	var r arch.Regs
	s.m.CPU().Regs(&r)
	s.goroutines.follow(t.ID(), &r, s.profiled)
	s.profiled.fiber = s.goroutines.carried[t.ID()]
}

// takeLog empties the engine's log, which it has although it is muted up to the start of the schedules.
func (s *stage) takeLog() {
	if s.log == nil {
		return
	}
	s.m.CPU().SwapMemory(s.log)
	if s.profiled != nil {
		s.profiled.take(s.log.Entries())
	}
}

// switchPair is a place where a thread was preempted and the place at which the next one continued.
type switchPair struct{ from, to arch.Addr }

// mostNewPairs is the number of new pairs of a schedule that are kept.
const mostNewPairs = 64

func (s *stage) noteSwitch(x switchPair) {
	if len(s.newPairs) < mostNewPairs && s.plan.pairs != nil && !s.plan.pairs[x] && !slices.Contains(s.newPairs, x) {
		s.newPairs = append(s.newPairs, x)
	}
}

// operation returns the access to shared memory that the loaded thread makes next, if the strategy needs it.
func (s *stage) operation(t *kernel.Task, pc arch.Addr, kind accessKind) (o points.Operation) {
	if !s.follows || kind == calls {
		return o
	}
	o.PC = pc
	process := uint64(t.Process().PID()) << 48
	for _, x := range s.m.CPU().Operands() {
		n := lineOf(process | uint64(x.Addr)/sharing.CellSize)
		if s.plan.lines[n] == nil {
			continue
		}
		o.Writes, o.Reads = o.Writes || x.Write, o.Reads || !x.Write
		o.Addr, o.Size = x.Addr, uint64(x.Size)
		o.Selected = o.Selected || s.plan.selected == 0 || s.plan.selected == n
	}
	return o
}

// AfterQuantum implements machine.Hook.
func (s *stage) AfterQuantum(t *kernel.Task, stop arch.Stop) {
	if s.policy == nil {
		return
	}
	s.policy.Ended(stop.Reason == arch.StopBudget)
	if s.profiled != nil {
		s.noteEnd(t, stop)
	}
	if stop.Reason == arch.StopBudget || stop.Reason == arch.StopPause || stop.Reason == arch.StopBreakpoint {
		return
	}
	var r arch.Regs
	s.m.CPU().Regs(&r)
	s.notePlaces(t, stop, &r)
	if stop.Reason == arch.StopSyscall {
		s.leaks.check(t, r.GPR[arch.RAX])
	}
	if s.profiled == nil || stop.Reason != arch.StopSyscall {
		return
	}
	if number := r.GPR[arch.RAX]; number == unix.SYS_FUTEX || !linux.Has(number, linux.ThreadLocal|linux.Allocates|linux.EndsThread) {
		s.profiled.noteCall(arch.Addr(r.RIP) - lengthOfSyscall)
	}
}

// noteEnd notes where a thread is at the end of a quantum.
func (s *stage) noteEnd(t *kernel.Task, stop arch.Stop) {
	call := uint64(noCall)
	if stop.Reason == arch.StopSyscall {
		var r arch.Regs
		s.m.CPU().Regs(&r)
		call = r.GPR[arch.RAX]
	}
	s.handlers.ended(t.ID(), s.m.CPU().PC(), call)
}

// lengthOfSyscall is the number of bytes of the instruction SYSCALL.
const lengthOfSyscall = 2

// prefix is the policy up to the creation of the second thread.
type prefix struct{}

// Ready implements sched.Policy, and so do the other methods.
func (prefix) Ready(*sched.Cluster, arch.ThreadID, arch.Cycles)       {}
func (prefix) Block(*sched.Cluster, arch.ThreadID)                    {}
func (prefix) Exit(*sched.Cluster, arch.ThreadID)                     {}
func (prefix) Yield(*sched.Cluster, arch.ThreadID)                    {}
func (prefix) Ran(*sched.Cluster, sched.Quantum, uint64, arch.Cycles) {}
func (prefix) Next(c *sched.Cluster, timer arch.Cycles, hasTimer bool) (sched.Quantum, sched.Verdict) {
	if hasTimer && timer <= c.Makespan() {
		return sched.Quantum{}, sched.FireTimer
	}
	t := c.RunnableThread(0)
	q := sched.Quantum{Thread: t, Core: c.Place(t), Instructions: prefixQuantum}
	if hasTimer {
		q.Cycles = timer - c.Now(q.Core)
	}
	return q, sched.Run
}

// prefixQuantum bounds the quanta of the prefix, in instructions, so that Ctrl-C ends it.
const prefixQuantum = 10_000_000
