// Package mqueue is POSIX message queues, mq_overview(7): queues with names from
// which the oldest message of the highest priority is received first, and which
// notify a process when a message arrives in an empty one.
//
// A Queue is the vfs.FileImpl of its open descriptions; the names are
// files of their own file system, which package vfs has. Nothing blocks: a call
// that has to wait stays in the queue as a Waiter.
//
// Invariants:
//
//  1. Messages are sorted by priority, the highest first, and then by age.
//  2. Senders wait only while the queue is full, receivers while it is empty.
//  3. A process is notified once, and then has to register again.
package mqueue

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// MaxPriority is the highest priority of a message.
const MaxPriority = 32767

// Limits of queues that privileged processes make (include/linux/ipc_namespace.h).
const (
	privilegedMessages = 65536
	privilegedSize     = 16 << 20
)

// Attr is struct mq_attr.
type Attr struct {
	Flags, Messages, Size, Current int64
	_                              [4]int64
}

// Creator is the process that makes a queue.
type Creator struct {
	UID      uint32 // the real one, against whose limit the queue counts
	Limit    uint64 // RLIMIT_MSGQUEUE
	Resource bool   // CAP_SYS_RESOURCE
}

// Host is the part of the kernel that queues ask.
type Host interface {
	// SignalMessage sends the signal of a notification to its owner.
	SignalMessage(n *Notification)
}

// System is all queues together.
type System struct {
	count  int
	bytes  map[uint32]uint64 // promised to users
	memory *kmem.Account
	host   Host
}

// New makes a System without queues.
func New(memory *kmem.Account, host Host) *System {
	return &System{bytes: map[uint32]uint64{}, memory: memory, host: host}
}

// Message is one message. It does not change.
type Message struct {
	Priority uint32
	Text     []byte
}

func (m *Message) size() uint64 { return messageSize + uint64(len(m.Text)) }

// messageSize is charged for a message besides its bytes.
const messageSize = 64

// Queue is one message queue.
type Queue struct {
	system       *System
	uid          uint32
	promised     uint64
	attr         Attr
	messages     []*Message
	bytes        uint64
	senders      []*Waiter
	receivers    []*Waiter
	waiters      *wait.Queue // in poll and the like
	notification *Notification
}

// promise is how many bytes Linux counts for a queue: its messages, and the nodes
// of a tree that they are sorted in.
func promise(a *Attr) uint64 {
	const node, head = 48, 48
	return uint64(a.Messages)*(uint64(a.Size)+head) + uint64(min(a.Messages, MaxPriority+1))*node
}

// Create makes a queue; without attr it has the default attributes. ENOSPC: there
// are too many. EMFILE: the user's queues would be too large.
func (y *System) Create(c *Creator, attr *Attr) (*Queue, unix.Errno) {
	if y.count >= linux.MqueueMaxQueues && !c.Resource {
		return nil, unix.ENOSPC
	}
	a := Attr{Messages: linux.MqueueDefaultMessages, Size: linux.MqueueDefaultSize}
	if attr != nil {
		a.Messages, a.Size = attr.Messages, attr.Size
	}
	most, longest := int64(linux.MqueueMaxMessages), int64(linux.MqueueMaxSize)
	if c.Resource {
		most, longest = privilegedMessages, privilegedSize
	}
	if a.Messages <= 0 || a.Size <= 0 || a.Messages > most || a.Size > longest {
		return nil, unix.EINVAL
	}
	n := promise(&a)
	if n > math.MaxInt64-y.bytes[c.UID] || y.bytes[c.UID]+n > c.Limit {
		return nil, unix.EMFILE
	}
	if !y.memory.Charge(kmem.Object) {
		return nil, unix.ENOMEM
	}
	y.count++
	y.bytes[c.UID] += n
	return &Queue{system: y, uid: c.UID, promised: n, attr: a, waiters: &wait.Queue{}}, 0
}

// Release implements vfs.Content: neither a name nor a description is left.
func (q *Queue) Release() {
	y := q.system
	for _, m := range q.messages {
		y.memory.Release(m.size())
	}
	y.memory.Release(kmem.Object)
	y.count--
	if y.bytes[q.uid] -= q.promised; y.bytes[q.uid] == 0 {
		delete(y.bytes, q.uid)
	}
}

// Attr is the attributes, without the flags, which are of a description.
func (q *Queue) Attr() Attr {
	a := q.attr
	a.Current = int64(len(q.messages))
	return a
}

func (q *Queue) isFull() bool { return int64(len(q.messages)) == q.attr.Messages }

// Send hands a message to a receiver that waits, or puts it into the queue.
// EAGAIN: the queue is full.
func (q *Queue) Send(m *Message) unix.Errno {
	if q.isFull() {
		return unix.EAGAIN
	}
	if len(q.receivers) > 0 {
		w := q.receivers[0]
		w.finish(m)
		return 0
	}
	if !q.system.memory.Charge(m.size()) {
		return unix.ENOMEM
	}
	q.insert(m)
	q.notify()
	q.waiters.Wake(wait.AnyEvent)
	return 0
}

func (q *Queue) insert(m *Message) {
	at := slices.IndexFunc(q.messages, func(o *Message) bool { return o.Priority < m.Priority })
	if at < 0 {
		at = len(q.messages)
	}
	q.messages = slices.Insert(q.messages, at, m)
	q.bytes += uint64(len(m.Text))
}

// Receive takes the first message, and lets the first sender that waits put its
// own into the queue. EAGAIN: the queue is empty.
func (q *Queue) Receive() (*Message, unix.Errno) {
	if len(q.messages) == 0 {
		return nil, unix.EAGAIN
	}
	m := q.messages[0]
	q.messages = slices.Delete(q.messages, 0, 1)
	q.bytes -= uint64(len(m.Text))
	q.system.memory.Release(m.size())
	if len(q.senders) == 0 {
		q.waiters.Wake(wait.AnyEvent)
		return m, 0
	}
	w := q.senders[0]
	q.system.memory.Force(w.message.size())
	q.insert(w.message)
	w.finish(nil)
	return m, 0
}

// Waiter is a call that waits to send or to receive.
type Waiter struct {
	queue    *Queue
	message  *Message // to send, or received
	priority int32
	sends    bool
	done     bool
	waker    wait.Waker
}

// Wait has a call wait: to send m or, if that is nil, to receive. A lower number
// of priority is served first, and among equal ones the call that came first.
func (q *Queue) Wait(m *Message, priority int32, waker wait.Waker) *Waiter {
	w := &Waiter{queue: q, message: m, sends: m != nil, priority: priority, waker: waker}
	list := w.list()
	at := slices.IndexFunc(*list, func(o *Waiter) bool { return o.priority > priority })
	if at < 0 {
		at = len(*list)
	}
	*list = slices.Insert(*list, at, w)
	return w
}

func (w *Waiter) list() *[]*Waiter {
	if w.sends {
		return &w.queue.senders
	}
	return &w.queue.receivers
}

// Done reports whether the call is over: the message was sent, or here it is.
func (w *Waiter) Done() (*Message, bool) { return w.message, w.done }

// Abandon takes the call out of the queue, if it is still there.
func (w *Waiter) Abandon() {
	list := w.list()
	if i := slices.Index(*list, w); i >= 0 {
		*list = slices.Delete(*list, i, i+1)
	}
}

func (w *Waiter) finish(m *Message) {
	w.Abandon()
	w.message, w.done = m, true
	w.waker.Wake(wait.AnyEvent)
}

// Read implements vfs.FileImpl: the state of the queue as text.
func (q *Queue) Read(_ *vfs.Ctx, p []byte, off int64) (int, unix.Errno) {
	var n Notification
	if q.notification != nil {
		n = *q.notification
	}
	if n.Kind != NotifySignal {
		n.Signal = 0
	}
	text := fmt.Sprintf("QSIZE:%-10d NOTIFY:%-5d SIGNO:%-5d NOTIFY_PID:%-6d\n", q.bytes, n.Kind, n.Signal, n.Owner)
	if off >= int64(len(text)) {
		return 0, 0
	}
	return copy(p, text[off:]), 0
}

// Write implements vfs.FileImpl; messages are sent by mq_send alone.
func (q *Queue) Write(*vfs.Ctx, []byte, int64) (int, unix.Errno) { return 0, unix.EINVAL }

// SeekTo implements vfs.Seeker.
func (q *Queue) SeekTo(off int64, whence int, at int64) (int64, unix.Errno) {
	switch whence {
	case unix.SEEK_SET:
	case unix.SEEK_CUR:
		off += at
	default:
		return 0, unix.EINVAL
	}
	if off < 0 {
		return 0, unix.EINVAL
	}
	return off, 0
}

// Ready implements vfs.Poller.
func (q *Queue) Ready() uint32 {
	var mask uint32
	if len(q.messages) > 0 {
		mask |= unix.EPOLLIN | unix.EPOLLRDNORM
	}
	if !q.isFull() {
		mask |= unix.EPOLLOUT | unix.EPOLLWRNORM
	}
	return mask
}

// Waiters implements vfs.Poller.
func (q *Queue) Waiters() *wait.Queue { return q.waiters }
