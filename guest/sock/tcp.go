package sock

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// The functions of this file follow net/ipv4/af_inet.c and net/ipv4/tcp.c. Data reach
// the other side at once, so that the only states of TCP that occur are those in which
// a side waits for the other, and TIME_WAIT.

// Sizes of Linux's TCP over the loopback interface.
const (
	// connectedSend is the size to which SO_SNDBUF grows with a connection.
	connectedSend = 2626560
	// segment is the maximum size of a message in the receive queue.
	segment = 65483
)

// phase is the socket layer's state of a TCP connection (socket_state of Linux); it
// differs from the protocol's state until connect is called again.
type phase uint8

const (
	unconnected phase = iota
	underWay
	established
	over // shut down after the connection failed
)

// tcpListen makes sure that the socket has a port that no other socket listens on.
func (s *Socket) tcpListen(*vfs.Ctx) unix.Errno {
	if !s.reserved {
		return s.reserveEphemeral()
	}
	taken := func(o *Socket) bool {
		return o != s && o.state == listening && overlaps(s, o) && !(s.opts.reusePort && o.opts.reusePort)
	}
	if s.portsOfProtocol().socketAt(s.local.Port, taken) != nil {
		return unix.EADDRINUSE
	}
	return 0
}

// tcpConnect connects, or reports how an earlier call ended. EINPROGRESS, EALREADY:
// that is not known yet.
func (s *Socket) tcpConnect(c *vfs.Ctx, a Addr, nonblock bool) unix.Errno {
	if a.Family == unix.AF_UNSPEC {
		s.tcpDisconnect()
		s.phase = unconnected
		return 0
	}
	switch s.phase {
	case established:
		return unix.EISCONN
	case over:
		return unix.EINVAL
	case underWay:
		if s.state == connecting {
			return unix.EALREADY
		}
	default:
		if s.state != idle {
			return unix.EISCONN
		}
		if errno := s.startConnection(c, a); errno != 0 {
			return errno
		}
		s.phase = underWay
		if s.state == connecting || nonblock {
			return unix.EINPROGRESS
		}
	}
	if s.state == idle {
		errno := s.takeError()
		if errno == 0 {
			errno = unix.ECONNABORTED
		}
		s.phase = unconnected
		s.tcpDisconnect()
		return errno
	}
	s.phase = established
	return 0
}

// GiveUp ends the attempt of a TCP socket to connect.
func (s *Socket) GiveUp() {
	s.phase = unconnected
	s.tcpDisconnect()
	s.err = 0
}

// startConnection finds the listener and connects to it as soon as it has room. If
// there is no listener, the caller finds a reset.
func (s *Socket) startConnection(c *vfs.Ctx, a Addr) unix.Errno {
	if errno := a.checkInet(s.family); errno != 0 {
		return errno
	}
	if errno := s.checkRoute(&a); errno != 0 {
		return errno
	}
	if !s.reserved {
		s.local.Port = 0
	}
	if errno := s.reserveEphemeral(); errno != 0 {
		return errno
	}
	s.local.IP = s.sourceAddress(a.IP)
	s.remote = a
	s.remote.Family = uint16(s.family)
	s.owner = credOf(c)
	if s.hasDuplicate() {
		s.remote.Port = 0
		s.forgetAddress()
		return unix.EADDRNOTAVAIL
	}
	s.state, s.err, s.done = connecting, 0, false
	l := s.portsOfProtocol().receiverOf(s.local, s.remote, func(o *Socket) bool { return o.state == listening })
	if l == nil && s.remote.IP == s.local.IP && s.remote.Port == s.local.Port {
		s.state, s.peer = connected, s // a simultaneous open with itself
		if s.shut&shutWrite != 0 {
			s.sendEnd()
		}
		return 0
	}
	if l == nil || isIPv4(s.remote.IP) != isIPv4(s.local.IP) {
		s.receiveReset()
		return 0
	}
	s.pending = l
	l.waiting = append(l.waiting, s)
	l.admitWaiting()
	return 0
}

// admitWaiting connects waiting sockets, as far as the backlog has room.
func (s *Socket) admitWaiting() {
	for len(s.waiting) > 0 && len(s.accepts)+len(s.heldConnections) <= s.backlog {
		o := s.waiting[0]
		s.waiting = s.waiting[1:]
		n := &Socket{
			stack: s.stack, family: s.family, kind: s.kind, protocol: s.protocol,
			queue: &wait.Queue{}, space: &wait.Queue{}, owner: s.owner, peerOwner: noPeer,
			local: o.remote, remote: o.local, opts: s.opts.inheritedBy(), phase: established,
			addrLocked: s.addrLocked, service: s.service,
		}
		n.local.Family, n.remote.Family = uint16(s.family), uint16(s.family)
		n.portsOfProtocol().addEnd(n)
		n.peer, o.peer, o.pending = o, n, nil
		for _, x := range []*Socket{n, o} {
			x.state = connected
			if !x.opts.sendLocked {
				x.opts.sendBuffer = connectedSend
			}
		}
		s.stack.noteOpen(n, o)
		if n.shut = s.shut; n.shut&shutWrite != 0 {
			n.sendEnd()
		}
		if s.isGatedFor(o) {
			s.stack.gate.holdConnection(s, n, o)
		} else {
			s.accepts = append(s.accepts, n)
			s.queue.Wake(unix.EPOLLIN | unix.EPOLLRDNORM)
		}
		o.queue.Wake(unix.EPOLLOUT | unix.EPOLLWRNORM)
	}
}

// endConnection ends a connection (tcp_done): both halves are shut, and a port that the
// program did not choose is free again.
func (s *Socket) endConnection() {
	s.noteEnd()
	s.state = idle
	s.shut = shutBoth
	if !s.portLocked || s.closed {
		s.releasePort()
	}
	s.queue.Wake(wait.AnyEvent)
}

// receiveReset handles a reset from the other side (tcp_reset).
func (s *Socket) receiveReset() {
	if s.isHeld() {
		s.gated.holdReset()
		return
	}
	switch s.state {
	case idle:
		return
	case connecting:
		s.err = unix.ECONNREFUSED
	case closeWait:
		s.err = unix.EPIPE
	default:
		s.err = unix.ECONNRESET
	}
	s.endConnection()
}

// isConnected reports whether there is a connection.
func (s *Socket) isConnected() bool {
	return s.state == connected || s.state == closeWait || s.state == finWait
}

// sendEnd informs the other side that all data was sent. If that has done the same
// before, the connection has ended.
func (s *Socket) sendEnd() {
	o := s.peer
	switch {
	case s.gated != nil && s.state == connected:
		s.sendEndThroughGate()
	case o.isHeld():
		if s.state == closeWait {
			s.endConnection()
		} else {
			s.state = finWait
		}
		o.gated.holdEnd()
	case o == s:
		s.done = true
		s.stack.startTimeWait(s)
		s.endConnection()
	case s.state == connected:
		s.state = finWait
		o.state = closeWait
		o.done = true
		o.shut |= shutRead
		o.queue.Wake(unix.EPOLLIN | unix.EPOLLRDNORM | unix.EPOLLRDHUP)
	case s.state == closeWait:
		s.endConnection()
		o.done = true
		s.stack.startTimeWait(o)
		o.endConnection()
	}
}

// receiveRoom is the number of bytes that a connection accepts before any is read.
func (s *Socket) receiveRoom() int {
	o := s.peer
	switch {
	case s.stack.isExhausted():
		return max(0, pageSize-o.recvBytes)
	case s.stack.isShort():
		return max(0, segment-o.recvBytes)
	}
	if s.gated != nil {
		return unboundedRoom
	}
	return s.opts.sendBuffer + o.opts.recvBuffer - o.recvBytes - o.gated.heldBytes()
}

// isWriteable reports whether the socket can be polled writable: a third is free
// (sk_stream_is_writeable).
func (s *Socket) isWriteable() bool {
	if !s.isConnected() {
		return true
	}
	if s.stack.isShort() || s.gated != nil {
		return s.receiveRoom() > 0
	}
	return s.receiveRoom()*3 >= s.opts.sendBuffer+s.peer.opts.recvBuffer
}

// tcpWrite sends as much as fits.
func (s *Socket) tcpWrite(out *Outgoing) (int, unix.Errno) {
	if s.state == connecting && s.err == 0 && s.shut&shutWrite == 0 {
		return 0, unix.EAGAIN
	}
	if s.state != connected && s.state != closeWait || s.err != 0 || s.shut&shutWrite != 0 {
		if errno := s.takeError(); errno != 0 {
			return 0, errno
		}
		return 0, unix.EPIPE
	}
	o := s.peer
	switch {
	case s.gated != nil:
		s.gated.noteWritten(out.Data)
		if !o.isConnected() || o.closed {
			s.gated.holdReset()
			return len(out.Data), 0
		}
	case o.isHeld():
		n := min(len(out.Data), s.receiveRoom())
		if n <= 0 && len(out.Data) > 0 {
			return 0, unix.EAGAIN
		}
		o.gated.holdBytes(out.Data[:n])
		if n > 0 {
			s.noteSent(n)
		}
		return n, 0
	}
	if o.state == finWait && o.shut&shutRead != 0 && len(out.Data) > 0 {
		// The data will not be read: the answer is a reset (RFC 1122, 4.2.2.13).
		o.receiveReset()
		s.receiveReset()
		return len(out.Data), 0
	}
	n := min(len(out.Data), s.receiveRoom())
	if n <= 0 && len(out.Data) > 0 {
		return 0, unix.EAGAIN
	}
	if out.OOB && n > 0 {
		o.setMark(n, out.Data[n-1])
	}
	for rest := out.Data[:n]; len(rest) > 0; {
		part := rest[:min(len(rest), segment)]
		rest = rest[len(part):]
		o.appendBytes(part)
	}
	if n > 0 {
		s.noteSent(n)
		o.queue.Wake(unix.EPOLLIN | unix.EPOLLRDNORM | unix.EPOLLRDBAND | unix.EPOLLPRI)
	}
	return n, 0
}

// appendBytes adds bytes to the receive queue, to its last message if they fit.
func (s *Socket) appendBytes(b []byte) {
	s.addReceived(len(b))
	if n := len(s.recv); n > 0 && len(s.recv[n-1].data)+len(b) <= segment {
		s.recv[n-1].data = append(s.recv[n-1].data, b...)
		return
	}
	s.recv = append(s.recv, &message{data: append([]byte(nil), b...)})
}

// tcpRead receives, in the order of checks of tcp_recvmsg.
func (s *Socket) tcpRead(in *Incoming) unix.Errno {
	switch {
	case s.state == listening:
		return unix.ENOTCONN
	case in.OOB:
		return s.readUrgent(in)
	}
	if len(s.recv) > 0 {
		full := s.peer != nil && !s.peer.isWriteable()
		errno := s.readTCP(in)
		if s.gated != nil && !in.Peek {
			s.gated.noteRead(in.N)
		}
		if full && s.peer.isWriteable() {
			s.peer.queue.Wake(unix.EPOLLOUT | unix.EPOLLWRNORM)
		}
		if in.N > 0 && !in.Peek {
			s.noteRead()
		}
		if errno != unix.EAGAIN {
			return errno
		}
	}
	if s.done {
		return 0
	}
	if errno := s.takeError(); errno != 0 {
		return errno
	}
	switch {
	case s.shut&shutRead != 0:
		return 0
	case s.state == idle:
		return unix.ENOTCONN
	}
	return unix.EAGAIN
}

// tcpShutdown shuts halves of a connection (inet_shutdown).
func (s *Socket) tcpShutdown(how int) unix.Errno {
	if s.phase == underWay {
		s.phase = over
		if s.isConnected() {
			s.phase = established
		}
	}
	var errno unix.Errno
	switch s.state {
	case listening, connecting:
		if s.state == connecting || how&shutRead != 0 {
			s.tcpDisconnect()
			s.phase = unconnected
		}
	case idle:
		errno = unix.ENOTCONN
		s.shut |= how
	default:
		s.shut |= how
		if how&shutWrite != 0 {
			s.sendEnd()
		}
	}
	s.queue.Wake(wait.AnyEvent)
	return errno
}

// stopListening refuses all connections that are not accepted yet.
func (s *Socket) stopListening() {
	s.stack.listens++
	for _, n := range s.accepts {
		n.closed = true
		n.sendReset()
		n.endConnection()
		n.purgeReceived()
	}
	s.accepts = nil
	s.dropHeldConnections()
	for _, o := range s.waiting {
		o.pending = nil
		o.receiveReset()
	}
	s.waiting = nil
}

// sendReset resets the other side of the connection.
func (s *Socket) sendReset() {
	if s.isConnected() {
		s.peer.receiveReset()
	}
}

// leaveBacklog ends a socket's waiting for a listener's room.
func (s *Socket) leaveBacklog() {
	l := s.pending
	if l == nil {
		return
	}
	s.pending = nil
	for i, o := range l.waiting {
		if o == s {
			l.waiting = append(l.waiting[:i:i], l.waiting[i+1:]...)
			return
		}
	}
}

// tcpDisconnect restores the socket's state before connect or listen (tcp_disconnect).
func (s *Socket) tcpDisconnect() {
	switch {
	case s.state == listening:
		s.stopListening()
	case s.state == connecting:
		s.leaveBacklog()
		s.err = unix.ECONNRESET
	case s.isConnected():
		s.sendReset()
		s.err = unix.ECONNRESET
	}
	if s.state != idle {
		s.endConnection()
	}
	s.purgeReceived()
	s.remote.Port = 0
	s.forgetAddress()
	s.shut, s.done, s.peer, s.urgent = 0, false, nil, urgent{}
}

// tcpClose ends a TCP socket. Unread data, or a linger time of zero, resets the
// connection.
func (s *Socket) tcpClose() {
	s.noteEnd()
	s.closed = true
	if s.gated != nil {
		defer s.gated.close()
	}
	switch {
	case s.state == listening:
		s.stopListening()
		s.endConnection()
	case s.state == connecting:
		s.leaveBacklog()
		s.endConnection()
	case !s.isConnected():
		s.endConnection()
	case s.recvBytes > 0 || s.opts.linger.Onoff != 0 && s.opts.linger.Linger == 0:
		s.sendReset()
		s.endConnection()
	default:
		s.shut = shutBoth
		s.until = s.stack.realTime() + timeWaitNS
		s.sendEnd()
	}
	s.purgeReceived()
}

// tcpReady is tcp_poll.
func (s *Socket) tcpReady() uint32 {
	var mask uint32
	if s.state == listening {
		if len(s.accepts) > 0 {
			mask = unix.EPOLLIN | unix.EPOLLRDNORM
		}
		return mask
	}
	if s.shut == shutBoth || s.state == idle {
		mask |= unix.EPOLLHUP
	}
	if s.shut&shutRead != 0 {
		mask |= unix.EPOLLIN | unix.EPOLLRDNORM | unix.EPOLLRDHUP
	}
	if s.state != connecting {
		if s.hasEnough() {
			mask |= unix.EPOLLIN | unix.EPOLLRDNORM
		}
		if s.urgent.state == urgentHere {
			mask |= unix.EPOLLPRI
		}
		if s.shut&shutWrite != 0 || s.isWriteable() {
			mask |= unix.EPOLLOUT | unix.EPOLLWRNORM
		}
	}
	if s.err != 0 {
		mask |= unix.EPOLLERR
	}
	return mask
}
