package sock

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// Sizes of Linux's TCP over the loopback interface.
const (
	// connectedSend is what SO_SNDBUF grows to with a connection.
	connectedSend = 2626560
	// segment is how much a message in the receive queue holds at most.
	segment = 65483
)

// tcpListen makes sure that the socket has a port that nobody listens on.
func (s *Socket) tcpListen(*vfs.Ctx) unix.Errno {
	if !s.reserved {
		return s.ephemeral()
	}
	for _, o := range s.ports().byPort[s.local.Port] {
		if o != s && o.state == listening && overlap(s, o) && !(s.opts.reusePort && o.opts.reusePort) {
			return unix.EADDRINUSE
		}
	}
	return 0
}

// tcpConnect connects, or tells how an earlier call ended.
func (s *Socket) tcpConnect(c *vfs.Ctx, a Addr, nonblock, again bool) unix.Errno {
	if a.Family == unix.AF_UNSPEC {
		s.tcpDisconnect()
		return 0
	}
	switch s.state {
	case connected:
		if s.announce {
			s.announce = false
			return 0
		}
		return unix.EISCONN
	case connecting:
		if again {
			return unix.EINPROGRESS
		}
		if nonblock {
			return unix.EALREADY
		}
		return unix.EINPROGRESS
	case listening:
		return unix.EISCONN
	}
	if s.announce { // the last attempt failed
		s.announce = false
		if errno := s.takeError(); errno != 0 {
			return errno
		}
		return unix.ECONNABORTED
	}
	if errno := s.destination(&a); errno != 0 {
		return errno
	}
	if errno := s.ephemeral(); errno != 0 {
		return errno
	}
	s.local.IP = s.source(a.IP)
	s.remote = a
	s.remote.Family = uint16(s.family)
	s.shut, s.fin, s.reset = 0, false, false
	if errno := s.dial(c); errno != 0 {
		if !nonblock {
			return errno
		}
		s.err, s.announce = errno, true
		s.shut = shutBoth
		return unix.EINPROGRESS
	}
	if s.state == connecting || nonblock {
		s.announce = true
		return unix.EINPROGRESS
	}
	return 0
}

// dial finds the listener and connects to it as soon as it has room.
func (s *Socket) dial(c *vfs.Ctx) unix.Errno {
	l := s.ports().receiver(s.local, s.remote, func(o *Socket) bool { return o.state == listening })
	if l == nil || is4(s.remote.IP) != is4(s.local.IP) {
		return unix.ECONNREFUSED
	}
	s.owner = credOf(c)
	s.state, s.pending = connecting, l
	l.waiting = append(l.waiting, s)
	l.admit()
	return 0
}

// admit connects those who wait, as far as the backlog has room.
func (s *Socket) admit() {
	for len(s.waiting) > 0 && len(s.accepts) <= s.backlog {
		o := s.waiting[0]
		s.waiting = s.waiting[1:]
		n := &Socket{
			stack: s.stack, family: s.family, kind: s.kind, protocol: s.protocol,
			queue: &wait.Queue{}, space: &wait.Queue{}, owner: s.owner, peerOwner: s.peerOwner,
			local: o.remote, remote: o.local, opts: s.opts.inherit(),
		}
		n.peerOwner = Cred{0, ^uint32(0), ^uint32(0)}
		n.local.Family, n.remote.Family = uint16(s.family), uint16(s.family)
		n.ports().add(n)
		n.peer, o.peer, o.pending = o, n, nil
		for _, x := range []*Socket{n, o} {
			x.state = connected
			if !x.opts.sendLocked {
				x.opts.sendBuffer = connectedSend
			}
		}
		s.accepts = append(s.accepts, n)
		s.queue.Wake(unix.EPOLLIN | unix.EPOLLRDNORM)
		o.queue.Wake(unix.EPOLLOUT | unix.EPOLLWRNORM)
	}
}

// room is how many bytes a connection takes before somebody reads.
func (s *Socket) room() int {
	return s.opts.sendBuffer + s.peer.opts.recvBuffer - s.peer.recvBytes
}

// spacious tells whether the socket can be polled writable: a third is free
// (sk_stream_is_writeable).
func (s *Socket) spacious() bool {
	if s.peer == nil || s.peer.closed {
		return true
	}
	return s.room()*3 >= s.opts.sendBuffer+s.peer.opts.recvBuffer
}

// tcpWrite sends as much as fits.
func (s *Socket) tcpWrite(out *Outgoing) (int, unix.Errno) {
	if out.OOB {
		return 0, unix.EOPNOTSUPP
	}
	if s.state == connecting {
		return 0, unix.EAGAIN
	}
	if errno := s.takeError(); errno != 0 {
		return 0, errno
	}
	o := s.peer
	switch {
	case s.state != connected || s.shut&shutWrite != 0:
		return 0, unix.EPIPE
	case o.closed:
		// Nobody is there: the answer is a reset.
		if s.fin {
			s.abort(unix.EPIPE)
		} else {
			s.abort(unix.ECONNRESET)
		}
		return len(out.Data), 0
	}
	n := min(len(out.Data), s.room())
	if n <= 0 && len(out.Data) > 0 {
		return 0, unix.EAGAIN
	}
	for rest := out.Data[:n]; len(rest) > 0; {
		part := rest[:min(len(rest), segment)]
		rest = rest[len(part):]
		o.append(part)
	}
	if n > 0 {
		o.queue.Wake(unix.EPOLLIN | unix.EPOLLRDNORM | unix.EPOLLRDBAND)
	}
	return n, 0
}

// append adds bytes to the receive queue, to its last message if they fit.
func (s *Socket) append(b []byte) {
	s.recvBytes += len(b)
	if n := len(s.recv); n > 0 && len(s.recv[n-1].data)+len(b) <= segment {
		s.recv[n-1].data = append(s.recv[n-1].data, b...)
		return
	}
	s.recv = append(s.recv, &message{data: append([]byte(nil), b...)})
}

// tcpRead receives.
func (s *Socket) tcpRead(in *Incoming) unix.Errno {
	switch {
	case in.OOB:
		return unix.EINVAL
	case s.state == listening:
		return unix.ENOTCONN
	}
	before := s.peer != nil && !s.peer.spacious()
	if len(s.recv) > 0 {
		if errno := s.readStream(in); errno != unix.EAGAIN {
			if before && s.peer.spacious() {
				s.peer.queue.Wake(unix.EPOLLOUT | unix.EPOLLWRNORM)
			}
			return errno
		}
	}
	if s.fin {
		return 0
	}
	if errno := s.takeError(); errno != 0 {
		return errno
	}
	switch {
	case s.state == connecting:
		return unix.EAGAIN
	case s.shut&shutRead != 0:
		return 0
	case s.state == idle:
		return unix.ENOTCONN
	}
	return unix.EAGAIN
}

// abort ends a connection that was reset.
func (s *Socket) abort(errno unix.Errno) {
	s.err = errno
	s.reset = true
	s.shut = shutBoth
	s.state = ended
	s.release()
	s.queue.Wake(wait.AnyEvent)
}

// tcpShutdown shuts halves of a connection.
func (s *Socket) tcpShutdown(how int) unix.Errno {
	switch s.state {
	case listening:
		if how&shutRead != 0 {
			s.stopListening()
			s.state = idle
			s.queue.Wake(wait.AnyEvent)
		}
		return 0
	case idle, ended:
		s.shut |= how // as inet_shutdown does
		s.queue.Wake(wait.AnyEvent)
		return unix.ENOTCONN
	}
	s.shut |= how
	if how&shutWrite != 0 && s.state == connected {
		s.finish()
	}
	s.queue.Wake(wait.AnyEvent)
	return 0
}

// finish tells the other side that all is sent. Once both sides are done the
// connection is over.
func (s *Socket) finish() {
	o := s.peer
	if !o.closed && !o.fin && o.state == connected {
		o.fin = true
		o.shut |= shutRead
		o.queue.Wake(wait.AnyEvent)
	}
	if s.fin && s.shut&shutWrite != 0 {
		s.state = ended
		o.over()
	}
}

// over ends a connection both of whose sides have sent all.
func (s *Socket) over() {
	if s.fin && s.shut&shutWrite != 0 && s.state == connected {
		s.state = ended
		s.queue.Wake(wait.AnyEvent)
	}
}

// stopListening refuses everybody who is not accepted yet.
func (s *Socket) stopListening() {
	for _, n := range s.accepts {
		n.closed = true
		n.release()
		if n.peer.state == connected {
			n.peer.abort(unix.ECONNRESET)
		}
	}
	s.accepts = nil
	for _, o := range s.waiting {
		o.state, o.pending = idle, nil
		o.fail(unix.ECONNREFUSED)
	}
	s.waiting = nil
}

// unwait ends that a socket waits for a listener's room.
func (s *Socket) unwait() {
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

// tcpDisconnect makes the socket as it was before connect.
func (s *Socket) tcpDisconnect() {
	switch s.state {
	case listening:
		s.stopListening()
	case connecting:
		s.unwait()
	case connected:
		s.peer.hangUp()
	}
	s.purge()
	s.release()
	s.state, s.peer, s.announce, s.err = idle, nil, false, 0
	s.shut, s.fin, s.reset = 0, false, false
	s.local.Port = 0
	s.remote = Addr{}
}

// hangUp is what a reset from the other side does.
func (s *Socket) hangUp() {
	if s.closed || s.state != connected {
		return
	}
	if s.fin {
		s.abort(unix.EPIPE)
	} else {
		s.abort(unix.ECONNRESET)
	}
}

// tcpClose ends a TCP socket. What was received and not read, or a linger time
// of zero, resets the connection.
func (s *Socket) tcpClose() {
	s.closed = true
	switch s.state {
	case listening:
		s.stopListening()
	case connecting:
		s.unwait()
	case connected, ended:
		o := s.peer
		if s.recvBytes > 0 || s.opts.linger.Onoff != 0 && s.opts.linger.Linger == 0 {
			o.hangUp()
		} else if s.state == connected && s.shut&shutWrite == 0 {
			s.shut = shutBoth
			s.finish()
		}
		// Somebody who waits for room finds that nobody is there.
		o.queue.Wake(unix.EPOLLOUT | unix.EPOLLWRNORM)
	}
	s.release()
	s.purge()
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
	if s.shut == shutBoth || s.state == idle || s.state == ended {
		mask |= unix.EPOLLHUP
	}
	if s.shut&shutRead != 0 {
		mask |= unix.EPOLLIN | unix.EPOLLRDNORM | unix.EPOLLRDHUP
	}
	if s.state != connecting {
		if s.recvBytes > 0 {
			mask |= unix.EPOLLIN | unix.EPOLLRDNORM
		}
		if s.shut&shutWrite != 0 || s.spacious() {
			mask |= unix.EPOLLOUT | unix.EPOLLWRNORM
		}
	}
	if s.err != 0 {
		mask |= unix.EPOLLERR
	}
	return mask
}
