package pipe

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// End is the file of an open description of a pipe or FIFO.
type End struct {
	pipe        *Pipe
	read, write bool

	// Packet is O_DIRECT: each write is a packet.
	Packet bool

	// sawWriters is the number of writers that there had been when a FIFO was
	// opened for reading without any: until another comes, the end of the data
	// is no hang-up. Otherwise it is a number that is never reached.
	sawWriters uint64
	// waitsFor is the partner that an open waits for, and the number of them
	// that there had been when it began.
	waitsFor partner
	seen     uint64
}

type partner uint8

const (
	nobody partner = iota
	aReader
	aWriter
)

// Open adds an end to a FIFO, see fifo(7), or to a pipe of pipe(2). ENXIO: a
// FIFO is opened for writing only, without blocking, and has no reader. An open
// that is to wait is not complete until Complete says so.
func (p *Pipe) Open(read, write, nonblock bool) (*End, unix.Errno) {
	if p.unnamed {
		return p.attach(read, write), 0
	}
	if write && !read && nonblock && p.readers == 0 {
		return nil, unix.ENXIO
	}
	e := p.attach(read, write)
	switch {
	case read && !write && p.writers == 0 && nonblock:
		e.sawWriters = p.writerOpens
	case read && !write && p.writers == 0:
		e.waitsFor, e.seen = aWriter, p.writerOpens
	case write && !read && p.readers == 0:
		e.waitsFor, e.seen = aReader, p.readerOpens
	}
	p.openQueue.Wake(wait.AnyEvent)
	return e, 0
}

// Complete reports whether the partner that the open waits for has come, even if
// it is gone again.
func (e *End) Complete() bool {
	switch e.waitsFor {
	case aReader:
		return e.pipe.readerOpens != e.seen
	case aWriter:
		return e.pipe.writerOpens != e.seen
	}
	return true
}

// Opens is the queue that is woken when Complete may have changed.
func (e *End) Opens() *wait.Queue { return e.pipe.openQueue }

// Pipe is the pipe that the end belongs to.
func (e *End) Pipe() *Pipe { return e.pipe }

// Read implements vfs.FileImpl.
func (e *End) Read(_ *vfs.Ctx, b []byte, _ int64) (int, unix.Errno) { return e.pipe.Read(b) }

// Write implements vfs.FileImpl.
func (e *End) Write(_ *vfs.Ctx, b []byte, _ int64) (int, unix.Errno) {
	return e.pipe.Write(b, e.Packet)
}

// Ready implements vfs.Poller.
func (e *End) Ready() uint32 {
	p := e.pipe
	var mask uint32
	if e.read {
		if len(p.slots) > 0 {
			mask |= unix.EPOLLIN | unix.EPOLLRDNORM
		}
		if p.writers == 0 && e.sawWriters != p.writerOpens {
			mask |= unix.EPOLLHUP
		}
	}
	if e.write {
		if !p.full() {
			mask |= unix.EPOLLOUT | unix.EPOLLWRNORM
		}
		if p.readers == 0 {
			mask |= unix.EPOLLERR
		}
	}
	return mask
}

// Waiters implements vfs.Poller.
func (e *End) Waiters() *wait.Queue {
	switch {
	case e.read && e.write:
		return e.pipe.bothQueue
	case e.read:
		return e.pipe.readQueue
	default:
		return e.pipe.writeQueue
	}
}

// Ioctl implements vfs.Ioctler: FIONREAD (which has the value of TIOCINQ).
func (e *End) Ioctl(cmd uint32, _ int64) ([]byte, unix.Errno) {
	if cmd != unix.TIOCINQ {
		return nil, unix.ENOTTY
	}
	return binary.LittleEndian.AppendUint32(nil, uint32(e.pipe.Len())), 0
}

// Close implements vfs.Closer.
func (e *End) Close() { e.pipe.detach(e) }

// Capacity is the size of the pipe in bytes, F_GETPIPE_SZ.
func (e *End) Capacity() int { return e.pipe.capacity() }

// SetCapacity changes it to at least n bytes, F_SETPIPE_SZ. EINVAL: no pipe can
// have that size; EPERM: it is above the limit; EBUSY: more is in use.
func (e *End) SetCapacity(n int, unlimited bool) unix.Errno { return e.pipe.setCapacity(n, unlimited) }
