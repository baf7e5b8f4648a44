package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// target finds the task that a scheduling call is about; 0 is the caller.
func (t *Task) target(id uint64) (*Task, unix.Errno) {
	switch n := int32(id); {
	case n < 0:
		return nil, unix.EINVAL
	case n == 0:
		return t, 0
	default:
		other := t.k.task(n)
		if other == nil {
			return nil, unix.ESRCH
		}
		return other, 0
	}
}

func (k *Kernel) allCores() uint64 { return ^uint64(0) >> (64 - k.config.Cores) }

func sysSchedGetaffinity(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[1] < 8 || a[1]%8 != 0 {
		return 0, unix.EINVAL
	}
	target, errno := t.target(a[0])
	if errno != 0 {
		return 0, errno
	}
	mask := target.affinity
	if mask == 0 {
		mask = t.k.allCores()
	}
	return 8, t.proc.space.WriteU64(event.Addr(a[2]), mask)
}

func sysSchedSetaffinity(t *Task, a [6]uint64) (uint64, unix.Errno) {
	raw := make([]byte, 8)
	if errno := t.copyIn(event.Addr(a[2]), raw[:min(a[1], 8)]); errno != 0 {
		return 0, errno
	}
	target, errno := t.target(a[0])
	if errno != 0 {
		return 0, errno
	}
	if !t.ownsScheduling(&target.cred) {
		return 0, unix.EPERM
	}
	mask := decode[uint64](raw) & t.k.allCores()
	if mask == 0 {
		return 0, unix.EINVAL
	}
	target.affinity = mask
	if !target.proc.outside {
		t.k.sched.SetAffinity(target.id, mask)
	}
	return 0, 0
}

// Every thread is SCHED_OTHER. The other policies are root's to choose.
const (
	schedOther    = 0
	schedFIFO     = 1
	schedRR       = 2
	schedBatch    = 3
	schedIdle     = 5
	schedDeadline = 6

	schedResetOnFork = 0x40000000
)

func sysSchedGetscheduler(t *Task, a [6]uint64) (uint64, unix.Errno) {
	target, errno := t.target(a[0])
	if errno != 0 {
		return 0, errno
	}
	return uint64(target.policy), 0
}

func sysSchedSetscheduler(t *Task, a [6]uint64) (uint64, unix.Errno) {
	target, priority, errno := t.targetAndPriority(a[0], a[2])
	if errno != 0 {
		return 0, errno
	}
	if errno := checkPolicy(int32(a[1])&^schedResetOnFork, priority); errno != 0 {
		return 0, errno
	}
	target.policy = uint32(a[1])
	return 0, 0
}

func checkPolicy(policy int32, priority uint32) unix.Errno {
	switch policy {
	case schedOther, schedBatch, schedIdle:
		if priority != 0 {
			return unix.EINVAL
		}
		return 0
	case schedFIFO, schedRR:
		if priority < 1 || priority > 99 {
			return unix.EINVAL
		}
		return unix.EPERM
	}
	return unix.EINVAL
}

func sysSchedGetparam(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[1] == 0 {
		return 0, unix.EINVAL
	}
	if _, errno := t.target(a[0]); errno != 0 {
		return 0, errno
	}
	return 0, t.proc.space.WriteU32(event.Addr(a[1]), 0)
}

// targetAndPriority reads the arguments of the calls that set priorities.
func (t *Task) targetAndPriority(id, param uint64) (*Task, uint32, unix.Errno) {
	if param == 0 || int32(id) < 0 {
		return nil, 0, unix.EINVAL
	}
	priority, errno := t.proc.space.ReadU32(event.Addr(param))
	if errno != 0 {
		return nil, 0, errno
	}
	target, errno := t.target(id)
	return target, priority, errno
}

func sysSchedSetparam(t *Task, a [6]uint64) (uint64, unix.Errno) {
	_, priority, errno := t.targetAndPriority(a[0], a[1])
	if errno != 0 {
		return 0, errno
	}
	return 0, checkPolicy(schedOther, priority)
}

func priorityRange(policy uint64, realtime uint64) (uint64, unix.Errno) {
	switch policy {
	case schedFIFO, schedRR:
		return realtime, 0
	case schedOther, schedBatch, schedIdle, schedDeadline:
		return 0, 0
	}
	return 0, unix.EINVAL
}

func sysSchedGetPriorityMax(_ *Task, a [6]uint64) (uint64, unix.Errno) {
	return priorityRange(a[0], 99)
}

func sysSchedGetPriorityMin(_ *Task, a [6]uint64) (uint64, unix.Errno) { return priorityRange(a[0], 1) }

func sysSchedRrGetInterval(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if _, errno := t.target(a[0]); errno != 0 {
		return 0, errno
	}
	return 0, t.writeTimespec(event.Addr(a[1]), 4e6)
}

// ownsScheduling reports whether the caller may change how a task or process with
// the credentials of is scheduled.
func (t *Task) ownsScheduling(of *vfs.Cred) bool {
	return t.cred.EUID == of.UID || t.cred.EUID == of.EUID || t.cred.Can(vfs.CapSysNice)
}

// mayFavour reports whether the caller may set p's nice value to a lower one.
func (t *Task) mayFavour(p *Process, nice int32) bool {
	return t.cred.Can(vfs.CapSysNice) || uint64(20-nice) <= p.limits[rlimitNice].Cur
}

// prioritized lists the processes that getpriority and setpriority are about.
func (t *Task) prioritized(which, who uint64) ([]*Process, unix.Errno) {
	var list []*Process
	id := int32(who)
	switch which {
	case unix.PRIO_PROCESS:
		if target, errno := t.target(who); errno == 0 {
			list = []*Process{target.proc}
		}
	case unix.PRIO_PGRP, unix.PRIO_USER:
		for _, p := range t.k.sortedProcesses() {
			inGroup := which == unix.PRIO_PGRP && (p.group == id || id == 0 && p.group == t.proc.group)
			owner := p.cred().UID
			ofUser := which == unix.PRIO_USER && (owner == uint32(id) || id == 0 && owner == t.cred.UID)
			if inGroup || ofUser {
				list = append(list, p)
			}
		}
	default:
		return nil, unix.EINVAL
	}
	if len(list) == 0 {
		return nil, unix.ESRCH
	}
	return list, 0
}

// sysGetpriority answers 20 - nice, as the raw call does, of the one that is
// favoured most.
func sysGetpriority(t *Task, a [6]uint64) (uint64, unix.Errno) {
	list, errno := t.prioritized(a[0], a[1])
	if errno != 0 {
		return 0, errno
	}
	best := int32(19)
	for _, p := range list {
		best = min(best, p.nice)
	}
	return uint64(20 - best), 0
}

func sysSetpriority(t *Task, a [6]uint64) (uint64, unix.Errno) {
	list, errno := t.prioritized(a[0], a[1])
	if errno != 0 {
		return 0, errno
	}
	nice := min(19, max(-20, int32(a[2])))
	for _, p := range list {
		switch {
		case !t.ownsScheduling(p.cred()):
			return 0, unix.EPERM
		case nice < p.nice && !t.mayFavour(p, nice):
			return 0, unix.EACCES
		}
		p.nice = nice
	}
	return 0, 0
}
