package sock

import "golang.org/x/sys/unix"

// Urgent data of TCP (MSG_OOB) is one byte of the stream, whose position the receiver
// remembers: tcp_check_urg and tcp_recv_urg of net/ipv4.

// urgent is a receiver's state of the last urgent byte.
type urgent struct {
	state urgentState
	at    uint64 // its position in the stream
	value byte
}

type urgentState uint8

const (
	noUrgent urgentState = iota
	urgentHere
	urgentRead // by MSG_OOB
)

// isInline reports whether urgent bytes are received like others, SO_OOBINLINE.
func (s *Socket) isInline() bool {
	return s.opts.values[option{unix.SOL_SOCKET, unix.SO_OOBINLINE}] != 0
}

// isAtMark reports whether the next byte to be received is the urgent one.
func (s *Socket) isAtMark() bool { return s.urgent.state != noUrgent && s.urgent.at == s.consumed }

// setMark makes the last of the next n bytes the urgent one.
func (s *Socket) setMark(n int, value byte) {
	if s.isAtMark() && !s.isInline() && s.recvBytes > 0 {
		s.skipByte()
	}
	s.urgent = urgent{urgentHere, s.consumed + uint64(s.recvBytes+n-1), value}
}

// skipByte removes the first byte of the stream.
func (s *Socket) skipByte() { _ = s.readStream(&Incoming{Data: make([]byte, 1)}) }

// readUrgent is recv with MSG_OOB.
func (s *Socket) readUrgent(in *Incoming) unix.Errno {
	switch {
	case s.isInline(), s.urgent.state == noUrgent, s.urgent.state == urgentRead:
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
	if s.isAtMark() && !s.isInline() && len(in.Data) > 0 {
		skipped = 1
	}
	part := *in
	if skipped == 0 && !s.isAtMark() && s.urgent.at > s.consumed {
		part.Data = in.Data[:min(uint64(len(in.Data)), s.urgent.at-s.consumed)]
	}
	switch {
	case in.Peek:
		part.Data = make([]byte, len(part.Data)+skipped)
	case skipped > 0:
		s.skipByte()
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

// bytesBeforeMark is the number of bytes that can be received before the urgent one.
func (s *Socket) bytesBeforeMark() int {
	if s.isInline() || s.urgent.state == noUrgent || s.urgent.at < s.consumed {
		return s.recvBytes
	}
	return int(s.urgent.at - s.consumed)
}

// hasEnough reports whether there are as many bytes to be received, besides the urgent
// one, as SO_RCVLOWAT demands.
func (s *Socket) hasEnough() bool {
	if s.isAtMark() && !s.isInline() {
		return s.recvBytes > s.MinReceive()
	}
	return s.recvBytes >= s.MinReceive()
}
