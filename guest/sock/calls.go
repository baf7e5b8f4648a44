package sock

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// maxBacklog is net.core.somaxconn.
const maxBacklog = 4096

// Bind is bind(2).
func (s *Socket) Bind(c *vfs.Ctx, a Addr) unix.Errno {
	switch {
	case s.isUnix():
		return s.unixBind(c, a)
	case s.isNetlink():
		return s.netlinkBind(a)
	}
	return s.inetBind(c, a)
}

// Listen is listen(2). A second call changes the backlog.
func (s *Socket) Listen(c *vfs.Ctx, backlog int) unix.Errno {
	switch {
	case !s.isTCP() && (!s.isUnix() || s.kind == unix.SOCK_DGRAM):
		return unix.EOPNOTSUPP
	case s.state != idle && s.state != listening, s.phase != unconnected, s.isUnix() && s.local.Name == "":
		return unix.EINVAL
	}
	if s.isTCP() && s.state != listening {
		if errno := s.tcpListen(c); errno != 0 {
			return errno
		}
	}
	s.backlog = min(int(uint32(backlog)), maxBacklog)
	s.state = listening
	s.stack.listens++
	s.owner = credOf(c)
	s.peerOwner = s.owner
	s.admitWaiting()
	s.space.Wake(wait.AnyEvent)
	return 0
}

// Connect is connect(2). EAGAIN and, of TCP, EINPROGRESS and EALREADY say that the
// connection cannot be made now; the caller waits for the queue before it repeats the
// call.
func (s *Socket) Connect(c *vfs.Ctx, a Addr, nonblock bool) (*wait.Queue, unix.Errno) {
	switch {
	case s.isUnix() && s.kind == unix.SOCK_DGRAM:
		return nil, s.datagramConnect(c, a)
	case s.isUnix():
		return s.unixConnect(c, a)
	case s.isNetlink():
		s.remote = a
		return nil, 0
	case s.isUDP():
		return nil, s.udpConnect(c, a)
	}
	return s.queue, s.tcpConnect(c, a, nonblock)
}

// Accept returns the first connection of a listener, accept(2). EAGAIN: there is no
// connection yet. A call that would wait forever fails with EINVAL.
func (s *Socket) Accept(nonblock bool) (*Socket, unix.Errno) {
	switch {
	case !s.isTCP() && (!s.isUnix() || s.kind == unix.SOCK_DGRAM):
		return nil, unix.EOPNOTSUPP
	case s.state != listening:
		return nil, unix.EINVAL
	}
	if len(s.accepts) == 0 {
		if s.shut&shutRead != 0 && !nonblock {
			return nil, unix.EINVAL
		}
		return nil, unix.EAGAIN
	}
	n := s.accepts[0]
	s.accepts[0] = nil
	s.accepts = s.accepts[1:]
	if n.gated != nil {
		n.gated.Accepted = true
	}
	n.noteAccept()
	s.admitWaiting()
	s.space.Wake(wait.AnyEvent)
	return n, 0
}

// Shutdown is shutdown(2); how is SHUT_RD, SHUT_WR or SHUT_RDWR.
func (s *Socket) Shutdown(how int) unix.Errno {
	if how < unix.SHUT_RD || how > unix.SHUT_RDWR {
		return unix.EINVAL
	}
	half := how + 1 // SHUT_RD is 0
	switch {
	case s.isUnix():
		s.unixShutdown(half)
		return 0
	case s.isNetlink():
		return unix.EOPNOTSUPP
	case s.isUDP():
		return s.udpShutdown(half)
	}
	return s.tcpShutdown(half)
}

// Send sends: of a stream as much as fits, else the whole message. EAGAIN: there is no
// room; the caller waits for the queues.
func (s *Socket) Send(c *vfs.Ctx, out *Outgoing) (int, []*wait.Queue, unix.Errno) {
	var n int
	var more *wait.Queue
	var errno unix.Errno
	switch {
	case s.isUnix() && s.Stream():
		n, errno = s.unixWrite(c, out)
	case s.isUnix():
		more, errno = s.unixSend(c, out)
		n = len(out.Data)
	case s.isNetlink():
		errno = s.netlinkSend(out)
		n = len(out.Data)
	case s.isUDP():
		errno = s.udpSend(out)
		n = len(out.Data)
	default:
		n, errno = s.tcpWrite(out)
	}
	queues := []*wait.Queue{s.queue}
	if more != nil && more != s.queue {
		queues = append(queues, more)
	}
	if errno != 0 && !s.Stream() {
		n = 0
	}
	return n, queues, errno
}

// Recv receives. Nothing and no error is the end. EAGAIN: nothing has arrived.
func (s *Socket) Recv(in *Incoming) unix.Errno {
	switch {
	case s.isUnix():
		return s.unixRead(in)
	case s.isTCP():
		return s.tcpRead(in)
	}
	if in.OOB && s.isNetlink() {
		return unix.EOPNOTSUPP
	}
	if errno := s.takeError(); errno != 0 {
		return errno
	}
	errno := s.readMessage(in)
	if errno == unix.EAGAIN && s.shut&shutRead != 0 && !in.Nonblock {
		return 0
	}
	return errno
}

// SetError sets the error that the next call reports.
func (s *Socket) SetError(errno unix.Errno) { s.setPendingError(errno) }

// MinReceive is the number of bytes that a stream waits for, SO_RCVLOWAT.
func (s *Socket) MinReceive() int {
	if n, ok := s.opts.values[option{unix.SOL_SOCKET, unix.SO_RCVLOWAT}]; ok {
		return int(n)
	}
	return 1
}

// ChunkSize is the number of bytes of a stream that Linux copies from the program at
// once: all of them or none.
func (s *Socket) ChunkSize() int {
	if s.isTCP() {
		return 32768 // SKB_FRAG_PAGE_ORDER
	}
	return min(s.opts.sendBuffer/2-64, maxHead+fragBytes)
}

// AtMark reports whether the next byte is urgent, where a receiver stops.
func (s *Socket) AtMark() bool { return s.isTCP() && s.isAtMark() }

// Discards reports whether MSG_TRUNC makes the socket drop bytes of the stream.
func (s *Socket) Discards() bool { return s.isTCP() }

// Available is the number of bytes, up to n, that a stream has.
func (s *Socket) Available(n uint64) uint64 { return min(n, uint64(s.recvBytes)) }

// WholeChunks is the largest number of bytes, below n, that consists of whole parts of
// a stream as the other side sent them.
func (s *Socket) WholeChunks(n uint64) uint64 {
	whole := uint64(0)
	for _, m := range s.recv {
		if whole+uint64(len(m.data)) >= n {
			break
		}
		whole += uint64(len(m.data))
	}
	return whole
}

// Name is the address that getsockname(2) returns, encoded.
func (s *Socket) Name() []byte { return s.local.Bytes(s.family) }

// LocalPort returns the socket's own port; false: it is no socket of TCP.
func (s *Socket) LocalPort() (port uint16, ok bool) { return s.local.Port, s.isTCP() }

// Peer is the address that getpeername(2) returns. ENOTCONN: it has no peer.
func (s *Socket) Peer() ([]byte, unix.Errno) {
	switch {
	case s.isUnix() && s.peer != nil:
		return s.peer.local.Bytes(s.family), 0
	case s.isNetlink():
		return Addr{}.Bytes(s.family), 0
	case !s.isUnix() && (s.isConnected() || s.isUDP() && s.state == connected) && s.remote.Port != 0:
		return s.remote.Bytes(s.family), 0
	}
	return nil, unix.ENOTCONN
}

// Read implements vfs.FileImpl.
func (s *Socket) Read(_ *vfs.Ctx, b []byte, _ int64) (int, unix.Errno) {
	in := Incoming{Data: b}
	errno := s.Recv(&in)
	for _, f := range in.Rights {
		f.Unref()
	}
	return in.N, errno
}

// Write implements vfs.FileImpl.
func (s *Socket) Write(c *vfs.Ctx, b []byte, _ int64) (int, unix.Errno) {
	n, _, errno := s.Send(c, &Outgoing{Data: b})
	if n > 0 {
		errno = 0
	}
	return n, errno
}

// Ready implements vfs.Poller.
func (s *Socket) Ready() uint32 {
	switch {
	case s.isUnix():
		return s.unixReady()
	case s.isTCP():
		return s.tcpReady()
	}
	return s.datagramReady()
}

// datagramReady is datagram_poll. Sending a datagram never waits.
func (s *Socket) datagramReady() uint32 {
	mask := uint32(unix.EPOLLOUT | unix.EPOLLWRNORM | unix.EPOLLWRBAND)
	if s.err != 0 {
		mask |= unix.EPOLLERR
	}
	if s.shut&shutRead != 0 {
		mask |= unix.EPOLLRDHUP | unix.EPOLLIN | unix.EPOLLRDNORM
	}
	if s.shut == shutBoth {
		mask |= unix.EPOLLHUP
	}
	if len(s.recv) > 0 {
		mask |= unix.EPOLLIN | unix.EPOLLRDNORM
	}
	return mask
}

// Waiters implements vfs.Poller.
func (s *Socket) Waiters() *wait.Queue { return s.queue }

// Requests of sockios.h.
const siocatmark = 0x8905

// Ioctl implements vfs.Ioctler: FIONREAD (SIOCINQ), SIOCOUTQ and SIOCATMARK.
func (s *Socket) Ioctl(cmd uint32, _ int64) ([]byte, unix.Errno) {
	n := 0
	switch cmd {
	case unix.TIOCINQ:
		if s.state == listening {
			return nil, unix.EINVAL
		}
		n = s.bytesBeforeMark()
		if !s.Stream() && !(s.isUnix() && s.kind == unix.SOCK_SEQPACKET) && len(s.recv) > 0 {
			n = len(s.recv[0].data)
		}
	case unix.TIOCOUTQ:
		if s.state == listening && s.isTCP() {
			return nil, unix.EINVAL
		}
		n = s.sent
	case siocatmark:
		if s.isUDP() || s.isNetlink() {
			return nil, unix.ENOTTY
		}
		if s.isTCP() && s.isAtMark() {
			n = 1
		}
	default:
		return nil, unix.ENOTTY
	}
	return binary.LittleEndian.AppendUint32(nil, uint32(n)), 0
}

// Timeout is SO_RCVTIMEO or SO_SNDTIMEO in nanoseconds, 0 for none.
func (s *Socket) Timeout(write bool) int64 {
	if write {
		return s.opts.sendTimeout
	}
	return s.opts.recvTimeout
}

// Close implements vfs.Closer.
func (s *Socket) Close() {
	switch {
	case s.isUnix():
		s.unixClose(false)
	case s.isTCP():
		s.tcpClose()
	default:
		s.closed = true
		s.releasePort()
		s.purgeReceived()
	}
}

// Family is the address family, AF_UNIX and so on.
func (s *Socket) Family() int { return s.family }

// Local reports whether the socket carries descriptors and credentials.
func (s *Socket) Local() bool { return s.isUnix() }

// Control is a control message about received data.
type Control struct {
	Level, Kind int32
	Body        []byte
}

// Extra returns the control messages that options request with a message: SO_TIMESTAMP
// and the destination of a datagram. now is the real-time clock in ns.
func (s *Socket) Extra(in *Incoming, now int64) []Control {
	var list []Control
	on := func(level, name int) bool { return s.opts.values[option{level, name}] != 0 }
	long := binary.LittleEndian.AppendUint64
	if s.isTCP() || s.isUnix() && s.Stream() || in.N == 0 && in.From.Family == 0 {
		return nil
	}
	if on(unix.SOL_SOCKET, unix.SO_TIMESTAMPNS) {
		list = append(list, Control{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, long(long(nil, uint64(now/1e9)), uint64(now%1e9))})
	} else if on(unix.SOL_SOCKET, unix.SO_TIMESTAMP) {
		list = append(list, Control{unix.SOL_SOCKET, unix.SO_TIMESTAMP, long(long(nil, uint64(now/1e9)), uint64(now%1e9/1e3))})
	}
	if s.isUDP() && isIPv4(in.To.IP) && on(unix.IPPROTO_IP, unix.IP_PKTINFO) {
		body := littleEndianWord(loIndex)
		body = append(append(body, in.To.IP[12:]...), in.To.IP[12:]...)
		list = append(list, Control{unix.IPPROTO_IP, unix.IP_PKTINFO, body})
	}
	if s.isUDP() && s.family == unix.AF_INET6 && on(unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO) {
		list = append(list, Control{unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, append(in.To.IP[:], littleEndianWord(loIndex)...)})
	}
	return list
}
