package machine

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine/override"
	"github.com/heddle-dmt/heddle/internal/nearmap"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/syncops"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dmt"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

var errService = errs.Define("run-in-windows",
	"the recorded run is in windows of requests, and cannot be used for this",
	"Its server's threads follow the schedules of its windows, which only heddle replay can repeat.",
	"Repeat it by heddle replay, or record the run without --windows.")

// control asks a sched.Controller about the threads of a run at each of their
// synchronization points, and carries out its answers. It is a Recording, the last one
// before the writers of the trace, and gets operations from the recognizer. It is plain data;
// a nil control does nothing.
//
// A quantum ends where its thread is held, and where it releases another.
type control struct {
	recorder.Nothing
	gate       sched.Gate
	controller sched.Controller
	needs      sched.Needs
	enforcer   *enforce.Enforcer // the controller, if it is one
	recognizer *syncops.Recognizer
	recorder   *recorder.Recorder
	threads    nearmap.Map[arch.ThreadID, *controlledThread]
	views      *storebuffer.Views // of threads, if the controller gives them any
	override   *override.Override
	blocked    []arch.ThreadID // by the kernel, since the end of the last quantum
	exited     []arch.ThreadID
	timers     int  // that have fired since a thread could run
	ended      bool // the controller's verdict was carried out
	// soon, exactly and accesses are the last answer of StopDistance about the thread that is
	// about to run, and asked is how many questions the gate had asked before.
	soon, exactly, asked uint64
	accesses             uint8
	repeats              bool            // a recorded run: its quanta end where they ended
	point                sched.SyncPoint // the last, kept so that it takes no memory
}

// setController sets the controller.
func (c *control) setController(by sched.Controller) {
	c.controller, c.needs = by, by.Needs()
	c.enforcer, _ = by.(*enforce.Enforcer)
	for _, t := range c.threads.All() {
		t.shown = 0
	}
}

// controlledThread is a thread as its controller sees it.
type controlledThread struct {
	started bool
	waited  bool       // in the kernel: the controller is asked when it continues
	calling bool       // Called is due
	held    *arch.Stop // the system call that is carried out when it is released
	atomic  bool       // the controller was asked about the atomic instruction that it is before
	// compares reports that this is a CMPXCHG, and failed that it was executed and has stored nothing.
	compares, failed bool
	retired          uint64 // instructions
	ran              uint64 // instructions since it was last at AtBudget
	shown            int64  // ns, the time that clocks show it (sched.ShowTime); 0: the actual time
}

// newControl sets up the controller that the configuration asks for, if any.
func (m *Machine) newControl() (*control, error) {
	controller, err := m.newEnforcer()
	if err == nil && m.config.Service != nil && m.with.service == nil {
		err = errService.New()
	}
	if err != nil {
		return nil, err
	}
	if controller == nil && m.with.service != nil {
		controller = m.with.service.Controller
	}
	if controller == nil {
		controller = dmt.NewController(m.config.Control)
	}
	if controller == nil {
		controller = dmt.NewTurnController(m.config.Sched.WithDefaults(), m.orderCosts())
	}
	if controller == nil {
		return nil, nil
	}
	c := &control{repeats: m.config.Replay != nil}
	c.setController(controller)
	return c, nil
}

// maxStopPoints is the greatest number of stop points that the engine is given: before each
// instruction there it checks whether the thread is to stop.
const maxStopPoints = 256

// setStopPoints gives the engine the instructions before which the controller stops threads
// exactly. A run whose accesses are recorded has a hook at every instruction already.
func (m *Machine) setStopPoints() error {
	c, r := m.state.control, m.config.Record
	if c == nil || !c.needs.Stops {
		return nil
	}
	points := c.needs.StopPoints
	c.needs.StopPoints = nil
	if r != nil && r.Memory != nil || len(points) > maxStopPoints {
		return nil
	}
	return m.cpu.SetPoints(points)
}

// orderCosts returns the costs of ordering operations.
func (m *Machine) orderCosts() sched.Costs {
	c := &m.config.Costs
	return sched.Costs{
		Sync: arch.Cycles(c.Sync), SemaphoreWait: arch.Cycles(c.SemaphoreWait),
		SemaphoreWake: arch.Cycles(c.SemaphoreWake), SpinCheck: arch.Cycles(c.SpinCheck),
	}
}

func (c *control) thread(t arch.ThreadID) *controlledThread {
	s, ok := c.threads.Get(t)
	if !ok {
		s = &controlledThread{}
		c.threads.Put(t, s)
	}
	return s
}

// shouldResume asks about the thread that acts, which is at a point, and returns whether the
// thread may continue. Otherwise it is held.
func (c *control) shouldResume(at sched.SyncPoint) bool {
	c.point = at
	p := &c.point
	p.Thread, p.Now, p.Instructions = c.recorder.Thread(), c.recorder.Time(), c.recorder.Retired()
	p.Name, p.InOperation = c.recognizer.Name(p.Thread), c.recognizer.InOperation(p.Thread)
	if p.Name == "" {
		p.Name = "1" // the first thread has its name when it has run
	}
	resumes := c.gate.Ask(c.controller, p)
	p.Sync, p.Call = nil, nil
	return resumes
}

// admits asks about the begin or the end of an operation, and returns whether its thread may
// continue. Futex calls are system calls; starts and ends have points of their own.
func (c *control) admits(e *event.Sync) bool {
	switch {
	case e.Op == event.OpAtomic:
		c.reportAtomic(e)
		return true
	case e.Op == event.OpThreadReturn:
		return c.shouldResume(sched.SyncPoint{Kind: sched.AtReturn, Sync: e})
	case e.Op == event.OpFutexWait || e.Op == event.OpFutexWake || e.Phase == event.Whole:
		return true
	case e.Thread != c.recorder.Thread():
		return true // another ends its process
	case e.Phase == event.Enter:
		return c.shouldResume(sched.SyncPoint{Kind: sched.AtEnter, Sync: e})
	default:
		return c.shouldResume(sched.SyncPoint{Kind: sched.AtReturn, Sync: e})
	}
}

// observeAllocation reports a call of an allocator.
func (c *control) observeAllocation(e *event.Heap) {
	if !c.needs.Allocations {
		return
	}
	kind := sched.AllocatorLeft
	if e.Phase == event.Enter {
		kind = sched.AllocatorEntered
	}
	c.controller.Observe(&c.gate, sched.ThreadEvent{Kind: kind, Thread: e.Thread, Instructions: e.Instructions, Heap: e})
}

// Issue implements recorder.Recording.
func (c *control) Issue(_ *recorder.Recorder, t *kernel.Task, e *event.Syscall) {
	if c.needs.HandlerReturns && e.Number == unix.SYS_RT_SIGRETURN {
		c.controller.Observe(&c.gate, sched.ThreadEvent{Kind: sched.HandlerReturned, Thread: e.Thread, Instructions: e.Instructions})
		return
	}
	if c.recognizer.InOperation(e.Thread) {
		switch {
		case c.needs.Kills && e.Number == unix.SYS_TGKILL:
			c.controller.Observe(&c.gate, sched.ThreadEvent{Kind: sched.SignalSent, Thread: e.Thread})
		case c.needs.Times && linux.Has(e.Number, linux.TimeDependent):
			c.controller.Observe(&c.gate, sched.ThreadEvent{Kind: sched.TimeAsked, Thread: e.Thread, Number: e.Number})
		}
		return
	}
	c.thread(e.Thread).calling = true
	c.shouldResume(sched.SyncPoint{Kind: sched.AtCall, Call: e, Private: isPrivateCall(e.Number), Inner: c.recognizer.CallsInner(e.Thread), File: t.FileAlone(e.Number, e.Args[0])})
}

// isPrivateCall reports whether a system call is sched.SyncPoint.Private.
func isPrivateCall(number uint64) bool {
	return linux.Has(number, linux.Allocates|linux.OfLibrary)
}

// Return implements recorder.Recording.
func (c *control) Return(_ *recorder.Recorder, _ *kernel.Task, e *event.Syscall) {
	if s := c.thread(e.Thread); s.calling {
		s.calling = false
		c.controller.Called(&c.gate, e.Thread, e.Result)
	}
}

// Signal implements recorder.Recording.
func (c *control) Signal(_ *recorder.Recorder, e *event.Signal) {
	c.thread(e.Thread).atomic = false // it reaches the instruction again
	if c.needs.Signals {
		c.controller.Observe(&c.gate, sched.ThreadEvent{
			Kind: sched.SignalDelivered, Thread: e.Thread, Instructions: e.Instructions, Signal: e,
		})
	}
}

// withholdSignals has a thread that is about to continue get no signal now, if its
// controller wants that.
func (c *control) withholdSignals(o *override.Override, t *kernel.Task) {
	if c == nil || c.ended {
		return
	}
	o.SetHold(t.ID(), override.Hold{
		Always:      c.needs.SignalHolds && c.controller.HoldsSignals(t.ID()),
		OutsideCall: c.needs.WholeOperations && c.recognizer.InOperation(t.ID()),
	})
}

// noteBlocked notes that the kernel has taken a thread off its core.
func (c *control) noteBlocked(t arch.ThreadID) {
	if c != nil {
		c.blocked = append(c.blocked, t)
	}
}

// noteReady notes that the kernel lets a thread continue, or has created it.
func (c *control) noteReady(t arch.ThreadID) {
	if c == nil {
		return
	}
	if s := c.threads.At(t); s != nil && s.waited {
		c.controller.Woken(&c.gate, t)
		if c.needs.Views { // from now on, not from when it has a core
			c.override.SetHold(t, override.Hold{Always: c.controller.HoldsSignals(t)})
		}
	} else if c.needs.Creations && s == nil {
		c.controller.Observe(&c.gate, sched.ThreadEvent{Kind: sched.ThreadCreated, Thread: t})
	}
}

// noteExited notes that a thread has ended.
func (c *control) noteExited(t arch.ThreadID) {
	if c != nil {
		c.exited = append(c.exited, t)
	}
}

// endsQuantum reports whether the thread's quantum ends here.
func (c *control) endsQuantum(t arch.ThreadID) bool {
	return c != nil && (c.gate.Pending() || c.gate.Holds(t))
}

// limitQuantum bounds a quantum by the instructions that the controller allows its thread.
func (c *control) limitQuantum(t arch.ThreadID, l *arch.Limit) {
	if c == nil {
		return
	}
	if most := c.controller.Budget(t); most > 0 {
		boundInstructions(l, most-min(most, c.thread(t).ran))
	}
	if !c.needs.Stops {
		return
	}
	if c.gate.Counts().Asked != c.asked { // a question since may have changed the answer
		c.soon, c.exactly, c.accesses = c.controller.StopDistance(t, c.recorder.Retired())
	}
	if l.Most = c.exactly; c.accesses > 0 && !c.repeats {
		stopInside(l, c.exactly, c.accesses)
		return
	}
	if l.Instructions == 0 || c.soon < l.Instructions && !c.repeats {
		l.Instructions = c.soon
	}
}

// stopInside has a quantum end after some memory accesses of the instruction that follows the
// given number of instructions, unless it ends earlier.
func stopInside(l *arch.Limit, instructions uint64, accesses uint8) {
	l.Most = 0
	if l.Instructions != 0 && l.Instructions < instructions {
		return
	}
	l.Instructions, l.Immediately, l.Exact = instructions, instructions == 0, true
	l.Inside = arch.InsideAfter(accesses)
}

// longestBlock is more than the instructions of any block, by which a quantum that is not
// exact exceeds its budget.
const longestBlock = 1024

// boundInstructions has a quantum end after the given number of instructions at the latest.
func boundInstructions(l *arch.Limit, instructions uint64) {
	if l.Instructions == 0 || instructions < l.Instructions+longestBlock {
		l.Exact = true
	}
	if l.Instructions == 0 || instructions < l.Instructions {
		l.Instructions = max(1, instructions)
	}
}
