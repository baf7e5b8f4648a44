package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/procfs"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

func sysGetpid(t *Task, _ [6]uint64) (uint64, unix.Errno) { return uint64(t.proc.pid), 0 }

func sysGettid(t *Task, _ [6]uint64) (uint64, unix.Errno) { return uint64(t.id), 0 }

func sysGetppid(t *Task, _ [6]uint64) (uint64, unix.Errno) {
	return uint64(t.proc.parentID()), 0
}

func sysSetTidAddress(t *Task, a [6]uint64) (uint64, unix.Errno) {
	t.clearTID = arch.Addr(a[0])
	return uint64(t.id), 0
}

func sysSchedYield(t *Task, _ [6]uint64) (uint64, unix.Errno) {
	t.k.sched.Yield(t.id)
	return 0, 0
}

func sysGetcpu(t *Task, a [6]uint64) (uint64, unix.Errno) {
	core := max(0, t.k.sched.Core(t.id))
	if a[0] != 0 {
		if errno := t.proc.space.WriteU32(arch.Addr(a[0]), uint32(core)); errno != 0 {
			return 0, errno
		}
	}
	if a[1] != 0 {
		return 0, t.proc.space.WriteU32(arch.Addr(a[1]), 0)
	}
	return 0, 0
}

// release and version appear in uname and /proc.
const (
	Release = "6.1.0-heddle"
	Version = "#1 SMP heddle"
)

func sysUname(t *Task, a [6]uint64) (uint64, unix.Errno) {
	var u unix.Utsname
	copy(u.Sysname[:], "Linux")
	copy(u.Nodename[:], t.k.hostname)
	copy(u.Release[:], t.shownRelease())
	copy(u.Version[:], Version)
	copy(u.Machine[:], t.shownMachine())
	copy(u.Domainname[:], "(none)")
	return 0, writeStruct(t, arch.Addr(a[0]), &u)
}

func sysSysinfo(t *Task, a [6]uint64) (uint64, unix.Errno) {
	info := unix.Sysinfo_t{
		Uptime: t.k.uptime() / second, Totalram: t.k.ram.Limit() * arch.PageSize,
		Freeram: (t.k.ram.Limit() - t.k.ram.Used()) * arch.PageSize, Procs: uint16(min(t.k.tasks.Len(), 65535)), Unit: 1,
	}
	return 0, writeStruct(t, arch.Addr(a[0]), &info)
}

const (
	grndNonblock = 1
	grndRandom   = 2
	grndInsecure = 4
)

func sysGetrandom(t *Task, a [6]uint64) (uint64, unix.Errno) {
	flags := uint32(a[2])
	if flags&^(grndNonblock|grndRandom|grndInsecure) != 0 || flags&(grndRandom|grndInsecure) == grndRandom|grndInsecure {
		return 0, unix.EINVAL
	}
	done := uint64(0)
	buf := make([]byte, arch.PageSize)
	for n := min(a[1], 1<<25-1); done < n; {
		part := buf[:min(n-done, arch.PageSize)]
		t.k.Read(part)
		copied, errno := t.proc.space.CopyOutRanges([]mm.Range{{Addr: arch.Addr(a[0] + done), Len: uint64(len(part))}}, part)
		done += uint64(copied)
		if errno != 0 {
			return partialResult(done, errno)
		}
	}
	return done, 0
}

const rlimits = 16

const infinity = ^uint64(0)

// defaultLimits are the limits after a login on Debian, without the values that depend on the host.
func defaultLimits() (l [rlimits]unix.Rlimit) {
	for i := range l {
		l[i] = unix.Rlimit{Cur: infinity, Max: infinity}
	}
	l[unix.RLIMIT_STACK].Cur = 8 << 20
	l[unix.RLIMIT_CORE].Cur = 0
	l[unix.RLIMIT_NPROC] = unix.Rlimit{Cur: maxTasks, Max: maxTasks}
	l[unix.RLIMIT_NOFILE] = unix.Rlimit{Cur: procfs.MaxOpenFiles, Max: procfs.MaxOpenFiles}
	l[unix.RLIMIT_MEMLOCK] = unix.Rlimit{Cur: 8 << 20, Max: 8 << 20}
	l[rlimitSigpending] = unix.Rlimit{Cur: maxTasks, Max: maxTasks}
	l[rlimitMsgqueue] = unix.Rlimit{Cur: 819200, Max: 819200}
	l[rlimitNice] = unix.Rlimit{}
	l[rlimitRtprio] = unix.Rlimit{}
	return l
}

const (
	rlimitSigpending = 11
	rlimitMsgqueue   = 12
	rlimitNice       = 13
	rlimitRtprio     = 14
)

func sysGetrlimit(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[0] >= rlimits {
		return 0, unix.EINVAL
	}
	return 0, writeStruct(t, arch.Addr(a[1]), &t.proc.limits[a[0]])
}

func sysSetrlimit(t *Task, a [6]uint64) (uint64, unix.Errno) {
	var l unix.Rlimit
	if errno := readStruct(t, arch.Addr(a[1]), &l); errno != 0 {
		return 0, errno
	}
	return 0, t.setLimit(t.proc, a[0], l)
}

func (t *Task) setLimit(p *Process, resource uint64, l unix.Rlimit) unix.Errno {
	if resource >= rlimits || l.Cur > l.Max {
		return unix.EINVAL
	}
	if resource == unix.RLIMIT_NOFILE && l.Max > procfs.MaxOpenFiles || l.Max > p.limits[resource].Max && !t.cred.Can(vfs.CapSysResource) {
		return unix.EPERM
	}
	p.limits[resource] = l
	p.applyLimits()
	return 0
}

// applyLimits passes the limits to the address space and the descriptor table, which enforce them.
func (p *Process) applyLimits() {
	if p.outside {
		return
	}
	p.space.Limits.AddressSpace = p.limits[unix.RLIMIT_AS].Cur
	p.space.Limits.Data = p.limits[unix.RLIMIT_DATA].Cur
	p.space.Limits.Stack = p.limits[unix.RLIMIT_STACK].Cur
	p.space.Limits.MemLock = p.limits[unix.RLIMIT_MEMLOCK].Cur
}

func sysPrlimit64(t *Task, a [6]uint64) (uint64, unix.Errno) {
	p := t.proc
	if pid := int32(a[0]); pid != 0 {
		other := t.k.findTask(pid)
		if other == nil {
			return 0, unix.ESRCH
		}
		if !t.sameUser(other) && !t.cred.Can(vfs.CapSysResource) {
			return 0, unix.EPERM
		}
		p = other.proc
	}
	if a[1] >= rlimits {
		return 0, unix.EINVAL
	}
	old := p.limits[a[1]]
	if a[2] != 0 {
		var l unix.Rlimit
		if errno := readStruct(t, arch.Addr(a[2]), &l); errno != 0 {
			return 0, errno
		}
		if errno := t.setLimit(p, a[1], l); errno != 0 {
			return 0, errno
		}
	}
	if a[3] != 0 {
		return 0, writeStruct(t, arch.Addr(a[3]), &old)
	}
	return 0, 0
}

func sysPrctl(t *Task, a [6]uint64) (uint64, unix.Errno) {
	p := t.proc
	switch a[0] {
	case unix.PR_SET_NAME:
		return 0, t.copyInName(arch.Addr(a[1]))
	case unix.PR_GET_NAME:
		var name [nameSize]byte
		copy(name[:nameSize-1], t.name)
		return 0, t.copyOut(arch.Addr(a[1]), name[:])
	case unix.PR_SET_PDEATHSIG:
		if a[1] > lastSignal {
			return 0, unix.EINVAL
		}
		t.parentDeath = int(a[1])
		return 0, 0
	case unix.PR_GET_PDEATHSIG:
		return 0, p.space.WriteU32(arch.Addr(a[1]), uint32(t.parentDeath))
	case unix.PR_SET_DUMPABLE:
		if a[1] > 1 {
			return 0, unix.EINVAL
		}
		p.dumpable = a[1]
		return 0, 0
	case unix.PR_SET_CHILD_SUBREAPER:
		p.subreaper = a[1] != 0
		return 0, 0
	case unix.PR_GET_CHILD_SUBREAPER:
		return 0, p.space.WriteU32(arch.Addr(a[1]), boolToUint32(p.subreaper))
	case unix.PR_SET_NO_NEW_PRIVS:
		if a[1] != 1 || a[2]|a[3]|a[4] != 0 {
			return 0, unix.EINVAL
		}
		t.noNewPrivs = true
		return 0, 0
	case unix.PR_SET_SECCOMP:
		return 0, t.prctlSeccomp(a[1], a[2])
	case unix.PR_SET_TIMERSLACK:
		t.timerSlack = a[1]
		return 0, 0
	case unix.PR_GET_TID_ADDRESS:
		return 0, p.space.WriteU64(arch.Addr(a[1]), uint64(t.clearTID))
	case unix.PR_SET_PTRACER:
		return 0, t.setPtracer(a[1])
	case unix.PR_SET_THP_DISABLE, unix.PR_SET_VMA:
		return 0, 0 // nothing here depends on them
	case unix.PR_CAPBSET_READ, unix.PR_CAPBSET_DROP, unix.PR_CAP_AMBIENT, unix.PR_GET_KEEPCAPS, unix.PR_SET_KEEPCAPS,
		unix.PR_GET_SECUREBITS, unix.PR_SET_SECUREBITS:
		return t.prctlCaps(a)
	}
	return t.prctlValue(a)
}

// prctlValue carries out the commands of prctl that only return a number.
func (t *Task) prctlValue(a [6]uint64) (uint64, unix.Errno) {
	switch a[0] {
	case unix.PR_GET_DUMPABLE:
		return t.proc.dumpable, 0
	case unix.PR_GET_NO_NEW_PRIVS:
		return uint64(boolToUint32(t.noNewPrivs)), 0
	case unix.PR_GET_TIMERSLACK:
		if t.timerSlack == 0 {
			return defaultTimerSlack, 0
		}
		return t.timerSlack, 0
	case unix.PR_GET_SECCOMP:
		return uint64(t.seccomp.mode), 0
	case unix.PR_GET_THP_DISABLE:
		return 0, 0
	}
	return 0, unix.EINVAL
}

// nameSize is the longest name of a thread, its end included (TASK_COMM_LEN).
const nameSize = 16

// copyInName sets the thread's name to the string in memory, of which it reads no more than a name
// can have.
func (t *Task) copyInName(addr arch.Addr) unix.Errno {
	var name [nameSize - 1]byte
	for i := range name {
		b, errno := t.proc.space.ReadU8(addr + arch.Addr(i))
		if errno != 0 {
			return errno
		}
		if b == 0 {
			t.name = string(name[:i])
			return 0
		}
		name[i] = b
	}
	t.name = string(name[:])
	return 0
}

// defaultTimerSlack is Linux's, in nanoseconds. Timers here have none.
const defaultTimerSlack = 50000

func boolToUint32(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func sysGetgroups(t *Task, a [6]uint64) (uint64, unix.Errno) {
	groups := t.cred.Groups
	if int32(a[0]) < 0 || a[0] != 0 && int(a[0]) < len(groups) {
		return 0, unix.EINVAL
	}
	if a[0] == 0 {
		return uint64(len(groups)), 0
	}
	for i, g := range groups {
		if errno := t.proc.space.WriteU32(arch.Addr(a[1]+4*uint64(i)), g); errno != 0 {
			return 0, errno
		}
	}
	return uint64(len(groups)), 0
}

func sysSetgroups(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if !t.cred.Can(vfs.CapSetgid) {
		return 0, unix.EPERM
	}
	if a[0] > 65536 {
		return 0, unix.EINVAL
	}
	groups := make([]uint32, a[0])
	for i := range groups {
		g, errno := t.proc.space.ReadU32(arch.Addr(a[1] + 4*uint64(i)))
		if errno != 0 {
			return 0, errno
		}
		groups[i] = g
	}
	t.cred.Groups = groups
	return 0, 0
}

func sysGetpgid(t *Task, a [6]uint64) (uint64, unix.Errno) {
	p, errno := t.findProcess(a[0])
	if errno != 0 {
		return 0, errno
	}
	return uint64(p.group), 0
}

func sysGetsid(t *Task, a [6]uint64) (uint64, unix.Errno) {
	p, errno := t.findProcess(a[0])
	if errno != 0 {
		return 0, errno
	}
	return uint64(p.session), 0
}

func (t *Task) findProcess(pid uint64) (*Process, unix.Errno) {
	if int32(pid) == 0 {
		return t.proc, 0
	}
	p := t.k.processes[int32(pid)]
	if p == nil {
		return nil, unix.ESRCH
	}
	return p, 0
}

func sysGetpgrp(t *Task, _ [6]uint64) (uint64, unix.Errno) { return uint64(t.proc.group), 0 }

func sysSetpgid(t *Task, a [6]uint64) (uint64, unix.Errno) {
	pid, group := int32(a[0]), int32(a[1])
	p, errno := t.findProcess(a[0])
	switch {
	case group < 0:
		return 0, unix.EINVAL
	case errno != 0:
		return 0, errno
	case p != t.proc && p.parent != t.proc:
		return 0, unix.ESRCH
	case p != t.proc && p.execed:
		return 0, unix.EACCES
	case p.session != t.proc.session || p.session == p.pid:
		return 0, unix.EPERM
	}
	if pid == 0 {
		pid = t.proc.pid
	}
	if group == 0 {
		group = pid
	}
	if group != pid && !t.k.groupExists(group, p.session) {
		return 0, unix.EPERM
	}
	p.group = group
	return 0, 0
}

func (k *Kernel) groupExists(group, session int32) bool {
	for _, p := range k.processes {
		if p.group == group && p.session == session {
			return true
		}
	}
	return false
}

func sysSetsid(t *Task, _ [6]uint64) (uint64, unix.Errno) {
	p := t.proc
	for _, other := range t.k.processes {
		if other.group == p.pid {
			return 0, unix.EPERM
		}
	}
	p.group, p.session = p.pid, p.pid
	p.terminal, p.lostGroup = nil, 0
	return uint64(p.pid), 0
}
