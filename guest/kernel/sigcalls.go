package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// sigStack is stack_t.
type sigStack struct {
	Base  uint64
	Flags int32
	_     int32
	Size  uint64
}

const (
	ssOnStack    = 1
	ssDisable    = 2
	ssAutodisarm = -1 << 31
	minSigStack  = 2048
)

// altStackAt is the alternate stack as a thread with stack pointer sp sees it.
func (t *Task) altStackAt(sp uint64) sigStack {
	s := t.altStack
	switch {
	case s.Size == 0:
		s.Flags |= ssDisable
	case t.onAltStack(sp):
		s.Flags |= ssOnStack
	}
	return s
}

func (t *Task) setAltStack(base arch.Addr, flags int32, size uint64) unix.Errno {
	if t.onAltStack(t.regs.GPR[arch.RSP]) && t.altStack.Flags&ssAutodisarm == 0 {
		return unix.EPERM
	}
	switch flags &^ ssAutodisarm {
	case ssDisable:
		t.altStack = sigStack{Flags: flags & ssAutodisarm}
		return 0
	case 0, ssOnStack:
	default:
		return unix.EINVAL
	}
	if size < minSigStack && (sigStack{Base: uint64(base), Flags: flags, Size: size}) != t.altStack {
		return unix.ENOMEM
	}
	t.altStack = sigStack{Base: uint64(base), Flags: flags & ssAutodisarm, Size: size}
	return 0
}

func sysSigaltstack(t *Task, a [6]uint64) (uint64, unix.Errno) {
	old := t.altStackAt(t.regs.GPR[arch.RSP])
	if a[0] != 0 {
		var s sigStack
		if errno := readStruct(t, arch.Addr(a[0]), &s); errno != 0 {
			return 0, errno
		}
		if errno := t.setAltStack(arch.Addr(s.Base), s.Flags, s.Size); errno != 0 {
			return 0, errno
		}
	}
	if a[1] != 0 {
		return 0, writeStruct(t, arch.Addr(a[1]), &old)
	}
	return 0, 0
}

func sysRtSigaction(t *Task, a [6]uint64) (uint64, unix.Errno) {
	n := int(int32(a[0]))
	if a[3] != 8 {
		return 0, unix.EINVAL
	}
	var s sigAction
	if a[1] != 0 {
		if errno := readStruct(t, arch.Addr(a[1]), &s); errno != 0 {
			return 0, errno
		}
	}
	if n < 1 || n > lastSignal || a[1] != 0 && unblockable.has(n) {
		return 0, unix.EINVAL
	}
	slot := &t.proc.actions.list[n]
	old := *slot
	if a[1] != 0 {
		s.Mask &^= unblockable
		*slot = s
		if t.proc.ignoresSignal(n) {
			t.proc.dropPending(sigbit(n))
		}
	}
	if a[2] != 0 {
		return 0, writeStruct(t, arch.Addr(a[2]), &old)
	}
	return 0, 0
}

func sysRtSigprocmask(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[3] != 8 {
		return 0, unix.EINVAL
	}
	old := t.mask
	if a[1] != 0 {
		set, errno := t.readSigset(arch.Addr(a[1]))
		if errno != 0 {
			return 0, errno
		}
		switch int32(a[0]) {
		case unix.SIG_BLOCK:
			t.mask |= set
		case unix.SIG_UNBLOCK:
			t.mask &^= set
		case unix.SIG_SETMASK:
			t.mask = set
		default:
			return 0, unix.EINVAL
		}
		t.mask &^= unblockable
	}
	if a[2] != 0 {
		return 0, t.proc.space.WriteU64(arch.Addr(a[2]), uint64(old))
	}
	return 0, 0
}

func (t *Task) readSigset(addr arch.Addr) (sigset, unix.Errno) {
	set, errno := t.proc.space.ReadU64(addr)
	return sigset(set), errno
}

func sysRtSigpending(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[1] > 8 {
		return 0, unix.EINVAL
	}
	return 0, t.proc.space.WriteU64(arch.Addr(a[0]), uint64(t.pendingSignals()&t.mask))
}

// setTemporaryMask gives a waiting call another signal mask until it returns.
func (t *Task) setTemporaryMask(set sigset) {
	if t.hasMask {
		return
	}
	t.oldMask, t.hasMask = t.mask, true
	t.mask = set &^ unblockable
}

// restoreSignalMask ends the effect of setTemporaryMask.
func (t *Task) restoreSignalMask() {
	if t.hasMask {
		t.mask, t.hasMask = t.oldMask, false
	}
}

func sysRtSigsuspend(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[1] != 8 {
		return 0, unix.EINVAL
	}
	set, errno := t.readSigset(arch.Addr(a[0]))
	if errno != 0 {
		return 0, errno
	}
	t.setTemporaryMask(set)
	return 0, t.waitInterruptibly(errInterrupted, forever)
}

func sysPause(t *Task, _ [6]uint64) (uint64, unix.Errno) {
	return 0, t.waitInterruptibly(errInterrupted, forever)
}

func sysRtSigtimedwait(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[3] != 8 {
		return 0, unix.EINVAL
	}
	set, errno := t.readSigset(arch.Addr(a[0]))
	if errno != 0 {
		return 0, errno
	}
	set &^= unblockable
	deadline := forever
	if a[2] != 0 {
		ns, errno := t.readTimespec(arch.Addr(a[2]))
		if errno != 0 {
			return 0, errno
		}
		deadline = t.relativeDeadline(ns)
	}
	t.waitSet = 0
	if i, ok := t.dequeue(set); ok {
		if a[1] != 0 {
			if errno := t.copyOut(arch.Addr(a[1]), i[:]); errno != 0 {
				return 0, errno
			}
		}
		return uint64(i.number()), 0
	}
	errno = t.waitInterruptibly(unix.EINTR, deadline)
	switch errno {
	case errBlocked:
		t.waitSet = set
	case unix.ETIMEDOUT:
		return 0, unix.EAGAIN
	}
	return 0, errno
}

// mayKill is the permission check of kill(2).
func (t *Task) mayKill(p *Process, n int) bool {
	c, of := &t.cred, p.cred()
	same := c.EUID == of.SUID || c.EUID == of.UID || c.UID == of.SUID || c.UID == of.UID
	return same || c.Can(vfs.CapKill) || p == t.proc || n == int(unix.SIGCONT) && t.proc.session == p.session
}

func sysKill(t *Task, a [6]uint64) (uint64, unix.Errno) {
	pid, n := int32(a[0]), int(int32(a[1]))
	if n < 0 || n > lastSignal {
		return 0, unix.EINVAL
	}
	info := userInfo(unix.Signal(n), siUser, t.proc.pid, t.cred.UID)
	if pid > 0 {
		p := t.k.processes[pid]
		if p == nil {
			// Linux finds a process by the id of any of its threads.
			if other := t.k.findTask(pid); other != nil {
				p = other.proc
			}
		}
		if p == nil {
			return 0, unix.ESRCH
		}
		return 0, t.signalProcess(p, n, info)
	}
	return 0, t.signalProcesses(pid, n, info)
}

func (t *Task) signalProcess(p *Process, n int, info sigInfo) unix.Errno {
	if !t.mayKill(p, n) {
		return unix.EPERM
	}
	if n != 0 && !t.holdsBackSignal(p, nil, info) {
		t.k.sendProcess(p, info)
	}
	return 0
}

// signalProcesses sends to a process group, or to all processes except init and the caller's.
func (t *Task) signalProcesses(pid int32, n int, info sigInfo) unix.Errno {
	group := -pid
	if pid == 0 {
		group = t.proc.group
	}
	result := unix.ESRCH
	for _, p := range t.k.sortedProcesses() {
		switch {
		case pid == -1 && (p.pid == initID || p == t.proc), pid != -1 && p.group != group:
			continue
		}
		if errno := t.signalProcess(p, n, info); errno == 0 || result == unix.ESRCH {
			result = errno
		}
	}
	return result
}

func sysTkill(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.signalThread(-1, int32(a[0]), int(int32(a[1])))
}

func sysTgkill(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if int32(a[0]) <= 0 {
		return 0, unix.EINVAL
	}
	return 0, t.signalThread(int32(a[0]), int32(a[1]), int(int32(a[2])))
}

func (t *Task) signalThread(group, tid int32, n int) unix.Errno {
	return t.sendToThread(group, tid, n, userInfo(unix.Signal(n), siTkill, t.proc.pid, t.cred.UID))
}

// sendToThread sends to one thread; group -1 means any group.
func (t *Task) sendToThread(group, tid int32, n int, info sigInfo) unix.Errno {
	if tid <= 0 || n < 0 || n > lastSignal {
		return unix.EINVAL
	}
	target := t.k.findTask(tid)
	if target == nil || group != -1 && target.proc.pid != group {
		return unix.ESRCH
	}
	if !t.mayKill(target.proc, n) {
		return unix.EPERM
	}
	if n != 0 && !t.holdsBackSignal(target.proc, target, info) {
		t.k.sendTask(target, info)
	}
	return 0
}

func sysRtSigqueueinfo(t *Task, a [6]uint64) (uint64, unix.Errno) {
	info, errno := t.readSiginfo(arch.Addr(a[2]), int(int32(a[1])), int32(a[0]))
	if errno != 0 {
		return 0, errno
	}
	p := t.k.processes[int32(a[0])]
	if p == nil {
		return 0, unix.ESRCH
	}
	if a[1] >= firstQueued && !p.hasSignalRoom() {
		return 0, unix.EAGAIN
	}
	return 0, t.signalProcess(p, int(int32(a[1])), info)
}

func sysRtTgsigqueueinfo(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if int32(a[0]) <= 0 {
		return 0, unix.EINVAL
	}
	info, errno := t.readSiginfo(arch.Addr(a[3]), int(int32(a[2])), int32(a[1]))
	if errno != 0 {
		return 0, errno
	}
	return 0, t.sendToThread(int32(a[0]), int32(a[1]), int(int32(a[2])), info)
}

// readSiginfo reads the siginfo_t that a program queues. Its code must not be one of the kernel's,
// unless the target is the caller's own process.
func (t *Task) readSiginfo(addr arch.Addr, n int, pid int32) (sigInfo, unix.Errno) {
	var info sigInfo
	if errno := t.copyIn(addr, info[:]); errno != 0 {
		return info, errno
	}
	if n < 0 || n > lastSignal {
		return info, unix.EINVAL
	}
	if (info.code() >= 0 || info.code() == siTkill) && pid != t.proc.pid {
		return info, unix.EPERM
	}
	putU32(info[0:], uint32(n))
	if info.code() == siTimer {
		putU32(info[timerMark:], 0)
	}
	return info, 0
}
