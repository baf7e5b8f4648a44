package pipe

import (
	"math/bits"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// Sizes of fs/pipe.c and include/linux/pipe_fs_i.h.
const (
	// PageSize is the number of bytes of a slot, and PIPE_BUF.
	PageSize = 4096
	// DefaultSlots makes the usual capacity of 64 KiB.
	DefaultSlots = 16
	// MaxCapacity is /proc/sys/fs/pipe-max-size.
	MaxCapacity = 1 << 20
	// softPages is /proc/sys/fs/pipe-user-pages-soft, the pages that all pipes
	// may have before new ones get only minSlots.
	softPages = 16384
	minSlots  = 2
)

// Account counts the pages that pipes may use, as Linux does for a user, and
// the pages in use. The zero value is ready for use.
type Account struct {
	// Memory is charged for the data in pipes, unless it is nil.
	Memory *kmem.Account

	pages int
}

// Pipe is the object of a pipe or a FIFO.
type Pipe struct {
	account  *Account
	unnamed  bool   // of pipe(2): opens, through /proc/self/fd, do not wait
	slots    []slot // in use, the oldest first
	maxSlots int
	charged  int // pages of the account

	readers, writers         int    // open ends
	readerOpens, writerOpens uint64 // how many there ever were
	readQueue, writeQueue    *wait.Queue
	bothQueue                *wait.Queue // of ends that read and write
	openQueue                *wait.Queue // of FIFO opens that wait for the other side
}

// slot is one page of the ring.
type slot struct {
	data   []byte // unread
	end    int    // offset in the page after data
	packet bool   // written in packet mode: one read takes it
	merge  bool   // more can be appended
}

// New makes a pipe without ends.
func New(a *Account) *Pipe {
	return &Pipe{
		account: a, readQueue: &wait.Queue{}, writeQueue: &wait.Queue{}, bothQueue: &wait.Queue{},
		openQueue: &wait.Queue{},
	}
}

// Pair makes a pipe(2); packet is O_DIRECT.
func Pair(a *Account, packet bool) (read, write *End) {
	p := New(a)
	p.unnamed = true
	r, w := p.attach(true, false), p.attach(false, true)
	r.Packet, w.Packet = packet, packet
	return r, w
}

// charge takes pages for the first end that is opened.
func (p *Pipe) charge() {
	p.maxSlots = DefaultSlots
	if p.account.pages+p.maxSlots > softPages {
		p.maxSlots = minSlots
	}
	p.charged = p.maxSlots
	p.account.pages += p.charged
}

// attach adds an end.
func (p *Pipe) attach(read, write bool) *End {
	if p.readers+p.writers == 0 {
		p.charge()
	}
	if read {
		p.readers++
		p.readerOpens++
	}
	if write {
		p.writers++
		p.writerOpens++
	}
	return &End{pipe: p, read: read, write: write, sawWriters: ^uint64(0)}
}

// detach takes an end away. With the last one all data is lost.
func (p *Pipe) detach(e *End) {
	if e.read {
		p.readers--
	}
	if e.write {
		p.writers--
	}
	if p.readers+p.writers == 0 {
		p.account.Memory.Release(uint64(len(p.slots)) * PageSize)
		p.slots = nil
		p.account.pages -= p.charged
		p.charged = 0
		return
	}
	p.wakeReaders(wait.AnyEvent)
	p.wakeWriters(wait.AnyEvent)
}

func (p *Pipe) wakeReaders(events uint32) {
	p.readQueue.Wake(events)
	p.bothQueue.Wake(events)
}

func (p *Pipe) wakeWriters(events uint32) {
	p.writeQueue.Wake(events)
	p.bothQueue.Wake(events)
}

func (p *Pipe) full() bool { return len(p.slots) >= p.maxSlots }

// Len is the number of unread bytes.
func (p *Pipe) Len() int {
	n := 0
	for i := range p.slots {
		n += len(p.slots[i].data)
	}
	return n
}

// Free is the number of bytes that a write of whole pages would store.
func (p *Pipe) Free() int { return max(0, p.maxSlots-len(p.slots)) * PageSize }

// HasReaders reports whether an end that reads is open; without one writes fail.
func (p *Pipe) HasReaders() bool { return p.readers > 0 }

// HasWriters reports whether an end that writes is open; without one an empty
// pipe is at its end.
func (p *Pipe) HasWriters() bool { return p.writers > 0 }

// Write appends b. EPIPE: there is no reader. EAGAIN: nothing fits. ENOMEM: the
// kernel's memory is used up.
func (p *Pipe) Write(b []byte, packet bool) (int, unix.Errno) {
	if len(b) == 0 {
		return 0, 0
	}
	if p.readers == 0 {
		return 0, unix.EPIPE
	}
	n := 0
	if odd := len(b) % PageSize; odd != 0 && len(p.slots) > 0 {
		n = p.merge(b[:odd])
	}
	for n < len(b) && !p.full() {
		if !p.account.Memory.Charge(PageSize) {
			if n == 0 {
				return 0, unix.ENOMEM
			}
			break
		}
		part := min(len(b)-n, PageSize)
		p.slots = append(p.slots, slot{data: append([]byte(nil), b[n:n+part]...), end: part, packet: packet, merge: !packet})
		n += part
	}
	if n == 0 {
		return 0, unix.EAGAIN
	}
	p.wakeReaders(unix.EPOLLIN | unix.EPOLLRDNORM)
	return n, 0
}

// merge appends b to the last slot if the rest of its page has room.
func (p *Pipe) merge(b []byte) int {
	last := &p.slots[len(p.slots)-1]
	if !last.merge || last.end+len(b) > PageSize {
		return 0
	}
	last.data = append(last.data, b...)
	last.end += len(b)
	return len(b)
}

// Read takes up to len(b) bytes; a packet gives no more than itself. At the end
// it returns 0. EAGAIN: there may be data later.
func (p *Pipe) Read(b []byte) (int, unix.Errno) {
	if len(b) == 0 {
		return 0, 0
	}
	n := 0
	wasFull := false
	for n < len(b) && len(p.slots) > 0 {
		first := &p.slots[0]
		part := copy(b[n:], first.data)
		n += part
		first.data = first.data[part:]
		packet := first.packet
		if packet || len(first.data) == 0 {
			wasFull = wasFull || p.full()
			p.drop()
		}
		if packet {
			break
		}
	}
	if wasFull {
		p.wakeWriters(unix.EPOLLOUT | unix.EPOLLWRNORM)
	}
	if n == 0 && p.writers > 0 {
		return 0, unix.EAGAIN
	}
	return n, 0
}

// drop removes the first slot.
func (p *Pipe) drop() {
	p.account.Memory.Release(PageSize)
	p.slots[0] = slot{}
	if p.slots = p.slots[1:]; len(p.slots) == 0 {
		p.slots = nil
	}
}

// Peek copies the bytes that Read would return, and leaves them in the pipe.
func (p *Pipe) Peek(b []byte) int {
	n := 0
	for i := range p.slots {
		n += copy(b[n:], p.slots[i].data)
		if p.slots[i].packet {
			break
		}
	}
	return n
}

// Tee appends up to limit bytes of p to to, and leaves them in p; see tee(2).
// It returns 0 if there is nothing, or no room.
func (p *Pipe) Tee(to *Pipe, limit int) int {
	n := 0
	for i := range p.slots {
		if n == limit || to.full() || !to.account.Memory.Charge(PageSize) {
			break
		}
		s := p.slots[i]
		part := min(len(s.data), limit-n)
		to.slots = append(to.slots, slot{data: append([]byte(nil), s.data[:part]...), end: s.end, packet: s.packet})
		n += part
	}
	if n > 0 {
		to.wakeReaders(unix.EPOLLIN | unix.EPOLLRDNORM)
	}
	return n
}

// capacity is the size of the ring in bytes.
func (p *Pipe) capacity() int { return p.maxSlots * PageSize }

// setCapacity changes it, see F_SETPIPE_SZ in fcntl(2). EINVAL: no pipe can have
// that size; EPERM: it is more than MaxCapacity; EBUSY: more is in use.
func (p *Pipe) setCapacity(n int, unlimited bool) unix.Errno {
	if n < 0 || n > 1<<31-1 {
		return unix.EINVAL
	}
	slots := 1
	if n > PageSize {
		slots = 1 << bits.Len(uint((n-1)/PageSize))
	}
	switch {
	case slots > p.maxSlots && slots*PageSize > MaxCapacity && !unlimited:
		return unix.EPERM
	case slots > p.maxSlots && p.account.pages-p.charged+slots > softPages && !unlimited:
		return unix.EPERM
	case slots < len(p.slots):
		return unix.EBUSY
	}
	wasFull := p.full()
	p.account.pages += slots - p.charged
	p.charged, p.maxSlots = slots, slots
	if wasFull {
		p.wakeWriters(unix.EPOLLOUT | unix.EPOLLWRNORM)
	}
	return 0
}
