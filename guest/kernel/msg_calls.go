package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/ipc"
	"github.com/heddle-dmt/heddle/guest/ipc/msg"
)

func sysMsgget(t *Task, a [6]uint64) (uint64, unix.Errno) {
	id, errno := t.k.ipc.messages.Get(t.ipcCaller(), int32(a[0]), uint32(a[1]))
	return uint64(id), errno
}

// msgSending is a call of msgsnd that waits for room.
type msgSending struct {
	queue   *msg.Queue
	message *msg.Message
	sender  *msg.Sender
}

// Abandon implements abandoner.
func (s *msgSending) Abandon() {
	if s.sender != nil {
		s.sender.Abandon()
		s.sender = nil
	}
}

func sysMsgsnd(t *Task, a [6]uint64) (uint64, unix.Errno) {
	s, waiting := t.call.data.(*msgSending)
	if !waiting {
		var errno unix.Errno
		if s, errno = t.newMessage(a); errno != 0 {
			return 0, errno
		}
		t.call.data = s
	}
	s.Abandon()
	errno := s.queue.Send(t.ipcCaller(), s.message)
	if errno != unix.EAGAIN || a[3]&ipc.NoWait != 0 {
		return 0, errno
	}
	if errno = t.waitInterruptibly(errInterrupted, forever); errno == errBlocked {
		s.sender = s.queue.AddSender(len(s.message.Text), t)
	}
	return 0, errno
}

// newMessage reads the message that msgsnd is to send.
func (t *Task) newMessage(a [6]uint64) (*msgSending, unix.Errno) {
	kind, errno := t.proc.space.ReadU64(arch.Addr(a[1]))
	switch {
	case errno != 0:
		return nil, errno
	case a[2] > msg.MaxMessage, int32(a[0]) < 0, int64(kind) < 1:
		return nil, unix.EINVAL
	}
	m := &msg.Message{Type: int64(kind), Text: make([]byte, a[2])}
	if errno := t.copyIn(arch.Addr(a[1]+8), m.Text); errno != 0 {
		return nil, errno
	}
	q, errno := t.k.ipc.messages.Find(int32(a[0]))
	return &msgSending{queue: q, message: m}, errno
}

// msgReceiving is a call of msgrcv that waits for a message.
type msgReceiving struct {
	queue    *msg.Queue
	wants    msg.Selection
	receiver *msg.Receiver
}

// Abandon implements abandoner.
func (r *msgReceiving) Abandon() {
	if r.receiver != nil {
		r.receiver.Abandon()
		r.receiver = nil
	}
}

func sysMsgrcv(t *Task, a [6]uint64) (uint64, unix.Errno) {
	r, waiting := t.call.data.(*msgReceiving)
	if !waiting {
		var errno unix.Errno
		if r, errno = t.newReceiver(a); errno != 0 {
			return 0, errno
		}
		t.call.data = r
	}
	m, errno := t.awaitMessage(r)
	if errno != 0 {
		return 0, errno
	}
	text := m.Text[:min(uint64(len(m.Text)), a[2])]
	if errno := t.proc.space.WriteU64(arch.Addr(a[1]), uint64(m.Type)); errno != 0 {
		return 0, errno
	}
	return uint64(len(text)), t.copyOut(arch.Addr(a[1]+8), text)
}

// newReceiver checks the arguments of msgrcv.
func (t *Task) newReceiver(a [6]uint64) (*msgReceiving, unix.Errno) {
	if int32(a[0]) < 0 || int64(a[2]) < 0 {
		return nil, unix.EINVAL
	}
	s := msg.Selection{Type: int64(a[3]), Flags: uint32(a[4]), Room: a[2]}
	if s.Flags&msg.Copy != 0 {
		if s.Flags&msg.Except != 0 || s.Flags&ipc.NoWait == 0 {
			return nil, unix.EINVAL
		}
		// Linux reads the buffer when it allocates the copy.
		if errno := t.copyIn(arch.Addr(a[1]), make([]byte, min(s.Room, msg.MaxMessage))); errno != 0 {
			return nil, errno
		}
	}
	q, errno := t.k.ipc.messages.Find(int32(a[0]))
	return &msgReceiving{queue: q, wants: s}, errno
}

// awaitMessage is one attempt to receive a message.
func (t *Task) awaitMessage(r *msgReceiving) (*msg.Message, unix.Errno) {
	if r.receiver != nil {
		m, errno, done := r.receiver.Done()
		if done && errno != unix.EAGAIN {
			return m, errno
		}
		r.Abandon()
	}
	m, errno := r.queue.Receive(t.ipcCaller(), r.wants)
	if errno != unix.ENOMSG || r.wants.Flags&ipc.NoWait != 0 {
		return m, errno
	}
	if errno = t.waitInterruptibly(errInterrupted, forever); errno == errBlocked {
		r.receiver = r.queue.AddReceiver(t.ipcCaller(), r.wants, t)
	}
	return nil, errno
}

func sysMsgctl(t *Task, a [6]uint64) (uint64, unix.Errno) {
	c, y := t.ipcCaller(), t.k.ipc.messages
	id, cmd := int32(a[0]), int32(a[1])
	if id < 0 || cmd < 0 {
		return 0, unix.EINVAL
	}
	switch cmd {
	case ipc.Info, msg.UsageInfo:
		return uint64(y.HighestIndex()), writeValue(t, a[2], y.Limits(cmd == msg.UsageInfo))
	case ipc.Stat:
		q, errno := y.Readable(c, id)
		if errno != 0 {
			return 0, errno
		}
		return 0, writeValue(t, a[2], q.Status())
	case msg.StatIndex, msg.StatAny:
		q, errno := y.ReadableAt(c, id, cmd == msg.StatAny)
		if errno != 0 {
			return 0, errno
		}
		return uint64(q.Common().ID), writeValue(t, a[2], q.Status())
	case ipc.SetPerm:
		var in msg.Status
		if errno := readStruct(t, arch.Addr(a[2]), &in); errno != 0 {
			return 0, errno
		}
		q, errno := y.Own(c, id)
		if errno != 0 {
			return 0, errno
		}
		return 0, q.Change(c, &in)
	case ipc.Remove:
		q, errno := y.Own(c, id)
		if errno == 0 {
			y.Remove(q)
		}
		return 0, errno
	}
	return 0, unix.EINVAL
}
