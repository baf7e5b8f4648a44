package sock

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// maxDatagram is what fits into an UDP datagram over IPv4, and over IPv6.
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
	if s.ephemeral() != 0 {
		return unix.EAGAIN
	}
	if errno := s.checkDestination(&a); errno != 0 {
		return errno
	}
	if errno := s.destination(&a); errno != 0 {
		return errno
	}
	s.local.IP = s.source(a.IP)
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

// udpDisconnect ends that the socket has a destination, and gives back what the
// program did not choose of the local address.
func (s *Socket) udpDisconnect() {
	s.state, s.remote = idle, Addr{}
	if !s.portLocked {
		s.release()
		s.local.Port = 0
	}
	if !s.addrLocked {
		s.local.IP = s.anyAddress()
	}
}

// udpSend sends a datagram. What nobody receives is lost; a socket that is
// connected is told at its next call.
func (s *Socket) udpSend(_ *vfs.Ctx, out *Outgoing) unix.Errno {
	if errno := s.ephemeral(); errno != 0 {
		return unix.EAGAIN
	}
	limit := maxDatagram
	if s.family == unix.AF_INET6 {
		limit = maxDatagram6
	}
	switch {
	case out.OOB && s.family == unix.AF_INET:
		return unix.EOPNOTSUPP
	case len(out.Data) > 0xffff, len(out.Data) > limit:
		return unix.EMSGSIZE
	}
	to := s.remote
	if out.To != nil {
		to = *out.To
		if errno := s.checkDestination(&to); errno != 0 {
			return errno
		}
		if to.Port == 0 {
			return unix.EINVAL
		}
	} else if s.state != connected {
		return unix.EDESTADDRREQ
	}
	if errno := s.destination(&to); errno != 0 {
		return errno
	}
	if errno := s.takeError(); errno != 0 {
		return errno
	}
	if s.shut&shutWrite != 0 {
		return unix.EPIPE
	}
	from := Addr{Family: s.local.Family, IP: s.source(to.IP), Port: s.local.Port}
	o := s.stack.udp.receiver(from, to, func(o *Socket) bool { return true })
	if o == nil {
		if s.state == connected && to == s.remote {
			s.fail(unix.ECONNREFUSED)
		}
		return 0
	}
	if o.recvCost > o.opts.recvBuffer || s.stack.short() {
		return 0
	}
	from.Family = uint16(o.family)
	o.enqueue(&message{
		data: append([]byte(nil), out.Data...), from: from, to: to, cost: datagramCost(len(out.Data)),
	})
	return 0
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
