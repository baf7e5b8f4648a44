package mqueue

import "golang.org/x/sys/unix"

// Kinds of notification, as in struct sigevent.
const (
	NotifySignal = 0 // SIGEV_SIGNAL
	NotifyNone   = 1 // SIGEV_NONE
	NotifyThread = 2 // SIGEV_THREAD
)

// CookieSize is the length of the bytes with which the C library recognises a
// notification of its own (NOTIFY_COOKIE_LEN of Linux).
const CookieSize = 32

// The last byte of a cookie is the reason of the message.
const (
	cookieWoken   = 1 // NOTIFY_WOKENUP
	cookieRemoved = 2 // NOTIFY_REMOVED
)

// Socket is the netlink socket on which the C library waits for notifications
// that are to run a function on a thread.
type Socket interface {
	Deliver(data []byte)
}

// Notification is a registration of mq_notify(3).
type Notification struct {
	Owner  int32 // process
	Kind   int32
	Signal int32
	Value  uint64
	Cookie [CookieSize]byte
	Socket Socket
}

// Notify registers a process. EBUSY: another registration is there.
func (q *Queue) Notify(n *Notification) unix.Errno {
	if q.notification != nil {
		return unix.EBUSY
	}
	q.notification = n
	return 0
}

// Unregister removes the registration of a process, if it has one.
func (q *Queue) Unregister(process int32) {
	n := q.notification
	if n == nil || n.Owner != process {
		return
	}
	q.notification = nil
	if n.Kind == NotifyThread {
		n.deliver(cookieRemoved)
	}
}

// Flush implements vfs.Flusher: a process that closes a descriptor of the queue is
// not notified any more.
func (q *Queue) Flush(process int32) { q.Unregister(process) }

// notify notifies the process that is registered of the first message in an
// empty queue.
func (q *Queue) notify() {
	n := q.notification
	if n == nil || len(q.messages) != 1 {
		return
	}
	switch n.Kind {
	case NotifySignal:
		if n.Signal != 0 {
			q.system.host.SignalMessage(n)
		}
	case NotifyThread:
		n.deliver(cookieWoken)
	}
	q.notification = nil
}

func (n *Notification) deliver(happened byte) {
	data := n.Cookie
	data[CookieSize-1] = happened
	n.Socket.Deliver(data[:])
}
