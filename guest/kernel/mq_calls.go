package kernel

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/ipc/mqueue"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// siMesgq is SI_MESGQ: a message has arrived in a queue.
const siMesgq int32 = -3

// SignalMessage implements mqueue.Host.
func (h *ipcHost) SignalMessage(n *mqueue.Notification) {
	p := h.k.processes[n.Owner]
	if p == nil {
		return
	}
	sender := h.k.current.proc
	i := userInfo(unix.Signal(n.Signal), siMesgq, sender.pid, sender.cred().UID)
	putU64(i[24:], n.Value)
	h.k.sendProcess(p, i)
}

// queueCreator is the task as the creator of a message queue.
func (t *Task) queueCreator() *mqueue.Creator {
	return &mqueue.Creator{
		UID: t.cred.UID, Limit: t.proc.limits[rlimitMsgqueue].Cur, Resource: t.cred.Can(vfs.CapSysResource),
	}
}

// openQueue connects a description of a message queue's file that has just been opened to the
// queue.
func (t *Task) openQueue(f *vfs.File) unix.Errno {
	i := f.Inode()
	if !i.IsQueue() || f.IsPath() {
		return 0
	}
	if i.Object == nil {
		q, errno := t.k.ipc.queues.Create(t.queueCreator(), nil)
		if errno != 0 {
			return errno
		}
		i.Object = q
	}
	f.Impl = i.Object.(*mqueue.Queue)
	return 0
}

// readQueueName reads the name of a message queue. The C library has removed its slash.
func (t *Task) readQueueName(addr uint64) (string, unix.Errno) {
	name, errno := t.readPath(addr)
	switch {
	case errno != 0:
		return "", errno
	case name == "":
		return "", unix.ENOENT
	case name == "." || name == ".." || strings.Contains(name, "/"):
		return "", unix.EACCES
	}
	return name, 0
}

func sysMqOpen(t *Task, a [6]uint64) (uint64, unix.Errno) {
	var attr *mqueue.Attr
	if a[3] != 0 {
		attr = &mqueue.Attr{}
		if errno := readStruct(t, arch.Addr(a[3]), attr); errno != 0 {
			return 0, errno
		}
	}
	path, errno := t.readPath(a[0])
	if errno == 0 && path == "" {
		errno = unix.ENOENT
	}
	if errno != 0 {
		return 0, errno
	}
	if _, errno := t.proc.lowestFree(0); errno != 0 {
		return 0, errno
	}
	name, errno := t.readQueueName(a[0])
	if errno != 0 {
		return 0, errno
	}
	f, errno := t.openNamedQueue(name, int(uint32(a[1])), uint32(a[2]), attr)
	if errno != 0 {
		return 0, errno
	}
	return t.installFile(f, true)
}

// openNamedQueue opens a message queue and creates it if flags ask for that.
func (t *Task) openNamedQueue(name string, flags int, mode uint32, attr *mqueue.Attr) (*vfs.File, unix.Errno) {
	c, folder := t.vfsContext(), t.k.fs.Queues()
	open := flags & (unix.O_ACCMODE | unix.O_NONBLOCK)
	d, errno := t.k.fs.Lookup(c, folder, name, false)
	if errno == 0 {
		switch {
		case flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL:
			return nil, unix.EEXIST
		case flags&unix.O_ACCMODE == unix.O_ACCMODE:
			return nil, unix.EINVAL
		}
		f, errno := t.k.fs.OpenDentry(c, d, open)
		if errno == 0 {
			errno = t.openQueue(f)
		}
		return f, errno
	}
	if errno != unix.ENOENT || flags&unix.O_CREAT == 0 {
		return nil, errno
	}
	q, errno := t.k.ipc.queues.Create(t.queueCreator(), attr)
	if errno != 0 {
		return nil, errno
	}
	f, errno := t.k.fs.Open(c, folder, name, open|unix.O_CREAT|unix.O_EXCL, mode)
	if errno != 0 {
		q.Release()
		return nil, errno
	}
	f.Inode().Object, f.Impl = q, q
	return f, 0
}

func sysMqUnlink(t *Task, a [6]uint64) (uint64, unix.Errno) {
	name, errno := t.readQueueName(a[0])
	if errno != 0 {
		return 0, errno
	}
	return 0, t.k.fs.Unlink(t.vfsContext(), t.k.fs.Queues(), name)
}

// findMessageQueue finds the message queue of a descriptor. EBADF: the descriptor is of another
// kind of file.
func (t *Task) findMessageQueue(fd uint64) (*vfs.File, *mqueue.Queue, unix.Errno) {
	f, errno := t.usableFile(fd)
	if errno != 0 {
		return nil, nil, errno
	}
	q, ok := f.Impl.(*mqueue.Queue)
	if !ok {
		return nil, nil, unix.EBADF
	}
	return f, q, 0
}

// readQueueTimeout reads the absolute deadline of a call.
func (t *Task) readQueueTimeout(addr uint64) (int64, unix.Errno) {
	if addr == 0 {
		return forever, 0
	}
	ns, errno := t.readTimespec(arch.Addr(addr))
	if errno != 0 {
		return 0, errno
	}
	t.call.onRealtime = true
	return t.k.toRunClock(unix.CLOCK_REALTIME, ns), 0
}

// priority is the task's priority in the kernel's order of waiters: a lower number is served first.
func (t *Task) priority() int32 { return t.schedule.kernelPriority(t.rank()) }

// waitForQueue waits until a call that could not complete at once has completed, and returns the
// message that it has received, if any.
func (t *Task) waitForQueue(w *mqueue.Waiter, deadline int64) (*mqueue.Message, unix.Errno) {
	t.call.data = w
	if m, done := w.Done(); done {
		return m, 0
	}
	errno := t.waitInterruptibly(errRestart, deadline)
	if errno != errBlocked {
		w.Abandon()
		t.call.data = nil
	}
	return nil, errno
}

func sysMqTimedsend(t *Task, a [6]uint64) (uint64, unix.Errno) {
	deadline, errno := t.readQueueTimeout(a[4])
	if errno != 0 {
		return 0, errno
	}
	if w, waiting := t.call.data.(*mqueue.Waiter); waiting {
		_, errno := t.waitForQueue(w, deadline)
		return 0, errno
	}
	if uint32(a[3]) > mqueue.MaxPriority {
		return 0, unix.EINVAL
	}
	f, q, errno := t.findMessageQueue(a[0])
	switch {
	case errno != 0:
		return 0, errno
	case !f.Writable():
		return 0, unix.EBADF
	case a[2] > uint64(q.Attr().Size):
		return 0, unix.EMSGSIZE
	}
	m := &mqueue.Message{Priority: uint32(a[3]), Text: make([]byte, a[2])}
	if errno := t.copyIn(arch.Addr(a[1]), m.Text); errno != 0 {
		return 0, errno
	}
	errno = q.Send(m)
	if errno == unix.EAGAIN && !f.Nonblock() {
		_, errno = t.waitForQueue(q.Wait(m, t.priority(), t), deadline)
	}
	if errno == 0 {
		f.Inode().TouchQueue(true)
	}
	return 0, errno
}

func sysMqTimedreceive(t *Task, a [6]uint64) (uint64, unix.Errno) {
	deadline, errno := t.readQueueTimeout(a[4])
	if errno != 0 {
		return 0, errno
	}
	m, errno := t.receiveFromQueue(a, deadline)
	if errno != 0 {
		return 0, errno
	}
	if a[3] != 0 {
		if errno := t.proc.space.WriteU32(arch.Addr(a[3]), m.Priority); errno != 0 {
			return 0, errno
		}
	}
	return uint64(len(m.Text)), t.copyOut(arch.Addr(a[1]), m.Text)
}

func (t *Task) receiveFromQueue(a [6]uint64, deadline int64) (*mqueue.Message, unix.Errno) {
	if w, waiting := t.call.data.(*mqueue.Waiter); waiting {
		return t.waitForQueue(w, deadline)
	}
	f, q, errno := t.findMessageQueue(a[0])
	switch {
	case errno != 0:
		return nil, errno
	case !f.Readable():
		return nil, unix.EBADF
	case a[2] < uint64(q.Attr().Size):
		return nil, unix.EMSGSIZE
	}
	m, errno := q.Receive()
	if errno == unix.EAGAIN && !f.Nonblock() {
		return t.waitForQueue(q.Wait(nil, t.priority(), t), deadline)
	}
	if errno == 0 {
		f.Inode().TouchQueue(true)
	}
	return m, errno
}

func sysMqNotify(t *Task, a [6]uint64) (uint64, unix.Errno) {
	var n *mqueue.Notification
	if a[1] != 0 {
		var errno unix.Errno
		if n, errno = t.readNotification(arch.Addr(a[1])); errno != 0 {
			return 0, errno
		}
	}
	f, q, errno := t.findMessageQueue(a[0])
	if errno != 0 {
		return 0, errno
	}
	if n == nil {
		q.Unregister(t.proc.pid)
	} else if errno := q.Notify(n); errno != 0 {
		return 0, errno
	}
	f.Inode().TouchQueue(false)
	return 0, 0
}

// readNotification reads the registration argument of mq_notify.
func (t *Task) readNotification(addr arch.Addr) (*mqueue.Notification, unix.Errno) {
	var e sigevent
	if errno := readStruct(t, addr, &e); errno != 0 {
		return nil, errno
	}
	n := &mqueue.Notification{Owner: t.proc.pid, Kind: e.Notify, Signal: e.Signo, Value: e.Value}
	switch e.Notify {
	case mqueue.NotifyNone:
		return n, 0
	case mqueue.NotifySignal:
		if e.Signo < 0 || e.Signo > lastSignal {
			return nil, unix.EINVAL
		}
		return n, 0
	case mqueue.NotifyThread:
		if errno := t.copyIn(arch.Addr(e.Value), n.Cookie[:]); errno != 0 {
			return nil, errno
		}
		_, s, errno := t.findSocket(uint64(uint32(e.Signo)))
		if errno == 0 && s.Family() != unix.AF_NETLINK {
			errno = unix.ECONNREFUSED
		}
		n.Socket = s
		return n, errno
	}
	return nil, unix.EINVAL
}

func sysMqGetsetattr(t *Task, a [6]uint64) (uint64, unix.Errno) {
	var attr mqueue.Attr
	if a[1] != 0 {
		if errno := readStruct(t, arch.Addr(a[1]), &attr); errno != 0 {
			return 0, errno
		}
	}
	if attr.Flags&^unix.O_NONBLOCK != 0 {
		return 0, unix.EINVAL
	}
	f, q, errno := t.findMessageQueue(a[0])
	if errno != 0 {
		return 0, errno
	}
	old := q.Attr()
	old.Flags = int64(f.Flags() & unix.O_NONBLOCK)
	if a[1] != 0 {
		if errno := f.SetFlags(t.vfsContext(), f.Flags()&^unix.O_NONBLOCK|int(attr.Flags)); errno != 0 {
			return 0, errno
		}
		f.Inode().TouchQueue(false)
	}
	if a[2] != 0 {
		return 0, writeStruct(t, arch.Addr(a[2]), &old)
	}
	return 0, 0
}
