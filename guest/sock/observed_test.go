package sock_test

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/requests"
	"github.com/heddle-dmt/heddle/guest/sock"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// steps is a kernel whose clock counts the steps of a test.
type steps struct{ now int64 }

func (s *steps) Now() int64 { return s.now }

func (*steps) CommandOf(int32) string { return "client" }

// TestObservedConnections: a log has the events of connections to its ports, at the server's end.
func TestObservedConnections(t *testing.T) {
	st, clock := sock.New(nil, nil), &steps{}
	log := requests.NewLog([]uint16{80}, clock)
	st.Observe(log)
	ctx := &vfs.Ctx{Cred: vfs.NewCred(0, 0), PID: 7}
	connect := func(port uint16) *sock.Socket {
		s, errno := st.Socket(ctx, unix.AF_INET, unix.SOCK_STREAM, 0)
		if errno == 0 {
			_, errno = s.Connect(ctx, sock.Addr{Family: unix.AF_INET, IP: loopback4, Port: port}, false)
		}
		if errno != 0 {
			t.Fatal(errno)
		}
		return s
	}
	l := listenerAt(t, st, unix.AF_INET, loopback4, 80, 5)
	other := listenerAt(t, st, unix.AF_INET, loopback4, 81, 5)
	var a, server *sock.Socket
	buffer := make([]byte, 100)
	for _, step := range []func(){
		func() { a = connect(80) },
		func() { connect(81); _, _ = other.Accept(true) },
		func() { _, _ = a.Write(ctx, make([]byte, 10), 0) },
		func() { server, _ = l.Accept(true) },
		func() { _ = server.Recv(&sock.Incoming{Data: buffer, Peek: true}) },
		func() { _, _ = server.Read(ctx, buffer[:4], 0) },
		func() { _, _ = server.Read(ctx, buffer, 0) },
		func() { _, _ = server.Read(ctx, buffer, 0) }, // there is nothing
		func() { _, _ = server.Write(ctx, make([]byte, 20), 0) },
		func() { _, _ = a.Read(ctx, buffer, 0) },
		func() { _, _ = a.Write(ctx, make([]byte, 1), 0) },
		func() { server.Close() }, // with unread data: a reset
		func() { a.Close() },
	} {
		clock.now++
		step()
	}
	want := []requests.Request{{Connection: 0, Arrived: 3, Read: 6, Replied: 9, Ended: 9, Received: 10, Sent: 20}, {Connection: 0, Arrived: 11, Read: -1, Replied: -1, Ended: -1, Received: 1}}
	if !slices.Equal(log.Requests, want) {
		t.Errorf("%+v, not %+v", log.Requests, want)
	}
	if len(log.Connections) != 1 {
		t.Fatalf("%d connections", len(log.Connections))
	}
	if c := log.Connections[0]; c.Port != 80 || c.ClientPID != 7 || c.Client != "client" || c.Opened != 1 || c.Accepted != 4 || c.Closed != 12 {
		t.Errorf("%+v", c)
	}
}
