package kernel

import (
	"slices"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/loader"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/tty"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// Process is a thread group.
type Process struct {
	k        *Kernel
	pid      int32
	leader   *Task // the main thread, even when it has ended
	parent   *Process
	service  *Service   // that it belongs to, or nil
	forker   *Task      // the parent's thread whose child it is; nil for init
	zombies  []*Task    // threads that have ended and whose end tracers have not acknowledged
	quiet    wait.Queue // woken when a thread has ended, or is no zombie any more
	children []*Process // zombies included, oldest first
	threads  []*Task    // live ones, the oldest first

	group, session int32
	terminal       *tty.Terminal // that controls the session; nil: none
	lostGroup      int32         // of a leader: the foreground group when its terminal was hung up
	space          *mm.AddressSpace
	files          *FDTable
	context        *fsContext
	actions        *signalActions
	last           vfs.Cred // of its main thread when that ended

	signals signalQueue
	waiters wait.Queue // threads of this process in wait4 and waitid

	binary      *vfs.File       // the target of /proc/PID/exe; nil for a zombie
	path        string          // of the program, which may be a script
	objects     []loader.Object // the program and its dynamic linker
	args, env   []string
	exitSignal  int // signal to the parent at the end
	status      exitStatus
	ending      bool // its threads are about to end: signals are dropped
	stopped     bool // by a signal
	stopping    int  // threads for which a group-stop waits
	groupSignal int  // of the last group-stop
	stopSignal  int  // not yet reported to the parent
	continued   bool // not yet reported
	execed      bool
	outside     bool // not part of the program: addOutside
	subreaper   bool
	ptracer     int32 // PR_SET_PTRACER: another process that may trace it; -1: any
	dumpable    uint64
	name        string // comm of the main thread, for zombies
	oomScore    int
	early       [lastSignal + 1]uint16 // signals that Deliver has delivered before they arrived
	membarrier  uint32                 // kinds of barriers that it has registered for
	limits      [rlimits]unix.Rlimit
	itimer      *itimer
	posix       []*posixTimer
	prof        [2]profTimer // ITIMER_VIRTUAL and ITIMER_PROF
	cpuTimers   []*cpuTimer
	lastTimer   int32
	started     int64
	charged     uint64 // bytes of the kernel's memory

	// Times of children that have been waited for, and of threads that have ended.
	deadUser, deadKernel, childUser, childKernel arch.Cycles
}

// exitStatus is the exit code or the signal with which a process or thread ended.
type exitStatus struct {
	zombie       bool
	code, signal int
}

// waitWord is the status word of wait4.
func (s exitStatus) waitWord() int32 { return int32(s.code&0xff<<8 | s.signal&0x7f) }

// siginfoFields are the fields of a siginfo_t about the end.
func (s exitStatus) siginfoFields() (code, status int32) {
	if s.signal != 0 {
		return cldKilled, int32(s.signal)
	}
	return cldExited, int32(s.code)
}

// signalActions is the table that CLONE_SIGHAND shares; index 0 is not used.
type signalActions struct {
	list [lastSignal + 1]sigAction
}

// fsContext is what CLONE_FS shares.
type fsContext struct {
	root, cwd *vfs.Dentry
	umask     uint32
}

// PID is the process's id.
func (p *Process) PID() int32 { return p.pid }

// cred are the process's credentials as others see them: those of its main thread.
func (p *Process) cred() *vfs.Cred {
	if len(p.threads) > 0 && p.threads[0].id == arch.ThreadID(p.pid) {
		return &p.threads[0].cred
	}
	return &p.last
}

// parentID is the parent's id, or 0 without a parent.
func (p *Process) parentID() int32 {
	if p.parent == nil {
		return 0
	}
	return p.parent.pid
}

// Threads lists the live threads.
func (p *Process) Threads() []*Task { return p.threads }

// Space is the process's address space.
func (p *Process) Space() *mm.AddressSpace { return p.space }

// Args is the program's argument list at its start.
func (p *Process) Args() []string { return p.args }

// killProcess ends a process by a signal.
func (k *Kernel) killProcess(p *Process, signal int) { k.endProcess(p, exitStatus{signal: signal}) }

// endProcess ends all threads of a process. No thread is inside an instruction, so all end at once,
// except those that first stop for a tracer.
func (k *Kernel) endProcess(p *Process, status exitStatus) {
	p.status, p.ending = status, true
	// The SIGKILL is consumed: threads that stop first may still be inspected by a tracer.
	p.dropPending(sigbit(int(unix.SIGKILL)))
	for _, t := range slices.Clone(p.threads) {
		k.endTask(t, status)
	}
}

// endTask ends a thread; if its tracer has asked for it, the thread stops first.
func (k *Kernel) endTask(t *Task, status exitStatus) {
	if t.dying {
		return
	}
	t.ended = status
	if !t.hasEvent(unix.PTRACE_EVENT_EXIT) {
		k.exitTask(t)
		return
	}
	t.dying = true
	t.stop = nil
	t.job = jobControl{}
	t.clearWait()
	if t.state != running {
		t.state = running
		k.sched.Ready(t.id)
	}
}

// exitTask ends a thread. The effects that user space sees occur in the order of Linux's do_exit.
func (k *Kernel) exitTask(t *Task) {
	p := t.proc
	t.clearWait()
	if t.call.futex != nil {
		k.removeFutexWaiter(t.call.futex)
	}
	if a, ok := t.call.data.(abandoner); ok {
		a.Abandon()
	}
	t.endNotification()
	t.seccomp.filters.dropReference(k.memory)
	t.seccomp = seccompState{}
	k.fs.CancelLock(int32(t.id))
	if t.call.opened != nil {
		t.call.opened.Unref()
	}
	k.exitRobustList(t)
	k.exitPILocks(t)
	if t.clearTID != 0 && (len(p.threads) > 1 || p.space.Users() > 1) {
		if p.space.WriteU32(t.clearTID, 0) == 0 {
			_, _ = k.futexWake(t.futexKeyAt(t.clearTID, false), 1, ^uint32(0))
		}
	}
	if t.semUndo != nil {
		t.semUndo.Unref(t.ipcCaller())
	}
	t.state = dead
	t.call = callState{}
	if t.id == arch.ThreadID(p.pid) {
		p.name, p.last = t.name, t.cred
	}
	p.deadUser += t.userTime
	p.deadKernel += t.kernelTime
	p.threads = slices.DeleteFunc(p.threads, func(o *Task) bool { return o == t })
	k.tasks.Delete(t.id)
	t.ctx.Release()
	t.ctx = nil
	k.releaseTracees(t)
	for _, c := range p.children {
		if c.forker == t && len(p.threads) > 0 {
			c.forker = p.threads[0]
		}
	}
	zombie := t != p.leader && t.trace != nil && !t.trace.tracer.proc.outside
	if zombie {
		p.zombies = append(p.zombies, t)
	} else {
		k.memory.Release(kmem.Thread)
	}
	k.sched.Exit(t.id)
	k.observer.Exit(t.id, int(p.status.waitWord()))
	if len(p.threads) == 0 {
		k.exitProcess(p)
	}
	k.releaseVfork(t)
	if zombie {
		tracer := t.trace.tracer.proc
		k.sendProcess(tracer, p.threadEnd(t, int(unix.SIGCHLD)))
		tracer.waiters.Wake(wait.AnyEvent)
	}
	p.quiet.Wake(wait.AnyEvent)
}

// releaseTracees resumes and detaches the tracees of t, which has ended.
func (k *Kernel) releaseTracees(t *Task) {
	for _, x := range slices.Clone(t.tracees) {
		if x.hasTraceOption(optionExitKill) {
			k.sendProcess(x.proc, signalInfo(unix.SIGKILL, siKernel))
		}
		k.detachTracee(x)
	}
}

// detachTracee ends the tracing of a thread, which may have ended.
func (k *Kernel) detachTracee(x *Task) {
	p, tracer := x.proc, x.trace.tracer
	if s := x.stop; x.state == traced && s.kind == stopAtSignal {
		s.signal = int(s.code) // the tracer was not notified of it
	}
	switch {
	case x.state != dead:
		x.detachTracer()
	case x != p.leader:
		k.releaseZombie(x)
	default:
		x.detachTracer()
		if p.isOver() && (p.parent != tracer.proc || p.isIgnored()) {
			k.notifyParent(p)
		}
	}
}

// releaseZombie forgets a thread that has ended and whose tracer knows.
func (k *Kernel) releaseZombie(x *Task) {
	p := x.proc
	x.detachTracer()
	p.zombies = slices.DeleteFunc(p.zombies, func(o *Task) bool { return o == x })
	k.memory.Release(kmem.Thread)
	p.quiet.Wake(wait.AnyEvent)
	if p.isOver() {
		k.announceEnd(p)
	}
}

// isOver reports whether only the status of a process is left.
func (p *Process) isOver() bool { return p.status.zombie && len(p.zombies) == 0 }

// isTraced reports whether one of the process's threads is traced.
func (p *Process) isTraced() bool {
	return slices.ContainsFunc(p.threads, func(t *Task) bool { return t.trace != nil })
}

// announceEnd notifies of the end of a process: first the main thread's tracer, if there is one
// outside of the parent, and otherwise the parent.
func (k *Kernel) announceEnd(p *Process) {
	if t := p.leader; t.trace == nil || t.trace.tracer.proc.outside {
		k.notifyParent(p)
		return
	}
	tracer, signal := p.leader.trace.tracer.proc, p.exitSignal
	if p.leader.isTracedByOther() {
		signal = int(unix.SIGCHLD)
	}
	if signal != 0 && signal <= lastSignal {
		k.sendProcess(tracer, p.childInfo(signal))
	}
	tracer.waiters.Wake(wait.AnyEvent)
}

// releaseVfork resumes the parent that vfork suspended.
func (k *Kernel) releaseVfork(t *Task) {
	if t.vforkDone != nil {
		t.vforkDone.Wake(wait.AnyEvent)
		t.vforkDone = nil
	}
}

// exitProcess ends a process whose last thread has ended.
func (k *Kernel) exitProcess(p *Process) {
	p.status.zombie = true
	k.releaseSpace(p)
	p.space = nil
	p.setBinary(nil)
	p.cancelTimers()
	p.files.release(p)
	p.files = nil
	k.leaveTerminal(p, true)
	p.terminal = nil
	k.orphanChildren(p)
	k.endOrphanedJobs(p, p.parent, true)
	if p == k.init {
		k.done = true
		return
	}
	if p.isOver() {
		k.announceEnd(p)
	}
}

// releaseSpace leaves the address space; if it ends, its digest is taken first.
func (k *Kernel) releaseSpace(p *Process) {
	if p.space.Users() == 1 {
		k.observer.Memory(p.pid, digestOf(p.space.DigestLast))
	}
	p.space.Unref()
}

// digestOf is the hash of the bytes that a function writes.
func digestOf(feed func(*xxh3.Hasher)) [16]byte {
	var h xxh3.Hasher
	feed(&h)
	return h.Sum128().Bytes()
}

// orphanChildren gives p's children to the nearest subreaper, or to init.
func (k *Kernel) orphanChildren(p *Process) {
	heir := k.heirOfChildren(p)
	for _, c := range p.children {
		c.exitSignal = int(unix.SIGCHLD) // the only signal that an heir gets
		for _, t := range c.threads {
			if t.parentDeath != 0 {
				k.sendTask(t, userInfo(unix.Signal(t.parentDeath), siUser, p.pid, p.cred().UID))
			}
		}
		c.parent, c.forker = heir, heir.threads[0]
		heir.children = append(heir.children, c)
		switch {
		case c.isOver() && c.leader.trace == nil:
			k.notifyParent(c)
		case !c.status.zombie:
			k.endOrphanedJobs(c, p, false)
		}
	}
	p.children = nil
}

// isIgnored reports whether the parent does not wait for p.
func (p *Process) isIgnored() bool {
	if p.parent == nil || p.exitSignal != int(unix.SIGCHLD) {
		return false
	}
	a := p.parent.actions.list[unix.SIGCHLD]
	return a.Handler == sigIgn || a.Flags&saNoCldWait != 0
}

// notifyParent notifies the parent that p has become a zombie.
func (k *Kernel) notifyParent(p *Process) {
	parent := p.parent
	if parent.outside {
		k.reapZombie(p)
		return
	}
	auto := p.isIgnored()
	if p.exitSignal != 0 && p.exitSignal <= lastSignal {
		k.sendProcess(parent, p.childInfo(p.exitSignal))
	}
	parent.waiters.Wake(wait.AnyEvent)
	if auto {
		k.reapZombie(p)
	}
}

// childInfo is the siginfo of SIGCHLD about p's end.
func (p *Process) childInfo(signal int) sigInfo {
	code, status := p.status.siginfoFields()
	return p.childEvent(signal, code, status)
}

func (p *Process) childEvent(signal int, code, status int32) sigInfo {
	user, system := p.coreTimes()
	return p.k.childReport(signal, code, p.pid, p.cred().UID, status, user, system)
}

// threadEvent is the siginfo of SIGCHLD about a stop of one thread.
func (p *Process) threadEvent(t *Task, code, status int32) sigInfo {
	return p.k.childReport(int(unix.SIGCHLD), code, int32(t.id), t.cred.UID, status, t.userTime, t.kernelTime)
}

// threadEnd is the siginfo about the end of one thread.
func (p *Process) threadEnd(t *Task, signal int) sigInfo {
	code, status := t.ended.siginfoFields()
	return p.k.childReport(signal, code, int32(t.id), t.cred.UID, status, t.userTime, t.kernelTime)
}

func (k *Kernel) childReport(signal int, code, id int32, uid uint32, status int32, user, system arch.Cycles) sigInfo {
	i := userInfo(unix.Signal(signal), code, id, uid)
	putU32(i[24:], uint32(status))
	putU64(i[32:], uint64(k.clockTicks(user)))
	putU64(i[40:], uint64(k.clockTicks(system)))
	return i
}

// reapZombie removes a zombie.
func (k *Kernel) reapZombie(p *Process) {
	if p.leader.trace != nil {
		p.leader.detachTracer()
	}
	if !p.parent.outside {
		user, system := p.coreTimes()
		p.parent.childUser += user + p.childUser
		p.parent.childKernel += system + p.childKernel
	}
	p.parent.children = slices.DeleteFunc(p.parent.children, func(o *Process) bool { return o == p })
	delete(k.processes, p.pid)
	p.setMemoryCharge(0)
}

// setMemoryCharge sets the number of bytes for which the process is charged in the kernel's memory,
// besides its threads and descriptors.
func (p *Process) setMemoryCharge(n uint64) {
	p.k.memory.Force(n)
	p.k.memory.Release(p.charged)
	p.charged = n
}

// coreTimes is the processor time of p's threads, including those that have ended.
func (p *Process) coreTimes() (user, system arch.Cycles) {
	user, system = p.deadUser, p.deadKernel
	for _, t := range p.threads {
		user += t.userTime
		system += t.kernelTime
	}
	return user, system
}

// stopProcess suspends all threads of p: a group-stop. Traced threads stop for their tracers when
// they next run.
func (k *Kernel) stopProcess(p *Process, signal int) {
	if p.status.zombie || p.stopped && !p.isTraced() {
		return
	}
	if !p.stopped {
		p.groupSignal = signal
	}
	for _, t := range p.threads {
		switch {
		case t.trace != nil:
			if t.job.stops = true; !t.job.counts {
				t.job.counts = true
				p.stopping++
			}
			if t.job.notifies = t.trace.seized && t != k.current; t != k.current {
				t.wakeTracee()
			}
		case t.state == blocked:
			// The call is restarted when the process continues.
			t.clearWait()
			t.state, t.call.stopped = stopped, true
		case t.state == running:
			t.state = stopped
			k.sched.Block(t.id)
		}
	}
	if p.stopping == 0 && !p.stopped {
		p.stopped, p.stopSignal, p.continued = true, signal, false
		k.notifyStop(p, cldStopped, int32(signal))
	}
}

// notifyStop notifies the parent that p was stopped or continued.
func (k *Kernel) notifyStop(p *Process, code, status int32) {
	if !p.parent.outside {
		k.childStopped(p.parent, p.childEvent(int(unix.SIGCHLD), code, status))
	}
}

// continueProcess ends a group-stop, or one in progress.
func (k *Kernel) continueProcess(p *Process) {
	stopped, stopping := p.stopped, p.stopping > 0
	p.stopping = 0
	for _, t := range p.threads {
		t.job.stops, t.job.counts, t.job.dequeued = false, false, false
		if t.trace != nil && t.trace.seized {
			t.trapNotify()
		}
	}
	k.wakeStopped(p)
	switch {
	case stopped:
		p.stopSignal = 0
		p.continued = true
		k.notifyStop(p, cldContinued, int32(unix.SIGCONT))
		if t := p.leader; t.isTracedByOther() {
			k.childStopped(t.trace.tracer.proc, p.childEvent(int(unix.SIGCHLD), cldContinued, int32(unix.SIGCONT)))
		}
	case stopping:
		k.notifyStop(p, cldStopped, int32(p.groupSignal))
	}
}

// wakeStopped resumes the threads that a group-stop has stopped.
func (k *Kernel) wakeStopped(p *Process) {
	p.stopped = false
	for _, t := range p.threads {
		if t.state == stopped {
			t.state = running
			k.sched.Ready(t.id)
		}
	}
}
