package symtrace

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/flows"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Sockets and pipes between threads of the process are streams: one side receives the bytes that
// the other has sent, in their order. The schedule decides how many bytes were there when a thread
// received; words count the bytes that each side has sent. A send waits until there is room for all
// of its bytes.

// firstPair is where the numbers of connections begin that are made with both ends.
const firstPair = 1 << 20

// The number of bytes in flight at which a send waits: pipe(7), and tcp(7) for buffers of the
// default size.
const (
	roomOfPipe   = 1 << 16
	roomOfSocket = 1 << 21
)

// socketCall is a call that makes sockets or pipes.
func (w *threadExec) socketCall(number uint64, args *[6]uint64) error {
	switch number {
	case unix.SYS_SOCKET:
		if args[1]&^(unix.SOCK_CLOEXEC) != unix.SOCK_STREAM {
			return errors.New("a socket is created that is not a stream, or that is non-blocking, which is not supported")
		}
		return w.completeSyscall(w.newDescriptor(descriptor{kind: unconnected, flags: unix.O_RDWR}))
	case unix.SYS_ACCEPT, unix.SYS_ACCEPT4:
		return w.acceptStream(args[0])
	case unix.SYS_PIPE, unix.SYS_PIPE2, unix.SYS_SOCKETPAIR:
		return w.makePair(number, args)
	}
	return errNoMeaning(number)
}

// makePair makes both ends of a connection.
func (w *threadExec) makePair(number uint64, args *[6]uint64) error {
	to := args[0]
	if number == unix.SYS_SOCKETPAIR {
		to = args[3]
		if args[1]&^unix.SOCK_CLOEXEC != unix.SOCK_STREAM {
			return errors.New("a socket is created that is not a stream, or that is non-blocking, which is not supported")
		}
	} else if number == unix.SYS_PIPE2 && args[1]&^unix.O_CLOEXEC != 0 {
		return errors.New("a non-blocking pipe is created, which is not supported")
	}
	connection := firstPair + descriptors*uint64(w.number) + w.openedCount
	var b [8]byte
	for side := range uint64(2) {
		n := w.newDescriptor(descriptor{kind: stream, connection: connection, side: side, flags: unix.O_RDWR})
		binary.LittleEndian.PutUint32(b[4*side:], uint32(n))
	}
	w.kernelWrite(to, b[:])
	return w.completeSyscall(0)
}

// connectStream makes the next connection to the socket that is listened on.
func (w *threadExec) connectStream(number uint64) error {
	return w.withEachValue(w.incrementWord(wordConnected), func(w *threadExec, connection uint64) error {
		if connection >= firstPair {
			return errors.New("there are more connections than are supported")
		}
		w.pass.connected[connection] = true
		w.pass.descriptors[number] = descriptor{kind: stream, connection: connection, flags: unix.O_RDWR}
		return w.completeSyscall(0)
	})
}

// acceptStream gets the next connection that was made.
func (w *threadExec) acceptStream(listener uint64) error {
	if w.endIfBlocked() {
		return nil
	}
	if w.pass.listener != 0 && w.pass.listener != listener+1 {
		return errors.New("the program listens on two sockets, which is not supported")
	}
	w.pass.listener = listener + 1
	return w.withEachValue(w.incrementWord(wordAccepted), func(w *threadExec, connection uint64) error {
		p := w.pass.pool
		made := w.loadWord(wordConnected)
		if made.IsConst() && made.Value.Lo <= connection {
			w.endUntilNextPass("it accepts a connection that no thread makes")
			return nil
		}
		if err := w.addCondition(p.ULT(p.Word(connection, wordBits), made)); err != nil {
			return err
		}
		return w.completeSyscall(w.newDescriptor(descriptor{kind: stream, connection: connection, side: 1, flags: unix.O_RDWR}))
	})
}

func (w *threadExec) streamCall(number uint64, d descriptor, args *[6]uint64) error {
	switch number {
	case unix.SYS_READ:
		return w.receiveBytes(d, args[1], args[2], 0)
	case unix.SYS_RECVFROM:
		if args[4] != 0 {
			return errors.New("recvfrom is called for the address of the sender, which is not supported")
		}
		return w.receiveBytes(d, args[1], args[2], args[3])
	case unix.SYS_WRITE, unix.SYS_SENDTO:
		return w.sendBytes(d, args[1], args[2])
	case unix.SYS_CLOSE:
		return w.closeStream(d)
	case unix.SYS_SHUTDOWN:
		if args[1] == unix.SHUT_RD {
			return errNoMeaning(number)
		}
		return w.closeStream(d)
	}
	return errNoMeaning(number)
}

// closeStream ends the bytes that a side sends.
func (w *threadExec) closeStream(d descriptor) error {
	own := flows.Direction{Connection: d.connection, Side: d.side}
	return w.withEachValue(w.loadWord(wordSent(own.Connection, own.Side)), func(w *threadExec, at uint64) error {
		w.noteSent(flows.Piece{Direction: own, Ends: true})
		w.storeWord(wordSent(own.Connection, own.Side), w.pass.pool.Word(at|1<<closedBit, wordBits))
		return w.completeSyscall(0)
	})
}

// noteSent notes a piece that a thread sends.
func (w *threadExec) noteSent(s flows.Piece) {
	if w.forcedOntoPath == 0 {
		w.sentPieces = append(w.sentPieces, s)
		w.pass.flows.Add(&s)
	}
}

// sendBytes is write(2) and its relatives: all is taken, or the other side is closed.
func (w *threadExec) sendBytes(d descriptor, from, size uint64) error {
	own, other := flows.Direction{Connection: d.connection, Side: d.side}, flows.Direction{Connection: d.connection, Side: 1 - d.side}
	var ways []func(*threadExec)
	way := func(do func(*threadExec) error) {
		ways = append(ways, func(w *threadExec) { w.deferredErr = do(w) })
	}
	way(func(w *threadExec) error {
		return w.withEachValue(w.loadWord(wordSent(own.Connection, own.Side)), func(w *threadExec, at uint64) error {
			content := make([]byte, size)
			if !w.readConstants(from, content) {
				w.endUntilNextPass("what it sends depends on what it read")
				return nil
			}
			if err := w.assumeRoom(own, at+size); err != nil {
				return err
			}
			w.noteSent(flows.Piece{Direction: own, At: at, Bytes: content})
			w.storeWord(wordSent(own.Connection, own.Side), w.pass.pool.Word(at+size, wordBits))
			return w.completeSyscall(size)
		})
	})
	if f := w.pass.flows[other]; f != nil && f.Closed {
		way(func(w *threadExec) error {
			s := w.loadWord(wordSent(other.Connection, other.Side))
			if err := w.addCondition(w.pass.pool.Extract(s, closedBit, 1)); err != nil {
				return err
			}
			return w.completeSyscall(errno(unix.EPIPE))
		})
	}
	return w.tryAlternatives(ways)
}

// assumeRoom assumes that enough bytes were received that there is room for the rest.
func (w *threadExec) assumeRoom(d flows.Direction, end uint64) error {
	room := uint64(roomOfSocket)
	if d.Connection >= firstPair {
		room = roomOfPipe
	}
	if end <= room {
		return nil
	}
	p := w.pass.pool
	return w.assumeCondition(p.ULE(p.Word(end-room, wordBits), w.loadWord(wordReceived(d.Connection, d.Side))))
}

// readConstants reads bytes on behalf of the kernel; false: some are not known.
func (w *threadExec) readConstants(from uint64, b []byte) bool {
	for i := range b {
		at := from + uint64(i)
		if _, ok := w.pass.arrayAt(at); ok || w.pass.sharing.IsShared(at, 1) && !w.hasOwnValue(at, 1) {
			return false
		}
		e := w.substituteFixed(w.memory.Load(w.pass.pool, at, 1))
		if !e.IsConst() {
			return false
		}
		w.noteAccess(at, 1, false)
		b[i] = byte(e.Value.Lo)
	}
	return true
}

// receiveBytes is read(2) and its relatives: it receives the bytes that are there, or the end.
func (w *threadExec) receiveBytes(d descriptor, to, size, flags uint64) error {
	if w.endIfBlocked() {
		return nil
	}
	if flags&^(unix.MSG_PEEK|unix.MSG_NOSIGNAL) != 0 {
		return fmt.Errorf("a message is received with the flags %#x, which are not supported", flags)
	}
	from := flows.Direction{Connection: d.connection, Side: 1 - d.side}
	return w.withEachValue(w.loadWord(wordReceived(from.Connection, from.Side)), func(w *threadExec, at uint64) error {
		r := &receipt{from: from, at: at, to: to, size: size, peek: flags&unix.MSG_PEEK != 0}
		r.there = w.loadWord(wordSent(from.Connection, from.Side))
		return w.tryAlternatives(r.possibleCounts(w))
	})
}

// receipt is a thread that receives, from byte at on, when so much is there.
type receipt struct {
	from     flows.Direction
	at       uint64
	to, size uint64
	peek     bool
	there    *symbolic.Expr
}

// possibleCounts are the ways in which the call can have returned: with all bytes that were asked
// for, with fewer, or at the end.
func (r *receipt) possibleCounts(w *threadExec) []func(*threadExec) {
	f := w.pass.flows[r.from]
	if f == nil {
		return nil
	}
	p := w.pass.pool
	count := p.ZeroExt(p.Extract(r.there, 0, closedBit), wordBits)
	closed := p.Extract(r.there, closedBit, 1)
	var ways []func(*threadExec)
	way := func(n uint64, when *symbolic.Expr, result uint64) {
		if when = w.substituteFixed(when); !when.IsConst() || when.Value.Lo != 0 {
			ways = append(ways, func(w *threadExec) { w.deferredErr = r.receiveCount(w, n, when, result) })
		}
	}
	if end := r.at + r.size; uint64(len(f.Bytes)) >= end {
		way(r.size, p.ULE(p.Word(end, wordBits), count), r.size)
	}
	for i := len(f.Ends) - 1; i >= 0; i-- {
		if end := f.Ends[i]; end > r.at && end < r.at+r.size {
			way(end-r.at, p.Eq(count, p.Word(end, wordBits)), end-r.at)
		}
	}
	if f.Closed {
		way(0, p.And(closed, p.Eq(count, p.Word(r.at, wordBits))), 0)
		way(0, closed, errno(unix.ECONNRESET))
	}
	return ways
}

// receiveCount continues with n bytes, under the condition that no more were there.
func (r *receipt) receiveCount(w *threadExec, n uint64, when *symbolic.Expr, result uint64) error {
	if err := w.assumeCondition(when); err != nil {
		return err
	}
	w.kernelWrite(r.to, w.pass.flows[r.from].Bytes[r.at:r.at+n])
	if !r.peek && n > 0 {
		w.storeWord(wordReceived(r.from.Connection, r.from.Side), w.pass.pool.Word(r.at+n, wordBits))
	}
	return w.completeSyscall(result)
}

// Signals that threads wait for, and send, are units of semaphores.
