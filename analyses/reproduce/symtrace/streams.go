package symtrace

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Sockets and pipes between the threads of the process are streams: what one side
// receives is what the other one has sent, in this order. How much was there when a
// thread received is what the schedule decides; sides count in words what they have
// sent. A send waits until there is room for all of it.

// pairs is where the numbers of connections begin that are made with both ends.
const pairs = 1 << 20

// What is under way at most before a send waits: pipe(7), and tcp(7) for buffers of the
// default size.
const (
	roomOfPipe   = 1 << 16
	roomOfSocket = 1 << 21
)

// socketCall is a call that makes sockets or pipes.
func (w *walker) socketCall(number uint64, args *[6]uint64) error {
	switch number {
	case unix.SYS_SOCKET:
		if args[1]&^(unix.SOCK_CLOEXEC) != unix.SOCK_STREAM {
			return errors.New("a thread makes a socket that is no stream, or does not wait")
		}
		return w.over(w.describe(descriptor{kind: fresh, flags: unix.O_RDWR}))
	case unix.SYS_ACCEPT, unix.SYS_ACCEPT4:
		return w.accept(args[0])
	case unix.SYS_PIPE, unix.SYS_PIPE2, unix.SYS_SOCKETPAIR:
		return w.pair(number, args)
	}
	return meaningless(number)
}

// pair makes both ends of a connection.
func (w *walker) pair(number uint64, args *[6]uint64) error {
	to := args[0]
	if number == unix.SYS_SOCKETPAIR {
		to = args[3]
		if args[1]&^unix.SOCK_CLOEXEC != unix.SOCK_STREAM {
			return errors.New("a thread makes a socket that is no stream, or does not wait")
		}
	} else if number == unix.SYS_PIPE2 && args[1]&^unix.O_CLOEXEC != 0 {
		return errors.New("a thread makes a pipe that does not wait")
	}
	connection := pairs + descriptors*uint64(w.number) + w.opened
	var b [8]byte
	for side := range uint64(2) {
		n := w.describe(descriptor{kind: stream, connection: connection, side: side, flags: unix.O_RDWR})
		binary.LittleEndian.PutUint32(b[4*side:], uint32(n))
	}
	w.fill(to, b[:])
	return w.over(0)
}

// connect makes the next connection to the socket that is listened on.
func (w *walker) connect(number uint64) error {
	return w.valued(w.count(wordConnected), func(w *walker, connection uint64) error {
		if connection >= pairs {
			return errors.New("there are too many connections")
		}
		w.b.connected[connection] = true
		w.b.descriptors[number] = descriptor{kind: stream, connection: connection, flags: unix.O_RDWR}
		return w.over(0)
	})
}

// accept gets the next connection that was made.
func (w *walker) accept(listener uint64) error {
	if w.blocked() {
		return nil
	}
	if w.b.listener != 0 && w.b.listener != listener+1 {
		return errors.New("two sockets are listened on")
	}
	w.b.listener = listener + 1
	return w.valued(w.count(wordAccepted), func(w *walker, connection uint64) error {
		p := w.b.pool
		made := w.word(wordConnected)
		if made.IsConst() && made.Value.Lo <= connection {
			w.starves("it accepts a connection that nobody makes")
			return nil
		}
		if err := w.condition(p.ULT(p.Word(connection, wordBits), made)); err != nil {
			return err
		}
		return w.over(w.describe(descriptor{kind: stream, connection: connection, side: 1, flags: unix.O_RDWR}))
	})
}

func (w *walker) streamCall(number uint64, d descriptor, args *[6]uint64) error {
	switch number {
	case unix.SYS_READ:
		return w.receive(d, args[1], args[2], 0)
	case unix.SYS_RECVFROM:
		if args[4] != 0 {
			return errors.New("a thread asks who has sent")
		}
		return w.receive(d, args[1], args[2], args[3])
	case unix.SYS_WRITE, unix.SYS_SENDTO:
		return w.send(d, args[1], args[2])
	case unix.SYS_CLOSE:
		return w.closes(d)
	case unix.SYS_SHUTDOWN:
		if args[1] == unix.SHUT_RD {
			return meaningless(number)
		}
		return w.closes(d)
	}
	return meaningless(number)
}

// closes ends what a side sends.
func (w *walker) closes(d descriptor) error {
	own := direction{d.connection, d.side}
	return w.valued(w.word(wordSent(own.connection, own.side)), func(w *walker, at uint64) error {
		w.sends(sent{direction: own, ends: true})
		w.setWord(wordSent(own.connection, own.side), w.b.pool.Word(at|1<<closedBit, wordBits))
		return w.over(0)
	})
}

// sends notes what a thread sends.
func (w *walker) sends(s sent) {
	if w.strayed == 0 {
		w.sent = append(w.sent, s)
		w.b.flows.put(&s)
	}
}

// send is write(2) and its relatives: all is taken, or the other side is closed.
func (w *walker) send(d descriptor, from, size uint64) error {
	own, other := direction{d.connection, d.side}, direction{d.connection, 1 - d.side}
	var ways []func(*walker)
	way := func(do func(*walker) error) {
		ways = append(ways, func(w *walker) { w.late = do(w) })
	}
	way(func(w *walker) error {
		return w.valued(w.word(wordSent(own.connection, own.side)), func(w *walker, at uint64) error {
			content := make([]byte, size)
			if !w.copyIn(from, content) {
				w.starves("what it sends depends on what it read")
				return nil
			}
			if err := w.fits(own, at+size); err != nil {
				return err
			}
			w.sends(sent{direction: own, at: at, bytes: content})
			w.setWord(wordSent(own.connection, own.side), w.b.pool.Word(at+size, wordBits))
			return w.over(size)
		})
	})
	if f := w.b.flows[other]; f != nil && f.closed {
		way(func(w *walker) error {
			s := w.word(wordSent(other.connection, other.side))
			if err := w.condition(w.b.pool.Extract(s, closedBit, 1)); err != nil {
				return err
			}
			return w.over(errno(unix.EPIPE))
		})
	}
	return w.choosesWay(ways)
}

// fits has so much received of what a side sends that there is room for the rest.
func (w *walker) fits(d direction, end uint64) error {
	room := uint64(roomOfSocket)
	if d.connection >= pairs {
		room = roomOfPipe
	}
	if end <= room {
		return nil
	}
	p := w.b.pool
	return w.assume(p.ULE(p.Word(end-room, wordBits), w.word(wordReceived(d.connection, d.side))))
}

// copyIn reads what the kernel does; false: it is not known.
func (w *walker) copyIn(from uint64, b []byte) bool {
	for i := range b {
		at := from + uint64(i)
		if _, ok := w.b.inArray(at); ok || w.b.sharing.shared(at, 1) && !w.knows(at, 1) {
			return false
		}
		e := w.settled(w.mem.load(w.b.pool, at, 1))
		if !e.IsConst() {
			return false
		}
		w.touched(at, 1, false)
		b[i] = byte(e.Value.Lo)
	}
	return true
}

// receive is read(2) and its relatives: what is there, or the end.
func (w *walker) receive(d descriptor, to, size, flags uint64) error {
	if w.blocked() {
		return nil
	}
	if flags&^(unix.MSG_PEEK|unix.MSG_NOSIGNAL) != 0 {
		return fmt.Errorf("a thread receives with flags %#x", flags)
	}
	from := direction{d.connection, 1 - d.side}
	return w.valued(w.word(wordReceived(from.connection, from.side)), func(w *walker, at uint64) error {
		r := &receiving{from: from, at: at, to: to, size: size, peek: flags&unix.MSG_PEEK != 0}
		r.there = w.word(wordSent(from.connection, from.side))
		return w.choosesWay(r.ways(w))
	})
}

// receiving is a thread that receives, from byte at on, when so much is there.
type receiving struct {
	from     direction
	at       uint64
	to, size uint64
	peek     bool
	there    *symbolic.Expr
}

// ways are what there can have been: as much as is wanted, less, or the end.
func (r *receiving) ways(w *walker) []func(*walker) {
	f := w.b.flows[r.from]
	if f == nil {
		return nil
	}
	p := w.b.pool
	count := p.ZeroExt(p.Extract(r.there, 0, closedBit), wordBits)
	closed := p.Extract(r.there, closedBit, 1)
	var ways []func(*walker)
	way := func(n uint64, when *symbolic.Expr, result uint64) {
		if when = w.settled(when); !when.IsConst() || when.Value.Lo != 0 {
			ways = append(ways, func(w *walker) { w.late = r.gets(w, n, when, result) })
		}
	}
	if end := r.at + r.size; uint64(len(f.bytes)) >= end {
		way(r.size, p.ULE(p.Word(end, wordBits), count), r.size)
	}
	for i := len(f.ends) - 1; i >= 0; i-- {
		if end := f.ends[i]; end > r.at && end < r.at+r.size {
			way(end-r.at, p.Eq(count, p.Word(end, wordBits)), end-r.at)
		}
	}
	if f.closed {
		way(0, p.And(closed, p.Eq(count, p.Word(r.at, wordBits))), 0)
		way(0, closed, errno(unix.ECONNRESET))
	}
	return ways
}

// gets goes on with so many bytes, of which a condition tells that they were all.
func (r *receiving) gets(w *walker, n uint64, when *symbolic.Expr, result uint64) error {
	if err := w.assume(when); err != nil {
		return err
	}
	w.fill(r.to, w.b.flows[r.from].bytes[r.at:r.at+n])
	if !r.peek && n > 0 {
		w.setWord(wordReceived(r.from.connection, r.from.side), w.b.pool.Word(r.at+n, wordBits))
	}
	return w.over(result)
}

// Signals that threads wait for, and send, are units of semaphores.

// signalObject is the object of a signal to the process, and cancelObject of the one
// that cancels a thread.
func signalObject(number uint64) uint64 { return kernelObjects + 8*number }

func (w *walker) cancelObject() uint64 { return kernelObjects + 8*(signals+uint64(w.number)) }

const (
	signals      = 64
	signalCancel = 32 // of glibc: nptl/descr.h, SIGCANCEL
	signalInfo   = 128
)

// signalCall is a call about signals.
func (w *walker) signalCall(number uint64, args *[6]uint64) error {
	switch {
	case number == unix.SYS_KILL && args[0] == uint64(w.b.walkers[0].ID) && args[1] < signals:
		w.raised = append(w.raised, args[1])
		w.b.signals[args[1]] = true
		w.add(model.Event{Kind: model.Post, Object: w.b.objectID(signalObject(args[1]))}, false)
		return w.over(0)
	case number == unix.SYS_TGKILL && args[2] == signalCancel:
		for _, t := range w.b.walkers {
			if uint64(t.ID) == args[1] {
				w.setWord(t.cancelObject(), w.b.pool.Word(1, wordBits))
				w.add(model.Event{Kind: model.Post, Object: w.b.objectID(t.cancelObject())}, false)
				return w.over(0)
			}
		}
	case number == unix.SYS_RT_SIGTIMEDWAIT && args[2] == 0:
		return w.waitsForSignal(args)
	}
	return meaningless(number)
}

func (w *walker) waitsForSignal(args *[6]uint64) error {
	if w.blocked() {
		return nil
	}
	var set [8]byte
	if !w.copyIn(args[0], set[:]) {
		return errors.New("it is not known which signals a thread waits for")
	}
	var ways []func(*walker)
	for n := range uint64(signals) {
		if n > 0 && valueOf(set[:]).Lo>>(n-1)&1 != 0 && w.b.signals[n] {
			ways = append(ways, func(w *walker) {
				w.add(model.Event{Kind: model.Take, Object: w.b.objectID(signalObject(n))}, false)
				info := make([]byte, signalInfo)
				binary.LittleEndian.PutUint32(info, uint32(n))
				if args[1] != 0 {
					w.fill(args[1], info)
				}
				w.late = w.over(n)
			})
		}
	}
	return w.choosesWay(ways)
}
