package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

func sysExit(t *Task, a [6]uint64) (uint64, unix.Errno) {
	t.k.observer.Syscall(t, t.call.number, t.call.args, 0)
	t.endThread(exitStatus{code: int(a[0] & 0xff)})
	return 0, 0
}

// endThread ends the thread, and sets the status of its process if it is the last thread.
func (t *Task) endThread(status exitStatus) {
	if len(t.proc.threads) == 1 {
		t.proc.status = status
	}
	t.k.endTask(t, status)
}

func sysExitGroup(t *Task, a [6]uint64) (uint64, unix.Errno) {
	t.k.observer.Syscall(t, t.call.number, t.call.args, 0)
	t.k.endProcess(t.proc, exitStatus{code: int(a[0] & 0xff)})
	return 0, 0
}

// waitTarget is the set of children that wait4 and waitid wait for.
type waitTarget struct {
	kind    int // unix.P_ALL, P_PID, P_PGID
	id      int32
	options int
}

const (
	waitNoThread = 0x20000000 // __WNOTHREAD
	waitAll      = 0x40000000 // __WALL
	waitClone    = 0x80000000 // __WCLONE
)

// matches reports whether the wait includes a child, or a thread that the caller's process traces.
func (w waitTarget) matches(c *Task, isTracee bool) bool {
	switch w.kind {
	case unix.P_PID:
		if int32(c.id) != w.id {
			return false
		}
	case unix.P_PGID:
		if c.proc.group != w.id {
			return false
		}
	}
	if isTracee || w.options&waitAll != 0 {
		return true
	}
	return (c.proc.exitSignal != int(unix.SIGCHLD)) == (w.options&waitClone != 0)
}

// waitEvent is the result of a wait call.
type waitEvent struct {
	id           int32
	uid          uint32
	word         int32 // as wait4 returns it
	code, status int32 // as waitid returns it
	user, system arch.Cycles
}

// findChild looks for a child or tracee with an event to report, and consumes the event unless
// WNOWAIT is given. ok is false if no child has one; ECHILD: no such child exists.
func (t *Task) findChild(w waitTarget) (e waitEvent, ok bool, errno unix.Errno) {
	candidates := false
	consider := func(c *Task, isTracee bool) bool {
		if !w.matches(c, isTracee) {
			return false
		}
		var counts bool
		e, ok, counts = t.k.findEvent(c, isTracee, w.options)
		candidates = candidates || counts
		return ok
	}
	for _, c := range t.proc.children {
		if w.options&waitNoThread != 0 && c.forker != t {
			continue
		}
		if consider(c.leader, c.leader.trace != nil && !c.leader.isTracedByOther()) {
			return e, true, 0
		}
	}
	tracers := t.proc.threads
	if w.options&waitNoThread != 0 {
		tracers = []*Task{t}
	}
	for _, tracer := range tracers {
		for _, c := range tracer.tracees {
			if consider(c, true) {
				return e, true, 0
			}
		}
	}
	if !candidates {
		return e, false, unix.ECHILD
	}
	return e, false, 0
}

// findEvent looks for an event of a thread: a tracee, or the main thread of a child, which stands
// for the whole process. counts: it may have one later.
func (k *Kernel) findEvent(c *Task, isTracee bool, options int) (e waitEvent, ok, counts bool) {
	p := c.proc
	user, system := p.coreTimes()
	e = waitEvent{id: int32(c.id), uid: c.cred.UID, user: user + p.childUser, system: system + p.childKernel}
	take := options&unix.WNOWAIT == 0
	over := c == p.leader && p.isOver() || c != p.leader && c.state == dead
	if over && (isTracee || c.trace == nil) {
		if options&unix.WEXITED == 0 {
			return e, false, false
		}
		status := c.ended
		if c == p.leader || p.status != (exitStatus{}) {
			status = p.status
		}
		e.word = status.waitWord()
		e.code, e.status = status.siginfoFields()
		if take {
			k.acknowledgeEnd(c)
		}
		return e, true, true
	}
	switch s := c.stop; {
	case isTracee && c.state == traced && s.code != 0 && !s.listens:
		e.word, e.code, e.status = s.code<<8|0x7f, cldTrapped, s.code
		if take {
			s.code = 0
		}
		return e, true, true
	case !isTracee && p.stopped && p.stopSignal != 0 && options&unix.WSTOPPED != 0:
		e.word, e.code, e.status = int32(p.stopSignal<<8|0x7f), cldStopped, int32(p.stopSignal)
		if take {
			p.stopSignal = 0
		}
		return e, true, true
	case p.continued && options&unix.WCONTINUED != 0 && !over:
		e.word, e.code, e.status = 0xffff, cldContinued, int32(unix.SIGCONT)
		if take {
			p.continued = false
		}
		return e, true, true
	}
	return e, false, c.state != dead || c == p.leader
}

// acknowledgeEnd forgets a thread or process whose end has been reported. After a tracer has been
// notified of the end of a tracee that is not its child, the parent is notified.
func (k *Kernel) acknowledgeEnd(c *Task) {
	switch p := c.proc; {
	case c != p.leader:
		k.releaseZombie(c)
	case c.isTracedByOther():
		c.detachTracer()
		k.notifyParent(p)
	default:
		k.reapZombie(p)
	}
}

// waitChild is the common part of wait4 and waitid.
func (t *Task) waitChild(w waitTarget) (waitEvent, bool, unix.Errno) {
	e, ok, errno := t.findChild(w)
	if ok || errno != 0 || w.options&unix.WNOHANG != 0 {
		return e, ok, errno
	}
	return e, false, t.waitInterruptibly(errRestart, forever, &t.proc.waiters)
}

func sysWait4(t *Task, a [6]uint64) (uint64, unix.Errno) {
	pid, options := int32(a[0]), int(uint32(a[2]))
	if options&^(unix.WNOHANG|unix.WUNTRACED|unix.WCONTINUED|waitNoThread|waitAll|waitClone) != 0 {
		return 0, unix.EINVAL
	}
	w := waitTarget{kind: unix.P_ALL, options: options | unix.WEXITED}
	switch {
	case pid == -1<<31:
		return 0, unix.ESRCH
	case pid < -1:
		w.kind, w.id = unix.P_PGID, -pid
	case pid == 0:
		w.kind, w.id = unix.P_PGID, t.proc.group
	case pid > 0:
		w.kind, w.id = unix.P_PID, pid
	}
	e, ok, errno := t.waitChild(w)
	if !ok {
		return 0, errno
	}
	if a[1] != 0 {
		if errno := t.proc.space.WriteU32(arch.Addr(a[1]), uint32(e.word)); errno != 0 {
			return 0, errno
		}
	}
	if a[3] != 0 {
		usage := t.k.makeRusage(e.user, e.system)
		if errno := writeStruct(t, arch.Addr(a[3]), &usage); errno != 0 {
			return 0, errno
		}
	}
	return uint64(e.id), 0
}

func sysWaitid(t *Task, a [6]uint64) (uint64, unix.Errno) {
	w := waitTarget{kind: int(int32(a[0])), id: int32(a[1]), options: int(uint32(a[3]))}
	const events = unix.WEXITED | unix.WSTOPPED | unix.WCONTINUED
	if w.options&^(events|unix.WNOHANG|unix.WNOWAIT|waitNoThread|waitAll|waitClone) != 0 || w.options&events == 0 {
		return 0, unix.EINVAL
	}
	switch w.kind {
	case unix.P_ALL:
	case unix.P_PID:
		if w.id <= 0 {
			return 0, unix.EINVAL
		}
	case unix.P_PGID:
		if w.id < 0 {
			return 0, unix.EINVAL
		}
		if w.id == 0 {
			w.id = t.proc.group
		}
	default:
		return 0, unix.EINVAL
	}
	e, ok, failure := t.waitChild(w)
	if failure == errBlocked {
		return 0, failure
	}
	if a[4] != 0 && ok {
		usage := t.k.makeRusage(e.user, e.system)
		if errno := writeStruct(t, arch.Addr(a[4]), &usage); errno != 0 {
			return 0, errno
		}
	}
	if a[2] != 0 {
		var info sigInfo
		if ok {
			info = userInfo(unix.SIGCHLD, e.code, e.id, e.uid)
			putU32(info[24:], uint32(e.status))
		}
		// Linux writes only the fields that it sets, also after a failure.
		if errno := t.copyOut(arch.Addr(a[2]), info[:28]); errno != 0 {
			return 0, errno
		}
	}
	return 0, failure
}
