package machine

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/internal/nearmap"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/syncops"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dmt"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// gating asks a sched.Controller about the threads of a run, wherever they come
// to a place of their synchronization, and does what it says. It is a Recording,
// the last before those that write, and is told of operations by the
// recognizer. It is plain data; a nil gating does nothing.
//
// A slice ends where its thread is held, and where it releases another.
type gating struct {
	recorder.Nothing
	gate       sched.Gate
	controller sched.Controller
	as         roles
	syncs      *syncops.Recording
	recorder   *recorder.Recorder
	threads    nearmap.Map[arch.ThreadID, *gated]
	blocked    []arch.ThreadID // by the kernel, since the last slice's end
	gone       []arch.ThreadID
	timers     int  // that have fired since a thread could run
	obeyed     bool // the controller's verdict
	watched    []arch.Addr
	// soon and exactly are what a Stopper said of the thread that is about to run, when
	// the gate had asked so often.
	soon, exactly, asked uint64
	accesses             uint8
	repeats              bool            // a recorded run: its slices end where they ended
	visit                sched.SyncPoint // the last, kept so that it takes no memory
}

// roles is what a controller is besides: nil where it is not.
type roles struct {
	stopper sched.Stopper
	pauser  sched.Pauser
	orderer sched.Orderer
	keeper  sched.SignalKeeper
	follows *enforce.Enforcer
}

// control sets the controller.
func (g *gating) control(c sched.Controller) {
	g.controller, g.as = c, roles{}
	g.as.stopper, _ = c.(sched.Stopper)
	g.as.pauser, _ = c.(sched.Pauser)
	g.as.orderer, _ = c.(sched.Orderer)
	g.as.keeper, _ = c.(sched.SignalKeeper)
	g.as.follows, _ = c.(*enforce.Enforcer)
}

// gated is a thread, as its controller knows it.
type gated struct {
	started bool
	waited  bool        // in the kernel: it is asked about when it goes on
	calling bool        // Called is due
	held    *arch.Stop  // the system call that is carried out when it is released
	atomic  bool        // the atomic instruction that it is before was asked about
	cycles  arch.Cycles // that it has run for
	ran     uint64      // instructions since it was last at AtBudget
}

// newGating sets up the controller that the configuration asks for, if any.
func (m *Machine) newGating() (*gating, error) {
	controller, err := m.newEnforcer()
	if err != nil {
		return nil, err
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
	g := &gating{repeats: m.config.Replay != nil}
	g.control(controller)
	g.watched = g.addresses()
	return g, nil
}

// maxPoints is for how many instructions the engine is told that threads may stop
// before them: when it comes to one it looks at all.
const maxPoints = 256

// setPoints tells the engine where the controller stops threads exactly. A run
// whose accesses are recorded has a hook of its own at every instruction.
func (m *Machine) setPoints() error {
	g, r := m.state.gating, m.config.Record
	if g == nil || r != nil && r.Memory != nil {
		return nil
	}
	if g.as.stopper == nil {
		return nil
	}
	if points := g.as.stopper.Points(); len(points) <= maxPoints {
		return m.cpu.SetPoints(points)
	}
	return nil
}

// orderCosts is what ordering operations costs.
func (m *Machine) orderCosts() sched.Costs {
	c := &m.config.Costs
	return sched.Costs{
		Sync: arch.Cycles(c.Sync), SemaphoreWait: arch.Cycles(c.SemaphoreWait),
		SemaphoreWake: arch.Cycles(c.SemaphoreWake), SpinCheck: arch.Cycles(c.SpinCheck),
	}
}

func (g *gating) thread(t arch.ThreadID) *gated {
	s, ok := g.threads.Get(t)
	if !ok {
		s = &gated{}
		g.threads.Put(t, s)
	}
	return s
}

// ask asks about the thread that acts.
func (g *gating) ask(asked sched.SyncPoint) bool {
	g.visit = asked
	v := &g.visit
	v.Thread, v.Now, v.Instructions = g.recorder.Thread(), g.recorder.Time(), g.recorder.Retired()
	v.Name, v.InOperation = g.syncs.Name(v.Thread), g.syncs.InOperation(v.Thread)
	if v.Name == "" {
		v.Name = "1" // the first thread has its name when it has run
	}
	goesOn := g.gate.Ask(g.controller, v)
	v.Sync, v.Call = nil, nil
	return goesOn
}

// Admit implements syncops.Gate. Futex calls are system calls; starts and ends are
// told otherwise.
func (g *gating) Admit(e *event.Sync) bool {
	switch {
	case e.Op == event.OpAtomic:
		g.didAtomic(e)
		return true
	case e.Op == event.OpThreadReturn:
		return g.ask(sched.SyncPoint{Kind: sched.AtReturn, Sync: e})
	case e.Op == event.OpFutexWait || e.Op == event.OpFutexWake || e.Phase == event.Whole:
		return true
	case e.Thread != g.recorder.Thread():
		return true // another ends its process
	case e.Phase == event.Enter:
		return g.ask(sched.SyncPoint{Kind: sched.AtEnter, Sync: e})
	default:
		return g.ask(sched.SyncPoint{Kind: sched.AtReturn, Sync: e})
	}
}

// countsHeap tells whether the controller wants to know of calls of allocators.
func (g *gating) countsHeap() bool {
	if g == nil {
		return false
	}
	h, ok := g.controller.(sched.HeapController)
	return ok && h.CountsHeap()
}

// schedules tells whether the controller is asked about the places that schedules need.
func (g *gating) schedules() bool {
	if g == nil {
		return false
	}
	s, ok := g.controller.(sched.ScheduleController)
	return ok && s.Schedules()
}

// AddAllocation implements syncops.HeapSink.
func (g *gating) AddAllocation(e *event.Heap) {
	if h, ok := g.controller.(sched.HeapController); ok {
		h.Allocates(e.Thread, e.Instructions, e.Phase == event.Enter)
	}
}

// Issue implements recorder.Recording.
func (g *gating) Issue(_ *recorder.Recorder, _ *kernel.Task, e *event.Syscall) {
	if h, ok := g.controller.(sched.HandlerController); ok && e.Number == unix.SYS_RT_SIGRETURN {
		h.Handled(e.Thread, e.Instructions)
		return
	}
	if g.syncs.InOperation(e.Thread) {
		if k, ok := g.controller.(sched.KillController); ok && e.Number == unix.SYS_TGKILL {
			k.Kills(e.Thread)
		}
		return
	}
	g.thread(e.Thread).calling = true
	g.ask(sched.SyncPoint{Kind: sched.AtCall, Call: e, Private: ownCall(e.Number)})
}

// ownCall is what Visit.Own says of a system call.
func ownCall(number uint64) bool {
	return linux.Has(number, linux.Allocates|linux.OfLibrary)
}

// Return implements recorder.Recording.
func (g *gating) Return(_ *recorder.Recorder, _ *kernel.Task, e *event.Syscall) {
	if s := g.thread(e.Thread); s.calling {
		s.calling = false
		g.controller.Called(&g.gate, e.Thread, e.Result)
	}
}

// Signal implements recorder.Recording.
func (g *gating) Signal(_ *recorder.Recorder, e *event.Signal) {
	g.thread(e.Thread).atomic = false // it comes to the instruction again
	if c, ok := g.controller.(sched.SignalController); ok {
		c.Signalled(&g.gate, e)
	}
}

// keepSignals has a thread that is about to go on get no signal now, if its
// controller wants that.
func (g *gating) keepSignals(o *override, t *kernel.Task) {
	if g == nil || g.obeyed {
		return
	}
	hold := signalHold{outsideCall: g.as.keeper != nil && g.syncs.InOperation(t.ID())}
	h, ok := g.controller.(sched.SignalHolder)
	hold.always = ok && h.HoldsSignals(t.ID())
	o.setHold(t.ID(), hold)
}

// block notes that the kernel has taken a thread off its core, exit that it is
// gone.
func (g *gating) block(t arch.ThreadID) {
	if g != nil {
		g.blocked = append(g.blocked, t)
	}
}

// wake notes that the kernel lets a thread go on, or has made it.
func (g *gating) wake(t arch.ThreadID) {
	if g == nil {
		return
	}
	if s := g.threads.At(t); s != nil && s.waited {
		g.controller.Woken(&g.gate, t)
	} else if g.as.orderer != nil && s == nil {
		g.as.orderer.Made(&g.gate, t)
	}
}

func (g *gating) exit(t arch.ThreadID) {
	if g != nil {
		g.gone = append(g.gone, t)
	}
}

// stops tells whether the thread's slice ends here.
func (g *gating) stops(t arch.ThreadID) bool {
	return g != nil && (g.gate.Pending() || g.gate.Holds(t))
}

// begins asks about a thread that is about to run; false: it is held, or has
// made the system call that it was held before.
func (m *Machine) begins(t *kernel.Task) bool {
	g := m.state.gating
	if g == nil {
		return true
	}
	s := g.thread(t.ID())
	switch {
	case g.gate.Holds(t.ID()):
		return false // a signal woke it
	case !s.started:
		s.started = true
		return g.ask(sched.SyncPoint{Kind: sched.AtStart})
	case s.waited:
		s.waited = false
		if !g.ask(sched.SyncPoint{Kind: sched.AtWake}) {
			return false
		}
	}
	if g.as.pauser != nil && !g.as.pauser.May(t.ID(), g.recorder.Retired()) {
		g.gate.Hold(t.ID())
		return false
	}
	if most := g.controller.Budget(t.ID()); most > 0 && s.ran >= most {
		s.ran = 0
		return g.ask(sched.SyncPoint{Kind: sched.AtBudget})
	}
	return m.stopsAt(t)
}

// stopsAt asks about a thread as often as it is where the controller wants it to
// stop.
func (m *Machine) stopsAt(t *kernel.Task) bool {
	g := m.state.gating
	if g.as.stopper == nil {
		return true
	}
	for {
		g.asked = g.gate.Counts().Asked
		g.soon, g.exactly, g.accesses = g.as.stopper.Left(t.ID(), g.recorder.Retired())
		pc, done := m.position(t)
		if g.soon > 0 && (g.exactly > 0 || g.accesses > done) {
			return m.arrives(t)
		}
		g.thread(t.ID()).atomic = false // it comes to the instruction again
		if !g.ask(sched.SyncPoint{Kind: sched.AtInstruction, PC: pc, Accesses: done}) {
			return false
		}
	}
}

// addresses are the instructions at which a controller is asked.
func (g *gating) addresses() []arch.Addr {
	if g == nil {
		return nil
	}
	if a, ok := g.controller.(sched.Arriver); ok {
		return a.Addresses()
	}
	return nil
}

// arrived is arrives for a thread that was stopped on its way.
func (g *gating) arrived(m *Machine, t *kernel.Task, stop arch.Stop) {
	if g != nil && stop.Reason == arch.StopBreakpoint && !g.gate.Holds(t.ID()) {
		m.arrives(t)
	}
}

// returned asks again about a thread whose last slice ended where an operation ends:
// it is at that instruction, behind the operation, only now.
func (g *gating) returned(m *Machine, t *kernel.Task) {
	if g != nil && !g.stops(t.ID()) {
		m.arrives(t)
	}
}

// arrives asks about a thread that is loaded, if it is where an Arriver wants to know
// of it.
func (m *Machine) arrives(t *kernel.Task) bool {
	g := m.state.gating
	if len(g.watched) == 0 || g.gate.Holds(t.ID()) {
		return true
	}
	pc := m.cpu.PC()
	if _, found := slices.BinarySearch(g.watched, pc); !found {
		return true
	}
	return g.ask(sched.SyncPoint{Kind: sched.AtAddress, PC: pc})
}

// wakes asks an Orderer about a thread that was woken; false: it is held.
func (m *Machine) wakes(t *kernel.Task) bool {
	g := m.state.gating
	if g == nil || g.gate.Holds(t.ID()) {
		return true
	}
	s := g.thread(t.ID())
	if g.as.orderer == nil || !s.waited {
		return true
	}
	s.waited = false
	return g.ask(sched.SyncPoint{Kind: sched.AtWake})
}

// calls carries out the system call that a thread was held before, if that is
// where it is.
func (m *Machine) calls(t *kernel.Task) bool {
	g := m.state.gating
	if g == nil || g.gate.Holds(t.ID()) {
		return false
	}
	s := g.thread(t.ID())
	if s.held == nil {
		return false
	}
	stop := *s.held
	s.held = nil
	t.Load()
	m.handle(t, stop)
	return true
}

// handle lets the kernel act on the stop of a slice, or keeps that for when the
// thread is released.
func (m *Machine) handle(t *kernel.Task, stop arch.Stop) {
	g := m.state.gating
	if stop.Reason == arch.StopBudget {
		return // the kernel has nothing to do
	}
	m.show(t.ID())
	if g == nil || stop.Reason != arch.StopSyscall {
		m.state.kernel.Handle(t, stop)
		return
	}
	if g.gate.Holds(t.ID()) {
		kept := stop
		g.thread(t.ID()).held = &kept
		return
	}
	if e, ok := g.gate.TakeEffect(t.ID(), sched.Deliver); ok {
		m.state.kernel.Deliver(t, e.Writes[0].Data)
	}
	if e, ok := g.gate.TakeEffect(t.ID(), sched.Answer); ok {
		m.state.kernel.CompleteCall(t, e.Result, e.Writes)
		return
	}
	m.state.kernel.Handle(t, stop)
}

// budget bounds a slice by what the controller allows its thread.
func (g *gating) budget(t arch.ThreadID, l *arch.Limit) {
	if g == nil {
		return
	}
	if most := g.controller.Budget(t); most > 0 {
		bound(l, most-min(most, g.thread(t).ran))
	}
	if g.as.stopper != nil {
		if g.gate.Counts().Asked != g.asked { // what was asked since may have changed it
			g.soon, g.exactly, g.accesses = g.as.stopper.Left(t, g.recorder.Retired())
		}
		if l.Most = g.exactly; g.accesses > 0 && !g.repeats {
			inside(l, g.exactly, g.accesses)
			return
		}
		if l.Instructions == 0 || g.soon < l.Instructions && !g.repeats {
			l.Instructions = g.soon
		}
	}
}

// inside has a slice end after some accesses of the instruction that comes after so many,
// unless it ends earlier.
func inside(l *arch.Limit, instructions uint64, accesses uint8) {
	l.Most = 0
	if l.Instructions != 0 && l.Instructions < instructions {
		return
	}
	l.Instructions, l.Immediately, l.Exact = instructions, instructions == 0, true
	l.Inside = arch.InsideAfter(accesses)
}

// longestBlock is more than the instructions of any block, by which a slice that
// is not exact exceeds its budget.
const longestBlock = 1024

// bound has a slice end after so many instructions at the latest.
func bound(l *arch.Limit, instructions uint64) {
	if l.Instructions == 0 || instructions < l.Instructions+longestBlock {
		l.Exact = true
	}
	if l.Instructions == 0 || instructions < l.Instructions {
		l.Instructions = max(1, instructions)
	}
}
