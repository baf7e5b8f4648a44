package sock

import (
	"cmp"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// The states of sockets as /proc/net shows them: those of TCP (include/net/tcp_states.h), and those of UNIX sockets
// (enum socket_state in include/uapi/linux/net.h).
const (
	tcpEstablished, tcpSynSent, tcpFinWait2, tcpTimeWait, tcpClose, tcpCloseWait, tcpListen = 1, 2, 5, 6, 7, 8, 10

	unixUnconnected, unixConnected = 1, 3
)

// Status is a socket as a line of /proc/net shows it.
type Status struct {
	Type          int // unix.SOCK_STREAM and so on
	State         int
	Local, Remote Addr
	// Received is the number of bytes that are to be read, of a listener the number of connections that are to be accepted.
	Received int
	// Remaining is the time in ns until a connection in TIME_WAIT is forgotten.
	Remaining int64
	UID       uint32
	// Inode is that of the socket's file; 0: it has none, or none any more.
	Inode   uint64
	Listens bool
}

// SetInode notes the number of the inode of the socket's file.
func (s *Socket) SetInode(number uint64) { s.inode = number }

// TCP lists the sockets of a family, AF_INET or AF_INET6, that listen or have a connection, by port.
func (st *Stack) TCP(family int) []Status {
	st.expireTimeWait()
	return st.tcp.list(func(s *Socket) bool { return s.family == family && s.state != idle })
}

// UDP lists the sockets of a family that have a port, by port.
func (st *Stack) UDP(family int) []Status {
	return st.udp.list(func(s *Socket) bool { return s.family == family })
}

// list lists sockets with ports. Those of clients outside of the guest are not the guest's.
func (p *portTable) list(listed func(*Socket) bool) (list []Status) {
	for _, number := range slices.Sorted(maps.Keys(p.byPort)) {
		at := p.byPort[number]
		for _, s := range slices.Concat(at.own, at.ends) {
			if listed(s) && !s.outside {
				list = append(list, s.Status())
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Local.Port, b.Local.Port), cmp.Compare(a.Remote.Port, b.Remote.Port))
	})
	return list
}

// IsUnix reports whether the socket is one of UNIX sockets.
func (s *Socket) IsUnix() bool { return s.isUnix() }

// Status describes the socket.
func (s *Socket) Status() Status {
	x := Status{
		Type: s.kind, State: tcpClose, Local: s.local, Remote: s.remote, Received: s.recvBytes, UID: s.owner.UID, Inode: s.inode,
		Listens: s.state == listening,
	}
	switch {
	case s.isUnix():
		if x.State = unixUnconnected; s.state == connected {
			x.State = unixConnected
		}
	case s.state == listening:
		x.State, x.Received = tcpListen, len(s.accepts)
	case s.state == connecting:
		x.State = tcpSynSent
	case s.state == timeWait:
		x.State, x.Remaining, x.UID = tcpTimeWait, s.until-s.stack.realTime(), 0
	case s.kind == unix.SOCK_DGRAM && s.state == connected:
		x.State = tcpEstablished
	case s.state == closeWait, s.state == connected && s.done:
		x.State = tcpCloseWait
	case s.state == finWait, s.state == connected && s.shut&shutWrite != 0:
		x.State = tcpFinWait2
	case s.state == connected:
		x.State = tcpEstablished
	}
	return x
}
