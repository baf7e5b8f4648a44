package publish

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// End is the guest's end of a connection.
type End interface {
	// Room is the number of bytes that the guest accepts now.
	Room() int
	// Pending is the number of bytes that the guest has sent and no operation has taken. Peek
	// copies the first of them.
	Pending() int
	Peek(b []byte) int
	// HasEnded reports whether the guest has sent all, and HasFailed whether it has refused or
	// reset the connection.
	HasEnded() bool
	HasFailed() bool
}

// conn is the host's end of a connection. Read and Write do not wait: unix.EAGAIN says that
// nothing can be transferred now, io.EOF that the client has sent all; other errors end the
// connection.
type conn interface {
	Read(b []byte) (int, error)
	Write(b []byte) (int, error)
	CloseWrite()
	Close()
	Reset()
}

// state is the state of a Link.
type state uint8

const (
	bothSend    state = iota // neither side has ended its half
	guestSends               // the client has ended its half, and the guest knows
	clientSends              // the guest has ended its half, and the client's connection knows
	closed                   // the connection has ended
)

// Sizes of transfers.
const (
	pieceSize = 64 << 10 // bytes of one operation at most
	maxPieces = 4        // operations of a link in one direction in one step
)

// link joins the two ends of one connection.
type link struct {
	number uint64
	port   uint16
	conn   conn
	end    End
	state  state
	// readable and writable report whether the connection has not said otherwise since the host
	// announced it. failed reports that the host has announced an error.
	readable, writable, failed bool
}

func newLink(number uint64, port uint16, c conn, end End) *link {
	return &link{number: number, port: port, conn: c, end: end, readable: true, writable: true}
}

// step carries over what can be carried over now. Operations of the client are given to act,
// which carries them out at once. The buffer has pieceSize bytes.
func (l *link) step(buffer []byte, act func(event.Client)) {
	if l.state == closed {
		return
	}
	l.deliver(buffer, act)
	if l.state != closed && (l.end.HasFailed() || l.failed && l.state == guestSends) {
		l.lose(act)
		return
	}
	if l.end.HasEnded() && l.end.Pending() == 0 {
		l.endGuestHalf()
	}
	l.receive(buffer, act)
}

// deliver writes to the client what the guest has sent.
func (l *link) deliver(buffer []byte, act func(event.Client)) {
	for range maxPieces {
		if !l.writable || l.end.Pending() == 0 || l.state == clientSends || l.state == closed {
			return
		}
		n, err := l.conn.Write(buffer[:l.end.Peek(buffer)])
		if n > 0 {
			act(l.operation(event.ClientTakes, uint64(n), nil))
		}
		switch {
		case errors.Is(err, unix.EAGAIN):
			l.writable = false
		case err != nil:
			l.lose(act)
		}
	}
}

// receive reads from the client what the guest has room for.
func (l *link) receive(buffer []byte, act func(event.Client)) {
	for range maxPieces {
		if !l.readable || l.state == guestSends || l.state == closed || l.end.HasFailed() {
			return
		}
		room := l.end.Room()
		if room == 0 {
			if l.failed {
				l.lose(act)
			}
			return
		}
		n, err := l.conn.Read(buffer[:min(room, len(buffer))])
		if n > 0 {
			act(l.operation(event.ClientSends, uint64(n), append([]byte(nil), buffer[:n]...)))
		}
		switch {
		case errors.Is(err, unix.EAGAIN):
			l.readable = false
		case err == io.EOF:
			act(l.operation(event.ClientEnds, 0, nil))
			l.endClientHalf()
		case err != nil:
			l.lose(act)
		}
	}
}

func (l *link) operation(op event.ClientOp, size uint64, data []byte) event.Client {
	return event.Client{Op: op, Connection: l.number, Port: l.port, Size: size, Data: data}
}

// endGuestHalf informs the client that the guest has sent all.
func (l *link) endGuestHalf() {
	switch l.state {
	case bothSend:
		l.conn.CloseWrite()
		l.state = clientSends
	case guestSends:
		l.conn.Close()
		l.state = closed
	}
}

// endClientHalf notes that the client has sent all.
func (l *link) endClientHalf() {
	switch l.state {
	case bothSend:
		l.state = guestSends
	case clientSends:
		l.conn.Close()
		l.state = closed
	}
}

// lose ends a connection that one side has reset. The other side learns of it.
func (l *link) lose(act func(event.Client)) {
	if !l.end.HasFailed() || l.end.Pending() > 0 {
		act(l.operation(event.ClientResets, 0, nil))
	}
	l.conn.Reset()
	l.state = closed
}

// finish ends a connection whose guest has ended: by a reset if not all that the guest has sent
// was delivered.
func (l *link) finish() {
	switch {
	case l.state == closed:
		return
	case l.end.Pending() > 0, l.end.HasFailed():
		l.conn.Reset()
	default:
		l.conn.Close()
	}
	l.state = closed
}
