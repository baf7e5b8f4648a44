package sock_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/sock"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// listenerAt makes a socket that listens on an address.
func listenerAt(t *testing.T, st *sock.Stack, family int, ip [16]byte, port uint16, backlog int) *sock.Socket {
	t.Helper()
	c := &vfs.Ctx{Cred: vfs.NewCred(0, 0)}
	s, errno := st.Socket(c, family, unix.SOCK_STREAM, 0)
	if errno == 0 {
		errno = s.Bind(c, sock.Addr{Family: uint16(family), IP: ip, Port: port})
	}
	if errno == 0 {
		errno = s.Listen(c, backlog)
	}
	if errno != 0 {
		t.Fatal(errno)
	}
	return s
}

var loopback4, loopback6 = [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}, [16]byte{15: 1}

// TestClientsFromOutside takes a client through the states of its connection.
func TestClientsFromOutside(t *testing.T) {
	st := sock.New(nil, nil)
	c := &vfs.Ctx{Cred: vfs.NewCred(0, 0)}
	if st.ListensFor(80) || !st.ConnectFromOutside(80).HasFailed() {
		t.Error("a port without a listener has one")
	}
	l := listenerAt(t, st, unix.AF_INET, loopback4, 80, 0)
	changes := st.ListenChanges()
	first, second := st.ConnectFromOutside(80), st.ConnectFromOutside(80)
	if !st.ListensFor(80) || first.Room() == 0 || second.Room() != 0 || second.HasFailed() {
		t.Errorf("room %d for the first client, %d for one that waits for the listener", first.Room(), second.Room())
	}
	s, errno := l.Accept(true)
	if errno != 0 || second.Room() == 0 {
		t.Errorf("accept: %v; room %d", errno, second.Room())
	}
	first.Send([]byte("request"))
	b := make([]byte, 10)
	if n, errno := s.Read(c, b, 0); string(b[:n]) != "request" || errno != 0 {
		t.Errorf("%q, %v", b[:n], errno)
	}
	room := 0
	for errno = 0; errno == 0; {
		var n int
		n, errno = s.Write(c, make([]byte, 1<<16), 0)
		room += n
	}
	if errno != unix.EAGAIN || first.Pending() != room || room > 8<<20 {
		t.Errorf("%v after %d bytes, %d are pending", errno, room, first.Pending())
	}
	first.Take(room)
	if s.Ready()&unix.EPOLLOUT == 0 {
		t.Error("there is no room after the client has taken all")
	}
	s.Close()
	if !first.HasEnded() || first.IsOver() {
		t.Errorf("the guest has closed: ended %v, over %v", first.HasEnded(), first.IsOver())
	}
	first.End()
	if !first.IsOver() || first.HasFailed() {
		t.Errorf("both have ended: over %v, failed %v", first.IsOver(), first.HasFailed())
	}
	if s, errno = l.Accept(true); errno != 0 {
		t.Fatal(errno)
	}
	second.Reset()
	if _, errno := s.Read(c, b, 0); errno != unix.ECONNRESET || !second.IsOver() {
		t.Errorf("after a reset: %v, over %v", errno, second.IsOver())
	}
	third := st.ConnectFromOutside(80)
	l.Close()
	if !third.HasFailed() || st.ListensFor(80) || st.ListenChanges() == changes {
		t.Error("a client is connected to a listener that is closed")
	}
}

// TestClientsFromOutsideByIPv6: a listener of ::1 alone is found.
func TestClientsFromOutsideByIPv6(t *testing.T) {
	st := sock.New(nil, nil)
	listenerAt(t, st, unix.AF_INET6, loopback6, 80, 1)
	if !st.ListensFor(80) || st.ConnectFromOutside(80).HasFailed() {
		t.Error("a listener of ::1 is not found")
	}
}
