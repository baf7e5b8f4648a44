package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/sock"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// messageHeader is struct msghdr.
type messageHeader struct {
	Name       uint64
	NameLen    uint32
	_          uint32
	Vector     uint64
	VectorLen  uint64
	Control    uint64
	ControlLen uint64
	Flags      uint32
	_          uint32
}

const (
	// headerSize and multiSize are the sizes of struct msghdr and mmsghdr.
	headerSize, multiSize = 56, 64
	// Offsets of fields that recvmsg sets.
	headerNameLen, headerControlLen, headerFlags, multiLen = 8, 40, 48, 56
	// controlHead is the size of struct cmsghdr.
	controlHead = 16
	// maxControl is net.core.optmem_max.
	maxControl = 131072
	// maxRights is SCM_MAX_FD.
	maxRights = 253
	// maxMessages is the most messages that sendmmsg and recvmmsg accept, UIO_MAXIOV.
	maxMessages = 1024
)

// sending is a message to be sent.
type sending struct {
	file   *vfs.File
	socket *sock.Socket
	out    sock.Outgoing
	ranges []mm.Range
	flags  int
}

func sysSendto(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, s, errno := t.findSocket(a[0])
	if errno != 0 {
		return 0, errno
	}
	m := &sending{file: f, socket: s, ranges: singleRange(a[1], a[2]), flags: int(int32(a[3]))}
	if a[4] != 0 {
		to, errno := t.readAddress(s, a[4], a[5])
		if errno != 0 {
			return 0, errno
		}
		m.out.To = &to
	}
	return t.sendMessage(m)
}

func sysSendmsg(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, s, errno := t.findSocket(a[0])
	if errno != 0 {
		return 0, errno
	}
	m, errno := t.readOutgoing(f, s, arch.Addr(a[1]), int(int32(a[2])))
	if errno != 0 {
		return 0, errno
	}
	return t.sendMessage(m)
}

func sysSendmmsg(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, s, errno := t.findSocket(a[0])
	if errno != 0 {
		return 0, errno
	}
	count := min(uint64(uint32(a[2])), maxMessages)
	done, _ := t.call.data.(uint64)
	for ; done < count; done++ {
		at := arch.Addr(a[1] + done*multiSize)
		m, errno := t.readOutgoing(f, s, at, int(int32(a[3])))
		var n uint64
		if errno == 0 {
			n, errno = t.sendMessage(m)
		}
		if errno == 0 {
			errno = t.proc.space.WriteU32(at+multiLen, uint32(n))
		}
		if errno == errBlocked {
			t.call.data = done
			return 0, errno
		}
		if errno != 0 {
			return partialResult(done, errno)
		}
		t.call.progress = 0
	}
	return done, 0
}

// readOutgoing reads a struct msghdr of a message to be sent.
func (t *Task) readOutgoing(f *vfs.File, s *sock.Socket, at arch.Addr, flags int) (*sending, unix.Errno) {
	var h messageHeader
	if errno := readStruct(t, at, &h); errno != 0 {
		return nil, errno
	}
	m := &sending{file: f, socket: s, flags: flags}
	if h.VectorLen > mm.MaxRanges {
		return nil, unix.EMSGSIZE
	}
	if h.Name != 0 && int32(h.NameLen) < 0 {
		return nil, unix.EINVAL
	}
	var errno unix.Errno
	if h.Name != 0 && h.NameLen != 0 {
		to, errno := t.readAddress(s, h.Name, uint64(min(h.NameLen, sock.MaxAddr)))
		if errno != 0 {
			return nil, errno
		}
		m.out.To = &to
	}
	if m.ranges, errno = t.proc.space.ReadRanges(arch.Addr(h.Vector), h.VectorLen); errno != 0 {
		return nil, errno
	}
	if h.ControlLen > maxControl {
		return nil, unix.ENOBUFS
	}
	if h.ControlLen == 0 {
		return m, 0
	}
	raw := make([]byte, h.ControlLen)
	if errno := t.copyIn(arch.Addr(h.Control), raw); errno != 0 {
		return nil, errno
	}
	return m, t.parseControl(m, raw)
}

// parseControl reads the control messages of a message to be sent.
func (t *Task) parseControl(m *sending, raw []byte) unix.Errno {
	for len(raw) >= controlHead {
		size := decodeStruct[uint64](raw)
		level, kind := decodeStruct[int32](raw[8:]), decodeStruct[int32](raw[12:])
		if size < controlHead || size > uint64(len(raw)) {
			return unix.EINVAL
		}
		body := raw[controlHead:size]
		raw = raw[min(uint64(len(raw)), (size+7)&^7):]
		if level != unix.SOL_SOCKET || !m.socket.Local() {
			continue
		}
		var errno unix.Errno
		switch kind {
		case unix.SCM_RIGHTS:
			errno = t.parseRights(m, body)
		case unix.SCM_CREDENTIALS:
			errno = t.parseCredentials(m, body)
		default:
			errno = unix.EINVAL
		}
		if errno != 0 {
			return errno
		}
	}
	return 0
}

func (t *Task) parseRights(m *sending, body []byte) unix.Errno {
	if len(body)/4+len(m.out.Rights) > maxRights {
		return unix.EINVAL
	}
	for ; len(body) >= 4; body = body[4:] {
		f, errno := t.openFile(uint64(decodeStruct[uint32](body)))
		if errno != 0 {
			return errno
		}
		m.out.Rights = append(m.out.Rights, f)
	}
	return 0
}

// parseCredentials checks the identity that the sender states. EPERM: the sender may not use it.
func (t *Task) parseCredentials(m *sending, body []byte) unix.Errno {
	if len(body) != 12 {
		return unix.EINVAL
	}
	c := sock.Cred{PID: decodeStruct[int32](body), UID: decodeStruct[uint32](body[4:]), GID: decodeStruct[uint32](body[8:])}
	mine := &t.cred
	user := c.UID == mine.UID || c.UID == mine.EUID || c.UID == mine.SUID || mine.Can(vfs.CapSetuid)
	group := c.GID == mine.GID || c.GID == mine.EGID || c.GID == mine.SGID || mine.Can(vfs.CapSetgid)
	if c.PID != t.proc.pid && !mine.Can(vfs.CapSysAdmin) || !user || !group {
		return unix.EPERM
	}
	if t.k.processes[c.PID] == nil {
		return unix.ESRCH
	}
	m.out.Cred = &c
	return 0
}

// sendMessage sends a message, or bytes of a stream until the call is complete. For a stream the
// progress is stored in the task.
func (t *Task) sendMessage(m *sending) (uint64, unix.Errno) {
	x, errno := t.newTransfer(m.file, m.ranges, position{})
	if errno != 0 {
		return 0, errno
	}
	m.out.OOB, m.out.More = m.flags&unix.MSG_OOB != 0, m.flags&unix.MSG_MORE != 0
	n, errno := t.sendParts(m, x)
	if errno == unix.EPIPE && m.flags&unix.MSG_NOSIGNAL == 0 && m.socket.Signals() {
		t.k.sendTask(t, userInfo(unix.SIGPIPE, siUser, t.proc.pid, t.cred.UID))
	}
	if errno == errBlocked {
		return 0, errno
	}
	return ioResult(partialResult(n, errno))
}

func (t *Task) sendParts(m *sending, x *transfer) (uint64, unix.Errno) {
	c := t.vfsContext()
	done := uint64(t.call.progress)
	stream := m.socket.Stream()
	for {
		size := x.total - done
		if stream {
			size = min(size, chunkSize)
		} else if size > maxDatagram {
			return 0, unix.EMSGSIZE
		}
		buf := t.k.scratch.buffer(size)
		n, errno := t.proc.space.CopyInRanges(x.remaining(done), buf)
		if errno != 0 && stream {
			n -= n % m.socket.ChunkSize()
		}
		if errno != 0 && (n == 0 || !stream) {
			return done, errno
		}
		out := m.out
		out.Data = buf[:n]
		if done > 0 {
			out.Rights = nil
		}
		n, queues, errno := m.socket.Send(c, &out)
		done += uint64(n)
		switch {
		case errno == unix.EAGAIN && !m.file.Nonblock() && m.flags&unix.MSG_DONTWAIT == 0:
			t.call.progress = int(done)
			return done, t.socketWait(m.socket, true, queues...)
		case errno != 0:
			return done, errno
		case !stream || done == x.total:
			return done, 0
		}
	}
}

// maxDatagram bounds messages, independent of the send buffer.
const maxDatagram = 16 << 20
