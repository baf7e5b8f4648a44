package kernel

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// schedulingTarget finds the task of a scheduling call; 0 is the caller.
func (t *Task) schedulingTarget(id uint64) (*Task, unix.Errno) {
	switch n := int32(id); {
	case n < 0:
		return nil, unix.EINVAL
	case n == 0:
		return t, 0
	default:
		other := t.k.findTask(n)
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
	target, errno := t.schedulingTarget(a[0])
	if errno != 0 {
		return 0, errno
	}
	return 8, t.proc.space.WriteU64(arch.Addr(a[2]), target.Affinity())
}

// Affinity is the set of the cores on which the thread may run, bit by bit.
func (t *Task) Affinity() uint64 {
	if t.affinity == 0 {
		return t.k.allCores()
	}
	return t.affinity
}

func sysSchedSetaffinity(t *Task, a [6]uint64) (uint64, unix.Errno) {
	raw := make([]byte, 8)
	if errno := t.copyIn(arch.Addr(a[2]), raw[:min(a[1], 8)]); errno != 0 {
		return 0, errno
	}
	target, errno := t.schedulingTarget(a[0])
	if errno != 0 {
		return 0, errno
	}
	if !t.ownsScheduling(&target.cred) {
		return 0, unix.EPERM
	}
	mask := decodeStruct[uint64](raw) & t.k.allCores()
	if mask == 0 {
		return 0, unix.EINVAL
	}
	if target.schedule.policy == schedDeadline && mask != t.k.allCores() {
		return 0, unix.EBUSY
	}
	target.affinity = mask
	if !target.proc.outside {
		t.k.sched.SetAffinity(target.id, mask)
	}
	return 0, 0
}

func sysSchedGetscheduler(t *Task, a [6]uint64) (uint64, unix.Errno) {
	target, errno := t.schedulingTarget(a[0])
	if errno != 0 {
		return 0, errno
	}
	policy := uint64(target.schedule.policy)
	if target.schedule.resetOnFork {
		policy |= schedResetOnFork
	}
	return policy, 0
}

func sysSchedSetscheduler(t *Task, a [6]uint64) (uint64, unix.Errno) {
	r := schedRequest{policy: int32(a[1])}
	if r.policy < 0 {
		return 0, unix.EINVAL
	}
	if r.policy&schedResetOnFork != 0 {
		r.policy &^= schedResetOnFork
		r.flags = schedFlagResetOnFork
	}
	return 0, t.setPriority(a[0], a[2], r)
}

func sysSchedSetparam(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.setPriority(a[0], a[1], schedRequest{policy: keepPolicy})
}

// setPriority carries out a request with the struct sched_param at an address.
func (t *Task) setPriority(id, param uint64, r schedRequest) (errno unix.Errno) {
	if param == 0 || int32(id) < 0 {
		return unix.EINVAL
	}
	if r.priority, errno = t.proc.space.ReadU32(arch.Addr(param)); errno != 0 {
		return errno
	}
	target, errno := t.schedulingTarget(id)
	if errno != 0 {
		return errno
	}
	r.nice = target.schedule.nice
	n, errno := t.schedulePlan(target, r)
	if errno == 0 {
		target.setSchedule(n)
	}
	return errno
}

func sysSchedGetparam(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[1] == 0 {
		return 0, unix.EINVAL
	}
	target, errno := t.schedulingTarget(a[0])
	if errno != 0 {
		return 0, errno
	}
	return 0, t.proc.space.WriteU32(arch.Addr(a[1]), target.schedule.priority)
}

// schedAttr is struct sched_attr (include/uapi/linux/sched/types.h).
type schedAttr struct {
	Size, Policy              uint32
	Flags                     uint64
	Nice                      int32
	Priority                  uint32
	Runtime, Deadline, Period uint64
	UtilMin, UtilMax          uint32
}

// Sizes of schedAttr: of its first version, and of the version known here.
const (
	firstSchedAttr = 48
	schedAttrSize  = 56
)

// readSchedAttr reads a schedAttr of the size that the caller states, which may differ from the
// kernel's.
func (t *Task) readSchedAttr(addr arch.Addr) (s schedAttr, errno unix.Errno) {
	size, errno := t.proc.space.ReadU32(addr)
	if errno != 0 {
		return s, errno
	}
	if size == 0 {
		size = firstSchedAttr
	}
	raw := make([]byte, max(schedAttrSize, min(size, arch.PageSize)))
	if size < firstSchedAttr || size > arch.PageSize {
		errno = unix.E2BIG
	} else if errno = t.copyIn(addr, raw[:size]); errno == 0 && !allZero(raw[schedAttrSize:]) {
		errno = unix.E2BIG
	}
	if errno == unix.E2BIG {
		_ = t.proc.space.WriteU32(addr, schedAttrSize)
	}
	if errno != 0 {
		return s, errno
	}
	s = decodeStruct[schedAttr](raw)
	if s.Flags&(schedFlagClampMin|schedFlagClampMax) != 0 && size < schedAttrSize {
		return s, unix.EINVAL
	}
	s.Nice = min(lowestNice, max(highestNice, s.Nice))
	return s, 0
}

func allZero(b []byte) bool { return !slices.ContainsFunc(b, func(x byte) bool { return x != 0 }) }

func sysSchedSetattr(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[1] == 0 || int32(a[0]) < 0 || uint32(a[2]) != 0 {
		return 0, unix.EINVAL
	}
	s, errno := t.readSchedAttr(arch.Addr(a[1]))
	if errno != 0 {
		return 0, errno
	}
	r := schedRequest{
		policy: int32(s.Policy), flags: s.Flags, nice: s.Nice, priority: s.Priority,
		deadline: deadlineParams{runtime: s.Runtime, deadline: s.Deadline, period: s.Period},
	}
	if r.policy < 0 {
		return 0, unix.EINVAL
	}
	if s.Flags&schedFlagKeepPolicy != 0 {
		r.policy = keepPolicy
	}
	target, errno := t.schedulingTarget(a[0])
	if errno != 0 {
		return 0, errno
	}
	if s.Flags&schedFlagKeepParams != 0 {
		have := target.schedAttr()
		r.nice, r.priority = have.Nice, have.Priority
		r.deadline = deadlineParams{runtime: have.Runtime, deadline: have.Deadline, period: have.Period}
	}
	n, errno := t.schedulePlan(target, r)
	if errno == 0 {
		target.setSchedule(n)
	}
	return 0, errno
}

// schedAttr is the thread's schedule as sched_getattr returns it.
func (t *Task) schedAttr() schedAttr {
	s := &t.schedule
	x := schedAttr{Policy: s.policy}
	if s.resetOnFork {
		x.Flags |= schedFlagResetOnFork
	}
	switch {
	case s.policy == schedDeadline:
		d := &s.deadline
		x.Runtime, x.Deadline, x.Period = d.runtime, d.deadline, d.period
		x.Flags |= d.flags
	case isRealtime(s.policy):
		x.Priority = s.priority
	default:
		x.Nice = s.nice
	}
	return x
}

func sysSchedGetattr(t *Task, a [6]uint64) (uint64, unix.Errno) {
	size := uint32(a[2])
	if a[1] == 0 || int32(a[0]) < 0 || size > arch.PageSize || size < firstSchedAttr || uint32(a[3]) != 0 {
		return 0, unix.EINVAL
	}
	target, errno := t.schedulingTarget(a[0])
	if errno != 0 {
		return 0, errno
	}
	x := target.schedAttr()
	x.Size = min(size, schedAttrSize)
	return 0, t.copyOut(arch.Addr(a[1]), bytesOf(&x)[:x.Size])
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

// fairSliceNS is the result of sched_rr_get_interval for threads without a real-time class.
const fairSliceNS = 4e6

func sysSchedRrGetInterval(t *Task, a [6]uint64) (uint64, unix.Errno) {
	target, errno := t.schedulingTarget(a[0])
	if errno != 0 {
		return 0, errno
	}
	ns := int64(0)
	switch p := target.schedule.policy; {
	case p == schedRR:
		ns = roundRobinNS
	case isFair(p):
		ns = fairSliceNS
	}
	return 0, t.writeTimespec(arch.Addr(a[1]), ns)
}

// ownsScheduling reports whether the caller may change the schedule of a task with the credentials
// of.
func (t *Task) ownsScheduling(of *vfs.Cred) bool {
	return t.cred.EUID == of.UID || t.cred.EUID == of.EUID || t.cred.Can(vfs.CapSysNice)
}

// Nice values with the least and the most processor time.
const (
	lowestNice  = 19
	highestNice = -20
)

// allowsNice reports whether RLIMIT_NICE allows a nice value for a thread of the process.
func (p *Process) allowsNice(nice int32) bool { return uint64(20-nice) <= p.limits[rlimitNice].Cur }

// priorityTargets lists the threads that getpriority and setpriority address.
func (t *Task) priorityTargets(which, who uint64) ([]*Task, unix.Errno) {
	var list []*Task
	id := int32(who)
	switch which {
	case unix.PRIO_PROCESS:
		if target, errno := t.schedulingTarget(who); errno == 0 {
			list = []*Task{target}
		}
	case unix.PRIO_PGRP, unix.PRIO_USER:
		if id == 0 && which == unix.PRIO_PGRP {
			id = t.proc.group
		} else if id == 0 {
			id = int32(t.cred.UID)
		}
		for _, p := range t.k.sortedProcesses() {
			for _, other := range p.threads {
				if which == unix.PRIO_PGRP && p.group == id || which == unix.PRIO_USER && other.cred.UID == uint32(id) {
					list = append(list, other)
				}
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

// sysGetpriority returns 20 - nice of the thread with the lowest nice value, as the raw call does.
func sysGetpriority(t *Task, a [6]uint64) (uint64, unix.Errno) {
	list, errno := t.priorityTargets(a[0], a[1])
	if errno != 0 {
		return 0, errno
	}
	best := int32(lowestNice)
	for _, other := range list {
		best = min(best, other.schedule.nice)
	}
	return uint64(20 - best), 0
}

func sysSetpriority(t *Task, a [6]uint64) (uint64, unix.Errno) {
	list, errno := t.priorityTargets(a[0], a[1])
	if errno != 0 {
		return 0, errno
	}
	nice := min(lowestNice, max(highestNice, int32(a[2])))
	for _, other := range list {
		switch {
		case !t.ownsScheduling(&other.cred):
			errno = unix.EPERM
		case nice < other.schedule.nice && !other.proc.allowsNice(nice) && !t.cred.Can(vfs.CapSysNice):
			errno = unix.EACCES
		default:
			other.schedule.nice = nice
		}
	}
	return 0, errno
}
