package kernel

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// maxTasks bounds the number of live threads, as pid_max and the pids controller of a cgroup do.
const maxTasks = 16384

// cloneArgs are the arguments common to clone, clone3, fork and vfork.
type cloneArgs struct {
	flags      uint64
	exitSignal int
	stack      uint64 // stack pointer; 0: that of the caller
	tls        uint64
	parentTID  arch.Addr
	childTID   arch.Addr
}

const refusedClone = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_PIDFD

func sysClone(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.clone(cloneArgs{
		flags: a[0] &^ 0xff, exitSignal: int(a[0] & 0xff), stack: a[1],
		parentTID: arch.Addr(a[2]), childTID: arch.Addr(a[3]), tls: a[4],
	})
}

func sysFork(t *Task, _ [6]uint64) (uint64, unix.Errno) {
	return t.clone(cloneArgs{exitSignal: int(unix.SIGCHLD)})
}

func sysVfork(t *Task, _ [6]uint64) (uint64, unix.Errno) {
	return t.clone(cloneArgs{flags: unix.CLONE_VFORK | unix.CLONE_VM, exitSignal: int(unix.SIGCHLD)})
}

// clone makes a thread or a process. A parent that vfork suspends is called here again when the
// child has left its address space, and a traced parent when it is resumed from the stop for the
// event.
func (t *Task) clone(a cloneArgs) (uint64, unix.Errno) {
	if c, ok := t.call.data.(*pendingClone); ok {
		return t.continueClone(c)
	}
	if errno := checkCloneArgs(a); errno != 0 {
		return 0, errno
	}
	if t.k.tasks.Len() >= maxTasks || !t.mayFork(a) {
		return 0, unix.EAGAIN
	}
	if _, errno := t.schedule.childSchedule(); errno != 0 {
		return 0, errno
	}
	if !t.k.memory.Charge(kmem.Thread) {
		return 0, unix.EAGAIN
	}
	child, errno := t.k.newChild(t, a)
	if errno != 0 {
		t.k.memory.Release(kmem.Thread)
		return 0, errno
	}
	if a.flags&unix.CLONE_PARENT_SETTID != 0 {
		_ = t.proc.space.WriteU32(a.parentTID, uint32(child.id))
	}
	if a.flags&unix.CLONE_CHILD_SETTID != 0 {
		_ = child.proc.space.WriteU32(a.childTID, uint32(child.id))
	}
	if a.flags&unix.CLONE_CHILD_CLEARTID != 0 {
		child.clearTID = a.childTID
	}
	c := &pendingClone{child: child.id, task: child, vfork: a.flags&unix.CLONE_VFORK != 0}
	if c.vfork {
		child.vforkDone = &c.done
	}
	t.call.data = c
	event := a.traceEvent()
	traces := event != 0 && t.hasEvent(event)
	if t.trace != nil && (traces || a.flags&unix.CLONE_PTRACE != 0) {
		child.attachNewThread(t.trace)
	}
	t.k.startTask(child)
	if traces {
		t.stopForEvent(stopInCall, event, uint64(child.id))
		return 0, errBlocked
	}
	return t.continueClone(c)
}

// traceEvent is the event of ptrace(2) for a new child; 0: none.
func (a *cloneArgs) traceEvent() int {
	switch {
	case a.flags&unix.CLONE_UNTRACED != 0:
		return 0
	case a.flags&unix.CLONE_VFORK != 0:
		return unix.PTRACE_EVENT_VFORK
	case a.exitSignal != int(unix.SIGCHLD):
		return unix.PTRACE_EVENT_CLONE
	}
	return unix.PTRACE_EVENT_FORK
}

// attachNewThread makes a new thread a tracee of its creator's tracer. The thread stops before it
// does anything else.
func (t *Task) attachNewThread(of *tracee) {
	t.attachTracer(of.tracer, of.seized, of.options)
	if of.seized {
		t.job.traps = true
	} else {
		t.signals.add(signalInfo(unix.SIGSTOP, siUser))
	}
}

// pendingClone is the state of a clone call whose child has started.
type pendingClone struct {
	child    arch.ThreadID
	task     *Task
	vfork    bool
	reported bool       // that the child has left the address space
	done     wait.Queue // a parent that vfork suspended waits for this
}

func (c *pendingClone) isReleased() bool { return c.task.vforkDone == nil }

// continueClone continues a clone call whose child has started.
func (t *Task) continueClone(c *pendingClone) (uint64, unix.Errno) {
	if c.vfork && !c.isReleased() {
		if !t.deliverFatal() {
			t.blockUntil(forever, &c.done)
		}
		return 0, errBlocked
	}
	if c.vfork && !c.reported && t.hasEvent(unix.PTRACE_EVENT_VFORK_DONE) {
		c.reported = true
		t.stopForEvent(stopInCall, unix.PTRACE_EVENT_VFORK_DONE, uint64(c.child))
		return 0, errBlocked
	}
	return uint64(c.child), 0
}

func checkCloneArgs(a cloneArgs) unix.Errno {
	f := a.flags
	switch {
	case f&unix.CLONE_FS != 0 && f&(unix.CLONE_NEWNS|unix.CLONE_NEWUSER) != 0,
		f&unix.CLONE_THREAD != 0 && f&unix.CLONE_SIGHAND == 0,
		f&unix.CLONE_SIGHAND != 0 && f&unix.CLONE_VM == 0,
		a.exitSignal > lastSignal:
		return unix.EINVAL
	case f&refusedClone != 0, f&unix.CLONE_SETTLS != 0 && a.tls >= uint64(mm.TaskSize):
		return unix.EPERM
	}
	return 0
}

// mayFork applies RLIMIT_NPROC, which bounds neither root nor a caller with CAP_SYS_RESOURCE or
// CAP_SYS_ADMIN.
func (t *Task) mayFork(a cloneArgs) bool {
	limit := t.proc.limits[unix.RLIMIT_NPROC].Cur
	return t.cred.UID == 0 || t.cred.Can(vfs.CapSysResource) || t.cred.Can(vfs.CapSysAdmin) || uint64(t.k.tasks.Len()) < limit
}

// newChild makes the task that clone asks for. The scheduler does not know it yet.
func (k *Kernel) newChild(t *Task, a cloneArgs) (*Task, unix.Errno) {
	p := t.proc
	if a.flags&unix.CLONE_THREAD == 0 {
		var errno unix.Errno
		if p, errno = k.forkProcess(t, a); errno != 0 {
			return nil, errno
		}
	}
	t.Load()
	child := &Task{
		k: k, id: k.newID(p), proc: p, ctx: k.cpu.CloneContext(t.ctx), name: t.name, regs: t.regs, origRAX: t.origRAX, dirty: true,
		mask: t.mask, affinity: t.affinity, timerSlack: t.timerSlack, started: k.clock.now, noNewPrivs: t.noNewPrivs,
		personality: t.personality, cred: t.cred, seccomp: seccompState{t.seccomp.mode, t.seccomp.filters.addReference()},
	}
	if a.flags&unix.CLONE_VM == 0 || a.flags&unix.CLONE_VFORK != 0 {
		child.altStack = t.altStack
	}
	if a.flags&unix.CLONE_SYSVSEM != 0 {
		child.semUndo = t.shareUndo()
	}
	if p != t.proc {
		p.pid = int32(child.id)
		k.processes[p.pid] = p
	}
	p.threads = append(p.threads, child)
	child.schedule, _ = t.schedule.childSchedule()
	if p.leader == nil {
		p.leader = child
	}
	child.regs.GPR[arch.RAX] = 0
	if a.stack != 0 {
		child.regs.GPR[arch.RSP] = a.stack
	}
	if a.flags&unix.CLONE_SETTLS != 0 {
		child.regs.FSBase = a.tls
	}
	return child, 0
}

// startTask makes a task known to the scheduler.
func (k *Kernel) startTask(t *Task) {
	k.tasks.Put(t.id, t)
	k.stats.Threads++
	if t.affinity != 0 {
		k.sched.SetAffinity(t.id, t.affinity)
	}
	if t.schedule.rank() > 0 {
		t.reportPrecedence()
	}
	k.sched.Ready(t.id)
}

// forkProcess makes the process of a child that is no thread of its parent's process.
func (k *Kernel) forkProcess(t *Task, a cloneArgs) (*Process, unix.Errno) {
	old := t.proc
	size := kmem.Process + uint64(old.space.Count())*kmem.Mapping
	if !k.memory.Charge(size) {
		return nil, unix.ENOMEM
	}
	p := &Process{
		k: k, parent: old, forker: t, group: old.group, session: old.session, terminal: old.terminal, path: old.path,
		args: old.args, env: old.env, exitSignal: a.exitSignal, dumpable: old.dumpable, limits: old.limits,
		objects: old.objects, name: old.name, oomScore: old.oomScore,
		started: k.clock.now, charged: size, membarrier: old.membarrier, service: old.service,
	}
	p.setBinary(old.binary)
	if a.flags&unix.CLONE_PARENT != 0 {
		p.parent, p.forker, p.exitSignal = old.parent, old.forker, old.exitSignal
	}
	if a.flags&unix.CLONE_VM != 0 {
		p.space = old.space
		p.space.Ref()
	} else {
		space, errno := old.space.Fork()
		if errno != 0 {
			p.setBinary(nil)
			p.setMemoryCharge(0)
			return nil, errno
		}
		p.space = space
	}
	if a.flags&unix.CLONE_FILES != 0 {
		p.files = old.files
		p.files.refs++
	} else {
		p.files = old.files.clone()
	}
	if a.flags&unix.CLONE_FS != 0 {
		p.context = old.context
	} else {
		context := *old.context
		p.context = &context
	}
	if a.flags&unix.CLONE_SIGHAND != 0 {
		p.actions = old.actions
	} else {
		actions := *old.actions
		p.actions = &actions
	}
	p.parent.children = append(p.parent.children, p)
	k.stats.Processes++
	return p, 0
}

// clone3Args is struct clone_args (include/uapi/linux/sched.h).
type clone3Args struct {
	Flags, PidFD, ChildTID, ParentTID, ExitSignal, Stack, StackSize, TLS uint64
	SetTID, SetTIDSize, Cgroup                                           uint64
}

const clone3Size = 88

func sysClone3(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if c, begun := t.call.data.(*pendingClone); begun {
		return t.continueClone(c)
	}
	if a[1] < 64 {
		return 0, unix.EINVAL
	}
	if a[1] > arch.PageSize {
		return 0, unix.E2BIG
	}
	raw := make([]byte, max(a[1], clone3Size))
	if errno := t.copyIn(arch.Addr(a[0]), raw[:a[1]]); errno != 0 {
		return 0, errno
	}
	for _, b := range raw[clone3Size:] {
		if b != 0 {
			return 0, unix.E2BIG
		}
	}
	c := decodeStruct[clone3Args](raw)
	if c.Flags&0xff != 0 || (c.Stack == 0) != (c.StackSize == 0) || c.ExitSignal > lastSignal ||
		c.Flags&(unix.CLONE_THREAD|unix.CLONE_PARENT) != 0 && c.ExitSignal != 0 {
		return 0, unix.EINVAL
	}
	if c.SetTIDSize != 0 {
		return 0, unix.EPERM
	}
	stack := c.Stack
	if stack != 0 {
		stack += c.StackSize
	}
	// CLONE_CLEAR_SIGHAND and CLONE_INTO_CGROUP lie above the flags of clone.
	if c.Flags>>33 != 0 {
		return 0, unix.EINVAL
	}
	value, errno := t.clone(cloneArgs{
		flags: c.Flags & 0xffffffff, exitSignal: int(c.ExitSignal), stack: stack, tls: c.TLS,
		parentTID: arch.Addr(c.ParentTID), childTID: arch.Addr(c.ChildTID),
	})
	return value, errno
}

// MakesThread reports whether the clone or clone3 that the thread makes with the registers r creates a
// thread of its process.
func (t *Task) MakesThread(r *arch.Regs) bool {
	flags := r.GPR[arch.RDI]
	if CallNumber(r.GPR[arch.RAX]) == unix.SYS_CLONE3 {
		var b [8]byte
		if t.proc.Peek(arch.Addr(flags+linux.CloneArgsFlags), b[:]) != len(b) {
			return false // the call fails
		}
		flags = binary.LittleEndian.Uint64(b[:])
	}
	return flags&unix.CLONE_THREAD != 0
}

// MayRemovePages reports whether the system call that the thread makes with the registers r may remove
// pages from an address space, replace them or give them to another process (linux.RemovesPages): not the
// creation of a thread, the end of one that is not the last, a mapping where nothing is mapped, and new
// rights to pages.
func (t *Task) MayRemovePages(r *arch.Regs) bool {
	number := CallNumber(r.GPR[arch.RAX])
	switch number {
	case unix.SYS_CLONE, unix.SYS_CLONE3:
		return !t.MakesThread(r)
	case unix.SYS_EXIT:
		return len(t.proc.threads) == 1
	case unix.SYS_MMAP:
		return r.GPR[arch.R10]&unix.MAP_FIXED != 0
	case unix.SYS_MPROTECT:
		const all = unix.PROT_READ | unix.PROT_WRITE
		return r.GPR[arch.RDX]&all != all
	case unix.SYS_MADVISE:
		return false // a store that waits is one from before or after the call
	}
	return linux.Has(number, linux.RemovesPages)
}
