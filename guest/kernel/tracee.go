package kernel

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/ptrace"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// A thread that another one traces (ptrace(2)) stops at certain points of its way through the
// kernel, until its tracer resumes it. It stops when it is about to run (Prepare) or acts in the
// kernel. Its state records only that it is stopped; traceStop records where, and so how it
// continues. The order of stops follows kernel/signal.c, kernel/ptrace.c and kernel/entry/common.c
// of Linux.

// tracee is the tracing state of a traced thread.
type tracee struct {
	tracer  *Task
	seized  bool
	options uint32 // unix.PTRACE_O_*
	message uint64 // of the last stop: PTRACE_GETEVENTMSG
	// How it was resumed.
	syscalls, emulates, steps bool
	returned                  bool // it has completed a system call: a stop may be due
}

// stopKind is a point at which a tracee stops; it determines how the tracee continues.
type stopKind uint8

const (
	stopAtEntry   stopKind = iota + 1 // of a system call
	stopAtSeccomp                     // for SECCOMP_RET_TRACE
	stopAtExit                        // of a system call
	stopAtSignal                      // before its delivery
	stopAtDeath                       // PTRACE_EVENT_EXIT
	stopAtExec                        // PTRACE_EVENT_EXEC
	stopInCall                        // another event within a system call
	stopElsewhere                     // group-stop, PTRACE_INTERRUPT and others
)

// traceStop is the stop of a tracee or, after it was resumed, its last stop.
type traceStop struct {
	kind    stopKind
	code    int32 // as wait reports it; 0: it has been reported
	info    *sigInfo
	message uint64
	listens bool // PTRACE_LISTEN
	emulate bool // of stopAtEntry: the call is not carried out
	signal  int  // the signal with which the tracer resumes it
}

// jobControl is the thread's part in group-stops and stops for its tracer, before it can continue.
type jobControl struct {
	stops    bool // its process stops, so it has to stop
	counts   bool // it is one of the threads for which the group-stop waits
	traps    bool // it has to stop for its tracer
	notifies bool // its tracer, which seized it, has to be notified of a change
	dequeued bool // a stop signal was taken and no SIGCONT has arrived since
}

// isPending reports whether the thread has to act on one of these.
func (j *jobControl) isPending() bool { return j.stops || j.traps || j.notifies }

// Events and options that package unix does not define.
const (
	eventStop      = 128 // PTRACE_EVENT_STOP
	optionExitKill = 1 << 20
	optionSuspend  = 1 << 21 // PTRACE_O_SUSPEND_SECCOMP
	optionMask     = 0xff | optionExitKill | optionSuspend

	messageEntry = 1 // PTRACE_EVENTMSG_SYSCALL_ENTRY
	messageExit  = 2

	cldTrapped int32 = 4
)

// hasTraceOption reports whether the thread is traced with an option.
func (t *Task) hasTraceOption(option uint32) bool {
	return t.trace != nil && t.trace.options&option != 0
}

// hasEvent reports whether the tracer has requested stops for an event.
func (t *Task) hasEvent(event int) bool { return t.hasTraceOption(1 << event) }

// isStepping reports whether the thread stops after each instruction (PTRACE_SINGLESTEP).
func (t *Task) isStepping() bool { return t.trace != nil && t.trace.steps }

// IsStepped reports whether a tracer observes single instructions of the thread: it steps the
// thread, or has set hardware breakpoints. Each run then ends after one instruction, with
// AtInstruction before it and AfterInstruction after it.
func (t *Task) IsStepped() bool { return t.isStepping() || t.debug.InUse() }

// stepping is the state of an observed thread before an instruction.
type stepping struct {
	pc       arch.Addr
	accesses []arch.Operand // that the next instruction makes
	hits     []ptrace.Point // by the iterations of a repeated instruction
}

// AtInstruction stops a thread, which is loaded and IsStepped, at a hardware breakpoint; false: the
// thread must not run.
func (t *Task) AtInstruction() bool {
	s := &t.stepping
	s.pc, s.accesses = t.k.cpu.PC(), t.k.cpu.Operands()
	if t.resumes {
		return true
	}
	hits := t.debugPoints(func(p *ptrace.Point) bool { return p.Kind == ptrace.Execute && p.Addr == s.pc })
	if len(hits) > 0 {
		t.resumes = true // as RF of the processor
		t.debugTrap(false, hits)
	}
	return len(hits) == 0
}

// AfterInstruction stops the thread if its tracer has asked for a stop after the instruction that
// has retired.
func (t *Task) AfterInstruction(s arch.Stop) {
	if s.Instructions == 0 {
		return
	}
	t.resumes = false
	x := &t.stepping
	hits := append(x.hits, t.debugPoints(func(p *ptrace.Point) bool {
		return slices.ContainsFunc(x.accesses, func(a arch.Operand) bool {
			return p.Overlaps(a.Addr, a.Size) && (a.Write && p.Kind != ptrace.Execute || p.Kind == ptrace.ReadWrite)
		})
	})...)
	if x.hits = nil; s.Reason == arch.StopBudget && t.k.cpu.PC() == x.pc && t.k.cpu.RepetitionIsOver() {
		x.hits = hits // the processor reports them after the last iteration
		return
	}
	// A system call ends a step when it returns, and INT3 has a signal of its own.
	step := t.isStepping() && s.Reason != arch.StopSyscall && s.Reason != arch.StopInterrupt
	if step || len(hits) > 0 {
		t.debugTrap(step, hits)
	}
}

// debugPoints are the hardware breakpoints that match.
func (t *Task) debugPoints(matches func(*ptrace.Point) bool) (hits []ptrace.Point) {
	for _, p := range t.debug.Points() {
		if matches(&p) {
			hits = append(hits, p)
		}
	}
	return hits
}

// debugTrap raises the signal of a debug exception.
func (t *Task) debugTrap(step bool, hits []ptrace.Point) {
	t.readRegs()
	t.debug.Trap(step, hits)
	code := trapHardware
	if step {
		code = trapTrace
	}
	t.forceSignal(faultInfo(unix.SIGTRAP, code, arch.Addr(t.regs.RIP)))
}

// attachTracer makes the thread a tracee.
func (t *Task) attachTracer(tracer *Task, seized bool, options uint32) {
	t.trace = &tracee{tracer: tracer, seized: seized, options: options}
	tracer.tracees = append(tracer.tracees, t)
}

// detachTracer ends the tracing of a thread, which continues if it is stopped. In a group-stop it
// stops again, without the tracer.
func (t *Task) detachTracer() {
	tracer := t.trace.tracer
	tracer.tracees = slices.DeleteFunc(tracer.tracees, func(o *Task) bool { return o == t })
	t.trace = nil
	t.job.traps, t.job.notifies = false, false
	if t.state == dead {
		return
	}
	if p := t.proc; p.stopped || p.stopping > 0 {
		t.job.stops = true
	}
	switch {
	case t.state == traced:
		t.resumeTracee()
	case t.job.stops:
		t.Wake(wait.AnyEvent)
	}
}

// resumeTracee continues a stopped tracee from its stop.
func (t *Task) resumeTracee() {
	t.stop.listens = false
	t.state = running
	t.k.sched.Ready(t.id)
}

// wakeTracee makes a thread that waits or listens check for pending stops.
func (t *Task) wakeTracee() {
	if t.state == traced && t.stop.listens {
		t.resumeTracee()
	}
	t.Wake(wait.AnyEvent)
}

// wakeTraced resumes the threads that are stopped for their tracers, because they are to be killed.
func (k *Kernel) wakeTraced(p *Process) {
	for _, t := range p.threads {
		if t.state == traced {
			t.resumeTracee()
		}
	}
}

// trapNotify makes a seized tracee report a change of its process's group-stop to its tracer.
func (t *Task) trapNotify() {
	t.job.notifies = true
	t.wakeTracee()
}

// enterTraceStop stops the running thread for its tracer.
func (t *Task) enterTraceStop(s *traceStop, why int32) {
	t.Load()
	t.readRegs()
	t.dirty = true
	t.stop = s
	t.trace.message = s.message
	done := why == cldStopped && t.job.stops && t.countGroupStop()
	t.job.traps = false
	if s.info != nil && s.info.code()>>8 == eventStop {
		t.job.notifies = false
	}
	if t.state == running {
		t.k.sched.Block(t.id)
	}
	t.state = traced
	t.notifyTracer(why)
	if done && t.isTracedByOther() {
		t.k.notifyStop(t.proc, cldStopped, int32(t.proc.groupSignal))
	}
}

// isTracedByOther reports whether the tracer is no thread of the process's parent.
func (t *Task) isTracedByOther() bool {
	return t.trace != nil && t.trace.tracer.proc != t.proc.parent
}

// notifyTracer notifies the tracer that the thread has stopped.
func (t *Task) notifyTracer(why int32) {
	status := t.stop.code & 0x7f
	if why == cldStopped {
		status = int32(t.proc.groupSignal)
	}
	t.k.childStopped(t.trace.tracer.proc, t.proc.threadEvent(t, why, status))
}

// childStopped sends a parent or tracer a SIGCHLD about a stop, unless it has set SA_NOCLDSTOP.
func (k *Kernel) childStopped(p *Process, info sigInfo) {
	if a := p.actions.list[unix.SIGCHLD]; a.Handler != sigIgn && a.Flags&saNoCldStop == 0 {
		k.sendProcess(p, info)
	}
	p.waiters.Wake(wait.AnyEvent)
}

// eventInfo is the siginfo of a stop that is not caused by a signal.
func (t *Task) eventInfo(code int32) *sigInfo {
	i := userInfo(unix.Signal(code&0x7f), code, int32(t.id), t.cred.UID)
	return &i
}

// stopForEvent stops the thread for one of the events of PTRACE_SETOPTIONS.
func (t *Task) stopForEvent(kind stopKind, event int, message uint64) {
	code := int32(unix.SIGTRAP) | int32(event)<<8
	t.enterTraceStop(&traceStop{kind: kind, code: code, info: t.eventInfo(code), message: message}, cldTrapped)
}

// stopForCall stops the thread at the entry or the exit of a system call.
func (t *Task) stopForCall(kind stopKind) {
	code := int32(unix.SIGTRAP)
	if t.trace.options&unix.PTRACE_O_TRACESYSGOOD != 0 {
		code |= 0x80
	}
	s := &traceStop{kind: kind, code: code, info: t.eventInfo(code), message: messageEntry, emulate: t.trace.emulates}
	if kind == stopAtExit {
		s.message = messageExit
	}
	t.enterTraceStop(s, cldTrapped)
}

// stopForTracer stops the thread for a group-stop, or at its tracer's request.
func (t *Task) stopForTracer() {
	p := t.proc
	signal := int32(p.groupSignal)
	if !t.trace.seized {
		t.enterTraceStop(&traceStop{kind: stopElsewhere, code: signal}, cldStopped)
		return
	}
	if p.stopping == 0 && !p.stopped {
		signal = int32(unix.SIGTRAP)
	}
	code := signal | eventStop<<8
	info := userInfo(unix.Signal(signal), code, int32(t.id), t.cred.UID)
	t.enterTraceStop(&traceStop{kind: stopElsewhere, code: code, info: &info}, cldStopped)
}

// countGroupStop counts the thread as stopped in its process's group-stop. It returns whether it
// was the last.
func (t *Task) countGroupStop() bool {
	p := t.proc
	t.job.stops = false
	if !t.job.counts {
		return false
	}
	t.job.counts = false
	if p.stopping--; p.stopping > 0 || p.stopped {
		return false
	}
	p.stopped, p.stopSignal, p.continued = true, p.groupSignal, false
	return true
}

// isSupervised reports whether the thread's way through the kernel includes stops or the end,
// besides system calls and signals.
func (t *Task) isSupervised() bool {
	return t.trace != nil || t.stop != nil || t.job.isPending() || t.interrupted != nil || t.dying
}

// actBeforeCall does the work of a supervised thread before its system call and its signals; false:
// the thread does not continue.
func (t *Task) actBeforeCall() bool {
	if t.dying {
		return t.proceedToDeath()
	}
	if t.endIfKilled() {
		return false
	}
	if s := t.stop; s != nil {
		t.stop = nil
		t.continueFromStop(s)
	}
	return t.state == running
}

// endIfKilled ends the process if SIGKILL is pending, which has priority over any stop. It returns
// whether it was.
func (t *Task) endIfKilled() bool {
	if !t.killPending() {
		return false
	}
	t.stop = nil
	t.job = jobControl{}
	t.k.killProcess(t.proc, int(unix.SIGKILL))
	return true
}

// proceedToDeath continues a thread that ends.
func (t *Task) proceedToDeath() bool {
	if s := t.stop; s != nil && s.kind == stopAtDeath || !t.hasEvent(unix.PTRACE_EVENT_EXIT) {
		t.k.exitTask(t)
	} else {
		t.stopForEvent(stopAtDeath, unix.PTRACE_EVENT_EXIT, uint64(t.ended.waitWord()))
	}
	return false
}

// continueFromStop continues a thread from a stop.
func (t *Task) continueFromStop(s *traceStop) {
	switch s.kind {
	case stopAtEntry, stopAtExit:
		if s.signal != 0 {
			t.k.sendTask(t, signalInfo(unix.Signal(s.signal), siKernel))
		}
		if s.kind == stopAtEntry {
			t.rereadCall()
			t.call.emulated = s.emulate
		}
	case stopAtSeccomp:
		t.rereadCall()
	case stopAtExec:
		t.regs.GPR[arch.RAX] = 0
	case stopAtSignal:
		t.deliverChosenSignal(s)
	}
}

// rereadCall takes the current call from the registers, which a tracer may have changed.
func (t *Task) rereadCall() {
	r := &t.regs.GPR
	t.call.number = CallNumber(t.origRAX)
	t.call.args = [6]uint64{r[arch.RDI], r[arch.RSI], r[arch.RDX], r[arch.R10], r[arch.R8], r[arch.R9]}
}

// deliverChosenSignal delivers the signal that the tracer has chosen.
func (t *Task) deliverChosenSignal(s *traceStop) {
	if s.signal == 0 {
		return
	}
	info := *s.info
	if n := s.signal; n != info.number() {
		info = userInfo(unix.Signal(n), siUser, 0, 0)
		if t.trace != nil {
			tracer := t.trace.tracer
			info = userInfo(unix.Signal(n), siUser, int32(tracer.id), tracer.cred.UID)
		}
	}
	if t.mask.has(s.signal) {
		t.k.sendTask(t, info)
		return
	}
	t.deliverSignal(info)
}

// actAfterCall does the work of a supervised thread after a system call and before its signals;
// false: the thread does not continue.
func (t *Task) actAfterCall() bool {
	if t.call.active {
		t.interruptCall()
	}
	if t.endIfKilled() {
		return false
	}
	if t.trace != nil && t.trace.returned {
		t.trace.returned = false
		switch {
		case t.trace.steps && !t.trace.emulates:
			t.forceSignal(faultInfo(unix.SIGTRAP, trapBreakpoint, arch.Addr(t.regs.RIP)))
		case t.trace.syscalls:
			t.stopForCall(stopAtExit)
			return false
		}
	}
	switch {
	case t.job.stops && t.trace == nil:
		done := t.countGroupStop()
		t.state = stopped
		t.k.sched.Block(t.id)
		if done {
			t.k.notifyStop(t.proc, cldStopped, int32(t.proc.groupSignal))
		}
	case t.trace != nil && t.job.isPending():
		t.stopForTracer()
	default:
		return true
	}
	return false
}

// interruptedCall is a system call that a signal or a stop has interrupted, and whose registers a
// tracer may have seen: they have the values that Linux gives them then. The program's own
// instruction restarts it, unless a handler prevents that.
type interruptedCall struct {
	state callState
}

// interruptCall turns the current call into an interrupted one.
func (t *Task) interruptCall() {
	t.readRegs()
	t.interrupted = &interruptedCall{t.call}
	t.regs.GPR[arch.RAX] = linux.Failure(t.call.restart)
	t.dirty = true
	t.call = callState{}
	if t.trace != nil {
		t.trace.returned = true
	}
}

// resolveInterrupted decides how an interrupted call ends. handler: a handler runs; restarts: it
// has SA_RESTART.
func (t *Task) resolveInterrupted(handler, restarts bool) {
	c := t.interrupted
	if c == nil {
		return
	}
	t.interrupted = nil
	r := &t.regs.GPR
	code := unix.Errno(-int64(r[arch.RAX]))
	switch {
	case t.origRAX == noCall:
		t.k.observer.Syscall(t, c.state.number, c.state.args, r[arch.RAX])
	case handler && (code == errInterrupted || code == errRestartBlock || code == errRestart && !restarts):
		r[arch.RAX] = linux.Failure(unix.EINTR)
		t.k.observer.Syscall(t, c.state.number, c.state.args, r[arch.RAX])
	case code == errRestart || code == errNoInterrupt || code == errInterrupted:
		r[arch.RAX] = t.origRAX
		t.regs.RIP -= syscallLength
	case code == errRestartBlock:
		r[arch.RAX] = unix.SYS_RESTART_SYSCALL
		t.regs.RIP -= syscallLength
		t.restartBlock = c
	default:
		t.k.observer.Syscall(t, c.state.number, c.state.args, r[arch.RAX])
	}
	t.dirty = true
}

const (
	// noCall is the origRAX of a thread that is in no system call.
	noCall = ^uint64(0)
	// syscallLength is the length of the SYSCALL instruction.
	syscallLength = 2
)

// sysRestartSyscall is for threads that were not interrupted in a call: see dispatchCall.
func sysRestartSyscall(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.EINTR }

// restartedCall is the call that the current one, restart_syscall, continues, or nil.
func (t *Task) restartedCall() *callState {
	b := t.restartBlock
	if b == nil || t.call.number != unix.SYS_RESTART_SYSCALL {
		return nil
	}
	if t.call.attempt == 0 {
		t.call.deadline, t.call.progress = b.state.deadline, b.state.progress
	}
	return &b.state
}
