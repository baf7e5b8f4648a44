package sock

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// Stack is a network namespace: the names and ports in use.
type Stack struct {
	fs          *vfs.FS
	memory      *kmem.Account
	abstract    map[abstractName]*Socket // names of UNIX sockets that begin with a zero
	autobind    uint32                   // the next name to try for a UNIX socket without one
	tcp, udp    portTable
	lastNetlink uint32
	remains     []*Socket // in the order in which they end

	held       int // bytes of data in all receive queues
	inFlight   int // descriptions in messages
	flying     map[*vfs.File]*flight
	flights    uint64
	collecting bool
}

// maxHeld is what all receive queues may hold before each connection gets only
// what it cannot do without (compare net.ipv4.tcp_mem).
const maxHeld = 128 << 20

// short tells whether memory for data is short.
func (st *Stack) short() bool { return st.held > maxHeld || st.exhausted() }

// exhausted tells that the kernel's memory is used up.
func (st *Stack) exhausted() bool { return !st.memory.MayGrow() }

// New makes a stack. Path names of UNIX sockets are in fs; what waits in sockets
// is charged to memory, which may be nil.
func New(fs *vfs.FS, memory *kmem.Account) *Stack {
	return &Stack{fs: fs, memory: memory, abstract: map[abstractName]*Socket{}, flying: map[*vfs.File]*flight{}}
}

// Cred is who sent a message, struct ucred.
type Cred struct {
	PID      int32
	UID, GID uint32
}

// nobody is the sender of a message that does not tell.
var nobody = Cred{UID: overflowID, GID: overflowID}

// unknown is the peer of a socket that has none.
var unknown = Cred{0, ^uint32(0), ^uint32(0)}

// abstractName is a name without a file; each type of socket has its own.
type abstractName struct {
	kind int
	name string
}

// overflowID is what a user who cannot be named is shown as.
const overflowID = 65534

func credOf(c *vfs.Ctx) Cred { return Cred{c.PID, c.Cred.EUID, c.Cred.EGID} }

// state is how far a socket is connected.
type state uint8

const (
	idle state = iota
	listening
	connecting // a TCP connection that the listener has no room for
	connected
	closeWait // TCP: the other side has sent all
	finWait   // TCP: this side has sent all
	timeWait  // TCP: the remains of a connection, see remains
)

// Halves of a connection that are shut down, as bits.
const (
	shutRead  = 1
	shutWrite = 2
	shutBoth  = shutRead | shutWrite
)

// Socket is a socket; it is what an open description acts on.
type Socket struct {
	stack                  *Stack
	family, kind, protocol int

	// queue is woken when Ready may have grown, space when there is room for
	// others who send or connect to this socket.
	queue, space *wait.Queue

	state         state
	local, remote Addr
	node          *vfs.Inode // that the local path names
	peer          *Socket    // of a connection, or the destination of datagrams
	clients       []*Socket  // UNIX datagram sockets whose destination this is
	shut          int
	closed        bool
	err           unix.Errno // to be reported once, SO_ERROR

	cork   []byte // UDP: of a datagram that is not complete
	corkTo Addr
	corked bool

	consumed uint64 // TCP: bytes received, and taken away
	urgent   urgent

	phase      phase // TCP
	done       bool  // TCP: the other side has sent all
	until      int64 // TCP: real time in ns at which remains end
	portLocked bool  // the program chose the port
	addrLocked bool  // the program chose the address

	recv      []*message
	recvBytes int // of the data in recv
	recvCost  int // charged to the receive buffer
	sent      int // charged to the send buffer, UNIX

	accepts []*Socket // connections to be accepted
	backlog int
	waiting []*Socket // TCP connections that the backlog has no room for
	pending *Socket   // the listener that a connecting socket waits for

	owner     Cred // who made the socket, or its listener
	peerOwner Cred
	reserved  bool // has a port in the table

	opts options
}

// Pair makes two sockets that are connected, socketpair(2).
func (st *Stack) Pair(c *vfs.Ctx, family, kind, protocol int) (a, b *Socket, errno unix.Errno) {
	if a, errno = st.Socket(c, family, kind, protocol); errno != 0 {
		return nil, nil, errno
	}
	if family != unix.AF_UNIX {
		return nil, nil, unix.EOPNOTSUPP
	}
	b, _ = st.Socket(c, family, kind, protocol)
	a.join(b)
	return a, b, 0
}

// join connects two UNIX sockets.
func (s *Socket) join(o *Socket) {
	s.peer, o.peer = o, s
	s.peerOwner, o.peerOwner = o.owner, s.owner
	s.state, o.state = connected, connected
}

// Socket makes a socket, socket(2). The errors are those of the man page.
func (st *Stack) Socket(c *vfs.Ctx, family, kind, protocol int) (*Socket, unix.Errno) {
	kind, protocol, errno := resolve(c, family, kind, protocol)
	if errno != 0 {
		return nil, errno
	}
	s := &Socket{
		stack: st, family: family, kind: kind, protocol: protocol,
		queue: &wait.Queue{}, space: &wait.Queue{}, owner: credOf(c),
		peerOwner: unknown,
	}
	s.local.Family = uint16(family)
	s.local.IP = s.anyAddress()
	s.opts = defaults(s)
	return s, 0
}

// resolve checks the arguments of socket and fills in the default protocol.
func resolve(c *vfs.Ctx, family, kind, protocol int) (int, int, unix.Errno) {
	if kind < 0 || kind > unix.SOCK_PACKET {
		return 0, 0, unix.EINVAL
	}
	switch family {
	case unix.AF_UNIX:
		if protocol != 0 && protocol != unix.AF_UNIX {
			return 0, 0, unix.EPROTONOSUPPORT
		}
		if kind == unix.SOCK_RAW {
			kind = unix.SOCK_DGRAM
		}
		if kind != unix.SOCK_STREAM && kind != unix.SOCK_DGRAM && kind != unix.SOCK_SEQPACKET {
			return 0, 0, unix.ESOCKTNOSUPPORT
		}
		return kind, 0, 0
	case unix.AF_INET, unix.AF_INET6:
		return resolveInet(c, kind, protocol)
	case unix.AF_NETLINK:
		if kind != unix.SOCK_RAW && kind != unix.SOCK_DGRAM {
			return 0, 0, unix.ESOCKTNOSUPPORT
		}
		if protocol != unix.NETLINK_ROUTE {
			return 0, 0, unix.EPROTONOSUPPORT
		}
		return kind, protocol, 0
	}
	return 0, 0, unix.EAFNOSUPPORT
}

// maxProtocol is IPPROTO_MAX.
const maxProtocol = 263

func resolveInet(c *vfs.Ctx, kind, protocol int) (int, int, unix.Errno) {
	if protocol < 0 || protocol >= maxProtocol {
		return 0, 0, unix.EINVAL
	}
	switch kind {
	case unix.SOCK_STREAM:
		if protocol == 0 || protocol == unix.IPPROTO_TCP {
			return kind, unix.IPPROTO_TCP, 0
		}
		return 0, 0, unix.EPROTONOSUPPORT
	case unix.SOCK_DGRAM:
		if protocol == 0 || protocol == unix.IPPROTO_UDP {
			return kind, unix.IPPROTO_UDP, 0
		}
		return 0, 0, unix.EPROTONOSUPPORT
	case unix.SOCK_RAW:
		if protocol == 0 {
			return 0, 0, unix.EPROTONOSUPPORT
		}
		return 0, 0, unix.EPERM
	}
	return 0, 0, unix.ESOCKTNOSUPPORT
}

// Kind is the type of the socket, SOCK_STREAM and so on.
func (s *Socket) Kind() int { return s.kind }

// Stream tells whether the socket carries bytes and not messages.
func (s *Socket) Stream() bool { return s.kind == unix.SOCK_STREAM }

// Signals tells whether a write that fails with EPIPE raises SIGPIPE.
func (s *Socket) Signals() bool { return s.kind == unix.SOCK_STREAM }

func (s *Socket) isUnix() bool { return s.family == unix.AF_UNIX }

func (s *Socket) isTCP() bool { return s.protocol == unix.IPPROTO_TCP && !s.isUnix() }

func (s *Socket) isUDP() bool { return s.protocol == unix.IPPROTO_UDP && !s.isUnix() }

func (s *Socket) isNetlink() bool { return s.family == unix.AF_NETLINK }

// takeError reports the pending error, and forgets it.
func (s *Socket) takeError() unix.Errno {
	errno := s.err
	s.err = 0
	return errno
}

// fail sets the pending error.
func (s *Socket) fail(errno unix.Errno) {
	s.err = errno
	s.queue.Wake(wait.AnyEvent)
}
