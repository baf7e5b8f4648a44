package kernel

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/sock"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// receiving is a receive call in progress.
type receiving struct {
	file   *vfs.File
	socket *sock.Socket
	in     sock.Incoming
	ranges []mm.Range
	flags  int
}

func sysRecvfrom(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, s, errno := t.findSocket(a[0])
	if errno != 0 {
		return 0, errno
	}
	m := &receiving{file: f, socket: s, ranges: singleRange(a[1], a[2]), flags: int(int32(a[3]))}
	n, errno := t.receiveData(m)
	for _, f := range m.in.Rights {
		f.Unref()
	}
	if errno == 0 && a[4] != 0 {
		errno = t.storeAddress(m.sender(), a[4], a[5])
	}
	return n, errno
}

// readSocket is read(2) of a socket: a read of no bytes does not reach the socket.
func (t *Task) readSocket(f *vfs.File, s *sock.Socket, ranges []mm.Range) (uint64, unix.Errno) {
	if !slices.ContainsFunc(ranges, func(r mm.Range) bool { return r.Len > 0 }) {
		return 0, 0
	}
	m := &receiving{file: f, socket: s, ranges: ranges}
	n, errno := t.receiveData(m)
	for _, f := range m.in.Rights {
		f.Unref()
	}
	return n, errno
}

// sender is the sender's encoded address; empty without a sender.
func (m *receiving) sender() []byte {
	if !m.in.HasFrom {
		return nil
	}
	return m.in.From.Bytes(m.socket.Family())
}

func sysRecvmsg(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, s, errno := t.findSocket(a[0])
	if errno != 0 {
		return 0, errno
	}
	return t.receiveMessage(f, s, arch.Addr(a[1]), int(int32(a[2])))
}

func sysRecvmmsg(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, s, errno := t.findSocket(a[0])
	if errno != 0 {
		return 0, errno
	}
	deadline, errno := t.optionalTimeout(arch.Addr(a[4]))
	if errno != 0 {
		return 0, errno
	}
	count := min(uint64(uint32(a[2])), maxMessages)
	flags := int(int32(a[3]))
	done, _ := t.call.data.(uint64)
	for done < count {
		at := arch.Addr(a[1] + done*multiSize)
		n, errno := t.receiveMessage(f, s, at, flags&^unix.MSG_WAITFORONE)
		if errno == 0 {
			errno = t.proc.space.WriteU32(at+multiLen, uint32(n))
		}
		if errno == errBlocked {
			t.call.data = done
			return 0, errno
		}
		if errno != 0 {
			if done > 0 && errno != unix.EAGAIN {
				s.SetError(errno) // for the next call
			}
			return partialResult(done, errno)
		}
		done++
		t.call.progress = 0
		if flags&unix.MSG_WAITFORONE != 0 {
			flags |= unix.MSG_DONTWAIT
		}
		if deadline <= t.k.clock.now {
			break
		}
	}
	return done, 0
}

// receiveMessage is recvmsg with the struct msghdr at an address.
func (t *Task) receiveMessage(f *vfs.File, s *sock.Socket, at arch.Addr, flags int) (uint64, unix.Errno) {
	var h messageHeader
	if errno := readStruct(t, at, &h); errno != 0 {
		return 0, errno
	}
	if h.Name != 0 && int32(h.NameLen) < 0 {
		return 0, unix.EINVAL
	}
	if h.VectorLen > mm.MaxRanges {
		return 0, unix.EMSGSIZE
	}
	ranges, errno := t.proc.space.ReadRanges(arch.Addr(h.Vector), h.VectorLen)
	if errno != 0 {
		return 0, errno
	}
	m := &receiving{file: f, socket: s, ranges: ranges, flags: flags}
	n, errno := t.receiveData(m)
	if errno != 0 {
		return n, errno
	}
	out := uint32(flags & unix.MSG_CMSG_CLOEXEC)
	if m.in.Size > m.in.N {
		out |= unix.MSG_TRUNC
	}
	if m.in.OOB {
		out |= unix.MSG_OOB
	}
	used, errno := t.storeControl(m, &h, &out)
	if errno == 0 && h.Name != 0 {
		raw := m.sender()
		errno = t.copyOut(arch.Addr(h.Name), raw[:min(len(raw), int(h.NameLen))])
		if errno == 0 {
			errno = t.proc.space.WriteU32(at+headerNameLen, uint32(len(raw)))
		}
	}
	if errno == 0 {
		errno = t.proc.space.WriteU64(at+headerControlLen, used)
	}
	if errno == 0 {
		errno = t.proc.space.WriteU32(at+headerFlags, out)
	}
	return n, errno
}

// receiveData fills the buffers of a receive call.
func (t *Task) receiveData(m *receiving) (uint64, unix.Errno) {
	x, errno := t.newTransfer(m.file, m.ranges, position{})
	if errno != 0 {
		return 0, errno
	}
	if m.flags&unix.MSG_ERRQUEUE != 0 && !m.socket.Local() {
		return 0, unix.EAGAIN
	}
	m.in.Peek, m.in.OOB = m.flags&unix.MSG_PEEK != 0, m.flags&unix.MSG_OOB != 0
	m.in.Nonblock = m.file.Nonblock() || m.flags&unix.MSG_DONTWAIT != 0
	if m.socket.Stream() {
		return ioResult(t.receiveStream(m, x))
	}
	return ioResult(t.receiveDatagram(m, x))
}

// receiveDatagram receives one message. If it cannot be stored it is lost, as on Linux.
func (t *Task) receiveDatagram(m *receiving, x *transfer) (uint64, unix.Errno) {
	m.in.Data = t.k.scratch.buffer(min(x.total, maxDatagram))
	errno := m.socket.Recv(&m.in)
	if errno == unix.EAGAIN && !m.in.Nonblock {
		errno = t.socketWait(m.socket, false, m.socket.Waiters())
	}
	if errno != 0 {
		return 0, errno
	}
	n, errno := t.proc.space.CopyOutRanges(x.ranges, m.in.Data[:m.in.N])
	if errno == 0 && m.flags&unix.MSG_TRUNC != 0 {
		n = max(m.in.N, m.in.Size)
	}
	return uint64(n), errno
}

// receiveStream receives bytes until the number that the call and SO_RCVLOWAT require has arrived,
// no more can arrive, or control data has arrived.
func (t *Task) receiveStream(m *receiving, x *transfer) (uint64, unix.Errno) {
	done := uint64(t.call.progress)
	least := min(uint64(m.socket.MinReceive()), x.total)
	switch {
	case m.in.Peek || m.in.OOB:
		least = 0
	case m.flags&unix.MSG_WAITALL != 0:
		least = x.total
	}
	for {
		errno := t.receivePart(m, x, done)
		if errno == unix.EAGAIN && !m.in.Nonblock && (done == 0 || done < least) {
			t.call.progress = int(done)
			if errno = t.socketWait(m.socket, false, m.socket.Waiters()); errno == errBlocked {
				return 0, errno
			}
		}
		if errno != 0 {
			return partialResult(done, errno)
		}
		done += uint64(m.in.N)
		switch {
		case m.in.Peek, m.in.OOB, m.in.N == 0, done == x.total, len(m.in.Rights) > 0, m.socket.AtMark():
			return done, 0
		case m.in.N < len(m.in.Data) && done >= least:
			return done, 0
		}
	}
}

// receivePart receives bytes of a stream into memory after the first done bytes. Bytes that cannot
// be stored stay in the socket.
func (t *Task) receivePart(m *receiving, x *transfer, done uint64) unix.Errno {
	size := min(x.total-done, chunkSize)
	drop := m.socket.Discards() && m.flags&unix.MSG_TRUNC != 0
	if !drop {
		for size > 0 && t.checkWritable(x.remaining(done), m.socket.Available(size)) != 0 {
			if size = m.socket.WholeChunks(size); size == 0 {
				return unix.EFAULT
			}
		}
	}
	m.in.Data, m.in.N = t.k.scratch.buffer(size), 0
	if errno := m.socket.Recv(&m.in); errno != 0 || drop {
		return errno
	}
	_, errno := t.proc.space.CopyOutRanges(x.remaining(done), m.in.Data[:m.in.N])
	return errno
}

// control collects control messages in a buffer of the guest's size.
type control struct {
	buf  []byte
	room int
	cut  bool
}

// appendMessage appends a control message; one that does not fit is truncated.
func (c *control) appendMessage(level, kind int32, body []byte) {
	if c.room-len(c.buf) < controlHead {
		c.cut = true
		return
	}
	size := controlHead + len(body)
	if size > c.room-len(c.buf) {
		c.cut = true
		size = c.room - len(c.buf)
		body = body[:size-controlHead]
	}
	head := make([]byte, controlHead)
	putU64(head, uint64(size))
	putU32(head[8:], uint32(level))
	putU32(head[12:], uint32(kind))
	c.buf = append(append(c.buf, head...), body...)
	for len(c.buf)%8 != 0 && len(c.buf) < c.room {
		c.buf = append(c.buf, 0)
	}
}

// storeControl writes the control messages of a message, and returns the number of bytes used in
// the guest's buffer.
func (t *Task) storeControl(m *receiving, h *messageHeader, flags *uint32) (uint64, unix.Errno) {
	c := &control{room: int(min(h.ControlLen, maxControl))}
	if cred := m.in.Cred; cred != nil {
		body := make([]byte, 12)
		putU32(body, uint32(cred.PID))
		putU32(body[4:], cred.UID)
		putU32(body[8:], cred.GID)
		c.appendMessage(unix.SOL_SOCKET, unix.SCM_CREDENTIALS, body)
	}
	for _, extra := range m.socket.Extra(&m.in, t.k.RealtimeNS()) {
		c.appendMessage(extra.Level, extra.Kind, extra.Body)
	}
	if len(m.in.Rights) > 0 {
		t.receiveRights(m, c)
	}
	if c.cut {
		*flags |= unix.MSG_CTRUNC
	}
	if len(c.buf) == 0 {
		return 0, 0
	}
	return uint64(len(c.buf)), t.copyOut(arch.Addr(h.Control), c.buf)
}

// receiveRights gives descriptors to the descriptions that arrived with a message, as far as there
// is room for them.
func (t *Task) receiveRights(m *receiving, c *control) {
	fits := min(max(0, c.room-len(c.buf)-controlHead)/4, len(m.in.Rights))
	var body []byte
	for i, f := range m.in.Rights {
		if i < fits {
			fd, errno := t.installFile(f, m.flags&unix.MSG_CMSG_CLOEXEC != 0)
			if errno == 0 {
				body = append(body, 0, 0, 0, 0)
				putU32(body[len(body)-4:], uint32(fd))
				continue
			}
			fits = i
		} else {
			f.Unref()
		}
		c.cut = true
	}
	if len(body) > 0 {
		c.appendMessage(unix.SOL_SOCKET, unix.SCM_RIGHTS, body)
	}
}
