package sock

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
)

// The range of ports that are allocated, net.ipv4.ip_local_port_range, and the first
// that needs no privilege.
const (
	firstPort    = 32768
	lastPort     = 60999
	unprivileged = 1024
)

// portTable is the sockets of one protocol that have a port. The zero value is ready for use.
type portTable struct {
	byPort map[uint16]*port
	next   uint16 // the ephemeral port to try first
}

// port is the sockets with one port. A server's has an end for each connection, and removes thousands of them a second.
type port struct {
	own  []*Socket // those of programs that asked for a port, in the order in which they received it
	ends []*Socket // a listener's ends of connections, and those in TIME_WAIT, in no order: they never listen
}

// socketAt returns a socket with a port for which a condition holds, or nil.
func (p *portTable) socketAt(number uint16, holds func(*Socket) bool) *Socket {
	at := p.byPort[number]
	if at == nil {
		return nil
	}
	for _, list := range [][]*Socket{at.own, at.ends} {
		if i := slices.IndexFunc(list, holds); i >= 0 {
			return list[i]
		}
	}
	return nil
}

func (s *Socket) portsOfProtocol() *portTable {
	if s.isTCP() {
		return &s.stack.tcp
	}
	return &s.stack.udp
}

// portOf makes s have the port of its local address.
func (p *portTable) portOf(s *Socket) *port {
	if p.byPort == nil {
		p.byPort = map[uint16]*port{}
	}
	at := p.byPort[s.local.Port]
	if at == nil {
		at = &port{}
		p.byPort[s.local.Port] = at
	}
	s.reserved = true
	return at
}

// addSocket registers s under the port of its local address.
func (p *portTable) addSocket(s *Socket) {
	at := p.portOf(s)
	at.own = append(at.own, s)
}

// addEnd registers an end of a connection, which does not listen while it has the port.
func (p *portTable) addEnd(s *Socket) {
	at := p.portOf(s)
	at.ends = append(at.ends, s)
	s.place = len(at.ends)
}

// releasePort frees the port.
func (s *Socket) releasePort() {
	if !s.reserved {
		return
	}
	s.reserved = false
	p := s.portsOfProtocol()
	at := p.byPort[s.local.Port]
	if i := s.place - 1; i >= 0 {
		last := len(at.ends) - 1
		at.ends[i] = at.ends[last]
		at.ends[i].place = i + 1
		at.ends[last] = nil
		at.ends = at.ends[:last]
		s.place = 0
	} else if i := slices.Index(at.own, s); i >= 0 {
		at.own = slices.Delete(at.own, i, i+1)
	}
	if len(at.own) == 0 && len(at.ends) == 0 {
		delete(p.byPort, s.local.Port)
	}
}

// matchScore rates whether a socket bound to local receives datagrams and connections
// to ip, if only is IPV6_V6ONLY: 0 no, 1 as a socket for IPv4 and IPv6, 2 as one for
// all addresses of the family, 3 as one for this address.
func matchScore(local, ip [16]byte, only bool) int {
	switch {
	case local == ip:
		return 3
	case local == any4 && isIPv4(ip), local == any6 && !isIPv4(ip):
		return 2
	case local == any6 && !only:
		return 1
	}
	return 0
}

// overlaps reports whether two sockets would receive the same.
func overlaps(a, b *Socket) bool {
	return matchScore(a.local.IP, b.local.IP, a.opts.v6only) > 0 || matchScore(b.local.IP, a.local.IP, b.opts.v6only) > 0
}

// conflictsWith reports whether s cannot share its port with o.
func (s *Socket) conflictsWith(o *Socket) bool {
	if !overlaps(s, o) || o.isForgotten() {
		return false
	}
	if s.opts.reusePort && o.opts.reusePort && (s.owner.UID == o.owner.UID || o.state == timeWait) {
		return false
	}
	if s.opts.reuseAddr && o.opts.reuseAddr {
		return s.isTCP() && o.state == listening
	}
	return true
}

// reservePort gives s the port of its local address, or a free one for port 0.
func (s *Socket) reservePort() unix.Errno {
	s.stack.expireTimeWait()
	p := s.portsOfProtocol()
	if s.local.Port != 0 {
		if p.socketAt(s.local.Port, s.conflictsWith) != nil {
			return unix.EADDRINUSE
		}
		p.addSocket(s)
		return 0
	}
	unused := func(o *Socket) bool { return false }
	if p.choosePort(s, unused) || p.choosePort(s, (*Socket).isReusable) {
		return 0
	}
	return unix.EADDRINUSE
}

// choosePort gives s the next port whose sockets can all be ignored.
func (p *portTable) choosePort(s *Socket, ignore func(*Socket) bool) bool {
	for range lastPort - firstPort + 1 {
		if p.next < firstPort || p.next > lastPort {
			p.next = firstPort
		}
		number := p.next
		p.next++
		if p.socketAt(number, func(o *Socket) bool { return !ignore(o) }) == nil {
			s.local.Port = number
			p.addSocket(s)
			return true
		}
	}
	return false
}

// inetBind gives a socket a local address.
func (s *Socket) inetBind(c *vfs.Ctx, a Addr) unix.Errno {
	if a.Family == unix.AF_UNSPEC && s.family == unix.AF_INET && a.IP == any4 {
		a.Family = unix.AF_INET
	}
	if errno := a.checkInet(s.family); errno != 0 {
		return errno
	}
	bound := s.reserved || s.state != idle
	switch {
	case bound && s.family == unix.AF_INET6:
		return unix.EINVAL
	case s.family == unix.AF_INET6 && isIPv4(a.IP) && s.opts.v6only:
		return unix.EINVAL
	case !isUnspecified(a.IP) && !isLocal(a.IP):
		return unix.EADDRNOTAVAIL
	case a.Port != 0 && a.Port < unprivileged && !c.Cred.Can(vfs.CapNetBindService):
		return unix.EACCES
	case bound:
		return unix.EINVAL
	}
	before, only := s.local, s.opts.v6only
	s.local = a
	if !isIPv4(a.IP) && !isUnspecified(a.IP) {
		s.opts.v6only = true
	}
	if errno := s.reservePort(); errno != 0 {
		s.local, s.opts.v6only = before, only
		return errno
	}
	s.portLocked, s.addrLocked = a.Port != 0, !isUnspecified(a.IP)
	return 0
}

// anyAddress is the address of a socket that is not bound.
func (s *Socket) anyAddress() [16]byte {
	if s.family == unix.AF_INET {
		return any4
	}
	return any6
}

// forgetAddress clears a local address that the program did not choose.
func (s *Socket) forgetAddress() {
	if !s.addrLocked {
		s.local.IP = s.anyAddress()
	}
}

// reserveEphemeral gives a socket without a port one.
func (s *Socket) reserveEphemeral() unix.Errno {
	if s.reserved {
		return 0
	}
	s.local.Port = 0
	if errno := s.reservePort(); errno != 0 {
		return unix.EADDRNOTAVAIL
	}
	return 0
}

// checkRoute checks the destination of s, and replaces an unspecified address by the
// loopback one. ENETUNREACH: the address is of another machine.
func (s *Socket) checkRoute(a *Addr) unix.Errno {
	if a.IP == any4 {
		a.IP = loopback4
	}
	if a.IP == any6 {
		a.IP = loopback6
		if isIPv4(s.local.IP) {
			a.IP = loopback4
		}
	}
	switch {
	case isIPv4(s.local.IP) && !isIPv4(a.IP):
		return unix.EAFNOSUPPORT
	case isIPv4(a.IP) && s.family == unix.AF_INET6 && s.opts.v6only:
		return unix.ENETUNREACH
	case isIPv4(a.IP) && a.IP[12] == 255 && a.IP[15] == 255 && !s.opts.broadcast:
		return unix.EACCES
	case !isLocal(a.IP):
		return unix.ENETUNREACH
	}
	return 0
}

// sourceAddress is the source address of data for ip.
func (s *Socket) sourceAddress(ip [16]byte) [16]byte {
	switch {
	case !isUnspecified(s.local.IP):
		return s.local.IP
	case isIPv4(ip):
		return loopback4
	}
	return loopback6
}

// receiverOf finds the socket that receives data from one address to another: the one
// with the most specific local address; among equals of SO_REUSEPORT one that the
// sender's port chooses, otherwise the last. of selects the candidates.
func (p *portTable) receiverOf(from, to Addr, of func(*Socket) bool) *Socket {
	at := p.byPort[to.Port]
	if at == nil {
		return nil
	}
	best := 0
	var group []*Socket
	for _, o := range at.own {
		score := matchScore(o.local.IP, to.IP, o.opts.v6only)
		if score == 0 || !of(o) {
			continue
		}
		if o.isUDP() && o.state == connected {
			if o.remote.IP != from.IP || o.remote.Port != from.Port {
				continue
			}
			score += 4
		}
		if score > best {
			best, group = score, nil
		}
		if score == best {
			group = append(group, o)
		}
	}
	if len(group) == 0 {
		return nil
	}
	if last := group[len(group)-1]; !last.opts.reusePort {
		return last
	}
	return group[int(from.Port)%len(group)]
}
