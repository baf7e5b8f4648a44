package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/epoll"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

func sysEpollCreate(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if int32(a[0]) <= 0 {
		return 0, unix.EINVAL
	}
	return t.installAnonFile("eventpoll", 0, epoll.New(t.k.memory), false)
}

func sysEpollCreate1(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if uint32(a[0])&^unix.EPOLL_CLOEXEC != 0 {
		return 0, unix.EINVAL
	}
	return t.installAnonFile("eventpoll", 0, epoll.New(t.k.memory), a[0]&unix.EPOLL_CLOEXEC != 0)
}

// epollEventSize is the size of struct epoll_event, which is packed.
const epollEventSize = 12

func (t *Task) epollFile(fd uint64) (*vfs.File, *epoll.Instance, unix.Errno) {
	f, errno := t.usableFile(fd)
	if errno != 0 {
		return nil, nil, errno
	}
	i, ok := f.Impl.(*epoll.Instance)
	if !ok {
		return f, nil, unix.EINVAL
	}
	return f, i, 0
}

func sysEpollCtl(t *Task, a [6]uint64) (uint64, unix.Errno) {
	var ev epoll.Event
	if a[1] != unix.EPOLL_CTL_DEL {
		raw := make([]byte, epollEventSize)
		if errno := t.copyIn(arch.Addr(a[3]), raw); errno != 0 {
			return 0, errno
		}
		ev = epoll.Event{Events: decodeStruct[uint32](raw), Data: decodeStruct[uint64](raw[4:])}
	}
	self, i, errno := t.epollFile(a[0])
	if errno == unix.EBADF {
		return 0, errno
	}
	f, targetErrno := t.usableFile(a[2])
	if targetErrno != 0 {
		return 0, targetErrno
	}
	if _, pollable := f.Impl.(vfs.Poller); !pollable {
		return 0, unix.EPERM
	}
	if errno != 0 || f == self {
		return 0, unix.EINVAL
	}
	switch int32(a[1]) {
	case unix.EPOLL_CTL_ADD:
		return 0, i.Add(f, int32(a[2]), ev)
	case unix.EPOLL_CTL_MOD:
		return 0, i.Modify(f, int32(a[2]), ev)
	case unix.EPOLL_CTL_DEL:
		return 0, i.Delete(f, int32(a[2]))
	}
	return 0, unix.EINVAL
}

func sysEpollWait(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.epollWait(a, t.millisecondDeadline(int32(a[3])))
}

// millisecondDeadline is the deadline of a time-out in milliseconds; a negative time-out has none.
func (t *Task) millisecondDeadline(ms int32) int64 {
	if ms < 0 {
		return forever
	}
	return t.relativeDeadline(int64(ms) * 1e6)
}

func sysEpollPwait(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if errno := t.temporaryMask(arch.Addr(a[4]), a[5]); errno != 0 {
		return 0, errno
	}
	return t.epollWait(a, t.millisecondDeadline(int32(a[3])))
}

func sysEpollPwait2(t *Task, a [6]uint64) (uint64, unix.Errno) {
	deadline, errno := t.optionalTimeout(arch.Addr(a[3]))
	if errno != 0 {
		return 0, errno
	}
	if errno := t.temporaryMask(arch.Addr(a[4]), a[5]); errno != 0 {
		return 0, errno
	}
	return t.epollWait(a, deadline)
}

func (t *Task) epollWait(a [6]uint64, deadline int64) (uint64, unix.Errno) {
	limit := int32(a[2])
	if limit <= 0 || limit > (1<<31-1)/epollEventSize {
		return 0, unix.EINVAL
	}
	if a[1] > uint64(mm.TaskSize)-uint64(limit)*epollEventSize {
		return 0, unix.EFAULT // even if no event occurs
	}
	_, i, errno := t.epollFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	at := arch.Addr(a[1])
	n := i.Take(int(limit), func(ev epoll.Event) bool {
		raw := make([]byte, epollEventSize)
		putU32(raw, ev.Events)
		putU64(raw[4:], ev.Data)
		if errno = t.copyOut(at, raw); errno != 0 {
			return false
		}
		at += epollEventSize
		return true
	})
	if n > 0 || errno != 0 {
		return partialResult(uint64(n), errno)
	}
	if t.hasTimedOut(deadline) {
		return 0, 0 // even if a signal is pending
	}
	if errno := t.waitInterruptibly(unix.EINTR, deadline, i.Takers()); errno != unix.ETIMEDOUT {
		return 0, errno
	}
	return 0, 0
}
