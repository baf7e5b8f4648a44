package sock

import (
	"math/bits"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// message is data in a receive queue: a datagram, or the bytes of one send on a stream.
type message struct {
	data   []byte
	from   Addr // unless sender has it
	to     Addr // that a datagram was sent to
	cred   Cred
	rights []*vfs.File // with references

	sender    *Socket // whose send buffer it is charged to, or nil
	cost      int     // bytes of the buffer
	uncharged bool    // the cost was returned
}

// discard drops the references and the charge of the message.
func (m *message) discard() {
	rights := m.rights
	m.rights = nil
	m.uncharge()
	if m.sender != nil {
		m.sender.stack.removeInflight(rights)
	}
	for _, f := range rights {
		f.Unref()
	}
}

// uncharge returns the cost to the sender.
func (m *message) uncharge() {
	s := m.sender
	if s == nil || m.uncharged {
		return
	}
	m.uncharged = true
	s.sent -= m.cost
	if s.isUnixWritable() {
		s.queue.Wake(unix.EPOLLOUT | unix.EPOLLWRNORM | unix.EPOLLWRBAND)
	}
}

// Outgoing is data to send.
type Outgoing struct {
	Data   []byte
	To     *Addr       // nil: the peer
	Rights []*vfs.File // references stay the caller's
	Cred   *Cred       // SCM_CREDENTIALS, checked by the caller
	OOB    bool
	More   bool // MSG_MORE
}

// Incoming is the buffer of a receiving call, and its result.
type Incoming struct {
	Data []byte // buffer
	Peek bool
	OOB  bool
	// Nonblock says that the call does not wait: a datagram socket that is shut down
	// answers EAGAIN to it, and the end to others.
	Nonblock bool

	N       int         // bytes in Data
	Size    int         // bytes of the datagram, more than N if it was cut
	From    Addr        // the sender
	HasFrom bool        // a name was given
	Rights  []*vfs.File // with references, which are now the caller's
	Cred    *Cred       // if the socket has SO_PASSCRED
	To      Addr        // destination of an UDP datagram
}

// Sizes of socket buffers' memory in Linux on x86-64: sizeof(struct sk_buff)
// rounded up, struct skb_shared_info, and the smallest and the largest head.
const (
	skbSize    = 256
	sharedInfo = 320
	minHead    = 512
	pageSize   = 4096
	maxHead    = pageSize - sharedInfo   // SKB_MAX_HEAD(0)
	maxAlloc   = 4*pageSize - sharedInfo // SKB_MAX_ALLOC
	fragBytes  = 32768                   // UNIX_SKB_FRAGS_SZ
	maxFrags   = 17 * pageSize           // MAX_SKB_FRAGS pages
)

// bufferCost is the charge of a buffer of n bytes, of which paged are in pages
// (skb->truesize).
func bufferCost(n, paged int) int {
	head := max(minHead, n-paged+sharedInfo)
	return skbSize + 1<<bits.Len(uint(head-1)) + roundToPages(paged)
}

func roundToPages(n int) int { return (n + pageSize - 1) &^ (pageSize - 1) }

// streamCost and datagramCost follow unix_stream_sendmsg and
// unix_dgram_sendmsg in net/unix/af_unix.c.
func streamCost(n int) int { return bufferCost(n, min(n, roundToPages(max(0, n-maxHead)))) }

func datagramCost(n int) int {
	return bufferCost(n, min(n, roundToPages(min(max(0, n-maxAlloc), maxFrags))))
}

// refAll takes a reference to each description.
func refAll(files []*vfs.File) []*vfs.File {
	for _, f := range files {
		f.Ref()
	}
	return append([]*vfs.File(nil), files...)
}

// enqueue puts a message in the receive queue.
func (s *Socket) enqueue(m *message) {
	s.recv = append(s.recv, m)
	s.addReceived(len(m.data))
	if m.sender != nil {
		m.sender.sent += m.cost
	}
	s.recvCost += m.cost
	s.queue.Wake(unix.EPOLLIN | unix.EPOLLRDNORM | unix.EPOLLRDBAND)
}

// addReceived counts bytes in the receive queue.
func (s *Socket) addReceived(n int) {
	s.recvBytes += n
	s.stack.held += n
	if n >= 0 {
		s.stack.memory.Force(uint64(n))
	} else {
		s.stack.memory.Release(uint64(-n))
	}
}

// dequeue removes and returns the first message.
func (s *Socket) dequeue() *message {
	m := s.recv[0]
	s.recv[0] = nil
	s.recv = s.recv[1:]
	s.recvCost -= m.cost
	return m
}

// purgeReceived drops everything that was not received.
func (s *Socket) purgeReceived() {
	for len(s.recv) > 0 {
		m := s.dequeue()
		s.addReceived(-len(m.data))
		m.discard()
	}
	s.recv = nil
}

// readStream fills in from a stream. EAGAIN: there is nothing.
func (s *Socket) readStream(in *Incoming) unix.Errno {
	at := 0
	for in.N < len(in.Data) && at < len(s.recv) {
		m := s.recv[at]
		if in.Cred != nil && *in.Cred != m.cred {
			break
		}
		if s.opts.passCred && s.isUnix() {
			c := m.cred
			in.Cred = &c
		}
		if in.N == 0 && s.isUnix() && m.sender.local.Name != "" {
			in.From, in.HasFrom = m.sender.local, true
		}
		n := copy(in.Data[in.N:], m.data)
		in.N += n
		last := len(m.rights) > 0
		s.takeRights(m, in)
		if in.Peek {
			at++
		} else {
			m.data = m.data[n:]
			s.addReceived(-n)
			s.consumed += uint64(n)
			if len(m.data) == 0 {
				s.dequeue().discard()
			}
		}
		if last {
			break
		}
	}
	if in.N == 0 && (len(in.Data) > 0 || len(s.recv) == 0) {
		return unix.EAGAIN
	}
	return 0
}

// takeRights passes the descriptions of a message to the caller, or shares them.
func (s *Socket) takeRights(m *message, in *Incoming) {
	if len(m.rights) == 0 {
		return
	}
	if in.Peek {
		in.Rights = refAll(m.rights)
		return
	}
	s.stack.removeInflight(m.rights)
	in.Rights, m.rights = m.rights, nil
}

// readMessage fills in from the first datagram.
func (s *Socket) readMessage(in *Incoming) unix.Errno {
	if len(s.recv) == 0 {
		return unix.EAGAIN
	}
	m := s.recv[0]
	in.N, in.Size = copy(in.Data, m.data), len(m.data)
	in.From, in.HasFrom, in.To = m.from, m.from.Family != 0, m.to
	if s.isUnix() {
		in.From, in.HasFrom = m.sender.local, m.sender.local.Name != ""
	}
	if s.opts.passCred && s.isUnix() {
		c := m.cred
		in.Cred = &c
	}
	s.takeRights(m, in)
	if in.Peek {
		return 0
	}
	full := s.isQueueFull()
	s.dequeue()
	s.addReceived(-len(m.data))
	m.discard()
	if full {
		s.wakeSenders()
	}
	return 0
}

// wakeSenders wakes the senders that wait for room in the receive queue.
func (s *Socket) wakeSenders() {
	s.space.Wake(wait.AnyEvent)
	for _, c := range s.clients {
		c.queue.Wake(unix.EPOLLOUT | unix.EPOLLWRNORM | unix.EPOLLWRBAND)
	}
}
