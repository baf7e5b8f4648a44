package msg_test

import (
	"bytes"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/guest/ipc"
	"github.com/heddle-dmt/heddle/guest/ipc/msg"
	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

type sleeper struct{ woken int }

func (s *sleeper) Wake(uint32) { s.woken++ }

var caller = &ipc.Caller{PID: 7, Owner: true, Admin: true, Resource: true, Now: 1}

func newQueue(t interface{ Fatal(...any) }, y *msg.System) *msg.Queue {
	id, errno := y.Get(caller, ipc.Private, 0o600)
	if errno != 0 {
		t.Fatal(errno)
	}
	q, _ := y.Find(id)
	return q
}

// select chooses a message as msgrcv(2) says.
func selected(list []*msg.Message, s msg.Selection) int {
	lowest := -1
	for i, m := range list {
		switch {
		case s.Type == 0, s.Type > 0 && s.Flags&msg.Except == 0 && m.Type == s.Type,
			s.Type > 0 && s.Flags&msg.Except != 0 && m.Type != s.Type:
			return i
		case s.Type < 0 && m.Type <= -s.Type && (lowest < 0 || m.Type < list[lowest].Type):
			lowest = i
		}
	}
	return lowest
}

func drawSelection(t *rapid.T) msg.Selection {
	return msg.Selection{
		Type: int64(rapid.IntRange(-4, 4).Draw(t, "type")), Room: uint64(rapid.IntRange(0, 8).Draw(t, "room")),
		Flags: rapid.SampledFrom([]uint32{0, msg.NoError, msg.Except, msg.Except | msg.NoError}).Draw(t, "flags"),
	}
}

// TestAgainstAList sends and receives at random, and compares with a list of
// messages and one of receivers that wait.
func TestAgainstAList(t *testing.T) {
	type receiver struct {
		s msg.Selection
		r *msg.Receiver
	}
	rapid.Check(t, func(t *rapid.T) {
		account := kmem.New(1 << 30)
		y := msg.New(account)
		q := newQueue(t, y)
		var list []*msg.Message
		var waiting []receiver
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "send") {
				m := &msg.Message{
					Type: int64(rapid.IntRange(1, 4).Draw(t, "type")), Text: rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "text"),
				}
				if errno := q.Send(caller, m); errno != 0 {
					t.Fatal(errno)
				}
				taken := false
				for len(waiting) > 0 && !taken {
					at := slices.IndexFunc(waiting, func(w receiver) bool { return selected([]*msg.Message{m}, w.s) == 0 })
					if at < 0 {
						break
					}
					w := waiting[at]
					waiting = slices.Delete(waiting, at, at+1)
					got, errno, done := w.r.Done()
					tooLong := w.s.Flags&msg.NoError == 0 && uint64(len(m.Text)) > w.s.Room
					taken = !tooLong
					if !done || tooLong && errno != unix.E2BIG || taken && (errno != 0 || got != m) {
						t.Fatalf("receiver %+v of %+v: %v, %v, %v", w.s, m, got, errno, done)
					}
				}
				if !taken {
					list = append(list, m)
				}
				continue
			}
			s := drawSelection(t)
			got, errno := q.Receive(caller, s)
			switch at := selected(list, s); {
			case at < 0:
				if errno != unix.ENOMSG {
					t.Fatalf("%+v: %v, want ENOMSG", s, errno)
				}
				waiting = append(waiting, receiver{s, q.AddReceiver(caller, s, &sleeper{})})
			case s.Flags&msg.NoError == 0 && uint64(len(list[at].Text)) > s.Room:
				if errno != unix.E2BIG {
					t.Fatalf("%+v: %v, want E2BIG", s, errno)
				}
			default:
				if errno != 0 || got.Type != list[at].Type || !bytes.Equal(got.Text, list[at].Text) {
					t.Fatalf("%+v: %+v, %v; want %+v", s, got, errno, list[at])
				}
				list = slices.Delete(list, at, at+1)
			}
			if n := int(q.Status().Messages); n != len(list) {
				t.Fatalf("%d messages, want %d", n, len(list))
			}
		}
		y.Remove(q)
		for _, w := range waiting {
			if _, errno, done := w.r.Done(); !done || errno != unix.EIDRM {
				t.Fatalf("after the removal: %v, %v", errno, done)
			}
		}
		if account.Used() != 0 {
			t.Fatalf("%d bytes are left", account.Used())
		}
	})
}

func TestSendersAreWokenForRoom(t *testing.T) {
	y := msg.New(nil)
	q := newQueue(t, y)
	for range 2 {
		if errno := q.Send(caller, &msg.Message{Type: 1, Text: make([]byte, 8192)}); errno != 0 {
			t.Fatal(errno)
		}
	}
	big, small := &sleeper{}, &sleeper{}
	q.AddSender(8192, big)
	s := q.AddSender(100, small)
	if _, errno := q.Receive(caller, msg.Selection{Room: 8192}); errno != 0 {
		t.Fatal(errno)
	}
	if big.woken != 1 || small.woken != 1 {
		t.Errorf("woken %d and %d times", big.woken, small.woken)
	}
	s.Abandon()
	if errno := q.Send(caller, &msg.Message{Type: 1, Text: make([]byte, 100)}); errno != 0 {
		t.Fatal(errno)
	}
	y.Remove(q)
	if big.woken != 2 || small.woken != 1 {
		t.Errorf("at the removal: woken %d and %d times", big.woken, small.woken)
	}
	if errno := q.Send(caller, &msg.Message{Type: 1}); errno != unix.EIDRM {
		t.Errorf("send to a removed queue: %v", errno)
	}
}

func TestCopiesAreIndependent(t *testing.T) {
	type world struct {
		System   *msg.System
		Queue    *msg.Queue
		Receiver *msg.Receiver
	}
	w := world{System: msg.New(kmem.New(1 << 30))}
	w.Queue = newQueue(t, w.System)
	w.Receiver = w.Queue.AddReceiver(caller, msg.Selection{Type: 2, Room: 10}, &sleeper{})
	n := deepcopy.Copy(deepcopy.New(), w)
	if errno := n.Queue.Send(caller, &msg.Message{Type: 2, Text: []byte("x")}); errno != 0 {
		t.Fatal(errno)
	}
	if _, _, done := n.Receiver.Done(); !done {
		t.Error("the copy's receiver waits")
	}
	if _, _, done := w.Receiver.Done(); done {
		t.Error("the original was changed by its copy")
	}
}
