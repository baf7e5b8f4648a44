package sock

import "golang.org/x/sys/unix"

// Urgent data of TCP (MSG_OOB) is one byte of the stream, of which the receiver
// remembers the place: tcp_check_urg and tcp_recv_urg of net/ipv4.

// urgent is what a receiver knows of the last urgent byte.
type urgent struct {
	state urgentState
	at    uint64 // its place in the stream
	value byte
}

type urgentState uint8

const (
	noUrgent urgentState = iota
	urgentHere
	urgentRead // by MSG_OOB
)

// inline tells whether urgent bytes are received like others, SO_OOBINLINE.
func (s *Socket) inline() bool { return s.opts.values[option{unix.SOL_SOCKET, unix.SO_OOBINLINE}] != 0 }

// atMark tells whether the next byte to be received is the urgent one.
func (s *Socket) atMark() bool { return s.urgent.state != noUrgent && s.urgent.at == s.consumed }

// mark makes the last of n bytes that come next the urgent one.
func (s *Socket) mark(n int, value byte) {
	if s.atMark() && !s.inline() && s.recvBytes > 0 {
		s.skip()
	}
	s.urgent = urgent{urgentHere, s.consumed + uint64(s.recvBytes+n-1), value}
}

// skip takes the first byte of the stream away.
func (s *Socket) skip() { _ = s.readStream(&Incoming{Data: make([]byte, 1)}) }

// readUrgent is recv with MSG_OOB.
func (s *Socket) readUrgent(in *Incoming) unix.Errno {
	switch {
	case s.inline(), s.urgent.state == noUrgent, s.urgent.state == urgentRead:
		return unix.EINVAL
	case s.state == idle && !s.done:
		return unix.ENOTCONN
	}
	if !in.Peek {
		s.urgent.state = urgentRead
	}
	in.N = copy(in.Data, []byte{s.urgent.value})
	in.Size = 1
	return 0
}

// readTCP fills in from the stream. It stops before the urgent byte, or begins
// after it.
func (s *Socket) readTCP(in *Incoming) unix.Errno {
	if s.urgent.state == noUrgent {
		return s.readStream(in)
	}
	skipped := 0
	if s.atMark() && !s.inline() && len(in.Data) > 0 {
		skipped = 1
	}
	part := *in
	if skipped == 0 && !s.atMark() && s.urgent.at > s.consumed {
		part.Data = in.Data[:min(uint64(len(in.Data)), s.urgent.at-s.consumed)]
	}
	switch {
	case in.Peek:
		part.Data = make([]byte, len(part.Data)+skipped)
	case skipped > 0:
		s.skip()
	}
	errno := s.readStream(&part)
	if in.Peek {
		in.N = copy(in.Data, part.Data[min(skipped, part.N):part.N])
	} else {
		in.N = part.N
	}
	if s.consumed > s.urgent.at {
		s.urgent = urgent{}
	}
	if errno == 0 && in.N == 0 && len(in.Data) > 0 {
		return unix.EAGAIN
	}
	return errno
}

// plainBytes is how many bytes can be received before the urgent one.
func (s *Socket) plainBytes() int {
	if s.inline() || s.urgent.state == noUrgent || s.urgent.at < s.consumed {
		return s.recvBytes
	}
	return int(s.urgent.at - s.consumed)
}

// readable tells whether there are as many bytes to be received, besides the
// urgent one, as SO_RCVLOWAT says.
func (s *Socket) readable() bool {
	if s.atMark() && !s.inline() {
		return s.recvBytes > s.Least()
	}
	return s.recvBytes >= s.Least()
}
