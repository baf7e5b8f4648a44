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

// alwaysPolled are the events that poll reports unasked.
const alwaysPolled = unix.POLLERR | unix.POLLHUP

func sysPoll(t *Task, a [6]uint64) (uint64, unix.Errno) {
	deadline := forever
	if ms := int32(a[2]); ms >= 0 {
		deadline = t.deadlineIn(int64(ms) * 1e6)
	}
	return t.poll(arch.Addr(a[0]), a[1], deadline, errRestartBlock)
}

func sysPpoll(t *Task, a [6]uint64) (uint64, unix.Errno) {
	deadline, errno := t.optionalTimeout(arch.Addr(a[2]))
	if errno != 0 {
		return 0, errno
	}
	if errno := t.temporaryMask(arch.Addr(a[3]), a[4]); errno != 0 {
		return 0, errno
	}
	n, errno := t.poll(arch.Addr(a[0]), a[1], deadline, errInterrupted)
	return t.storeRemaining(arch.Addr(a[2]), deadline, n, errno)
}

// optionalTimeout is the deadline of a relative timespec; none means forever.
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
	return t.deadlineIn(ns), 0
}

// temporaryMask installs the signal mask of a call like ppoll.
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
	t.swapMask(set)
	return 0
}

// storeRemaining writes back what is left of a time-out, as the raw ppoll and
// pselect6 do; that it cannot be written is no error.
func (t *Task) storeRemaining(addr arch.Addr, deadline int64, n uint64, errno unix.Errno) (uint64, unix.Errno) {
	if addr == 0 || deadline == forever {
		return n, errno
	}
	if errno = t.stickyTimeout(errno); errno != errBlocked && t.personality&stickyTimeouts == 0 {
		_ = t.writeTimespec(addr, max(0, deadline-t.k.now))
	}
	return n, errno
}

// stickyTimeout is what becomes of a call whose time-out cannot tell how much is left
// of it: it is not made again after a signal.
func (t *Task) stickyTimeout(errno unix.Errno) unix.Errno {
	if errno == errInterrupted && t.personality&stickyTimeouts != 0 {
		return unix.EINTR
	}
	return errno
}

func (t *Task) poll(addr arch.Addr, count uint64, deadline int64, restart unix.Errno) (uint64, unix.Errno) {
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
		if p.Revents, q = t.pollOne(p); p.Revents != 0 {
			ready++
		}
		if q != nil {
			queues = append(queues, q)
		}
	}
	var result unix.Errno
	if ready == 0 {
		// Poll is never made anew after a handler.
		switch result = t.wait(restart, deadline, queues...); result {
		case errBlocked:
			return 0, result
		case unix.ETIMEDOUT:
			result = 0
		}
	}
	// What holds, which may be nothing, is told even when a signal came.
	for i := range list {
		if errno := t.proc.space.WriteU16(addr+arch.Addr(8*i+6), uint16(list[i].Revents)); errno != 0 {
			return 0, errno
		}
	}
	return ready, result
}

// pollOne tells which of the wanted events hold for one entry.
func (t *Task) pollOne(p *pollFD) (int16, *wait.Queue) {
	if p.FD < 0 {
		return 0, nil
	}
	f, errno := t.plainFile(uint64(uint32(p.FD)))
	if errno != 0 {
		return unix.POLLNVAL, nil
	}
	return int16(f.Ready()) & (p.Events | alwaysPolled), f.Waiters()
}

// What select's three sets stand for (fs/select.c).
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
			// Linux takes any number of microseconds here.
			ns, errno := nanoseconds(unix.Timespec{Sec: tv.Sec + tv.Usec/1e6, Nsec: tv.Usec % 1e6 * microsecond})
			if errno != 0 {
				return 0, errno
			}
			deadline = t.deadlineIn(ns)
		}
	}
	n, errno := t.selectFiles(a, deadline)
	if a[4] == 0 {
		return n, errno
	}
	if errno = t.stickyTimeout(errno); errno != errBlocked && t.personality&stickyTimeouts == 0 {
		tv := unix.NsecToTimeval(max(0, deadline-t.k.now))
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

// selectFiles is select and pselect6 once their time-out and mask are known.
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
		f, errno := t.plainFile(uint64(fd))
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
		if errno := t.wait(errInterrupted, deadline, queues...); errno != unix.ETIMEDOUT {
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
