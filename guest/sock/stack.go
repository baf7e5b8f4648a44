package sock

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/requests"
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
	listens     uint64 // how often a socket has begun or ceased to listen
	lastNetlink uint32
	timeWaiting []*Socket     // in the order in which they end
	requests    *requests.Log // nil unless ports are observed

	held            int // bytes of data in all receive queues
	inFlight        int // descriptions in messages
	inflightSockets map[*vfs.File]*inflight
	flights         uint64
	collecting      bool

	gate *Gate // nil: none
}

// maxHeld is the number of bytes in all receive queues above which each connection gets
// only the minimum (compare net.ipv4.tcp_mem).
const maxHeld = 128 << 20

// isShort reports whether memory for data is short.
func (st *Stack) isShort() bool { return st.held > maxHeld || st.isExhausted() }

// isExhausted reports whether the kernel's memory is exhausted.
func (st *Stack) isExhausted() bool { return !st.memory.MayGrow() }

// New makes a stack. Path names of UNIX sockets are in fs; unread data is charged to
// memory, which may be nil.
func New(fs *vfs.FS, memory *kmem.Account) *Stack {
	return &Stack{fs: fs, memory: memory, abstract: map[abstractName]*Socket{}, inflightSockets: map[*vfs.File]*inflight{}}
}

// Cred is the sender of a message, struct ucred.
type Cred struct {
	PID      int32
	UID, GID uint32
}

// noSender is the sender of a message that does not identify it.
var noSender = Cred{UID: overflowID, GID: overflowID}

// noPeer is the peer of a socket that has none.
var noPeer = Cred{0, ^uint32(0), ^uint32(0)}

// abstractName is a name without a file; each type of socket has its own.
type abstractName struct {
	kind int
	name string
}

// overflowID is shown for a user that cannot be named.
const overflowID = 65534

func credOf(c *vfs.Ctx) Cred { return Cred{c.PID, c.Cred.EUID, c.Cred.EGID} }

// state is the state of a socket's connection.
type state uint8

const (
	idle state = iota
	listening
	connecting // a TCP connection that the listener has no room for
	connected
	closeWait // TCP: the other side has ended its half
	finWait   // TCP: this side has ended its half
	timeWait  // TCP: the connection has ended, see remains
)

// Halves of a connection that are shut down, as bits.
const (
	shutRead  = 1
	shutWrite = 2
	shutBoth  = shutRead | shutWrite
)

// Socket is a socket: the object of an open description.
type Socket struct {
	stack                  *Stack
	family, kind, protocol int

	// queue is woken when Ready may have grown, space when there is room for sockets
	// that send or connect to this one.
	queue, space *wait.Queue

	state         state
	local, remote Addr
	node          *vfs.Inode // the inode of the local path
	peer          *Socket    // of a connection, or the destination of datagrams
	clients       []*Socket  // UNIX datagram sockets whose destination this is
	shut          int
	closed        bool
	err           unix.Errno // to be reported once, SO_ERROR

	cork   []byte // UDP: of a datagram that is not complete
	corkTo Addr
	corked bool

	consumed uint64 // TCP: bytes received and read
	urgent   urgent

	phase      phase // TCP
	done       bool  // TCP: the other side has ended its half
	until      int64 // TCP: real time in ns at which TIME_WAIT ends
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

	service         bool      // of the kernel's service
	gated           *Gated    // TCP: the service's side of a connection through the gate
	heldConnections []*Socket // connections to be accepted that the gate holds

	owner     Cred // the creator of the socket, or of its listener
	peerOwner Cred
	reserved  bool   // has a port in the table
	place     int    // among the ends of its port, from 1; 0: it is not among them
	inode     uint64 // of its file
	outside   bool   // a program outside of the guest has it
	observed  int    // TCP: the number of the server's end of a connection in Stack.requests, from 1

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
	a.connectPair(b)
	return a, b, 0
}

// connectPair connects two UNIX sockets.
func (s *Socket) connectPair(o *Socket) {
	s.peer, o.peer = o, s
	s.peerOwner, o.peerOwner = o.owner, s.owner
	s.state, o.state = connected, connected
}

// Socket makes a socket, socket(2). The errors are those of the man page.
func (st *Stack) Socket(c *vfs.Ctx, family, kind, protocol int) (*Socket, unix.Errno) {
	kind, protocol, errno := checkArguments(c, family, kind, protocol)
	if errno != 0 {
		return nil, errno
	}
	s := &Socket{
		stack: st, family: family, kind: kind, protocol: protocol,
		queue: &wait.Queue{}, space: &wait.Queue{}, owner: credOf(c),
		peerOwner: noPeer, service: c != nil && c.Service,
	}
	s.local.Family = uint16(family)
	s.local.IP = s.anyAddress()
	s.opts = defaultOptions(s)
	return s, 0
}

// checkArguments checks the arguments of socket and fills in the default protocol.
func checkArguments(c *vfs.Ctx, family, kind, protocol int) (int, int, unix.Errno) {
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
		return checkInetArguments(c, kind, protocol)
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

func checkInetArguments(c *vfs.Ctx, kind, protocol int) (int, int, unix.Errno) {
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

// Stream reports whether the socket carries bytes and not messages.
func (s *Socket) Stream() bool { return s.kind == unix.SOCK_STREAM }

// Signals reports whether a write that fails with EPIPE raises SIGPIPE.
func (s *Socket) Signals() bool { return s.kind == unix.SOCK_STREAM }

func (s *Socket) isUnix() bool { return s.family == unix.AF_UNIX }

func (s *Socket) isTCP() bool { return s.protocol == unix.IPPROTO_TCP && !s.isUnix() }

func (s *Socket) isUDP() bool { return s.protocol == unix.IPPROTO_UDP && !s.isUnix() }

func (s *Socket) isNetlink() bool { return s.family == unix.AF_NETLINK }

// takeError returns and clears the pending error.
func (s *Socket) takeError() unix.Errno {
	errno := s.err
	s.err = 0
	return errno
}

// setPendingError sets the pending error.
func (s *Socket) setPendingError(errno unix.Errno) {
	s.err = errno
	s.queue.Wake(wait.AnyEvent)
}
