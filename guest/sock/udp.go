package sock

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// maxDatagram is the maximum size of a UDP datagram over IPv4, and over IPv6.
const (
	maxDatagram  = 65535 - 8 - 20
	maxDatagram6 = 65535 - 8
)

// udpConnect sets the destination, or clears it for AF_UNSPEC.
func (s *Socket) udpConnect(_ *vfs.Ctx, a Addr) unix.Errno {
	if a.Family == unix.AF_UNSPEC {
		s.udpDisconnect()
		return 0
	}
	if s.reserveEphemeral() != 0 {
		return unix.EAGAIN
	}
	if errno := s.checkDestination(&a); errno != 0 {
		return errno
	}
	if errno := s.checkRoute(&a); errno != 0 {
		return errno
	}
	s.local.IP = s.sourceAddress(a.IP)
	s.remote, s.state = a, connected
	return 0
}

// checkDestination is checkInet, but that an IPv6 socket takes IPv4 addresses.
func (s *Socket) checkDestination(a *Addr) unix.Errno {
	if s.family == unix.AF_INET6 && a.Family == unix.AF_INET {
		if s.opts.v6only {
			return unix.EAFNOSUPPORT
		}
		return a.checkInet(unix.AF_INET)
	}
	return a.checkInet(s.family)
}

// udpDisconnect removes the destination of a socket, and the parts of the local address
// that the program did not choose.
func (s *Socket) udpDisconnect() {
	s.state, s.remote = idle, Addr{}
	if !s.portLocked {
		s.releasePort()
		s.local.Port = 0
	}
	s.forgetAddress()
}

// udpSend sends a datagram, or keeps it until the program has sent the rest of
// it (MSG_MORE, UDP_CORK).
func (s *Socket) udpSend(out *Outgoing) unix.Errno {
	if errno := s.reserveEphemeral(); errno != 0 {
		return unix.EAGAIN
	}
	if !s.corked {
		if errno := s.udpBegin(out); errno != 0 {
			return errno
		}
	}
	limit := maxDatagram
	if !isIPv4(s.corkTo.IP) {
		limit = maxDatagram6
	}
	if len(s.cork)+len(out.Data) > limit {
		s.cork, s.corked = nil, false
		return unix.EMSGSIZE
	}
	s.cork = append(s.cork, out.Data...)
	s.corked = out.More || s.opts.values[option{unix.IPPROTO_UDP, unix.UDP_CORK}] != 0
	if !s.corked {
		s.udpPush()
	}
	return 0
}

// udpBegin determines whether and where a datagram can be sent.
func (s *Socket) udpBegin(out *Outgoing) unix.Errno {
	to, errno := s.udpTarget(out)
	if errno != 0 {
		return errno
	}
	switch {
	case isIPv4(to.IP) && len(out.Data) > 0xffff:
		return unix.EMSGSIZE
	case isIPv4(to.IP) && out.OOB:
		return unix.EOPNOTSUPP
	}
	if errno := s.checkRoute(&to); errno != 0 {
		return errno
	}
	if errno := s.takeError(); errno != 0 {
		return errno
	}
	if s.shut&shutWrite != 0 {
		return unix.EPIPE
	}
	s.corkTo = to
	return 0
}

// udpTarget is the destination of a datagram.
func (s *Socket) udpTarget(out *Outgoing) (Addr, unix.Errno) {
	six := s.family == unix.AF_INET6
	if out.To == nil || six && out.To.Family == unix.AF_UNSPEC {
		if s.state != connected {
			return Addr{}, unix.EDESTADDRREQ
		}
		return s.remote, 0
	}
	to := *out.To
	family := unix.AF_INET
	switch {
	case six && to.Family == unix.AF_INET6:
		family = unix.AF_INET6
	case six && to.Family != unix.AF_INET:
		return to, unix.EINVAL
	case to.Family == unix.AF_UNSPEC:
		to.Family = unix.AF_INET
	}
	if six && s.opts.v6only && isIPv4(to.IP) {
		return to, unix.ENETUNREACH
	}
	if errno := to.checkInet(family); errno != 0 {
		return to, errno
	}
	if to.Port == 0 {
		return to, unix.EINVAL
	}
	return to, 0
}

// udpPush sends the collected datagram. If there is no receiver it is lost; a connected
// socket gets an error at its next call.
func (s *Socket) udpPush() {
	data, to := s.cork, s.corkTo
	s.cork, s.corked = nil, false
	from := Addr{Family: s.local.Family, IP: s.sourceAddress(to.IP), Port: s.local.Port}
	o := s.stack.udp.receiverOf(from, to, func(*Socket) bool { return true })
	if o == nil {
		if s.state == connected && isIPv4(to.IP) == isIPv4(s.local.IP) && to.IP == s.remote.IP && to.Port == s.remote.Port {
			s.setPendingError(unix.ECONNREFUSED)
		}
		return
	}
	if o.recvCost > o.opts.recvBuffer || s.stack.isShort() {
		return
	}
	from.Family = uint16(o.family)
	s.notePassage(o)
	o.enqueue(&message{data: data, from: from, to: to, cost: datagramCost(len(data))})
}

// udpShutdown shuts halves. Without a peer it does so too, but fails.
func (s *Socket) udpShutdown(how int) unix.Errno {
	s.shut |= how
	s.queue.Wake(wait.AnyEvent)
	if s.state != connected {
		return unix.ENOTCONN
	}
	return 0
}
