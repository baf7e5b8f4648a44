package sock

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
)

// A Client is the end of a TCP connection that a program outside of the guest has made to a
// port of the guest: a socket of the guest's loopback interface that no process has.
type Client struct{ socket *Socket }

// listenerFromOutside returns the address at which a client from outside finds a listener of a
// port: 127.0.0.1, or ::1 if only that has one.
func (st *Stack) listenerFromOutside(port uint16) (to Addr, found bool) {
	for _, to := range []Addr{{Family: unix.AF_INET, IP: loopback4, Port: port}, {Family: unix.AF_INET6, IP: loopback6, Port: port}} {
		if st.tcp.receiverOf(to, to, func(o *Socket) bool { return o.state == listening }) != nil {
			return to, true
		}
	}
	return Addr{Family: unix.AF_INET, IP: loopback4, Port: port}, false
}

// ListensFor reports whether a socket listens for clients from outside on a TCP port.
func (st *Stack) ListensFor(port uint16) bool {
	_, found := st.listenerFromOutside(port)
	return found
}

// ListenChanges is how often a socket has begun or ceased to listen.
func (st *Stack) ListenChanges() uint64 { return st.listens }

// ConnectFromOutside connects a new client to a TCP port of the guest. The connection is made as
// soon as the listener has room; if there is no listener it has failed.
func (st *Stack) ConnectFromOutside(port uint16) *Client {
	c := &vfs.Ctx{Cred: vfs.NewCred(overflowID, overflowID)}
	to, _ := st.listenerFromOutside(port)
	s, errno := st.Socket(c, int(to.Family), unix.SOCK_STREAM, unix.IPPROTO_TCP)
	if errno != 0 {
		panic(fmt.Sprintf("bug: a client's socket cannot be made: %v", errno))
	}
	s.outside = true
	// An urgent byte of the guest is sent on like others.
	s.opts.values = map[option]int32{{unix.SOL_SOCKET, unix.SO_OOBINLINE}: 1}
	if errno := s.startConnection(c, to); errno != 0 {
		s.err = errno
	}
	return &Client{s}
}

// Room is the number of bytes that the guest accepts now.
func (c *Client) Room() int {
	if s := c.socket; s.isConnected() && s.shut&shutWrite == 0 {
		return max(0, s.receiveRoom())
	}
	return 0
}

// Send sends bytes, no more than Room. If the connection has ended they are lost.
func (c *Client) Send(b []byte) {
	if n, errno := c.socket.tcpWrite(&Outgoing{Data: b}); errno == 0 && n != len(b) {
		panic(fmt.Sprintf("bug: the guest accepts %d of %d bytes", n, len(b)))
	}
}

// End informs the guest that the client has sent all.
func (c *Client) End() {
	if c.socket.isConnected() {
		_ = c.socket.tcpShutdown(shutWrite) // it is connected
	}
}

// Reset ends the connection at once. What the guest has sent is lost.
func (c *Client) Reset() {
	c.socket.tcpDisconnect()
	c.socket.err = unix.ECONNRESET
}

// Pending is the number of bytes that the guest has sent and Take has not returned.
func (c *Client) Pending() int { return c.socket.recvBytes }

// Peek copies the first bytes that are pending, and returns their number.
func (c *Client) Peek(b []byte) int {
	in := Incoming{Data: b, Peek: true}
	_ = c.socket.readTCP(&in) // nothing is pending
	return in.N
}

// Take removes and returns bytes that are pending, which gives the guest room for as many more.
func (c *Client) Take(n int) []byte {
	b := make([]byte, n)
	for got := 0; got < n; {
		in := Incoming{Data: b[got:]}
		if errno := c.socket.tcpRead(&in); errno != 0 || in.N == 0 {
			panic(fmt.Sprintf("bug: %d bytes are taken and %d are there", n, got))
		}
		got += in.N
	}
	return b
}

// HasEnded reports whether the guest has sent all.
func (c *Client) HasEnded() bool { return c.socket.done }

// HasFailed reports whether the connection was refused or reset.
func (c *Client) HasFailed() bool { return c.socket.err != 0 }

// IsOver reports whether nothing more can happen on the connection.
func (c *Client) IsOver() bool {
	s := c.socket
	return c.Pending() == 0 && (c.HasFailed() || s.done && s.shut&shutWrite != 0)
}
