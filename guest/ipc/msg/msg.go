// Package msg is System V message queues, msgget(2): lists of messages with a
// type each, from which receivers take the one that they select.
//
// A receiver that waits stays in the queue as a Receiver and is handed the first
// message that suits it; a sender that waits is only woken when there may be
// room, and tries again, as in ipc/msg.c of Linux.
//
// Invariants:
//
//  1. The bytes of a queue are those of its messages; each message is charged to
//     the account of the kernel's memory until it is received or dropped.
//  2. A message goes to a waiting receiver only if no message in the queue suits
//     that one.
package msg

import (
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/ipc"
	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// Limits, as /proc/sys/kernel shows them (include/uapi/linux/msg.h).
const (
	MaxQueues  = 32000 // msgmni
	MaxMessage = 8192  // msgmax, in bytes
	MaxBytes   = 16384 // msgmnb: how much a queue takes until IPC_SET says otherwise
)

// Flags of msgrcv.
const (
	NoError = 0o10000 // MSG_NOERROR: messages that are too long are cut
	Except  = 0o20000 // MSG_EXCEPT: any type but the given one
	Copy    = 0o40000 // MSG_COPY: the message stays, and is selected by its place
)

// Commands of msgctl besides those of package ipc.
const (
	StatIndex = 11 // MSG_STAT
	UsageInfo = 12 // MSG_INFO
	StatAny   = 13 // MSG_STAT_ANY
)

// messageSize is charged to the account for a message besides its bytes.
const messageSize = 64

// Message is one message. It does not change.
type Message struct {
	Type int64
	Text []byte
}

func (m *Message) size() uint64 { return messageSize + uint64(len(m.Text)) }

// System holds all queues.
type System struct {
	ipc.Table[*Queue]
	memory *kmem.Account
}

// New makes a System without queues.
func New(memory *kmem.Account) *System { return &System{memory: memory} }

// Queue is one message queue.
type Queue struct {
	perm                     ipc.Perm
	system                   *System
	messages                 []*Message
	bytes, maxBytes          uint64
	sent, received           int64 // times in seconds
	lastSender, lastReceiver int32 // process ids
	receivers                []*Receiver
	senders                  []*Sender
}

// Common implements ipc.Object.
func (q *Queue) Common() *ipc.Perm { return &q.perm }

// Get is msgget(2).
func (y *System) Get(c *ipc.Caller, key int32, flags uint32) (int32, unix.Errno) {
	return y.Table.Get(c, key, flags, func() (*Queue, unix.Errno) {
		q := &Queue{perm: ipc.NewPerm(c, key, flags), system: y, maxBytes: MaxBytes}
		if !y.memory.Charge(kmem.Object) {
			return nil, unix.ENOMEM
		}
		errno := y.Add(q, MaxQueues)
		if errno != 0 {
			y.memory.Release(kmem.Object)
		}
		return q, errno
	}, func(*Queue) unix.Errno { return 0 })
}

// Remove is IPC_RMID: waiting calls get EIDRM.
func (y *System) Remove(q *Queue) {
	y.Delete(q)
	q.endReceivers(unix.EIDRM)
	for _, s := range slices.Clone(q.senders) {
		s.Abandon()
		s.waker.Wake(wait.AnyEvent)
	}
	for _, m := range q.messages {
		y.memory.Release(m.size())
	}
	q.messages = nil
	y.memory.Release(kmem.Object)
}

// Change is IPC_SET. EPERM: only a privileged caller may let the queue hold more
// than MaxBytes.
func (q *Queue) Change(c *ipc.Caller, in *Status) unix.Errno {
	if in.MaxBytes > MaxBytes && !c.Resource {
		return unix.EPERM
	}
	if errno := q.perm.Update(c, &in.Perm); errno != 0 {
		return errno
	}
	q.maxBytes = in.MaxBytes
	// Permissions may be fewer, and there may be more room.
	q.endReceivers(unix.EAGAIN)
	q.wakeSenders()
	return 0
}

// Sender is a call of msgsnd that waits for room.
type Sender struct {
	queue *Queue
	size  int
	waker wait.Waker
}

// AddSender has a call wait for room for a message of the given size. The waker
// is woken when it is to be tried again.
func (q *Queue) AddSender(size int, waker wait.Waker) *Sender {
	s := &Sender{q, size, waker}
	q.senders = append(q.senders, s)
	return s
}

// Abandon takes the sender out of the queue, if it is still there.
func (s *Sender) Abandon() {
	if i := slices.Index(s.queue.senders, s); i >= 0 {
		s.queue.senders = slices.Delete(s.queue.senders, i, i+1)
	}
}

// fits reports whether there is room for a message.
func (q *Queue) fits(size int) bool {
	return uint64(size)+q.bytes <= q.maxBytes && uint64(len(q.messages))+1 <= q.maxBytes
}

// wakeSenders wakes those for whose messages there is room. The others wait
// after all that wait already, as in Linux.
func (q *Queue) wakeSenders() {
	var later []*Sender
	woken := q.senders[:0:0]
	for _, s := range q.senders {
		if q.fits(s.size) {
			woken = append(woken, s)
		} else {
			later = append(later, s)
		}
	}
	q.senders = append(slices.Clone(woken), later...)
	for _, s := range woken {
		s.waker.Wake(wait.AnyEvent)
	}
}

// Send puts a message into the queue, or hands it to a receiver that waits for
// it. EAGAIN: there is no room. EIDRM: the queue was removed.
func (q *Queue) Send(c *ipc.Caller, m *Message) unix.Errno {
	if errno := q.allows(c, ipc.MayWrite); errno != 0 {
		return errno
	}
	if !q.fits(len(m.Text)) {
		return unix.EAGAIN
	}
	if !q.system.memory.Charge(m.size()) {
		return unix.ENOMEM
	}
	q.lastSender, q.sent = c.PID, c.Now
	if !q.handOver(c, m) {
		q.messages = append(q.messages, m)
		q.bytes += uint64(len(m.Text))
	}
	return 0
}

// allows checks that the queue exists and that the caller may access it.
func (q *Queue) allows(c *ipc.Caller, want uint32) unix.Errno {
	if errno := q.perm.Allows(c, want); errno != 0 {
		return errno
	}
	if q.perm.Removed {
		return unix.EIDRM
	}
	return 0
}

// Selection says which message a receiver wants, and how much of it.
type Selection struct {
	Type  int64
	Flags uint32
	Room  uint64 // bytes
}

// wanted finds the index of the message that is selected; -1: no message is.
func (q *Queue) wanted(s *Selection) int {
	if s.Flags&Copy != 0 {
		if s.Type >= 0 && s.Type < int64(len(q.messages)) {
			return int(s.Type)
		}
		return -1
	}
	found := -1
	for i, m := range q.messages {
		switch {
		case !s.suits(m):
		case s.Type >= 0:
			return i
		case found < 0 || m.Type < q.messages[found].Type:
			found = i
		}
	}
	return found
}

// suits reports whether a message has a type that is selected.
func (s *Selection) suits(m *Message) bool {
	switch {
	case s.Type == 0 || s.Flags&Copy != 0:
		return true
	case s.Type == math.MinInt64:
		return true
	case s.Type < 0:
		return m.Type <= -s.Type
	case s.Flags&Except != 0:
		return m.Type != s.Type
	}
	return m.Type == s.Type
}

// tooLong reports whether a message does not fit and may not be cut.
func (s *Selection) tooLong(m *Message) bool {
	return uint64(len(m.Text)) > s.Room && s.Flags&NoError == 0
}

// Receiver is a call of msgrcv that waits for a message.
type Receiver struct {
	queue   *Queue
	wants   Selection
	pid     int32
	waker   wait.Waker
	done    bool
	message *Message
	errno   unix.Errno
}

// AddReceiver has a call wait for a message, after it found none.
func (q *Queue) AddReceiver(c *ipc.Caller, s Selection, waker wait.Waker) *Receiver {
	r := &Receiver{queue: q, wants: s, pid: c.PID, waker: waker}
	q.receivers = append(q.receivers, r)
	return r
}

// Done reports whether the wait is over, and how it ended. EAGAIN: the receiver
// is to look again. EIDRM: the queue was removed.
func (r *Receiver) Done() (m *Message, errno unix.Errno, ok bool) { return r.message, r.errno, r.done }

// Abandon takes the receiver out of the queue, if it is still there. A message
// that it was handed is lost.
func (r *Receiver) Abandon() {
	if i := slices.Index(r.queue.receivers, r); i >= 0 {
		r.queue.receivers = slices.Delete(r.queue.receivers, i, i+1)
	}
}

func (r *Receiver) finish(m *Message, errno unix.Errno) {
	r.Abandon()
	r.done, r.message, r.errno = true, m, errno
	r.waker.Wake(wait.AnyEvent)
}

func (q *Queue) endReceivers(errno unix.Errno) {
	for _, r := range slices.Clone(q.receivers) {
		r.finish(nil, errno)
	}
}

// handOver gives a message to the receiver that has waited for it longest.
// Those for which it is too long get E2BIG.
func (q *Queue) handOver(c *ipc.Caller, m *Message) bool {
	for _, r := range slices.Clone(q.receivers) {
		if !r.wants.suits(m) {
			continue
		}
		if r.wants.tooLong(m) {
			r.finish(nil, unix.E2BIG)
			continue
		}
		q.system.memory.Release(m.size())
		q.lastReceiver, q.received = r.pid, c.Now
		r.finish(m, 0)
		return true
	}
	return false
}

// Receive takes the message that is selected out of the queue. ENOMSG: there is
// none. E2BIG: it is too long, and stays.
func (q *Queue) Receive(c *ipc.Caller, s Selection) (*Message, unix.Errno) {
	if errno := q.allows(c, ipc.MayRead); errno != 0 {
		return nil, errno
	}
	i := q.wanted(&s)
	if i < 0 {
		return nil, unix.ENOMSG
	}
	m := q.messages[i]
	if s.tooLong(m) {
		return nil, unix.E2BIG
	}
	if s.Flags&Copy != 0 {
		if uint64(len(m.Text)) > min(s.Room, MaxMessage) {
			return nil, unix.EINVAL // which MSG_NOERROR does not change
		}
		return m, 0
	}
	q.messages = slices.Delete(q.messages, i, i+1)
	q.bytes -= uint64(len(m.Text))
	q.system.memory.Release(m.size())
	q.lastReceiver, q.received = c.PID, c.Now
	q.wakeSenders()
	return m, 0
}

// Status is struct msqid64_ds of x86-64.
type Status struct {
	Perm                     ipc.Layout
	Sent, Received, Change   int64
	Bytes, Messages          uint64
	MaxBytes                 uint64
	LastSender, LastReceiver int32
	_                        [2]uint64
}

// Status describes the queue.
func (q *Queue) Status() Status {
	return Status{
		Perm: q.perm.Layout(), Sent: q.sent, Received: q.received, Change: q.perm.Changed, Bytes: q.bytes,
		Messages: uint64(len(q.messages)), MaxBytes: q.maxBytes, LastSender: q.lastSender, LastReceiver: q.lastReceiver,
	}
}

// Limits is struct msginfo.
type Limits struct {
	Pool, Map, MaxMessage, MaxBytes, Queues, SegmentSize, Messages int32
	Segments                                                       uint16
	_                                                              uint16
}

// Limits are those of the machine; with usage three of them are replaced by the
// numbers of queues, messages and bytes, as MSG_INFO has them.
func (y *System) Limits(usage bool) Limits {
	l := Limits{
		Pool: MaxQueues * (MaxBytes / 1024), Map: MaxBytes, MaxMessage: MaxMessage, MaxBytes: MaxBytes, Queues: MaxQueues,
		SegmentSize: 16, Messages: MaxBytes, Segments: math.MaxUint16,
	}
	if usage {
		l.Pool, l.Map, l.Messages = int32(y.Len()), 0, 0
		for _, q := range y.List() {
			l.Map += int32(len(q.messages))
			l.Messages += int32(q.bytes)
		}
	}
	return l
}
