package kernel

import (
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// pollEvent is the reason for a signal to the owner of a description: si_code and si_band.
type pollEvent struct {
	code int32
	band uint64
}

// pollMessage is POLL_MSG.
var pollMessage = pollEvent{3, 0x441} // EPOLLIN | EPOLLRDNORM | EPOLLMSG

// siSigIO is SI_SIGIO, the code of signals whose other codes have a meaning of their own.
const siSigIO int32 = -5

var specificCodes = sigsetOf(unix.SIGILL, unix.SIGFPE, unix.SIGSEGV, unix.SIGBUS, unix.SIGTRAP, unix.SIGCHLD, unix.SIGSYS)

// setFileOwner sets the owner of a description, with the caller's user ids.
func (t *Task) setFileOwner(f *vfs.File, kind, id int32) {
	f.Owner = vfs.FileOwner{Kind: kind, ID: id}
	if id != 0 {
		f.Owner.UID, f.Owner.EUID = t.cred.UID, t.cred.EUID
	}
}

// ownerTasks lists the threads that an owner stands for: one thread, or the main threads of
// processes.
func (k *Kernel) ownerTasks(o vfs.FileOwner) []*Task {
	var list []*Task
	if o.Kind == vfs.OwnerGroup {
		for _, p := range k.sortedProcesses() {
			if p.group == o.ID && o.ID != 0 {
				list = append(list, p.leader)
			}
		}
	} else if t := k.findTask(o.ID); t != nil {
		list = append(list, t)
	} else if p := k.processes[o.ID]; p != nil {
		list = append(list, p.leader)
	}
	return list
}

// hasID reports whether an id belongs to a thread, process, group or session.
func (k *Kernel) hasID(id int32) bool {
	return k.findTask(id) != nil || slices.ContainsFunc(k.sortedProcesses(), func(p *Process) bool {
		return p.pid == id || p.group == id || p.session == id
	})
}

// ownerID is fcntl with F_GETOWN: 0 if the owner has ended.
func (k *Kernel) ownerID(f *vfs.File) int32 {
	switch {
	case len(k.ownerTasks(f.Owner)) == 0:
		return 0
	case f.Owner.Kind == vfs.OwnerGroup:
		return -f.Owner.ID
	}
	return f.Owner.ID
}

// setOwner is fcntl with F_SETOWN: a process or, if who is negative, a group.
func (t *Task) setOwner(f *vfs.File, who int32) unix.Errno {
	kind := vfs.OwnerProcess
	if who < 0 {
		if who == math.MinInt32 {
			return unix.EINVAL
		}
		kind, who = vfs.OwnerGroup, -who
	}
	if who != 0 && !t.k.hasID(who) {
		return unix.ESRCH
	}
	t.setFileOwner(f, kind, who)
	return 0
}

// ownerStructure is fcntl with F_GETOWN_EX or F_SETOWN_EX, for a struct f_owner_ex.
func (t *Task) ownerStructure(f *vfs.File, cmd int, addr arch.Addr) (uint64, unix.Errno) {
	var owner struct{ Type, ID int32 }
	if cmd == unix.F_GETOWN_EX {
		owner.Type = f.Owner.Kind
		if len(t.k.ownerTasks(f.Owner)) > 0 {
			owner.ID = f.Owner.ID
		}
		return 0, writeStruct(t, addr, &owner)
	}
	if errno := readStruct(t, addr, &owner); errno != 0 {
		return 0, errno
	}
	switch {
	case owner.Type < vfs.OwnerThread || owner.Type > vfs.OwnerGroup:
		return 0, unix.EINVAL
	case owner.ID != 0 && !t.k.hasID(owner.ID):
		return 0, unix.ESRCH
	}
	t.setFileOwner(f, owner.Type, owner.ID)
	return 0, 0
}

// signalOwner sends the owner of a description the signal set by F_SETSIG, or SIGIO, as send_sigio
// of Linux does.
func (k *Kernel) signalOwner(f *vfs.File, fd int32, e pollEvent) {
	for _, t := range k.ownerTasks(f.Owner) {
		if !maySignalIO(f.Owner, t.cred) {
			continue
		}
		info := signalInfo(unix.SIGIO, siKernel)
		if n := f.Signal; n != 0 && (n < firstQueued || t.proc.hasSignalRoom()) {
			code := e.code
			if specificCodes.has(int(n)) {
				code = siSigIO
			}
			info = signalInfo(unix.Signal(n), code)
			putU64(info[16:], e.band)
			putU32(info[24:], uint32(fd))
		}
		if f.Owner.Kind == vfs.OwnerThread {
			k.sendTask(t, info)
		} else {
			k.sendProcess(t.proc, info)
		}
	}
}

// maySignalIO is the permission check for a signal to a process with the credentials c.
func maySignalIO(o vfs.FileOwner, c vfs.Cred) bool {
	return o.EUID == 0 || o.EUID == c.SUID || o.EUID == c.UID || o.UID == c.SUID || o.UID == c.UID
}
