package kernel

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// A listener decides system calls for which a filter returns SECCOMP_RET_USER_NOTIF: it reads
// notifications and answers them by ioctls on a descriptor, while the thread that makes the call
// waits.

// Sizes of struct seccomp_notif, seccomp_notif_resp and seccomp_notif_addfd.
const (
	notificationSize = 80
	responseSize     = 24
	addFDSize        = 24
)

// The ioctls, without the size of their arguments.
const (
	ioctlNotifyReceive = 0xc0502100
	ioctlNotifySend    = 0xc0182101
	ioctlNotifyIDValid = 0x40082102
	ioctlNotifyIDOld   = 0x80082102
	ioctlNotifyAddFD   = 0x2103 // the size may vary
	ioctlDirectionMask = 0xc000ffff
	ioctlWriteOnly     = 0x40000000

	responseContinue = 1 // SECCOMP_USER_NOTIF_FLAG_CONTINUE
	addFDSet         = 1 // SECCOMP_ADDFD_FLAG_SETFD
	addFDSend        = 2 // SECCOMP_ADDFD_FLAG_SEND
)

// notificationState is the progress of a notification.
type notificationState uint8

const (
	notificationNew notificationState = iota
	notificationSent
	notificationReplied
)

// notification is a system call that waits for a listener's answer.
type notification struct {
	id        uint64
	task      *Task
	data      []byte
	state     notificationState
	result    uint64
	continues bool
	done      wait.Queue // the thread that makes the call
}

// seccompListener is the file of a filter's listener.
type seccompListener struct {
	filter  *seccompFilter
	list    []*notification // without an answer, the oldest first
	lastID  uint64
	closed  bool
	gone    bool       // no thread has the filter any more
	waiters wait.Queue // threads that read or poll the descriptor
}

// newListener makes the listener of a filter, with a descriptor.
func (t *Task) newListener(f *seccompFilter) (uint64, unix.Errno) {
	l := &seccompListener{filter: f}
	// The first number is random, so that no program depends on it.
	var b [8]byte
	t.k.Read(b[:])
	l.lastID = decodeStruct[uint64](b[:])
	fd, errno := t.installAnonFile("seccomp notify", 0, l, true)
	if errno == 0 {
		f.listener = l
	}
	return fd, errno
}

// Read and Write implement vfs.FileImpl; the file has only ioctls.
func (*seccompListener) Read(*vfs.Ctx, []byte, int64) (int, unix.Errno)  { return 0, unix.EINVAL }
func (*seccompListener) Write(*vfs.Ctx, []byte, int64) (int, unix.Errno) { return 0, unix.EINVAL }

// Ready implements vfs.Poller.
func (l *seccompListener) Ready() (events uint32) {
	for _, n := range l.list {
		switch n.state {
		case notificationNew:
			events |= unix.EPOLLIN | unix.EPOLLRDNORM
		case notificationSent:
			events |= unix.EPOLLOUT | unix.EPOLLWRNORM
		}
	}
	if l.gone {
		events |= unix.EPOLLHUP
	}
	return events
}

// Waiters implements vfs.Poller.
func (l *seccompListener) Waiters() *wait.Queue { return &l.waiters }

// Close implements vfs.Closer: calls that wait for an answer fail, and later ones fail at once.
func (l *seccompListener) Close() {
	l.closed = true
	for _, n := range l.list {
		n.setAnswer(linux.Failure(unix.ENOSYS), false)
	}
	l.list = nil
}

// noteFilterGone records that no thread has the filter any more.
func (l *seccompListener) noteFilterGone() {
	l.gone = true
	l.waiters.Wake(unix.EPOLLHUP)
}

// setAnswer sets the result of the call.
func (n *notification) setAnswer(result uint64, continues bool) {
	n.state, n.result, n.continues = notificationReplied, result, continues
	n.done.Wake(wait.AnyEvent)
}

// remove forgets a notification.
func (l *seccompListener) removeNotification(n *notification) {
	l.list = slices.DeleteFunc(l.list, func(o *notification) bool { return o == n })
}

// notifyListener notifies a filter's listener of the current call and waits for its answer; false:
// there is no answer yet, or the call is over.
func (t *Task) notifyListener(f *seccompFilter) bool {
	l := f.listener
	if l == nil || l.closed {
		t.skipCall(linux.Failure(unix.ENOSYS))
		return false
	}
	l.lastID++
	n := &notification{id: l.lastID, task: t, data: t.callData()}
	l.list = append(l.list, n)
	t.call.notification, t.call.listener = n, l
	l.waiters.Wake(unix.EPOLLIN | unix.EPOLLRDNORM)
	return t.awaitNotification(n)
}

// awaitNotification continues a call that a listener has been asked about; true: the call is
// carried out.
func (t *Task) awaitNotification(n *notification) bool {
	l := t.call.listener
	if n.state == notificationReplied {
		t.endNotification()
		if !n.continues {
			t.skipCall(n.result)
		}
		return n.continues
	}
	if l.filter.flags&seccompWaitKillable != 0 && n.state == notificationSent {
		if !t.killPending() {
			t.blockUntil(forever, &n.done)
		}
		return false
	}
	if errno := t.waitInterruptibly(errRestart, forever, &n.done); errno != errBlocked {
		t.endNotification() // the restarted call makes a new one
		t.call.restart = errno
	}
	return false
}

// endNotification removes the current call's notification, answered or not.
func (t *Task) endNotification() {
	if n := t.call.notification; n != nil {
		t.call.listener.removeNotification(n)
		t.call.notification, t.call.listener = nil, nil
	}
}

// killPending reports whether the thread is about to die.
func (t *Task) killPending() bool { return t.pendingSignals().has(int(unix.SIGKILL)) }

// findUnanswered finds a notification without an answer, or returns nil.
func (l *seccompListener) findUnanswered(id uint64) *notification {
	for _, n := range l.list {
		if n.id == id && n.state != notificationReplied {
			return n
		}
	}
	return nil
}

// GuestIoctl implements guestIoctler.
func (l *seccompListener) GuestIoctl(t *Task, cmd uint32, arg arch.Addr) (uint64, unix.Errno) {
	switch {
	case cmd == ioctlNotifyReceive:
		return 0, l.receiveNotification(t, arg)
	case cmd == ioctlNotifySend:
		return 0, l.answerNotification(t, arg)
	case cmd == ioctlNotifyIDValid, cmd == ioctlNotifyIDOld:
		id, errno := t.proc.space.ReadU64(arg)
		if errno != 0 {
			return 0, errno
		}
		if n := l.findUnanswered(id); n == nil || n.state != notificationSent {
			return 0, unix.ENOENT
		}
		return 0, 0
	case cmd&ioctlDirectionMask == ioctlNotifyAddFD|ioctlWriteOnly:
		return l.addDescriptor(t, arg, uint64(cmd>>16&0x3fff))
	}
	return 0, unix.EINVAL
}

// receiveNotification returns the oldest unread notification, and waits for one.
func (l *seccompListener) receiveNotification(t *Task, arg arch.Addr) unix.Errno {
	var b [notificationSize]byte
	if errno := t.copyIn(arg, b[:]); errno != 0 {
		return errno
	}
	if b != [notificationSize]byte{} {
		return unix.EINVAL
	}
	at := slices.IndexFunc(l.list, func(n *notification) bool { return n.state == notificationNew })
	if at < 0 {
		if l.gone {
			return unix.ENOENT
		}
		return t.waitInterruptibly(errRestart, forever, &l.waiters)
	}
	n := l.list[at]
	putU64(b[0:], n.id)
	putU32(b[8:], uint32(n.task.id))
	copy(b[16:], n.data)
	if errno := t.copyOut(arg, b[:]); errno != 0 {
		return errno
	}
	n.state = notificationSent
	l.waiters.Wake(unix.EPOLLOUT | unix.EPOLLWRNORM)
	return 0
}

// answerNotification is the ioctl that answers a notification.
func (l *seccompListener) answerNotification(t *Task, arg arch.Addr) unix.Errno {
	var r struct {
		ID    uint64
		Value uint64
		Error int32
		Flags uint32
	}
	if errno := readStruct(t, arg, &r); errno != 0 {
		return errno
	}
	if r.Flags&^responseContinue != 0 || r.Flags != 0 && (r.Error != 0 || r.Value != 0) {
		return unix.EINVAL
	}
	n := l.findUnanswered(r.ID)
	switch {
	case n == nil:
		return unix.ENOENT
	case n.state != notificationSent:
		return unix.EINPROGRESS
	}
	if r.Error != 0 {
		r.Value = uint64(int64(r.Error))
	}
	n.setAnswer(r.Value, r.Flags != 0)
	l.removeNotification(n)
	return 0
}

// addDescriptor installs a copy of the listener's descriptor in the thread that waits.
func (l *seccompListener) addDescriptor(t *Task, arg arch.Addr, size uint64) (uint64, unix.Errno) {
	var r struct {
		ID                                 uint64
		Flags, Source, Target, TargetFlags uint32
	}
	if size < addFDSize || size >= arch.PageSize {
		return 0, unix.EINVAL
	}
	raw := make([]byte, size)
	if errno := t.copyIn(arg, raw); errno != 0 {
		return 0, errno
	}
	if slices.ContainsFunc(raw[addFDSize:], func(b byte) bool { return b != 0 }) {
		return 0, unix.E2BIG
	}
	copy(bytesOf(&r), raw)
	switch {
	case r.TargetFlags&^unix.O_CLOEXEC != 0, r.Flags&^(addFDSet|addFDSend) != 0, r.Target != 0 && r.Flags&addFDSet == 0:
		return 0, unix.EINVAL
	}
	f, errno := t.openFile(uint64(r.Source))
	if errno != 0 {
		return 0, errno
	}
	n := l.findUnanswered(r.ID)
	switch {
	case n == nil:
		return 0, unix.ENOENT
	case n.state != notificationSent:
		return 0, unix.EINPROGRESS
	}
	f.Ref()
	cloexec := r.TargetFlags&unix.O_CLOEXEC != 0
	fd := uint64(r.Target)
	if r.Flags&addFDSet != 0 {
		errno = n.task.replaceFile(f, fd, cloexec)
	} else {
		fd, errno = n.task.installFile(f, cloexec)
	}
	if errno == 0 && r.Flags&addFDSend != 0 {
		n.setAnswer(fd, false)
		l.removeNotification(n)
	}
	return fd, errno
}
