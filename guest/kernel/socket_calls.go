package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/sock"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// socketFile is the file of a socket.
type socketFile struct{ *sock.Socket }

const socketFlags = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK

// newSocketFile makes a description of a socket.
func (t *Task) newSocketFile(s *sock.Socket, flags int) *vfs.File {
	inode := t.k.fs.NewSocket(t.vfsContext())
	s.SetInode(inode.Ino())
	return t.k.fs.NewFile(inode, "socket:", unix.O_RDWR|flags&unix.O_NONBLOCK, &socketFile{s})
}

// findSocket finds the socket of a descriptor. ENOTSOCK: the descriptor is of another kind of file.
func (t *Task) findSocket(fd uint64) (*vfs.File, *sock.Socket, unix.Errno) {
	f, errno := t.usableFile(fd)
	if errno != 0 {
		return nil, nil, errno
	}
	s, ok := f.Impl.(*socketFile)
	if !ok {
		return nil, nil, unix.ENOTSOCK
	}
	return f, s.Socket, 0
}

func sysSocket(t *Task, a [6]uint64) (uint64, unix.Errno) {
	flags := int(int32(a[1]))
	if flags&^(0xf|socketFlags) != 0 {
		return 0, unix.EINVAL
	}
	s, errno := t.k.net.Socket(t.vfsContext(), int(int32(a[0])), flags&0xf, int(int32(a[2])))
	if errno != 0 {
		return 0, errno
	}
	return t.installFile(t.newSocketFile(s, flags), flags&unix.SOCK_CLOEXEC != 0)
}

func sysSocketpair(t *Task, a [6]uint64) (uint64, unix.Errno) {
	flags := int(int32(a[1]))
	if flags&^(0xf|socketFlags) != 0 {
		return 0, unix.EINVAL
	}
	x, y, errno := t.k.net.Pair(t.vfsContext(), int(int32(a[0])), flags&0xf, int(int32(a[2])))
	if errno != 0 {
		return 0, errno
	}
	files := [2]*vfs.File{t.newSocketFile(x, flags), t.newSocketFile(y, flags)}
	return t.installPair(a[3], files, flags&unix.SOCK_CLOEXEC != 0)
}

// readAddress reads a socket address of n bytes.
func (t *Task) readAddress(s *sock.Socket, addr, n uint64) (sock.Addr, unix.Errno) {
	size := int32(n)
	if size < 0 || size > sock.MaxAddr {
		return sock.Addr{}, unix.EINVAL
	}
	raw := make([]byte, size)
	if errno := t.copyIn(arch.Addr(addr), raw); errno != 0 {
		return sock.Addr{}, errno
	}
	return sock.Parse(raw, s.Family())
}

// storeAddress writes an address and its length. The word at lenAddr holds the length of the buffer
// before.
func (t *Task) storeAddress(raw []byte, addr, lenAddr uint64) unix.Errno {
	room, errno := t.proc.space.ReadU32(arch.Addr(lenAddr))
	if errno != 0 {
		return errno
	}
	if int32(room) < 0 {
		return unix.EINVAL
	}
	if errno := t.copyOut(arch.Addr(addr), raw[:min(len(raw), int(room))]); errno != 0 {
		return errno
	}
	return t.proc.space.WriteU32(arch.Addr(lenAddr), uint32(len(raw)))
}

func sysBind(t *Task, a [6]uint64) (uint64, unix.Errno) {
	_, s, errno := t.findSocket(a[0])
	if errno != 0 {
		return 0, errno
	}
	addr, errno := t.readAddress(s, a[1], a[2])
	if errno != 0 {
		return 0, errno
	}
	return 0, s.Bind(t.vfsContext(), addr)
}

func sysListen(t *Task, a [6]uint64) (uint64, unix.Errno) {
	_, s, errno := t.findSocket(a[0])
	if errno != 0 {
		return 0, errno
	}
	return 0, s.Listen(t.vfsContext(), int(int32(a[1])))
}

func sysAccept(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.acceptConnection(a, 0) }

func sysAccept4(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.acceptConnection(a, int(int32(a[3])))
}

func (t *Task) acceptConnection(a [6]uint64, flags int) (uint64, unix.Errno) {
	if flags&^socketFlags != 0 {
		return 0, unix.EINVAL
	}
	f, s, errno := t.findSocket(a[0])
	if errno != 0 {
		return 0, errno
	}
	if _, errno := t.proc.lowestFree(0); errno != 0 {
		return 0, errno
	}
	n, errno := s.Accept(f.Nonblock())
	if errno == unix.EAGAIN && !f.Nonblock() {
		return ioResult(0, t.socketWait(s, false, s.Waiters()))
	}
	if errno != 0 {
		return 0, errno
	}
	file := t.newSocketFile(n, flags)
	if a[1] != 0 {
		peer, errno := n.Peer()
		if errno == 0 {
			errno = t.storeAddress(peer, a[1], a[2])
		}
		if errno == unix.ENOTCONN {
			errno = unix.ECONNABORTED
		}
		if errno != 0 {
			file.Unref()
			return 0, errno
		}
	}
	return t.installFile(file, flags&unix.SOCK_CLOEXEC != 0)
}

func sysConnect(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, s, errno := t.findSocket(a[0])
	if errno != 0 {
		return 0, errno
	}
	addr, errno := t.readAddress(s, a[1], a[2])
	if errno != 0 {
		return 0, errno
	}
	q, errno := s.Connect(t.vfsContext(), addr, f.Nonblock())
	waits := errno == unix.EAGAIN || errno == unix.EINPROGRESS || errno == unix.EALREADY
	if f.Nonblock() || !waits {
		return 0, errno
	}
	busy, again := t.call.data.(unix.Errno)
	if !again { // the first attempt has the errno of a time-out
		busy = errno
		t.call.data = busy
	}
	if busy == unix.EAGAIN || s.Timeout(true) > 0 {
		errno = t.socketWait(s, true, q)
	} else {
		errno = t.waitInterruptibly(errRestart, t.relativeDeadline(connectTimeout), q)
	}
	switch {
	case errno != unix.ETIMEDOUT:
		return 0, errno
	case busy == unix.EINPROGRESS && s.Timeout(true) == 0:
		s.GiveUp()
		return 0, errno
	}
	return 0, busy
}

// connectTimeout is the time in ns after which a TCP connection without an answer fails
// (net.ipv4.tcp_syn_retries).
const connectTimeout = 131e9

// socketWait waits at most as long as the socket's time-out. A call with a time-out is not
// restarted after a signal, even without a handler (signal(7), "Interruption of system calls by
// stop signals").
func (t *Task) socketWait(s *sock.Socket, write bool, queues ...*wait.Queue) unix.Errno {
	if ns := s.Timeout(write); ns > 0 {
		return t.waitInterruptibly(unix.EINTR, t.relativeDeadline(ns), queues...)
	}
	return t.waitInterruptibly(errRestart, forever, queues...)
}

func sysShutdown(t *Task, a [6]uint64) (uint64, unix.Errno) {
	_, s, errno := t.findSocket(a[0])
	if errno != 0 {
		return 0, errno
	}
	return 0, s.Shutdown(int(int32(a[1])))
}

func sysGetsockname(t *Task, a [6]uint64) (uint64, unix.Errno) {
	_, s, errno := t.findSocket(a[0])
	if errno != 0 {
		return 0, errno
	}
	return 0, t.storeAddress(s.Name(), a[1], a[2])
}

func sysGetpeername(t *Task, a [6]uint64) (uint64, unix.Errno) {
	_, s, errno := t.findSocket(a[0])
	if errno != 0 {
		return 0, errno
	}
	raw, errno := s.Peer()
	if errno != 0 {
		return 0, errno
	}
	return 0, t.storeAddress(raw, a[1], a[2])
}

// maxOption bounds the bytes that are read of an option's value.
const maxOption = 256

func sysSetsockopt(t *Task, a [6]uint64) (uint64, unix.Errno) {
	_, s, errno := t.findSocket(a[0])
	if errno != 0 {
		return 0, errno
	}
	if int32(a[4]) < 0 {
		return 0, unix.EINVAL
	}
	raw := make([]byte, min(uint64(uint32(a[4])), maxOption))
	if errno := t.copyIn(arch.Addr(a[3]), raw); errno != 0 {
		return 0, errno
	}
	return 0, s.SetOption(t.vfsContext(), int(int32(a[1])), int(int32(a[2])), raw)
}

func sysGetsockopt(t *Task, a [6]uint64) (uint64, unix.Errno) {
	_, s, errno := t.findSocket(a[0])
	if errno != 0 {
		return 0, errno
	}
	room, errno := t.proc.space.ReadU32(arch.Addr(a[4]))
	if errno != 0 {
		return 0, errno
	}
	if int32(room) < 0 {
		return 0, unix.EINVAL
	}
	raw, errno := s.Option(int(int32(a[1])), int(int32(a[2])))
	if errno != 0 {
		return 0, errno
	}
	raw = raw[:min(len(raw), int(room))]
	if errno := t.copyOut(arch.Addr(a[3]), raw); errno != 0 {
		return 0, errno
	}
	return 0, t.proc.space.WriteU32(arch.Addr(a[4]), uint32(len(raw)))
}
