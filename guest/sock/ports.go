package sock

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
)

// The range of ports that are given out, net.ipv4.ip_local_port_range, and the
// first that needs no privilege.
const (
	firstPort    = 32768
	lastPort     = 60999
	unprivileged = 1024
)

// portTable is the sockets of one protocol that have a port, in the order in
// which they got it. The zero value is ready for use.
type portTable struct {
	byPort map[uint16][]*Socket
	next   uint16 // the ephemeral port to try first
}

func (s *Socket) ports() *portTable {
	if s.isTCP() {
		return &s.stack.tcp
	}
	return &s.stack.udp
}

// add gives s the port of its local address.
func (p *portTable) add(s *Socket) {
	if p.byPort == nil {
		p.byPort = map[uint16][]*Socket{}
	}
	p.byPort[s.local.Port] = append(p.byPort[s.local.Port], s)
	s.reserved = true
}

// release gives the port back.
func (s *Socket) release() {
	if !s.reserved {
		return
	}
	s.reserved = false
	p := s.ports()
	list := p.byPort[s.local.Port]
	for i, o := range list {
		if o == s {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(p.byPort, s.local.Port)
		return
	}
	p.byPort[s.local.Port] = list
}

// takes tells whether a socket bound to local receives what is sent to ip, if
// only is IPV6_V6ONLY: 0 no, 1 as one that takes IPv4 and IPv6, 2 as one for
// all addresses of the family, 3 as one for this address.
func takes(local, ip [16]byte, only bool) int {
	switch {
	case local == ip:
		return 3
	case local == any4 && is4(ip), local == any6 && !is4(ip):
		return 2
	case local == any6 && !only:
		return 1
	}
	return 0
}

// overlap tells whether two sockets would receive the same.
func overlap(a, b *Socket) bool {
	return takes(a.local.IP, b.local.IP, a.opts.v6only) > 0 || takes(b.local.IP, a.local.IP, b.opts.v6only) > 0
}

// conflict tells whether s cannot share its port with o.
func (s *Socket) conflict(o *Socket) bool {
	if !overlap(s, o) || o.gone() {
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

// reserve gives s the port of its local address, or a free one for port 0.
func (s *Socket) reserve() unix.Errno {
	s.stack.expire()
	p := s.ports()
	if s.local.Port != 0 {
		for _, o := range p.byPort[s.local.Port] {
			if s.conflict(o) {
				return unix.EADDRINUSE
			}
		}
		p.add(s)
		return 0
	}
	unused := func(o *Socket) bool { return false }
	if p.choose(s, unused) || p.choose(s, (*Socket).old) {
		return 0
	}
	return unix.EADDRINUSE
}

// choose gives s the next port all of whose sockets do not matter.
func (p *portTable) choose(s *Socket, ignore func(*Socket) bool) bool {
	for range lastPort - firstPort + 1 {
		if p.next < firstPort || p.next > lastPort {
			p.next = firstPort
		}
		port := p.next
		p.next++
		if !slices.ContainsFunc(p.byPort[port], func(o *Socket) bool { return !ignore(o) }) {
			s.local.Port = port
			p.add(s)
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
	case s.family == unix.AF_INET6 && is4(a.IP) && s.opts.v6only:
		return unix.EINVAL
	case !isAny(a.IP) && !isLocal(a.IP):
		return unix.EADDRNOTAVAIL
	case a.Port != 0 && a.Port < unprivileged && !c.Cred.Can(vfs.CapNetBindService):
		return unix.EACCES
	case bound:
		return unix.EINVAL
	}
	before, only := s.local, s.opts.v6only
	s.local = a
	if !is4(a.IP) && !isAny(a.IP) {
		s.opts.v6only = true
	}
	if errno := s.reserve(); errno != 0 {
		s.local, s.opts.v6only = before, only
		return errno
	}
	s.portLocked, s.addrLocked = a.Port != 0, !isAny(a.IP)
	return 0
}

// anyAddress is the address of a socket that is not bound.
func (s *Socket) anyAddress() [16]byte {
	if s.family == unix.AF_INET {
		return any4
	}
	return any6
}

// forgetAddress takes a local address away that the program did not choose.
func (s *Socket) forgetAddress() {
	if !s.addrLocked {
		s.local.IP = s.anyAddress()
	}
}

// ephemeral gives a socket without a port one.
func (s *Socket) ephemeral() unix.Errno {
	if s.reserved {
		return 0
	}
	s.local.Port = 0
	if errno := s.reserve(); errno != 0 {
		return unix.EADDRNOTAVAIL
	}
	return 0
}

// destination checks where s wants to send to, and makes an unspecified address
// the loopback one. ENETUNREACH: the address is of another machine.
func (s *Socket) destination(a *Addr) unix.Errno {
	if a.IP == any4 {
		a.IP = loopback4
	}
	if a.IP == any6 {
		a.IP = loopback6
		if is4(s.local.IP) {
			a.IP = loopback4
		}
	}
	switch {
	case is4(s.local.IP) && !is4(a.IP):
		return unix.EAFNOSUPPORT
	case is4(a.IP) && s.family == unix.AF_INET6 && s.opts.v6only:
		return unix.ENETUNREACH
	case is4(a.IP) && a.IP[12] == 255 && a.IP[15] == 255 && !s.opts.broadcast:
		return unix.EACCES
	case !isLocal(a.IP):
		return unix.ENETUNREACH
	}
	return 0
}

// source is the address that what is sent to ip comes from.
func (s *Socket) source(ip [16]byte) [16]byte {
	switch {
	case !isAny(s.local.IP):
		return s.local.IP
	case is4(ip):
		return loopback4
	}
	return loopback6
}

// receiver finds the socket that gets what is sent from one address to another:
// the one that is bound the most closely; among equals of SO_REUSEPORT one that
// the sender's port chooses, otherwise the last. of selects who takes part.
func (p *portTable) receiver(from, to Addr, of func(*Socket) bool) *Socket {
	best := 0
	var group []*Socket
	for _, o := range p.byPort[to.Port] {
		score := takes(o.local.IP, to.IP, o.opts.v6only)
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
