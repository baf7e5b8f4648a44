package mqueue_test

import (
	"bytes"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/guest/ipc/mqueue"
	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

type sleeper struct{ woken int }

func (s *sleeper) Wake(uint32) { s.woken++ }

// host notes the notifications that are signals.
type host struct{ sent []mqueue.Notification }

func (h *host) SignalMessage(n *mqueue.Notification) { h.sent = append(h.sent, *n) }

var user = &mqueue.Creator{UID: 5, Limit: 819200}

func newQueue(t interface{ Fatal(...any) }, y *mqueue.System, messages int64) *mqueue.Queue {
	q, errno := y.Create(user, &mqueue.Attr{Messages: messages, Size: 10})
	if errno != 0 {
		t.Fatal(errno)
	}
	return q
}

// TestAgainstAList sends and receives at random, with calls that wait, and compares
// with lists that are sorted anew at each look.
func TestAgainstAList(t *testing.T) {
	type sender struct {
		m        *mqueue.Message
		w        *mqueue.Waiter
		priority int32
	}
	rapid.Check(t, func(t *rapid.T) {
		account := kmem.New(1 << 30)
		y := mqueue.New(account, &host{})
		room := rapid.IntRange(1, 4).Draw(t, "room")
		q := newQueue(t, y, int64(room))
		var list []*mqueue.Message
		var senders, receivers []sender
		byPriority := func(a, b sender) int { return int(a.priority - b.priority) }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			priority := int32(rapid.IntRange(1, 3).Draw(t, "of the thread"))
			if rapid.Bool().Draw(t, "send") {
				m := &mqueue.Message{
					Priority: uint32(rapid.IntRange(0, 3).Draw(t, "priority")), Text: rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "text"),
				}
				errno := q.Send(m)
				switch {
				case len(list) == room:
					if errno != unix.EAGAIN {
						t.Fatalf("a full queue answers %v", errno)
					}
					senders = append(senders, sender{m, q.Wait(m, priority, &sleeper{}), priority})
					slices.SortStableFunc(senders, byPriority)
				case errno != 0:
					t.Fatal(errno)
				case len(receivers) > 0:
					if got, done := receivers[0].w.Done(); !done || got != m {
						t.Fatalf("the first receiver has %v, %v", got, done)
					}
					receivers = receivers[1:]
				default:
					list = append(list, m)
				}
			} else {
				got, errno := q.Receive()
				slices.SortStableFunc(list, func(a, b *mqueue.Message) int { return int(b.Priority) - int(a.Priority) })
				switch {
				case len(list) == 0:
					if errno != unix.EAGAIN {
						t.Fatalf("an empty queue answers %v", errno)
					}
					receivers = append(receivers, sender{nil, q.Wait(nil, priority, &sleeper{}), priority})
					slices.SortStableFunc(receivers, byPriority)
				case errno != 0 || got.Priority != list[0].Priority || !bytes.Equal(got.Text, list[0].Text):
					t.Fatalf("received %v, %v; want %v", got, errno, list[0])
				default:
					list = list[1:]
					if len(senders) > 0 {
						if _, done := senders[0].w.Done(); !done {
							t.Fatal("the first sender still waits")
						}
						list = append(list, senders[0].m)
						senders = senders[1:]
					}
				}
			}
			for _, w := range slices.Concat(senders, receivers) {
				if _, done := w.w.Done(); done {
					t.Fatal("a call is over before its turn")
				}
			}
			if n := int(q.Attr().Current); n != len(list) {
				t.Fatalf("%d messages, want %d", n, len(list))
			}
			wantReady := uint32(0)
			if len(list) > 0 {
				wantReady |= unix.EPOLLIN | unix.EPOLLRDNORM
			}
			if len(list) < room {
				wantReady |= unix.EPOLLOUT | unix.EPOLLWRNORM
			}
			if q.Ready() != wantReady {
				t.Fatalf("ready %x, want %x", q.Ready(), wantReady)
			}
		}
		for _, w := range slices.Concat(senders, receivers) {
			w.w.Abandon()
		}
		q.Release()
		if account.Used() != 0 {
			t.Fatalf("%d bytes are left", account.Used())
		}
	})
}

type socket struct{ got [][]byte }

func (s *socket) Deliver(data []byte) { s.got = append(s.got, bytes.Clone(data)) }

func TestNotifications(t *testing.T) {
	h := &host{}
	y := mqueue.New(nil, h)
	q := newQueue(t, y, 3)
	send := func() {
		if errno := q.Send(&mqueue.Message{}); errno != 0 {
			t.Fatal(errno)
		}
	}
	if errno := q.Notify(&mqueue.Notification{Owner: 7, Kind: mqueue.NotifySignal, Signal: 10, Value: 99}); errno != 0 {
		t.Fatal(errno)
	}
	if errno := q.Notify(&mqueue.Notification{Owner: 8}); errno != unix.EBUSY {
		t.Errorf("a second registration: %v", errno)
	}
	send()
	send()
	if len(h.sent) != 1 || h.sent[0].Owner != 7 || h.sent[0].Value != 99 {
		t.Errorf("signals %v, want one", h.sent)
	}
	s := &socket{}
	n := &mqueue.Notification{Owner: 7, Kind: mqueue.NotifyThread, Socket: s, Cookie: [32]byte{1, 2, 3}}
	for range 2 {
		if errno := q.Notify(n); errno != 0 {
			t.Fatal(errno)
		}
		q.Flush(8)
		q.Flush(7)
	}
	for q.Attr().Current > 0 {
		_, _ = q.Receive()
	}
	_ = q.Notify(n)
	send()
	var last []byte
	for _, b := range s.got {
		last = append(last, b[31])
	}
	// NOTIFY_REMOVED is 2, NOTIFY_WOKENUP 1.
	if !bytes.Equal(last, []byte{2, 2, 1}) || s.got[2][0] != 1 || s.got[2][2] != 3 {
		t.Errorf("the socket got %v", s.got)
	}
}

func TestLimits(t *testing.T) {
	root := &mqueue.Creator{Limit: 1 << 40, Resource: true}
	y := mqueue.New(nil, &host{})
	for _, c := range []struct {
		who            *mqueue.Creator
		messages, size int64
		errno          unix.Errno
	}{
		{user, 10, 8192, 0},
		{user, 11, 8192, unix.EINVAL},
		{user, 10, 8193, unix.EINVAL},
		{user, 0, 1, unix.EINVAL},
		{user, 1, -1, unix.EINVAL},
		{root, 65536, 1, 0},
		{root, 65537, 1, unix.EINVAL},
		{root, 1, 16 << 20, 0},
		{root, 1, 16<<20 + 1, unix.EINVAL},
		{&mqueue.Creator{UID: 9, Limit: 10 * (100 + 96)}, 10, 100, 0},
		{&mqueue.Creator{UID: 10, Limit: 10*(100+96) - 1}, 10, 100, unix.EMFILE},
	} {
		if _, errno := y.Create(c.who, &mqueue.Attr{Messages: c.messages, Size: c.size}); errno != c.errno {
			t.Errorf("%d messages of %d: %v, want %v", c.messages, c.size, errno, c.errno)
		}
	}
	for n := 4; n < linux.MqueueMaxQueues; n++ {
		newQueue(t, y, 1)
	}
	if _, errno := y.Create(user, nil); errno != unix.ENOSPC {
		t.Errorf("one queue too many: %v", errno)
	}
}

func TestCopiesAreIndependent(t *testing.T) {
	type world struct {
		Queue *mqueue.Queue
		Waits *mqueue.Waiter
	}
	w := world{Queue: newQueue(t, mqueue.New(kmem.New(1<<30), &host{}), 3)}
	w.Waits = w.Queue.Wait(nil, 1, &sleeper{})
	n := deepcopy.Copy(deepcopy.New(), w)
	if errno := n.Queue.Send(&mqueue.Message{}); errno != 0 {
		t.Fatal(errno)
	}
	if _, done := n.Waits.Done(); !done {
		t.Error("the copy's receiver waits")
	}
	if _, done := w.Waits.Done(); done {
		t.Error("the original was changed by its copy")
	}
}
