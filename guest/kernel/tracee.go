package kernel

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/ptrace"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// A thread that another one traces (ptrace(2)) stops at places of its way through the
// kernel, until its tracer lets it go on. It stops by itself, when it is about to act
// (Prepare) or acts: nothing but its state says that it is stopped, and traceStop says
// how it goes on. What Linux does in which order is in kernel/signal.c, kernel/ptrace.c
// and kernel/entry/common.c.

// tracee is what the kernel keeps of a thread that is traced.
type tracee struct {
	tracer  *Task
	seized  bool
	options uint32 // unix.PTRACE_O_*
	message uint64 // of the last stop: PTRACE_GETEVENTMSG
	// How it was let go on.
	syscalls, emulates, steps bool
	returned                  bool // it has completed a system call: a stop may be due
}

// stopKind is a place at which a tracee stops, which says how it goes on.
type stopKind uint8

const (
	stopAtEntry   stopKind = iota + 1 // of a system call
	stopAtSeccomp                     // a filter said SECCOMP_RET_TRACE
	stopAtExit                        // of a system call
	stopAtSignal                      // that is about to be delivered
	stopAtDeath                       // PTRACE_EVENT_EXIT
	stopAtExec                        // PTRACE_EVENT_EXEC
	stopInCall                        // another event within a system call
	stopElsewhere                     // group-stop, PTRACE_INTERRUPT and the like
)

// traceStop is where a tracee is stopped or, once it was resumed, was stopped last.
type traceStop struct {
	kind    stopKind
	code    int32 // as wait reports it; 0: it was reported
	info    *sigInfo
	message uint64
	listens bool // PTRACE_LISTEN
	emulate bool // of stopAtEntry: the call is not carried out
	signal  int  // that the tracer lets it go on with
}

// jobControl is what a thread has to do with group-stops before it can go on.
type jobControl struct {
	stops    bool // its process stops: it has to, too
	counts   bool // and counts among those that the group-stop waits for
	traps    bool // it has to stop for its tracer
	notifies bool // its tracer, who seized it, has to hear of a change
	dequeued bool // a stop signal was taken and no SIGCONT came since
}

// isPending reports whether there is something to do.
func (j *jobControl) isPending() bool { return j.stops || j.traps || j.notifies }

// Events and options that package unix lacks.
const (
	eventStop      = 128 // PTRACE_EVENT_STOP
	optionExitKill = 1 << 20
	optionSuspend  = 1 << 21 // PTRACE_O_SUSPEND_SECCOMP
	optionMask     = 0xff | optionExitKill | optionSuspend

	messageEntry = 1 // PTRACE_EVENTMSG_SYSCALL_ENTRY
	messageExit  = 2

	cldTrapped int32 = 4
)

// has reports whether the thread is traced with an option.
func (t *Task) hasTraceOption(option uint32) bool {
	return t.trace != nil && t.trace.options&option != 0
}

// hasEvent reports whether the tracer wants stops for an event.
func (t *Task) hasEvent(event int) bool { return t.hasTraceOption(1 << event) }

// steps reports whether the thread stops after each instruction (PTRACE_SINGLESTEP).
func (t *Task) steps() bool { return t.trace != nil && t.trace.steps }

// IsStepped reports whether a tracer wants to know of single instructions of the thread:
// it steps it, or has set hardware breakpoints. Runs end after one instruction then, with
// AtInstruction before it and AfterInstruction behind it.
func (t *Task) IsStepped() bool { return t.steps() || t.debug.InUse() }

// stepping is what is known of a thread that IsStepped before an instruction.
type stepping struct {
	pc       arch.Addr
	accesses []arch.Operand // that the instruction is about to make
	hits     []ptrace.Point // by the iterations of one that is repeated
}

// AtInstruction stops a thread, which is loaded and IsStepped, at a hardware breakpoint;
// false: it does not run.
func (t *Task) AtInstruction() bool {
	s := &t.stepping
	s.pc, s.accesses = t.k.cpu.PC(), t.k.cpu.Operands()
	if t.resumes {
		return true
	}
	hits := t.debugPoints(func(p *ptrace.Point) bool { return p.Kind == ptrace.Execute && p.Addr == s.pc })
	if len(hits) > 0 {
		t.resumes = true // as the processor's flag RF
		t.debugTrap(false, hits)
	}
	return len(hits) == 0
}

// AfterInstruction stops the thread if its tracer wants that after the instruction that it
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
		x.hits = hits // the processor leaves the instruction with the last iteration
		return
	}
	// A system call is stepped over when it returns, and INT3 has a signal of its own.
	step := t.steps() && s.Reason != arch.StopSyscall && s.Reason != arch.StopInterrupt
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
	t.force(faultInfo(unix.SIGTRAP, code, arch.Addr(t.regs.RIP)))
}

// attach makes the thread a tracee.
func (t *Task) attach(tracer *Task, seized bool, options uint32) {
	t.trace = &tracee{tracer: tracer, seized: seized, options: options}
	tracer.tracees = append(tracer.tracees, t)
}

// unlink ends the tracing of a thread, which goes on if it is stopped. In a group-stop it
// stops again, for that.
func (t *Task) unlink() {
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
		t.resume()
	case t.job.stops:
		t.Wake(wait.AnyEvent)
	}
}

// resume lets a stopped tracee go on from its stop.
func (t *Task) resume() {
	t.stop.listens = false
	t.state = running
	t.k.sched.Ready(t.id)
}

// kick has a thread that waits or listens look at what it has to do.
func (t *Task) kick() {
	if t.state == traced && t.stop.listens {
		t.resume()
	}
	t.Wake(wait.AnyEvent)
}

// wakeTraced lets the threads go that are stopped for their tracers, to die.
func (k *Kernel) wakeTraced(p *Process) {
	for _, t := range p.threads {
		if t.state == traced {
			t.resume()
		}
	}
}

// trapNotify has a seized tracee tell its tracer of a change of its process's group-stop.
func (t *Task) trapNotify() {
	t.job.notifies = true
	t.kick()
}

// stopFor stops the thread, which acts, for its tracer.
func (t *Task) stopFor(s *traceStop, why int32) {
	t.Load()
	t.readRegs()
	t.dirty = true
	t.stop = s
	t.trace.message = s.message
	done := why == cldStopped && t.job.stops && t.participate()
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

// notifyTracer tells the tracer that the thread has stopped.
func (t *Task) notifyTracer(why int32) {
	status := t.stop.code & 0x7f
	if why == cldStopped {
		status = int32(t.proc.groupSignal)
	}
	t.k.childStopped(t.trace.tracer.proc, t.proc.threadEvent(t, why, status))
}

// childStopped sends a parent or tracer a SIGCHLD about a stop, if it wants one.
func (k *Kernel) childStopped(p *Process, info sigInfo) {
	if a := p.actions.list[unix.SIGCHLD]; a.Handler != sigIgn && a.Flags&saNoCldStop == 0 {
		k.sendProcess(p, info)
	}
	p.waiters.Wake(wait.AnyEvent)
}

// eventInfo is the siginfo of a stop that no signal causes.
func (t *Task) eventInfo(code int32) *sigInfo {
	i := userInfo(unix.Signal(code&0x7f), code, int32(t.id), t.cred.UID)
	return &i
}

// stopForEvent stops the thread for one of the events of PTRACE_SETOPTIONS.
func (t *Task) stopForEvent(kind stopKind, event int, message uint64) {
	code := int32(unix.SIGTRAP) | int32(event)<<8
	t.stopFor(&traceStop{kind: kind, code: code, info: t.eventInfo(code), message: message}, cldTrapped)
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
	t.stopFor(s, cldTrapped)
}

// stopForTracer stops the thread for a group-stop, or because its tracer wants it.
func (t *Task) stopForTracer() {
	p := t.proc
	signal := int32(p.groupSignal)
	if !t.trace.seized {
		t.stopFor(&traceStop{kind: stopElsewhere, code: signal}, cldStopped)
		return
	}
	if p.stopping == 0 && !p.stopped {
		signal = int32(unix.SIGTRAP)
	}
	code := signal | eventStop<<8
	info := userInfo(unix.Signal(signal), code, int32(t.id), t.cred.UID)
	t.stopFor(&traceStop{kind: stopElsewhere, code: code, info: &info}, cldStopped)
}

// participate counts the thread as stopped in its process's group-stop; true: it was the
// last.
func (t *Task) participate() bool {
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

// isSupervised reports whether the thread's way through the kernel has more to it than
// system calls and signals.
func (t *Task) isSupervised() bool {
	return t.trace != nil || t.stop != nil || t.job.isPending() || t.interrupted != nil || t.dying
}

// proceed does what a supervised thread has to do before its system call and its signals;
// false: it does not go on.
func (t *Task) proceed() bool {
	if t.dying {
		return t.proceedToDeath()
	}
	if t.endIfKilled() {
		return false
	}
	if s := t.stop; s != nil {
		t.stop = nil
		t.goOnFrom(s)
	}
	return t.state == running
}

// endIfKilled ends the process if SIGKILL is pending: no stop comes before that.
func (t *Task) endIfKilled() bool {
	if !t.killPending() {
		return false
	}
	t.stop = nil
	t.job = jobControl{}
	t.k.killProcess(t.proc, int(unix.SIGKILL))
	return true
}

// proceedToDeath goes on with a thread that ends.
func (t *Task) proceedToDeath() bool {
	if s := t.stop; s != nil && s.kind == stopAtDeath || !t.hasEvent(unix.PTRACE_EVENT_EXIT) {
		t.k.exitTask(t)
	} else {
		t.stopForEvent(stopAtDeath, unix.PTRACE_EVENT_EXIT, uint64(t.ended.wait()))
	}
	return false
}

// goOnFrom goes on from a stop.
func (t *Task) goOnFrom(s *traceStop) {
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
		t.goOnWithSignal(s)
	}
}

// rereadCall takes over what a tracer has made of the current call.
func (t *Task) rereadCall() {
	r := &t.regs.GPR
	t.call.number = CallNumber(t.origRAX)
	t.call.args = [6]uint64{r[arch.RDI], r[arch.RSI], r[arch.RDX], r[arch.R10], r[arch.R8], r[arch.R9]}
}

// goOnWithSignal delivers the signal that the tracer has chosen.
func (t *Task) goOnWithSignal(s *traceStop) {
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
	t.deliver(info)
}

// settleCall does what follows a system call of a supervised thread, and comes before its
// signals; false: the thread does not go on.
func (t *Task) settleCall() bool {
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
			t.force(faultInfo(unix.SIGTRAP, trapBreakpoint, arch.Addr(t.regs.RIP)))
		case t.trace.syscalls:
			t.stopForCall(stopAtExit)
			return false
		}
	}
	switch {
	case t.job.stops && t.trace == nil:
		done := t.participate()
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

// interruptedCall is a system call that a signal or a stop has interrupted, and that a
// tracer may have seen so: its registers are those of Linux then. It is made anew by the
// program's own instruction, unless a handler says otherwise.
type interruptedCall struct {
	state callState
}

// interruptCall makes an interrupted call one.
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

// resolveInterrupted decides what becomes of an interrupted call: there is a signal with
// a handler (restarts: and SA_RESTART), or none.
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

// sysRestartSyscall is for threads that were interrupted in no call: see dispatch.
func sysRestartSyscall(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.EINTR }

// restartedCall is the call that the current one, restart_syscall, goes on with; nil: none.
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
