package explore

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dpor"
)

// chooser decides which process executes the next event, and takes the events. An Explorer is one, and so
// is a list of choices that is followed.
type chooser interface {
	// Branch is the processes of the events that the next execution has in common with earlier ones.
	Branch() []dpor.Process
	// Begin begins it after a number of these.
	Begin(depth int)
	IsDecided() bool
	Choose(enabled, reluctant []dpor.Process) (p dpor.Process, ok bool, err error)
	Add(dpor.Event) error
}

// runner is a machine on which a program is executed event by event. It is for one goroutine, and must be
// closed.
type runner struct {
	machine.NoHook
	m       *machine.Machine
	model   memmodel.Model
	sharing *sharing
	log     *memlog.Buffer // nil in a run that is recorded
	stdout  bytes.Buffer
	stderr  bytes.Buffer
	start   *machine.Snapshot // at the creation of the second thread
	started started
	saved   []*saved
	// The states are saved for a version of the points. The next one is saved when there are saveAt events.
	savedFor, saveAt int
	choose           chooser
	limit            uint64 // of instructions of an execution, after which a thread is set aside
	most             int    // events of an execution
	stops            int    // the version of the points whose breakpoints are set
	// spinsOn: a thread that spins continues when another one has stored, in place of the end of the execution.
	spinsOn bool
	tooLong bool // an execution had too many events
	notes   notes

	// The state of an execution.
	threads map[arch.ThreadID]*thread
	order   []*thread // by id
	running bool      // the prefix is over
	over    bool
	ending  ending
	err     error
	quantum sched.Quantum
	next    dpor.Process // that was chosen; 0: none was
	timer   bool         // the next step is a timer's
	acting  *thread      // whose event is being executed; nil: none is
	event   dpor.Event   // that is being executed
	// The deadline of the earliest timer before it, if there was one.
	deadline    int64
	hasDeadline bool
	eventPC     arch.Addr
	allowed     uint64         // instructions until a thread is set aside
	keeps       bool           // the event that is being executed has stored what was there
	changes     bool           // it has stored something else
	polls       polls          // of the thread that executes it
	history     []dpor.Event   // the events so far
	idle        []bool         // of each of them: it has stored nothing but what was there
	path        []dpor.Process // the choices so far
	pc          arch.Addr      // at which the engine has stopped last
	done        uint64         // instructions of the quantum before it
	changed     bool           // the kernel has acted: threads may have changed
	enabled     []dpor.Process
	spinners    []dpor.Process
}

// ending is how an execution ended.
type ending uint8

const (
	complete  ending = iota
	explored         // what follows was explored
	outlasted        // a thread has repeated loads that now have other values
)

// started is the state of the streams at the snapshot.
type started struct {
	stdout, stderr int
	instructions   uint64
}

// Bounds of the events of an execution: of one among all up to equivalence, and of one with a bounded cost.
const (
	mostEvents        = 20_000
	mostBoundedEvents = 5_000_000
)

// notes are what a report has to say about the program.
type notes struct {
	readsTime, unmaps bool
}

func (n *notes) add(more notes) {
	n.readsTime, n.unmaps = n.readsTime || more.readsTime, n.unmaps || more.unmaps
}

// threadState is where a thread is between events.
type threadState uint8

const (
	unseen   threadState = iota // it is to run to its next event
	atEvent                     // it is before an event
	inside                      // it is between the load and the store of an instruction
	blocked                     // it waits in the kernel
	finishes                    // it is about to end a wait that is an event
	spinning                    // it repeats loads until another thread stores
	gone
)

// step is what a thread does next.
type step struct {
	event     dpor.Event
	pc        arch.Addr
	drains    bool // it waits for the thread's commits
	drainsAll bool // it commits the stores of all threads
	parts     bool // it is the load of an instruction that then stores
	call      bool // it is a system call
}

// thread is a thread of the program.
type thread struct {
	id    arch.ThreadID
	state threadState
	step
	latest         int   // its latest event, or that by which it was created; -1: none
	after          []int // events that made its next event possible
	commits        []int // events that have committed its stores since its last one that waited for them
	waitsInvisibly bool  // the end of its wait is no event
	// Its last instruction has faulted: the kernel acts because of that, and not for a call.
	faulted bool
	faultPC arch.Addr
	// stored is the last event before each of its stores, by the time of the quantum in which that was made.
	stored map[arch.Cycles]int
	visits
}

func (t *thread) process() dpor.Process { return dpor.Process(t.id) << threadShift }

// threadShift is the place of a thread's id in the number of a process; below it is the address of a
// store buffer, or 0.
const threadShift = dpor.ThreadShift

// timerProcess fires the earliest timer.
const timerProcess = 1

// newRunner makes the machine of a configuration.
func newRunner(c machine.Config, s *sharing, record bool) (*runner, error) {
	r := &runner{sharing: s, most: mostEvents, model: c.Memory.MemoryModel(), threads: map[arch.ThreadID]*thread{}}
	if !record {
		r.log = memlog.NewBuffer()
	}
	c.Stdout, c.Stderr = &r.stdout, &r.stderr
	options := []machine.Option{machine.WithHook(r), machine.Isolated(), machine.WithPolicy(r)}
	if r.isWeak() {
		options = append(options, machine.WithStoresKept(func(arch.ThreadID, arch.Addr) int { return 1 << 30 }, nil))
	}
	m, err := machine.New(c, options...)
	if err != nil {
		r.closeLog()
		return nil, err
	}
	r.m = m
	return r, nil
}

// isWeak reports whether stores wait in buffers.
func (r *runner) isWeak() bool { return r.model != memmodel.SC }

func (r *runner) closeLog() {
	if r.log != nil {
		r.log.Close()
	}
}

func (r *runner) close() {
	r.dropSaved()
	if r.start != nil {
		r.start.Release()
	}
	r.m.Close()
	r.closeLog()
}

// Prepare implements machine.Hook.
func (r *runner) Prepare(m *machine.Machine) error {
	if r.log == nil {
		return nil
	}
	if r.isWeak() {
		if err := m.CPU().LogAtomics(); err != nil {
			return err
		}
	}
	return m.CPU().LogMemory(memlog.Filter{})
}

// runToSecondThread runs the program to the creation of its second thread, and reports whether there is
// one.
func (r *runner) runToSecondThread(ctx context.Context) (bool, error) {
	for n := 0; !r.m.Done(); n++ {
		if len(r.m.Kernel().Tasks()) > 1 {
			r.started = started{r.stdout.Len(), r.stderr.Len(), r.m.Instructions()}
			return true, nil
		}
		if n%256 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		r.prefixQuantum()
		r.m.Step()
	}
	return false, nil
}

// prefixInstructions bounds a quantum before the second thread, so that Ctrl-C ends it.
const prefixInstructions = 10_000_000

func (r *runner) prefixQuantum() {
	if c := r.m.Cluster(); c.Runnable() > 0 {
		t := c.RunnableThread(0)
		r.quantum = sched.Quantum{Thread: t, Core: c.Place(t), Instructions: prefixInstructions}
	}
}

// keepStart keeps the machine's state, from which executions start.
func (r *runner) keepStart() { r.start = r.m.Snapshot() }

// begin puts the machine to the start of an execution, or to a later state that it has in common with the one before.
func (r *runner) begin() {
	branch := r.choose.Branch()
	from := r.keptFor(branch)
	r.running, r.over, r.ending, r.err = true, false, complete, nil
	r.acting, r.next, r.changed, r.timer, r.allowed = nil, 0, false, false, r.limit
	if from != nil {
		r.load(from)
	} else {
		r.beginAnew()
	}
	if r.start != nil && r.log != nil {
		r.m.CPU().ForgetMemory()
	}
	r.m.Cluster().SwitchPolicy(r)
	r.setBreakpoints()
	r.planSave(len(branch), len(r.history))
	r.choose.Begin(len(r.history))
}

// beginAnew puts the machine to the creation of the second thread.
func (r *runner) beginAnew() {
	if r.start != nil {
		r.m.Restore(r.start)
		r.stdout.Truncate(r.started.stdout)
		r.stderr.Truncate(r.started.stderr)
	}
	r.sharing.begin()
	clear(r.threads)
	r.order, r.path, r.history, r.idle = r.order[:0], r.path[:0], r.history[:0], r.idle[:0]
	r.noteThreads(-1)
}

// setBreakpoints has the engine stop before the events that are known.
func (r *runner) setBreakpoints() {
	if r.sharing.version == r.stops {
		return
	}
	r.stops = r.sharing.version
	var list []arch.Addr
	for pc, kind := range r.sharing.points {
		if !r.isWeak() || kind != stores {
			list = append(list, pc)
		}
	}
	slices.Sort(list)
	r.m.CPU().SetBreakpoints(list)
}

// run carries out an execution. It ends early where everything that follows was explored.
func (r *runner) run(ctx context.Context) error {
	for n := 0; !r.m.Done(); n++ {
		if r.prepare(); r.over || r.err != nil {
			return r.err
		}
		r.m.Step()
		r.afterStep()
		if r.err != nil {
			return r.err
		}
		if len(r.history) > r.most {
			r.tooLong = true
			return errEvents.New(r.most)
		}
		if !r.m.Done() && r.m.Instructions()-r.started.instructions > r.allowed {
			r.setAside(r.threads[r.quantum.Thread])
		}
		if n%64 == 63 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// prepare decides what the machine does next.
func (r *runner) prepare() {
	r.timer = false
	r.commitPrivate()
	for !r.over && r.err == nil {
		if r.acting != nil {
			r.setQuantum(r.acting)
			return
		}
		if t := r.find(unseen); t != nil {
			if !r.isWeak() {
				r.setQuantum(t)
				return
			}
			// It may store before its first event, which then has its place in the order.
			t.state, t.step = finishes, step{event: dpor.Event{Process: t.process(), Owner: t.process()}}
			continue
		}
		if r.next == 0 && r.isToBeSaved() {
			r.save()
		}
		if r.next == 0 && !r.chooseProcess() {
			return
		}
		p := r.next
		r.next = 0
		switch {
		case p == timerProcess:
			r.timer = true
			return
		case p&(1<<threadShift-1) != 0:
			r.commit(p)
		default:
			t := r.threads[arch.ThreadID(p>>threadShift)]
			r.setQuantum(t)
			if t.parts {
				r.quantum.Instructions, r.quantum.Accesses, r.quantum.AccessesOnly, r.quantum.Exact = 0, 1, true, true
			}
			r.beginEvent(t)
			return
		}
	}
}

func (r *runner) find(state threadState) *thread {
	for _, t := range r.order {
		if t.state == state {
			return t
		}
	}
	return nil
}

// longestQuantum bounds a quantum, in instructions, so that a thread without events is seen.
const longestQuantum = 50_000

func (r *runner) setQuantum(t *thread) {
	c := r.m.Cluster()
	r.quantum = sched.Quantum{Thread: t.id, Core: c.Place(t.id), Instructions: longestQuantum}
}

// chooseProcess asks which process executes the next event. It returns false if the execution is over.
func (r *runner) chooseProcess() bool {
	list := r.listEnabled()
	r.spinners = r.spinners[:0]
	for _, t := range r.order {
		if t.state == spinning && !(t.drains && r.hasStores(t)) {
			r.spinners = append(r.spinners, t.process())
		}
	}
	if len(list) == 0 && !r.choose.IsDecided() {
		r.endStuck()
		return false
	}
	p, ok, err := r.choose.Choose(list, r.spinners)
	switch {
	case errors.Is(err, dpor.ErrTooMany):
		r.err = errMany.Wrap(err)
		return false
	case err != nil:
		r.err = errDiffers.Wrap(err)
		return false
	case !ok:
		r.over, r.ending = true, explored
		return false
	}
	r.next = p
	r.path = append(r.path, p)
	return true
}

// listEnabled lists the processes that can execute an event: the thread of the last event first.
func (r *runner) listEnabled() []dpor.Process {
	list := r.enabled[:0]
	var last dpor.Process
	if len(r.path) > 0 {
		last = r.path[len(r.path)-1] >> threadShift << threadShift
	}
	for _, same := range []bool{true, false} {
		for _, t := range r.order {
			if (t.process() == last) == same && t.isReady() && !(t.drains && r.hasStores(t)) {
				list = append(list, t.process())
			}
		}
	}
	list = r.appendBuffers(list)
	if _, has := r.m.Kernel().NextTimer(); has {
		list = append(list, timerProcess)
	}
	r.enabled = list
	return list
}

// isReady reports whether the thread is before an event that it can execute, but for its stores.
func (t *thread) isReady() bool {
	return t.state == atEvent || t.state == inside || t.state == finishes
}

// endStuck ends an execution in which no process can continue: a deadlock, or threads that spin.
func (r *runner) endStuck() {
	r.over = true
	if r.find(spinning) != nil {
		r.m.End(machine.OutcomeLimit)
	} else {
		r.m.End(machine.OutcomeDeadlock)
	}
}

// setAside has the other threads continue where one has run for so long that it waits for them or hangs, as a
// fair scheduler would. If none can, it hangs.
func (r *runner) setAside(t *thread) {
	if r.acting == t {
		r.finishEvent()
		t.step = step{event: dpor.Event{Process: t.process(), Owner: t.process()}}
	}
	if t.state == unseen || t.isReady() {
		t.state = spinning
	}
	if len(r.listEnabled()) == 0 {
		r.m.End(machine.OutcomeLimit)
		return
	}
	t.noteReads(r.history, len(r.history)-mostReads)
	r.allowed += r.limit
}

// beginEvent has the event that a thread is before executed by what it runs next.
func (r *runner) beginEvent(t *thread) {
	r.acting, r.event, r.eventPC = t, t.event, t.pc
	if t.event.Ends {
		r.event.Prevents = r.listPrevented(t)
	}
	r.event.Accesses = nil
	r.keeps, r.changes = false, false
	r.polls.end()
	r.deadline, r.hasDeadline = r.m.Kernel().NextTimer()
	if t.call || t.state == finishes {
		r.event.Accesses = slices.Clone(t.event.Accesses)
		r.changed = true
		t.forget()
	}
	if t.drainsAll {
		r.drainAll()
	}
	t.state = unseen
}

// listPrevented lists the events of other processes that do not happen if the event of a thread ends them.
func (r *runner) listPrevented(t *thread) (list []dpor.Event) {
	for _, o := range r.order {
		if o != t && o.isReady() && !(o.drains && r.hasStores(o)) {
			list = append(list, o.event)
		}
	}
	return r.appendCommits(list)
}

// finishEvent adds the event that is being executed, if there is one.
func (r *runner) finishEvent() {
	t := r.acting
	if t == nil {
		return
	}
	r.acting = nil
	if now, has := r.m.Kernel().NextTimer(); r.hasDeadline && (!has || now != r.deadline) {
		// The timer could have ended before the event that has stopped it, or has set an earlier one.
		r.event.Prevents = append(r.event.Prevents, timerEvent())
	}
	r.event.After = slices.Clone(t.after)
	if t.drains {
		r.event.After = append(r.event.After, t.commits...)
		t.commits = t.commits[:0]
	}
	t.after = t.after[:0]
	t.latest = len(r.history)
	r.add()
}

// add adds an event to the execution.
func (r *runner) add() {
	if err := r.choose.Add(r.event); err != nil && r.err == nil {
		r.err = errDiffers.Wrap(err)
	}
	r.history = append(r.history, r.event)
	r.idle = append(r.idle, r.keeps && !r.changes)
	r.keeps = false
	for _, t := range r.order {
		if t.state != spinning || !r.isOutdated(t, len(r.history)-1) {
			continue
		}
		if r.spinsOn {
			t.state = atEvent
			t.forget()
		} else {
			r.over, r.ending = true, outlasted
		}
	}
}

// EngineStopped implements machine.Hook: it takes the log, and decides at events.
func (r *runner) EngineStopped(task *kernel.Task, stop arch.Stop) machine.Reaction {
	if !r.running {
		r.dropLog()
		return machine.Proceed
	}
	t := r.threads[task.ID()]
	r.takeLog(t)
	if stop.Reason != arch.StopBreakpoint {
		return machine.Proceed
	}
	pc := r.m.CPU().PC()
	repeats := pc == r.pc && stop.Instructions == r.done+1
	r.pc, r.done = pc, stop.Instructions
	kind, isPoint := r.sharing.points[pc]
	if !isPoint || repeats {
		return machine.ResumeEngine
	}
	next, isEvent := r.describe(task, t, pc, kind)
	if !isEvent {
		return machine.ResumeEngine
	}
	r.finishEvent()
	t.state, t.step = atEvent, next
	if r.isSpinning(t) {
		t.state = spinning
	}
	if r.isWeak() || r.over || r.err != nil || r.changed || r.isToBeSaved() || r.find(unseen) != nil {
		return machine.EndQuantum
	}
	if !r.chooseProcess() || r.next != t.process() || t.parts {
		return machine.EndQuantum
	}
	r.next = 0
	r.beginEvent(t)
	return machine.ResumeEngine
}

// EngineStarts implements machine.Hook.
func (r *runner) EngineStarts(task *kernel.Task) machine.Reaction {
	if t := r.threads[task.ID()]; t != nil {
		t.faulted = false
	}
	r.pc, r.done = r.m.CPU().PC(), 0
	return machine.Proceed
}

// describe returns the event that a thread is before, and whether there is one: the instruction may access
// memory that is not shared.
func (r *runner) describe(task *kernel.Task, t *thread, pc arch.Addr, kind accessKind) (s step, isEvent bool) {
	s = step{pc: pc, call: kind&call != 0, event: dpor.Event{Process: t.process(), Owner: t.process()}}
	if s.call {
		return s, r.describeCall(task, t, &s, kind)
	}
	order := r.m.CPU().OrderAt(pc)
	s.drains = r.isWeak() && order&(emu.OrderLocked|emu.OrderFull) != 0
	s.parts = !r.isWeak() && kind&(loads|stores|locked) == loads|stores && order&emu.OrderLocked == 0
	isShared := r.nameAccesses(&s.event, kind)
	return s, isShared || kind&always != 0 || s.drains
}

// describeCall describes the system call that a thread is before, and reports whether it is an event.
func (r *runner) describeCall(task *kernel.Task, t *thread, s *step, kind accessKind) bool {
	var regs arch.Regs
	r.m.CPU().Regs(&regs)
	c := newSystemCall(&regs)
	if c.isLocal() {
		r.notes.readsTime = r.notes.readsTime || linux.Has(c.number, linux.TimeDependent)
		if !r.isWeak() && kind&always == 0 {
			return false
		}
	} else if refused := c.describe(task, &regs, &s.event); refused != "" {
		r.err = errRefused.New(refused)
		return true
	}
	r.noteCall(t, s.pc, &c)
	s.drains = r.isWeak()
	if s.drainsAll = r.isWeak() && c.number != unix.SYS_EXIT && (task.MayRemovePages(&regs) || task.ReachesMemory(&regs)); s.drainsAll {
		s.event.Accesses = append(s.event.Accesses, drainAccess(true))
	}
	return true
}

// noteCall notes what a call reads and writes for the sake of other threads.
func (r *runner) noteCall(t *thread, pc arch.Addr, c *systemCall) {
	if c.number == unix.SYS_FUTEX {
		for _, a := range c.futexAccesses() {
			if a.Start < futexes {
				kind := loads
				if a.Write {
					kind = stores
				}
				r.sharing.note(t.id, pc, a.Start, futexWord, kind|call)
			}
		}
	}
	if c.number == unix.SYS_MUNMAP && r.sharing.isUsedByOthers(t.id, c.args[0], c.args[1]) {
		r.notes.unmaps = true
	}
}

// nameAccesses fills in the shared memory that the next instruction accesses, as far as its operands name
// it, and reports whether there is any.
func (r *runner) nameAccesses(e *dpor.Event, kind accessKind) bool {
	shared := false
	for _, x := range r.m.CPU().Operands() {
		if r.sharing.hasShared(uint64(x.Addr), x.Size) && !(r.isWeak() && x.Write && kind&locked == 0) {
			e.Accesses = append(e.Accesses, dpor.Access{Start: uint64(x.Addr), End: uint64(x.Addr) + uint64(x.Size), Write: x.Write})
			shared = true
		}
	}
	if kind&always != 0 {
		e.Accesses = []dpor.Access{{Start: 0, End: futexes, Write: true}}
	}
	return shared
}

// AfterQuantum implements machine.Hook.
func (r *runner) AfterQuantum(task *kernel.Task, stop arch.Stop) {
	if !r.running {
		return
	}
	var regs arch.Regs
	switch stop.Reason {
	case arch.StopFault, arch.StopException, arch.StopInterrupt:
		r.m.CPU().Regs(&regs)
		t := r.threads[task.ID()]
		t.faulted, t.faultPC = true, arch.Addr(regs.RIP)
		return
	case arch.StopSyscall:
	default:
		return
	}
	r.changed = true
	t := r.threads[task.ID()]
	if t == r.acting && t.call {
		return
	}
	// The call is one at which the thread was not stopped.
	r.m.CPU().Regs(&regs)
	c := newSystemCall(&regs)
	pc := arch.Addr(regs.RIP) - lengthOfSyscall
	r.eventPC = pc
	if c.isLocal() {
		r.notes.readsTime = r.notes.readsTime || linux.Has(c.number, linux.TimeDependent)
		if !r.isWeak() {
			return
		}
	}
	r.sharing.addPoint(pc, call)
}

// lengthOfSyscall is the number of bytes of the instruction SYSCALL.
const lengthOfSyscall = 2

// afterStep acts on what a step has changed.
func (r *runner) afterStep() {
	number := len(r.history)
	if r.timer {
		r.event = timerEvent()
		for _, t := range r.order {
			if t.state == blocked && t.latest >= 0 && slices.Contains(r.history[t.latest].Accesses, objectAccess(objectTimers)) {
				r.event.After = append(r.event.After, t.latest) // it has set a timer
			}
		}
		r.add()
		r.noteThreads(number)
		return
	}
	t := r.threads[r.quantum.Thread]
	r.takeLog(t)
	if r.acting == nil {
		number = t.latest
	}
	atInside := false
	if r.acting != nil && t.parts {
		_, atInside = r.m.InterruptedInstruction(t.id)
	}
	if task := r.m.Kernel().Task(t.id); task == nil || !task.Runnable() {
		r.changed = true
	}
	if r.acting == t && !r.changed && !atInside && !r.m.Done() {
		r.noteStores(t, number)
		r.notePolling(t)
		return // the quantum was at its end before the next event
	}
	r.finishEvent()
	r.noteStores(t, t.latest)
	if atInside {
		t.state = inside
		t.step = step{pc: t.pc, event: dpor.Event{Process: t.process(), Owner: t.process(), Accesses: slices.Clone(r.history[len(r.history)-1].Accesses)}}
		for i := range t.event.Accesses {
			t.event.Accesses[i].Write = true
		}
	}
	if r.changed {
		r.changed = false
		r.noteThreads(number)
	}
}

// noteThreads finds the threads that were created, woken or blocked, or have ended, by the event with a
// number; -1: before all.
func (r *runner) noteThreads(number int) {
	tasks := r.m.Kernel().Tasks()
	for _, t := range r.order {
		if t.state != gone && !slices.ContainsFunc(tasks, func(k *kernel.Task) bool { return k.ID() == t.id }) {
			t.state = gone
		}
	}
	for _, task := range tasks {
		t := r.threads[task.ID()]
		if t == nil {
			t = &thread{id: task.ID(), latest: number, stored: map[arch.Cycles]int{}}
			r.threads[t.id] = t
			r.order = append(r.order, t)
			if number >= 0 {
				t.after = append(t.after, number)
				r.sharing.noteBirth(arch.ThreadID(r.history[number].Owner>>threadShift), t.id)
			}
			if len(r.order) > 1 && t.id < r.order[len(r.order)-2].id {
				slices.SortFunc(r.order, func(a, b *thread) int { return int(a.id) - int(b.id) })
			}
		}
		if task.Process() != tasks[0].Process() {
			r.err = errRefused.New("makes a process")
		}
		r.noteWait(task, t, number)
	}
}

// noteWait notes whether a thread waits in the kernel, or has been woken.
func (r *runner) noteWait(task *kernel.Task, t *thread, number int) {
	in, waits := task.BlockedIn()
	switch {
	case waits && t.state != blocked:
		t.state, t.waitsInvisibly = blocked, mayWaitInvisibly(in)
	case !waits && t.state == blocked:
		if number >= 0 {
			t.after = append(t.after, number)
		}
		t.state = unseen
		if !t.waitsInvisibly {
			t.state = finishes
			t.step = step{event: dpor.Event{Process: t.process(), Owner: t.process(), Accesses: []dpor.Access{objectAccess(objectKernel), objectAccess(objectTimers)}}}
		}
	}
}

// The methods of sched.Policy: what prepare has decided.

// SharedInSnapshot marks that copies of the machine's state share the runner.
func (r *runner) SharedInSnapshot() {}

// Ready implements sched.Policy, and so do the other methods.
func (r *runner) Ready(*sched.Cluster, arch.ThreadID, arch.Cycles)       {}
func (r *runner) Block(*sched.Cluster, arch.ThreadID)                    {}
func (r *runner) Exit(*sched.Cluster, arch.ThreadID)                     {}
func (r *runner) Yield(*sched.Cluster, arch.ThreadID)                    {}
func (r *runner) Ran(*sched.Cluster, sched.Quantum, uint64, arch.Cycles) {}
func (r *runner) Next(*sched.Cluster, arch.Cycles, bool) (sched.Quantum, sched.Verdict) {
	if r.timer {
		return sched.Quantum{}, sched.FireTimer
	}
	return r.quantum, sched.Run
}
