package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// pollFD is struct pollfd.
type pollFD struct {
	FD      int32
	Events  int16
	Revents int16
}

// alwaysPolled are the events that poll reports without being asked.
const alwaysPolled = unix.POLLERR | unix.POLLHUP

func sysPoll(t *Task, a [6]uint64) (uint64, unix.Errno) {
	deadline := forever
	if ms := int32(a[2]); ms >= 0 {
		deadline = t.relativeDeadline(int64(ms) * 1e6)
	}
	return t.pollFiles(arch.Addr(a[0]), a[1], deadline, errRestartBlock)
}

func sysPpoll(t *Task, a [6]uint64) (uint64, unix.Errno) {
	deadline, errno := t.optionalTimeout(arch.Addr(a[2]))
	if errno != 0 {
		return 0, errno
	}
	if errno := t.temporaryMask(arch.Addr(a[3]), a[4]); errno != 0 {
		return 0, errno
	}
	n, errno := t.pollFiles(arch.Addr(a[0]), a[1], deadline, errInterrupted)
	return t.storeRemaining(arch.Addr(a[2]), deadline, n, errno)
}

// optionalTimeout is the deadline of a relative timespec; forever if there is no timespec.
func (t *Task) optionalTimeout(addr arch.Addr) (int64, unix.Errno) {
	if addr == 0 {
		return forever, 0
	}
	if t.call.deadline != 0 {
		return t.call.deadline, 0
	}
	ns, errno := t.readTimespec(addr)
	if errno != 0 {
		return 0, errno
	}
	return t.relativeDeadline(ns), 0
}

// temporaryMask installs the signal mask of ppoll and similar calls.
func (t *Task) temporaryMask(addr arch.Addr, size uint64) unix.Errno {
	if addr == 0 {
		return 0
	}
	if size != 8 {
		return unix.EINVAL
	}
	set, errno := t.readSigset(addr)
	if errno != 0 {
		return errno
	}
	t.setTemporaryMask(set)
	return 0
}

// storeRemaining writes back the time that is left of a time-out, as the raw ppoll and pselect6 do;
// failing to write it is no error.
func (t *Task) storeRemaining(addr arch.Addr, deadline int64, n uint64, errno unix.Errno) (uint64, unix.Errno) {
	if addr == 0 || deadline == forever {
		return n, errno
	}
	if errno = t.stickyTimeoutErrno(errno); errno != errBlocked && t.personality&stickyTimeouts == 0 {
		_ = t.writeTimespec(addr, max(0, deadline-t.k.clock.now))
	}
	return n, errno
}

// stickyTimeoutErrno is the result of a call whose time-out is not updated (STICKY_TIMEOUTS): it is
// not restarted after a signal.
func (t *Task) stickyTimeoutErrno(errno unix.Errno) unix.Errno {
	if errno == errInterrupted && t.personality&stickyTimeouts != 0 {
		return unix.EINTR
	}
	return errno
}

func (t *Task) pollFiles(addr arch.Addr, count uint64, deadline int64, restart unix.Errno) (uint64, unix.Errno) {
	if count > t.proc.limits[unix.RLIMIT_NOFILE].Cur {
		return 0, unix.EINVAL
	}
	list := make([]pollFD, count)
	for i := range list {
		if errno := readStruct(t, addr+arch.Addr(8*i), &list[i]); errno != 0 {
			return 0, errno
		}
	}
	ready := uint64(0)
	var queues []*wait.Queue
	for i := range list {
		p := &list[i]
		var q *wait.Queue
		if p.Revents, q = t.pollEntry(p); p.Revents != 0 {
			ready++
		}
		if q != nil {
			queues = append(queues, q)
		}
	}
	var result unix.Errno
	if ready == 0 {
		// Poll is never restarted after a handler.
		switch result = t.waitInterruptibly(restart, deadline, queues...); result {
		case errBlocked:
			return 0, result
		case unix.ETIMEDOUT:
			result = 0
		}
	}
	// The events that hold, if any, are stored even after a signal.
	for i := range list {
		if errno := t.proc.space.WriteU16(addr+arch.Addr(8*i+6), uint16(list[i].Revents)); errno != 0 {
			return 0, errno
		}
	}
	return ready, result
}

// pollEntry returns the requested events that hold for one entry, and the queue on which to wait
// for the others.
func (t *Task) pollEntry(p *pollFD) (int16, *wait.Queue) {
	if p.FD < 0 {
		return 0, nil
	}
	f, errno := t.usableFile(uint64(uint32(p.FD)))
	if errno != 0 {
		return unix.POLLNVAL, nil
	}
	return int16(f.Ready()) & (p.Events | alwaysPolled), f.Waiters()
}

// The events that select's three sets stand for (fs/select.c).
const (
	selectRead   = unix.EPOLLRDNORM | unix.EPOLLRDBAND | unix.POLLIN | unix.POLLHUP | unix.POLLERR
	selectWrite  = unix.EPOLLWRBAND | unix.EPOLLWRNORM | unix.POLLOUT | unix.POLLERR
	selectExcept = unix.POLLPRI
)

func sysSelect(t *Task, a [6]uint64) (uint64, unix.Errno) {
	deadline := forever
	if a[4] != 0 {
		if deadline = t.call.deadline; deadline == 0 {
			var tv unix.Timeval
			if errno := readStruct(t, arch.Addr(a[4]), &tv); errno != 0 {
				return 0, errno
			}
			if tv.Sec < 0 || tv.Usec < 0 {
				return 0, unix.EINVAL
			}
			// Linux accepts any number of microseconds here.
			ns, errno := timespecToNS(unix.Timespec{Sec: tv.Sec + tv.Usec/1e6, Nsec: tv.Usec % 1e6 * microsecond})
			if errno != 0 {
				return 0, errno
			}
			deadline = t.relativeDeadline(ns)
		}
	}
	n, errno := t.selectFiles(a, deadline)
	if a[4] == 0 {
		return n, errno
	}
	if errno = t.stickyTimeoutErrno(errno); errno != errBlocked && t.personality&stickyTimeouts == 0 {
		tv := unix.NsecToTimeval(max(0, deadline-t.k.clock.now))
		_ = writeStruct(t, arch.Addr(a[4]), &tv)
	}
	return n, errno
}

func sysPselect6(t *Task, a [6]uint64) (uint64, unix.Errno) {
	deadline, errno := t.optionalTimeout(arch.Addr(a[4]))
	if errno != 0 {
		return 0, errno
	}
	if a[5] != 0 {
		var mask struct{ Addr, Size uint64 }
		if errno := readStruct(t, arch.Addr(a[5]), &mask); errno != 0 {
			return 0, errno
		}
		if errno := t.temporaryMask(arch.Addr(mask.Addr), mask.Size); errno != 0 {
			return 0, errno
		}
	}
	n, errno := t.selectFiles(a, deadline)
	return t.storeRemaining(arch.Addr(a[4]), deadline, n, errno)
}

// selectFiles carries out select and pselect6 after their time-out and mask are known.
func (t *Task) selectFiles(a [6]uint64, deadline int64) (uint64, unix.Errno) {
	count := int(int32(a[0]))
	if count < 0 {
		return 0, unix.EINVAL
	}
	count = min(count, max(256, len(t.proc.files.list)))
	size := (count + 63) / 64 * 8
	var want, have [3][]byte
	for i := range want {
		want[i], have[i] = make([]byte, size), make([]byte, size)
		if a[1+i] != 0 {
			if errno := t.copyIn(arch.Addr(a[1+i]), want[i]); errno != 0 {
				return 0, errno
			}
		}
	}
	ready := uint64(0)
	var queues []*wait.Queue
	for fd := range count {
		at, bit := fd/8, byte(1)<<(fd%8)
		if (want[0][at]|want[1][at]|want[2][at])&bit == 0 {
			continue
		}
		f, errno := t.usableFile(uint64(fd))
		if errno != 0 {
			return 0, unix.EBADF
		}
		mask := f.Ready()
		for i, events := range [3]uint32{selectRead, selectWrite, selectExcept} {
			if want[i][at]&bit != 0 && mask&events != 0 {
				have[i][at] |= bit
				ready++
			}
		}
		if q := f.Waiters(); q != nil {
			queues = append(queues, q)
		}
	}
	if ready == 0 {
		if errno := t.waitInterruptibly(errInterrupted, deadline, queues...); errno != unix.ETIMEDOUT {
			return 0, errno
		}
	}
	for i := range have {
		if a[1+i] != 0 {
			if errno := t.copyOut(arch.Addr(a[1+i]), have[i]); errno != 0 {
				return 0, errno
			}
		}
	}
	return ready, 0
}
