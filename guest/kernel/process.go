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
	forker   *Task      // the parent's thread whose child it is; nil for init
	zombies  []*Task    // threads that have ended and that tracers have not taken notice of
	quiet    wait.Queue // woken when a thread has ended, or is no zombie any more
	children []*Process // zombies included, oldest first
	threads  []*Task    // live ones, the oldest first

	group, session int32
	terminal       *tty.Terminal // that controls the session; nil: none
	lostGroup      int32         // of a leader: the foreground, when its terminal was hung up
	space          *mm.AddressSpace
	files          *FDTable
	context        *fsContext
	actions        *signalActions
	last           vfs.Cred // of its main thread, when that has ended

	signals signalQueue
	waiters wait.Queue // threads of this process in wait4 and waitid

	binary      *vfs.File       // what /proc/PID/exe leads to; nil for a zombie
	path        string          // of the program, which may be a script
	objects     []loader.Object // the program and its dynamic linker
	args, env   []string
	exitSignal  int // what the parent is sent at the end
	status      exitStatus
	ending      bool // its threads are about to end: signals are dropped
	stopped     bool // by a signal
	stopping    int  // how many threads a group-stop waits for
	groupSignal int  // of the last group-stop
	stopSignal  int  // not yet reported to the parent
	continued   bool // not yet reported
	execed      bool
	outside     bool // it is no part of the program: addOutside
	subreaper   bool
	ptracer     int32 // PR_SET_PTRACER: who may trace it besides; -1: everybody
	dumpable    uint64
	name        string // comm of the main thread, for zombies
	oomScore    int
	early       [lastSignal + 1]uint16 // signals that were delivered before they came: Deliver
	membarrier  uint32                 // kinds of barriers it has registered for
	limits      [rlimits]unix.Rlimit
	itimer      *itimer
	posix       []*posixTimer
	prof        [2]profTimer // ITIMER_VIRTUAL and ITIMER_PROF
	cpuTimers   []*cpuTimer
	lastTimer   int32
	started     int64
	charged     uint64 // of the kernel's memory

	// Times of children that were waited for, and of threads that are gone.
	deadUser, deadKernel, childUser, childKernel arch.Cycles
}

// exitStatus is how a process ended.
type exitStatus struct {
	zombie       bool
	code, signal int
}

// wait is the status word of wait4.
func (s exitStatus) wait() int32 { return int32(s.code&0xff<<8 | s.signal&0x7f) }

// cause is what a siginfo says of the end.
func (s exitStatus) cause() (code, status int32) {
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

// cred is who the process acts as, as others see it: its main thread's.
func (p *Process) cred() *vfs.Cred {
	if len(p.threads) > 0 && p.threads[0].id == arch.ThreadID(p.pid) {
		return &p.threads[0].cred
	}
	return &p.last
}

// parentID is the parent's id, 0 if there is none.
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

// endProcess ends all threads of a process. None of them is inside an
// instruction, so they can all go at once, but for those that stop for a tracer before.
func (k *Kernel) endProcess(p *Process, status exitStatus) {
	p.status, p.ending = status, true
	// What kills it is done with: a tracer may still ask about threads that stop first.
	p.dropEverywhere(sigbit(int(unix.SIGKILL)))
	for _, t := range slices.Clone(p.threads) {
		k.endTask(t, status)
	}
}

// endTask ends a thread, which stops for its tracer before if that wants it.
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
	t.unwait()
	if t.state != running {
		t.state = running
		k.sched.Ready(t.id)
	}
}

// exitTask ends a thread: what userland is promised at a thread's death happens
// in the order of Linux's do_exit.
func (k *Kernel) exitTask(t *Task) {
	p := t.proc
	t.unwait()
	if t.call.futex != nil {
		k.forgetFutex(t.call.futex)
	}
	if a, ok := t.call.data.(abandoner); ok {
		a.Abandon()
	}
	t.endNotification()
	t.seccomp.filters.drop(k.memory)
	t.seccomp = seccompState{}
	k.fs.CancelLock(int32(t.id))
	if t.call.opened != nil {
		t.call.opened.Unref()
	}
	k.exitRobustList(t)
	k.exitPILocks(t)
	if t.clearTID != 0 && (len(p.threads) > 1 || p.space.Users() > 1) {
		if p.space.WriteU32(t.clearTID, 0) == 0 {
			_, _ = k.futexWake(t.futexKey(t.clearTID, false), 1, ^uint32(0))
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
	k.observer.Exit(t.id, int(p.status.wait()))
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

// releaseTracees lets the threads go that t, which has ended, has traced.
func (k *Kernel) releaseTracees(t *Task) {
	for _, x := range slices.Clone(t.tracees) {
		if x.hasTraceOption(optionExitKill) {
			k.sendProcess(x.proc, signalInfo(unix.SIGKILL, siKernel))
		}
		k.detach(x)
	}
}

// detach ends the tracing of a thread, which may have ended.
func (k *Kernel) detach(x *Task) {
	p, tracer := x.proc, x.trace.tracer
	if s := x.stop; x.state == traced && s.kind == stopAtSignal {
		s.signal = int(s.code) // it was not told of
	}
	switch {
	case x.state != dead:
		x.unlink()
	case x != p.leader:
		k.releaseZombie(x)
	default:
		x.unlink()
		if p.isOver() && (p.parent != tracer.proc || p.isIgnored()) {
			k.notifyParent(p)
		}
	}
}

// releaseZombie forgets a thread that has ended, whose tracer knows.
func (k *Kernel) releaseZombie(x *Task) {
	p := x.proc
	x.unlink()
	p.zombies = slices.DeleteFunc(p.zombies, func(o *Task) bool { return o == x })
	k.memory.Release(kmem.Thread)
	p.quiet.Wake(wait.AnyEvent)
	if p.isOver() {
		k.announce(p)
	}
}

// isOver reports whether nothing is left of a process but its status.
func (p *Process) isOver() bool { return p.status.zombie && len(p.zombies) == 0 }

// isTraced reports whether one of the process's threads is traced.
func (p *Process) isTraced() bool {
	return slices.ContainsFunc(p.threads, func(t *Task) bool { return t.trace != nil })
}

// announce tells of the end of a process: its main thread's tracer, if there is one and it
// is not the parent's, before the parent.
func (k *Kernel) announce(p *Process) {
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

// releaseVfork lets the parent that vfork suspended go on.
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
	p.runs(nil)
	p.cancelTimers()
	p.files.release(p)
	p.files = nil
	k.leaveTerminal(p, true)
	p.terminal = nil
	k.orphan(p)
	k.endOrphanedJobs(p, p.parent, true)
	if p == k.init {
		k.done = true
		return
	}
	if p.isOver() {
		k.announce(p)
	}
}

// releaseSpace leaves the address space, after its digest was taken if it ends.
func (k *Kernel) releaseSpace(p *Process) {
	if p.space.Users() == 1 {
		k.observer.Memory(p.pid, digestOf(p.space.DigestLast))
	}
	p.space.Unref()
}

// digestOf is what a function feeds to a hash.
func digestOf(feed func(*xxh3.Hasher)) [16]byte {
	var h xxh3.Hasher
	feed(&h)
	return h.Sum128().Bytes()
}

// orphan gives p's children to the nearest subreaper, or to init.
func (k *Kernel) orphan(p *Process) {
	heir := k.heir(p)
	for _, c := range p.children {
		c.exitSignal = int(unix.SIGCHLD) // an heir is told in no other way
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

// notifyParent tells the parent that p has become a zombie.
func (k *Kernel) notifyParent(p *Process) {
	parent := p.parent
	if parent.outside {
		k.reap(p)
		return
	}
	auto := p.isIgnored()
	if p.exitSignal != 0 && p.exitSignal <= lastSignal {
		k.sendProcess(parent, p.childInfo(p.exitSignal))
	}
	parent.waiters.Wake(wait.AnyEvent)
	if auto {
		k.reap(p)
	}
}

// childInfo is the siginfo of SIGCHLD about p's end.
func (p *Process) childInfo(signal int) sigInfo {
	code, status := p.status.cause()
	return p.childEvent(signal, code, status)
}

func (p *Process) childEvent(signal int, code, status int32) sigInfo {
	user, system := p.times()
	return p.k.childReport(signal, code, p.pid, p.cred().UID, status, user, system)
}

// threadEvent is the siginfo of SIGCHLD about a stop of one thread.
func (p *Process) threadEvent(t *Task, code, status int32) sigInfo {
	return p.k.childReport(int(unix.SIGCHLD), code, int32(t.id), t.cred.UID, status, t.userTime, t.kernelTime)
}

// threadEnd is the siginfo about the end of one thread.
func (p *Process) threadEnd(t *Task, signal int) sigInfo {
	code, status := t.ended.cause()
	return p.k.childReport(signal, code, int32(t.id), t.cred.UID, status, t.userTime, t.kernelTime)
}

func (k *Kernel) childReport(signal int, code, id int32, uid uint32, status int32, user, system arch.Cycles) sigInfo {
	i := userInfo(unix.Signal(signal), code, id, uid)
	putU32(i[24:], uint32(status))
	putU64(i[32:], uint64(k.clockTicks(user)))
	putU64(i[40:], uint64(k.clockTicks(system)))
	return i
}

// reap removes a zombie.
func (k *Kernel) reap(p *Process) {
	if p.leader.trace != nil {
		p.leader.unlink()
	}
	if !p.parent.outside {
		user, system := p.times()
		p.parent.childUser += user + p.childUser
		p.parent.childKernel += system + p.childKernel
	}
	p.parent.children = slices.DeleteFunc(p.parent.children, func(o *Process) bool { return o == p })
	delete(k.processes, p.pid)
	p.charge(0)
}

// charge makes n the number of bytes that the process counts as in the kernel's
// memory, besides its threads and descriptors.
func (p *Process) charge(n uint64) {
	p.k.memory.Force(n)
	p.k.memory.Release(p.charged)
	p.charged = n
}

// times is the time that p's threads, dead ones included, were on a core.
func (p *Process) times() (user, system arch.Cycles) {
	user, system = p.deadUser, p.deadKernel
	for _, t := range p.threads {
		user += t.userTime
		system += t.kernelTime
	}
	return user, system
}

// stopProcess suspends all threads of p: a group-stop. Those that are traced stop when
// they are about to act, for their tracers.
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
				t.kick()
			}
		case t.state == blocked:
			// The call is made again when the process goes on.
			t.unwait()
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

// notifyStop tells the parent that p was stopped or continued.
func (k *Kernel) notifyStop(p *Process, code, status int32) {
	if !p.parent.outside {
		k.childStopped(p.parent, p.childEvent(int(unix.SIGCHLD), code, status))
	}
}

// continueProcess ends a group-stop, or one that was about to be.
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

// wakeStopped lets the threads go that a group-stop has stopped.
func (k *Kernel) wakeStopped(p *Process) {
	p.stopped = false
	for _, t := range p.threads {
		if t.state == stopped {
			t.state = running
			k.sched.Ready(t.id)
		}
	}
}
