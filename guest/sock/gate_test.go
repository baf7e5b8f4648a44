package sock

import (
	"bytes"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/requests"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// gatedPair is a service with a listener behind a gate, and a client that has connected.
type gatedPair struct {
	t        *testing.T
	stack    *Stack
	gate     *Gate
	listener *Socket
	client   *Socket
	outside  *vfs.Ctx
	at       Addr
}

func newGatedPair(t *testing.T) *gatedPair {
	t.Helper()
	p := &gatedPair{t: t, stack: New(nil, nil), outside: &vfs.Ctx{}}
	p.gate = p.stack.OpenGate()
	inside := &vfs.Ctx{Service: true}
	p.at = Addr{Family: unix.AF_INET, IP: loopback4, Port: 8080}
	p.listener = p.socket(inside)
	p.check("bind", p.listener.Bind(inside, p.at), 0)
	p.check("listen", p.listener.Listen(inside, 1), 0)
	p.client = p.connect(0)
	return p
}

func (p *gatedPair) socket(c *vfs.Ctx) *Socket {
	p.t.Helper()
	s, errno := p.stack.Socket(c, unix.AF_INET, unix.SOCK_STREAM, 0)
	p.check("socket", errno, 0)
	return s
}

func (p *gatedPair) connect(want unix.Errno) *Socket {
	p.t.Helper()
	s := p.socket(p.outside)
	_, errno := s.Connect(p.outside, p.at, false)
	p.check("connect", errno, want)
	return s
}

func (p *gatedPair) check(what string, got, want unix.Errno) {
	p.t.Helper()
	if got != want {
		p.t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

func (p *gatedPair) send(s *Socket, text string, want unix.Errno) {
	p.t.Helper()
	n, _, errno := s.Send(p.outside, &Outgoing{Data: []byte(text)})
	p.check("send", errno, want)
	if want == 0 && n != len(text) {
		p.t.Fatalf("sent %d of %d bytes", n, len(text))
	}
}

// expectRead expects the next read to return text, or an errno.
func (p *gatedPair) expectRead(s *Socket, text string, want unix.Errno) {
	p.t.Helper()
	in := Incoming{Data: make([]byte, 1000), Nonblock: true}
	errno := s.Recv(&in)
	if errno != want || string(in.Data[:in.N]) != text {
		p.t.Fatalf("read %q, %v; want %q, %v", in.Data[:in.N], errno, text, want)
	}
}

func (p *gatedPair) accept() *Socket {
	p.t.Helper()
	p.gate.Connections()[0].Admit()
	n, errno := p.listener.Accept(true)
	p.check("accept", errno, 0)
	return n
}

func TestGateHoldsConnectionAndBytes(t *testing.T) {
	p := newGatedPair(t)
	p.send(p.client, "hello", 0)
	if _, errno := p.listener.Accept(true); errno != unix.EAGAIN || p.listener.Ready() != 0 {
		t.Fatalf("the service sees a connection that was not admitted: %v", errno)
	}
	if held := p.gate.Connections()[0].Held(); held != (Held{Connection: true, Bytes: 5}) {
		t.Fatalf("held %+v", held)
	}
	n := p.accept()
	p.expectRead(n, "hello", 0)
	p.send(p.client, "again", 0)
	p.expectRead(n, "", unix.EAGAIN)
	if n.Ready()&unix.EPOLLIN != 0 {
		t.Error("the service can poll bytes that were not admitted")
	}
	p.gate.Connections()[0].Admit()
	p.expectRead(n, "again", 0)
}

// gateClock is the clock of a log of requests.
type gateClock struct{ now int64 }

func (c *gateClock) Now() int64 { return c.now }

func (*gateClock) CommandOf(int32) string { return "client" }

// TestObservedThroughGate: a request arrives when the client has sent it, and not when it is admitted.
func TestObservedThroughGate(t *testing.T) {
	p, clock := newGatedPair(t), &gateClock{}
	log := requests.NewLog([]uint16{8080}, clock)
	p.stack.Observe(log)
	p.accept() // of the pair's client, which is not observed
	client := p.connect(0)
	clock.now = 1
	p.send(client, "request", 0)
	clock.now = 2
	p.gate.Connections()[1].Admit()
	n, errno := p.listener.Accept(true)
	p.check("accept", errno, 0)
	clock.now = 3
	p.expectRead(n, "request", 0)
	clock.now = 4
	p.send(n, "reply", 0)
	want := []requests.Request{{Arrived: 1, Read: 3, Replied: 4, Ended: 4, Received: 7, Sent: 5}}
	if !slices.Equal(log.Requests, want) {
		t.Errorf("%+v, want %+v", log.Requests, want)
	}
}

func TestGateIsOpenForReplies(t *testing.T) {
	p := newGatedPair(t)
	n := p.accept()
	big := bytes.Repeat([]byte("x"), 8<<20) // more than the buffers of both sockets
	if sent, _, errno := n.Send(p.outside, &Outgoing{Data: big}); errno != 0 || sent != len(big) {
		t.Fatalf("sent %d, %v", sent, errno)
	}
	if n.Ready()&unix.EPOLLOUT == 0 {
		t.Error("the service waits for a client that does not read")
	}
	if g := p.gate.Connections()[0]; g.Written != uint64(len(big)) {
		t.Errorf("written %d", g.Written)
	}
}

func TestGateBoundsWhatClientsSend(t *testing.T) {
	p := newGatedPair(t)
	b := make([]byte, 1<<20)
	total := 0
	for {
		n, _, errno := p.client.Send(p.outside, &Outgoing{Data: b})
		if errno == unix.EAGAIN {
			break
		}
		p.check("send", errno, 0)
		total += n
	}
	if total > 16<<20 || p.gate.Connections()[0].Held().Bytes != total {
		t.Errorf("a client could send %d bytes", total)
	}
}

func TestGateHoldsTheEnd(t *testing.T) {
	p := newGatedPair(t)
	n := p.accept()
	p.client.Close()
	p.expectRead(n, "", unix.EAGAIN)
	p.send(n, "a reply that nobody reads", 0)
	held := p.gate.Connections()[0].Held()
	if !held.End || !held.Reset {
		t.Fatalf("held %+v, want the end and the reset that answers the reply", held)
	}
	p.gate.Connections()[0].Admit()
	p.expectRead(n, "", 0)
	if n.Ready()&unix.EPOLLERR == 0 {
		t.Error("the service has not seen the reset")
	}
	if len(p.gate.Connections()) != 0 {
		t.Error("the gate has a connection that is over")
	}
}

func TestServiceClosesFirst(t *testing.T) {
	p := newGatedPair(t)
	n := p.accept()
	p.check("shutdown", n.Shutdown(unix.SHUT_WR), 0)
	p.expectRead(p.client, "", 0)
	p.client.Close()
	p.expectRead(n, "", unix.EAGAIN)
	p.gate.Connections()[0].Admit()
	p.expectRead(n, "", 0)
	n.Close()
	if len(p.gate.Connections()) != 0 || p.stack.held != 0 {
		t.Errorf("%d connections, %d bytes are left", len(p.gate.Connections()), p.stack.held)
	}
}

func TestGateAndBacklog(t *testing.T) {
	p := newGatedPair(t) // one connection of two that the backlog of 1 admits
	p.connect(0)
	third := p.connect(unix.EINPROGRESS)
	p.accept()
	if third.state != connected {
		t.Error("a connection waits although the backlog has room")
	}
}

func TestListenerEndsWithHeldConnections(t *testing.T) {
	p := newGatedPair(t)
	p.send(p.client, "hello", 0)
	p.listener.Close()
	p.expectRead(p.client, "", unix.ECONNRESET)
	if len(p.gate.Connections()) != 0 || p.stack.held != 0 {
		t.Errorf("%d connections, %d bytes are left", len(p.gate.Connections()), p.stack.held)
	}
}

func TestConnectionsWithinTheServicePassTheGate(t *testing.T) {
	p := newGatedPair(t)
	inside := &vfs.Ctx{Service: true}
	s := p.socket(inside)
	p.gate.Connections()[0].Admit()
	_, _ = p.listener.Accept(true)
	if _, errno := s.Connect(inside, p.at, false); errno != 0 {
		t.Fatal(errno)
	}
	n, errno := p.listener.Accept(true)
	p.check("accept", errno, 0)
	p.send(s, "hello", 0)
	p.expectRead(n, "hello", 0)
}
