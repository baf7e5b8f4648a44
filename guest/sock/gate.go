package sock

import (
	"slices"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// A Gate stands before the TCP sockets of the kernel's service: connections that other processes
// make to its listeners, and what they send on them, reach the service only when the driver of
// the machine admits it (Gated.Admit). Until then it counts as on its way: a client may send as
// much as it could to a socket that is not read.
//
// In the other direction the gate is open. What the service can send does not depend on when a
// client reads: there is always room for a reply, unless the kernel's memory is short. If a client
// has closed its socket, what it is sent is dropped, and the reset that answers is held back like
// other input.
//
// Urgent bytes pass the gate as ordinary ones.
type Gate struct {
	connections []*Gated // that the service has not closed, in the order in which they were made
	last        uint64
	ordinals    map[int32]uint64 // of clients' processes
	changes     uint64
	latest      *Gated // that the service has read
	passed      uint64
}

// Gated is a connection through the gate, as the service's side has it.
type Gated struct {
	// Number counts the connections from 1, and Port is the port of the listener.
	Number uint64
	Port   uint16
	// Client is the id of the process that has made the connection, and Ordinal counts its
	// connections from 1: unlike Number, they do not depend on how fast clients run.
	Client  int32
	Ordinal uint64
	// Accepted and Closed report what the service has done with the connection. A reset ends it, too.
	Accepted, Closed bool
	// Read and Written count the bytes that the service has read and written.
	Read, Written uint64

	gate     *Gate
	socket   *Socket
	listener *Socket // that holds the connection; nil if it was admitted
	bytes    []byte
	ended    bool
	reset    bool
	admits   bool
	replies  *replyHash
	input    *replyHash
}

// replyHash is a hash of bytes in one direction.
type replyHash struct{ xxh3.Hasher }

// CopyForSnapshot copies the hash so far.
func (h *replyHash) CopyForSnapshot(*deepcopy.Copier) any {
	n := *h
	return &n
}

// Held is the input of a connection that the gate holds: that the connection was made, bytes,
// that the client has sent all, and that it has reset the connection.
type Held struct {
	Connection bool
	Bytes      int
	End, Reset bool
}

// IsEmpty reports whether there is none.
func (h Held) IsEmpty() bool { return h == Held{} }

// unboundedRoom is the number of bytes that the service can always send.
const unboundedRoom = 1 << 30

// OpenGate sets up a gate for all connections that are made from now on.
func (st *Stack) OpenGate() *Gate {
	st.gate = &Gate{ordinals: map[int32]uint64{}}
	return st.gate
}

// Gate returns the gate, or nil.
func (st *Stack) Gate() *Gate { return st.gate }

// Connections lists the connections that the service has not closed, in the order in which they
// were made. The list is valid until the service runs.
func (g *Gate) Connections() []*Gated { return g.connections }

// LatestRead is the connection that the service has read last, or nil.
func (g *Gate) LatestRead() *Gated { return g.latest }

// Changes counts the inputs that the gate was given.
func (g *Gate) Changes() uint64 { return g.changes }

// Passed counts the data that other processes have sent to the service past the gate: connections to its UNIX sockets, and datagrams of
// UNIX sockets and UDP.
func (g *Gate) Passed() uint64 { return g.passed }

// notePassage counts a connection or a datagram to another socket, if it passes the gate.
func (s *Socket) notePassage(to *Socket) {
	if g := s.stack.gate; g != nil && to.service && !s.service {
		g.passed++
	}
}

// isGatedFor reports whether a connection of a client to a listener passes the gate.
func (s *Socket) isGatedFor(client *Socket) bool {
	return s.stack.gate != nil && s.service && !client.service
}

// isHeld reports whether what is sent to a socket is held by the gate.
func (s *Socket) isHeld() bool { return s != nil && s.gated != nil && !s.closed && !s.gated.admits }

// holdConnection holds a new connection.
func (g *Gate) holdConnection(listener, n, client *Socket) {
	g.last++
	pid := client.owner.PID
	g.ordinals[pid]++
	x := &Gated{
		Number: g.last, Port: listener.local.Port, Client: pid, Ordinal: g.ordinals[pid], gate: g, socket: n, listener: listener,
		replies: &replyHash{}, input: &replyHash{},
	}
	n.gated = x
	listener.heldConnections = append(listener.heldConnections, n)
	g.connections = append(g.connections, x)
	g.changes++
}

func (x *Gated) heldBytes() int {
	if x == nil {
		return 0
	}
	return len(x.bytes)
}

// charge counts held bytes as data of receive queues.
func (x *Gated) charge(n int) {
	before := x.socket.recvBytes
	x.socket.addReceived(n)
	x.socket.recvBytes = before
}

func (x *Gated) holdBytes(b []byte) {
	x.bytes = append(x.bytes, b...)
	x.charge(len(b))
	_, _ = x.input.Write(b)
	x.gate.changes++
}

func (x *Gated) holdEnd() {
	x.ended = true
	x.gate.changes++
}

func (x *Gated) holdReset() {
	if !x.reset {
		x.reset = true
		x.gate.changes++
	}
}

// Held returns the input that is held.
func (x *Gated) Held() Held { return Held{x.listener != nil, len(x.bytes), x.ended, x.reset} }

// Digests return the hashes of all bytes that were sent to the service, admitted or not, and of
// all that it has sent.
func (x *Gated) Digests() (input, replies uint64) { return x.input.Sum64(), x.replies.Sum64() }

// HeldBytes are the bytes that are held. They are valid until the connection is admitted.
func (x *Gated) HeldBytes() []byte { return x.bytes }

// Unread is the number of bytes that were admitted and that the service has not read.
func (x *Gated) Unread() int { return x.socket.recvBytes }

// Admit lets the held input reach the service.
func (x *Gated) Admit() {
	s := x.socket
	x.admits = true
	defer func() { x.admits = false }()
	if l := x.listener; l != nil {
		x.listener = nil
		l.heldConnections = slices.DeleteFunc(l.heldConnections, func(n *Socket) bool { return n == s })
		l.accepts = append(l.accepts, s)
		l.queue.Wake(unix.EPOLLIN | unix.EPOLLRDNORM)
	}
	if n := len(x.bytes); n > 0 {
		b := x.bytes
		x.bytes = nil
		x.charge(-n)
		if s.isConnected() {
			for rest := b; len(rest) > 0; {
				part := rest[:min(len(rest), segment)]
				rest = rest[len(part):]
				s.appendBytes(part)
			}
			s.queue.Wake(unix.EPOLLIN | unix.EPOLLRDNORM | unix.EPOLLRDBAND | unix.EPOLLPRI)
		}
	}
	if x.ended {
		x.ended = false
		x.deliverEnd()
	}
	if x.reset {
		x.reset = false
		s.receiveReset()
		x.forget()
	}
}

// deliverEnd informs the service's side that the client has sent all.
func (x *Gated) deliverEnd() {
	s := x.socket
	switch s.state {
	case connected:
		s.state, s.done = closeWait, true
		s.shut |= shutRead
		s.queue.Wake(unix.EPOLLIN | unix.EPOLLRDNORM | unix.EPOLLRDHUP)
	case finWait:
		s.done = true
		s.stack.startTimeWait(s)
		s.endConnection()
	}
}

// sendEndThroughGate is sendEnd of the service's side, which does not know yet whether the client
// has ended its half.
func (s *Socket) sendEndThroughGate() {
	o := s.peer
	s.state = finWait
	switch o.state {
	case connected:
		o.state = closeWait
		o.done = true
		o.shut |= shutRead
		o.queue.Wake(unix.EPOLLIN | unix.EPOLLRDNORM | unix.EPOLLRDHUP)
	case finWait:
		o.done = true
		o.endConnection()
	}
}

func (x *Gated) noteRead(n int) {
	x.Read += uint64(max(n, 0))
	x.gate.latest = x
}

func (x *Gated) noteWritten(b []byte) {
	x.Written += uint64(len(b))
	x.gate.changes++
	_, _ = x.replies.Write(b)
}

// close ends the gate's work for a connection that the service has closed: no process can
// observe any more when its input arrives. Bytes that arrive at a closed socket are answered by a
// reset.
func (x *Gated) close() {
	unread := len(x.bytes) > 0
	if unread && x.socket.isConnected() {
		x.socket.sendReset()
		x.socket.endConnection()
	}
	x.Admit()
	x.forget()
}

// forget removes the connection from the list.
func (x *Gated) forget() {
	x.Closed = true
	x.gate.changes++
	x.gate.connections = slices.DeleteFunc(x.gate.connections, func(o *Gated) bool { return o == x })
}

// dropHeldConnections resets the connections to a listener that the gate holds.
func (s *Socket) dropHeldConnections() {
	for _, n := range s.heldConnections {
		n.closed = true
		n.gated.charge(-len(n.gated.bytes))
		n.gated.bytes, n.gated.listener = nil, nil
		n.sendReset()
		n.endConnection()
		n.gated.forget()
	}
	s.heldConnections = nil
}
