package sock

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// datagramQueue is net.unix.max_dgram_qlen, the maximum number of queued datagrams from
// senders that are not the receiver's peer.
const datagramQueue = 10

// unixBind gives a UNIX socket a name.
func (s *Socket) unixBind(c *vfs.Ctx, a Addr) unix.Errno {
	switch {
	case a.Family != unix.AF_UNIX:
		return unix.EINVAL
	case a.Name == "":
		return s.autobindName()
	case a.Name[0] == 0:
		if s.local.Name != "" {
			return unix.EINVAL
		}
		if s.stack.abstract[s.abstractNameOf(a.Name)] != nil {
			return unix.EADDRINUSE
		}
		s.stack.abstract[s.abstractNameOf(a.Name)] = s
	default:
		if s.local.Name != "" {
			if _, errno := s.stack.fs.Lookup(c, nil, a.Name, false); errno == 0 {
				return unix.EADDRINUSE
			}
			return unix.EINVAL
		}
		d, errno := s.stack.fs.Mknod(c, nil, a.Name, unix.S_IFSOCK|0o777)
		if errno == unix.EEXIST {
			errno = unix.EADDRINUSE
		}
		if errno != 0 {
			return errno
		}
		s.node = d.Inode()
		s.node.Object = s
	}
	s.local = a
	return 0
}

func (s *Socket) abstractNameOf(name string) abstractName { return abstractName{s.kind, name} }

// autobindName gives an abstract name of five digits, see unix(7).
func (s *Socket) autobindName() unix.Errno {
	if s.local.Name != "" {
		return 0
	}
	for range 1 << 20 {
		name := fmt.Sprintf("\x00%05x", s.stack.autobind&0xfffff)
		s.stack.autobind++
		if s.stack.abstract[s.abstractNameOf(name)] == nil {
			s.stack.abstract[s.abstractNameOf(name)] = s
			s.local = Addr{Family: unix.AF_UNIX, Name: name}
			return 0
		}
	}
	return unix.ENOSPC
}

// findUnix returns the UNIX socket that has a name and is of the same type.
func (s *Socket) findUnix(c *vfs.Ctx, a Addr) (*Socket, unix.Errno) {
	var o *Socket
	switch {
	case a.Family != unix.AF_UNIX || a.Name == "":
		return nil, unix.EINVAL
	case a.Name[0] == 0:
		if o = s.stack.abstract[s.abstractNameOf(a.Name)]; o == nil {
			return nil, unix.ECONNREFUSED
		}
	default:
		d, errno := s.stack.fs.Lookup(c, nil, a.Name, true)
		if errno != 0 {
			return nil, errno
		}
		if errno := c.Access(d.Inode(), vfs.MayWrite, true); errno != 0 {
			return nil, errno
		}
		if d.Inode().Type() != unix.S_IFSOCK {
			return nil, unix.ECONNREFUSED
		}
		if o, _ = d.Inode().Object.(*Socket); o == nil {
			return nil, unix.ECONNREFUSED
		}
	}
	if o.kind != s.kind {
		return nil, unix.EPROTOTYPE
	}
	return o, 0
}

// unixConnect connects a stream or seqpacket socket. EAGAIN: the listener has no
// room; its queue is returned.
func (s *Socket) unixConnect(c *vfs.Ctx, a Addr) (*wait.Queue, unix.Errno) {
	if s.opts.passCred && a.Family == unix.AF_UNIX {
		if errno := s.autobindName(); errno != 0 {
			return nil, errno
		}
	}
	o, errno := s.findUnix(c, a)
	switch {
	case errno != 0:
		return nil, errno
	case o.state != listening:
		return nil, unix.ECONNREFUSED
	case o.shut&shutRead != 0:
		return nil, unix.ECONNREFUSED
	case len(o.accepts) > o.backlog:
		return o.space, unix.EAGAIN
	case s.state == connected:
		return nil, unix.EISCONN
	case s.state != idle:
		return nil, unix.EINVAL
	}
	n, _ := s.stack.Socket(c, s.family, s.kind, s.protocol)
	n.owner, n.local = o.owner, o.local
	s.owner = credOf(c)
	n.opts.passCred = o.opts.passCred
	s.connectPair(n)
	s.remote = o.local
	o.accepts = append(o.accepts, n)
	s.notePassage(o)
	o.queue.Wake(unix.EPOLLIN | unix.EPOLLRDNORM)
	return nil, 0
}

// datagramConnect sets or, for AF_UNSPEC, clears the destination of datagrams.
func (s *Socket) datagramConnect(c *vfs.Ctx, a Addr) unix.Errno {
	if a.Family == unix.AF_UNSPEC {
		s.disconnect()
		return 0
	}
	if s.opts.passCred {
		if errno := s.autobindName(); errno != 0 {
			return errno
		}
	}
	o, errno := s.findUnix(c, a)
	if errno != 0 {
		return errno
	}
	if o.peer != nil && o.peer != s {
		return unix.EPERM
	}
	if o != s.peer {
		s.disconnect()
		o.clients = append(o.clients, s)
	}
	s.peer, s.state = o, connected
	return 0
}

// disconnect removes the destination of a datagram socket. Unread data is lost, and a
// peer that sent it gets an error.
func (s *Socket) disconnect() {
	o := s.peer
	if o == nil {
		return
	}
	s.removeClient(o)
	if len(s.recv) == 0 {
		return
	}
	s.purgeReceived()
	s.wakeSenders()
	if !o.closed && o.peer == s {
		o.setPendingError(unix.ECONNRESET)
	}
}

// removeClient ends that s sends its datagrams to o.
func (s *Socket) removeClient(o *Socket) {
	if at := slices.Index(o.clients, s); at >= 0 {
		o.clients = slices.Delete(o.clients, at, at+1)
	}
	s.peer, s.state = nil, idle
}

// isUnixWritable reports whether a UNIX socket can be polled writable (unix_writable,
// which counts one byte more than was sent).
func (s *Socket) isUnixWritable() bool {
	return s.state != listening && (s.sent+1)*4 <= s.opts.sendBuffer && (s.sent == 0 || !s.stack.isShort())
}

// isFilled reports whether a UNIX socket cannot send now.
func (s *Socket) isFilled() bool {
	return s.sent >= s.opts.sendBuffer || s.sent > 0 && s.stack.isShort()
}

// isQueueFull reports whether the receive queue accepts no more datagrams of others.
func (s *Socket) isQueueFull() bool { return s.isUnix() && len(s.recv) > datagramQueue }

// credentialsFor is the credentials of the sender in a message to o.
func (s *Socket) credentialsFor(c *vfs.Ctx, o *Socket, out *Outgoing) Cred {
	switch {
	case out.Cred != nil:
		return *out.Cred
	case s.opts.passCred || o.opts.passCred:
		return Cred{c.PID, c.Cred.UID, c.Cred.GID}
	}
	return noSender
}

// unixWrite sends on a stream as much as fits.
func (s *Socket) unixWrite(c *vfs.Ctx, out *Outgoing) (int, unix.Errno) {
	switch {
	case out.OOB:
		return 0, unix.EOPNOTSUPP
	case s.stack.tooManyInflight(len(out.Rights)):
		return 0, unix.ETOOMANYREFS
	case out.To != nil && s.state == connected:
		return 0, unix.EISCONN
	case out.To != nil:
		return 0, unix.EOPNOTSUPP
	case s.peer == nil:
		return 0, unix.ENOTCONN
	case s.shut&shutWrite != 0:
		return 0, unix.EPIPE
	}
	done := 0
	for done < len(out.Data) {
		o := s.peer
		if o.closed || o.shut&shutRead != 0 {
			return done, unix.EPIPE
		}
		if s.isFilled() {
			break
		}
		if s.stack.isExhausted() {
			if done == 0 {
				return 0, unix.ENOBUFS
			}
			break
		}
		n := min(len(out.Data)-done, s.ChunkSize())
		m := &message{
			data: append([]byte(nil), out.Data[done:done+n]...), cred: s.credentialsFor(c, o, out),
			sender: s, cost: streamCost(n),
		}
		if done == 0 {
			m.rights = s.stack.addInflight(out.Rights)
		}
		o.enqueue(m)
		done += n
	}
	if done == 0 && len(out.Data) > 0 {
		return 0, unix.EAGAIN
	}
	return done, 0
}

// unixSend sends a datagram, or a message of a seqpacket connection. EAGAIN: there is
// no room; the queue to wait for besides the socket's own is returned.
func (s *Socket) unixSend(c *vfs.Ctx, out *Outgoing) (*wait.Queue, unix.Errno) {
	if out.OOB {
		return nil, unix.EOPNOTSUPP
	}
	if s.kind == unix.SOCK_SEQPACKET {
		if errno := s.takeError(); errno != 0 {
			return nil, errno
		}
		if s.state != connected {
			return nil, unix.ENOTCONN
		}
	}
	if s.stack.tooManyInflight(len(out.Rights)) {
		return nil, unix.ETOOMANYREFS
	}
	if s.opts.passCred {
		if errno := s.autobindName(); errno != 0 {
			return nil, errno
		}
	}
	if len(out.Data) > s.opts.sendBuffer-32 {
		return nil, unix.EMSGSIZE
	}
	if errno := s.takeError(); errno != 0 {
		return nil, errno
	}
	switch {
	case s.shut&shutWrite != 0:
		return nil, unix.EPIPE
	case s.isFilled():
		return s.queue, unix.EAGAIN
	case s.stack.isExhausted():
		return nil, unix.ENOBUFS
	}
	o := s.peer
	if out.To != nil && s.kind == unix.SOCK_DGRAM {
		var errno unix.Errno
		if o, errno = s.findUnix(c, *out.To); errno != 0 {
			return nil, errno
		}
	}
	switch {
	case o == nil:
		return nil, unix.ENOTCONN
	case o.peer != nil && o.peer != s:
		return nil, unix.EPERM
	case o.closed && s.kind == unix.SOCK_SEQPACKET:
		return nil, unix.EPIPE
	case o.closed:
		if s.peer == o {
			s.disconnect()
		}
		return nil, unix.ECONNREFUSED
	case o.shut&shutRead != 0:
		return nil, unix.EPIPE
	case o != s && o.peer != s && o.isQueueFull():
		return o.space, unix.EAGAIN
	}
	if s.kind == unix.SOCK_DGRAM {
		s.notePassage(o)
	}
	o.enqueue(&message{
		data: append([]byte(nil), out.Data...), cred: s.credentialsFor(c, o, out),
		rights: s.stack.addInflight(out.Rights), sender: s, cost: datagramCost(len(out.Data)),
	})
	return nil, 0
}

// unixRead receives.
func (s *Socket) unixRead(in *Incoming) unix.Errno {
	switch {
	case in.OOB && s.Stream():
		return unix.EINVAL
	case in.OOB:
		return unix.EOPNOTSUPP
	case s.Stream() && s.state != connected:
		return unix.EINVAL
	case s.kind == unix.SOCK_SEQPACKET && s.state != connected:
		return unix.ENOTCONN
	}
	read := s.readStream
	if !s.Stream() {
		read = s.readMessage
		if errno := s.takeError(); errno != 0 {
			return errno
		}
	}
	errno := read(in)
	if errno != unix.EAGAIN {
		return errno
	}
	if errno := s.takeError(); errno != 0 {
		return errno
	}
	if s.shut&shutRead != 0 && (s.kind != unix.SOCK_DGRAM || !in.Nonblock) {
		return 0
	}
	return unix.EAGAIN
}

// unixShutdown shuts halves of a connection, and the matching ones of the peer.
func (s *Socket) unixShutdown(how int) {
	s.shut |= how
	if o := s.peer; o != nil && s.kind != unix.SOCK_DGRAM {
		if how&shutRead != 0 {
			o.shut |= shutWrite
		}
		if how&shutWrite != 0 {
			o.shut |= shutRead
		}
		o.queue.Wake(wait.AnyEvent)
	}
	s.queue.Wake(wait.AnyEvent)
	s.space.Wake(wait.AnyEvent)
}

// unixClose ends a UNIX socket. embryo: it was never accepted.
func (s *Socket) unixClose(embryo bool) {
	s.closed = true
	if s.node != nil {
		s.node.Object = nil
		s.node = nil
	} else if s.stack.abstract[s.abstractNameOf(s.local.Name)] == s {
		delete(s.stack.abstract, s.abstractNameOf(s.local.Name))
	}
	s.shut = shutBoth
	if o := s.peer; o != nil && s.kind != unix.SOCK_DGRAM {
		if s.hasUnread() || embryo {
			o.err = unix.ECONNRESET
		}
		o.shut = shutBoth
		o.queue.Wake(wait.AnyEvent)
	} else if o != nil {
		s.removeClient(o)
	}
	for _, e := range s.accepts {
		e.unixClose(true)
	}
	s.accepts = nil
	s.purgeReceived()
	s.wakeSenders()
	s.stack.collectGarbage()
}

// hasUnread reports whether data is lost when the socket is closed. Linux does not
// count an empty message that is the first.
func (s *Socket) hasUnread() bool {
	return len(s.recv) > 1 || len(s.recv) == 1 && len(s.recv[0].data) > 0
}

// unixReady is unix_poll and unix_dgram_poll.
func (s *Socket) unixReady() uint32 {
	var mask uint32
	if s.err != 0 {
		mask |= unix.EPOLLERR
	}
	if s.shut == shutBoth {
		mask |= unix.EPOLLHUP
	}
	if s.shut&shutRead != 0 {
		mask |= unix.EPOLLRDHUP | unix.EPOLLIN | unix.EPOLLRDNORM
	}
	if len(s.recv)+len(s.accepts) > 0 {
		mask |= unix.EPOLLIN | unix.EPOLLRDNORM
	}
	if s.kind != unix.SOCK_DGRAM && s.state == idle {
		mask |= unix.EPOLLHUP
	}
	o := s.peer
	full := s.kind == unix.SOCK_DGRAM && o != nil && o.peer != s && o.isQueueFull()
	if s.isUnixWritable() && !full {
		mask |= unix.EPOLLOUT | unix.EPOLLWRNORM | unix.EPOLLWRBAND
	}
	return mask
}
