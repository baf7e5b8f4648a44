package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/pipe"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

func sysPipe(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.makePipe(a[0], 0) }

func sysPipe2(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.makePipe(a[0], int(uint32(a[1]))) }

func (t *Task) makePipe(addr uint64, flags int) (uint64, unix.Errno) {
	if flags&^(unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_DIRECT) != 0 {
		return 0, unix.EINVAL
	}
	i := t.k.fs.NewPipe(t.vfsContext())
	read, write := pipe.Pair(t.k.pipes, flags&unix.O_DIRECT != 0)
	i.Object = read.Pipe() // for opens through /proc/self/fd
	status := flags & (unix.O_NONBLOCK | unix.O_DIRECT)
	files := [2]*vfs.File{
		t.k.fs.NewFile(i, "pipe:", unix.O_RDONLY|status, read),
		t.k.fs.NewFile(i, "pipe:", unix.O_WRONLY|status, write),
	}
	return t.installPair(addr, files, flags&unix.O_CLOEXEC != 0)
}

// installPair assigns descriptors to two descriptions and stores the descriptors at addr.
func (t *Task) installPair(addr uint64, files [2]*vfs.File, cloexec bool) (uint64, unix.Errno) {
	first, errno := t.installFile(files[0], cloexec)
	if errno != 0 {
		files[1].Unref()
		return 0, errno
	}
	second, errno := t.installFile(files[1], cloexec)
	if errno != 0 {
		t.proc.files.close(t.proc, first)
		return 0, errno
	}
	fds := [2]int32{int32(first), int32(second)}
	if errno := writeStruct(t, arch.Addr(addr), &fds); errno != 0 {
		t.proc.files.close(t.proc, first)
		t.proc.files.close(t.proc, second)
		return 0, errno
	}
	return 0, 0
}

// openFIFO connects a description of a FIFO that has just been opened to its pipe, and waits for
// the other end as fifo(7) says.
func (t *Task) openFIFO(f *vfs.File) unix.Errno {
	i := f.Inode()
	if i.Type() != unix.S_IFIFO || f.IsPath() {
		return 0
	}
	end, connected := f.Impl.(*pipe.End)
	if !connected {
		if f.Impl != nil {
			return 0
		}
		p, ok := i.Object.(*pipe.Pipe)
		if !ok {
			p = pipe.New(t.k.pipes)
			i.Object = p
		}
		var errno unix.Errno
		if end, errno = p.Open(f.Readable(), f.Writable(), f.Nonblock()); errno != 0 {
			return errno
		}
		f.Impl = end
	}
	if end.Complete() {
		return 0
	}
	return t.waitInterruptibly(errRestart, forever, end.Opens())
}

// spliceFlags are hints (SPLICE_F_MOVE, _MORE, _GIFT) and SPLICE_F_NONBLOCK.
const (
	spliceNonblock = 2
	spliceFlags    = 15
)

// pipeEnd returns the pipe that a description is an end of, or nil.
func pipeEnd(f *vfs.File) *pipe.Pipe {
	if e, ok := f.Impl.(*pipe.End); ok {
		return e.Pipe()
	}
	return nil
}

func sysSplice(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[4] == 0 {
		return 0, 0
	}
	if a[5]&^spliceFlags != 0 {
		return 0, unix.EINVAL
	}
	in, out, errno := t.usableFiles(a[0], a[2])
	if errno != 0 {
		return 0, errno
	}
	from, to := pipeEnd(in), pipeEnd(out)
	switch {
	case !in.Readable() || !out.Writable():
		return 0, unix.EBADF
	case from == nil && to == nil, from != nil && from == to:
		return 0, unix.EINVAL
	case from != nil && a[1] != 0, to != nil && a[3] != 0:
		return 0, unix.ESPIPE
	case to == nil && out.Flags()&unix.O_APPEND != 0:
		return 0, unix.EINVAL
	}
	n, errno := t.splice(in, out, a[1], a[3], a[4], a[5]&spliceNonblock != 0)
	notifyAccess(in, n)
	notifyModify(out, n)
	return n, errno
}

// splice moves bytes between two files, of which at least one is a pipe. Bytes that the target does
// not accept stay in the source.
func (t *Task) splice(in, out *vfs.File, inAt, outAt, n uint64, nonblock bool) (uint64, unix.Errno) {
	source, target := pipeEnd(in), pipeEnd(out)
	limit := min(n, chunkSize)
	if target != nil {
		if !target.HasReaders() {
			t.k.sendTask(t, userInfo(unix.SIGPIPE, siUser, t.proc.pid, t.cred.UID))
			return 0, unix.EPIPE
		}
		if target.Free() == 0 {
			return 0, t.spliceWait(out, nonblock)
		}
		limit = min(limit, uint64(target.Free()))
	}
	buf := t.k.scratch.buffer(limit)
	c := t.vfsContext()
	if source != nil {
		got := source.Peek(buf)
		if got == 0 {
			if !source.HasWriters() {
				return 0, 0
			}
			return 0, t.spliceWait(in, nonblock)
		}
		put, errno := t.spliceOut(c, out, outAt, buf[:got])
		if put > 0 {
			// This consumes the bytes that were written; their content is known already.
			if _, errno := in.Read(c, buf[:put]); errno != 0 {
				return 0, errno
			}
			return uint64(put), 0
		}
		if errno == unix.EAGAIN {
			return 0, t.spliceWait(out, nonblock)
		}
		if s, ok := out.Impl.(*socketFile); errno == unix.EPIPE && (!ok || s.Signals()) {
			t.k.sendTask(t, userInfo(unix.SIGPIPE, siUser, t.proc.pid, t.cred.UID))
		}
		return 0, errno
	}
	got, errno := t.spliceIn(c, in, inAt, buf)
	if errno == unix.EAGAIN {
		return 0, t.spliceWait(in, nonblock)
	}
	if errno != 0 || got == 0 {
		return 0, errno
	}
	put, errno := out.Write(c, buf[:got])
	return uint64(put), errno
}

// spliceWait waits for a side that is not ready, unless the call or the side does not block.
func (t *Task) spliceWait(f *vfs.File, nonblock bool) unix.Errno {
	if nonblock || f.Nonblock() {
		return unix.EAGAIN
	}
	return t.waitInterruptibly(errRestart, forever, f.Waiters())
}

// positionErrno is the errno of an offset argument for a file without positions.
func positionErrno(errno unix.Errno) unix.Errno {
	if errno == unix.ESPIPE {
		return unix.EINVAL
	}
	return errno
}

// spliceAt transfers bytes on one side: at its position, or at an offset in guest memory, which it
// updates.
func (t *Task) spliceAt(f *vfs.File, at uint64, here func() (int, unix.Errno), there func(off int64) (int, unix.Errno)) (int, unix.Errno) {
	if at == 0 {
		return here()
	}
	pos, errno := t.readFilePosition(f, at)
	if errno != 0 {
		return 0, errno
	}
	n, errno := there(pos.at)
	if errno != 0 {
		return n, positionErrno(errno)
	}
	pos.at += int64(n)
	return n, pos.storePosition(t, f)
}

func (t *Task) spliceOut(c *vfs.Ctx, out *vfs.File, at uint64, p []byte) (int, unix.Errno) {
	return t.spliceAt(out, at,
		func() (int, unix.Errno) { return out.Write(c, p) },
		func(off int64) (int, unix.Errno) { return out.Pwrite(c, p, off) })
}

func (t *Task) spliceIn(c *vfs.Ctx, in *vfs.File, at uint64, p []byte) (int, unix.Errno) {
	return t.spliceAt(in, at,
		func() (int, unix.Errno) { return in.Read(c, p) },
		func(off int64) (int, unix.Errno) { return in.Pread(c, p, off) })
}

func sysTee(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[3]&^spliceFlags != 0 {
		return 0, unix.EINVAL
	}
	in, out, errno := t.usableFiles(a[0], a[1])
	if errno != 0 {
		return 0, errno
	}
	from, to := pipeEnd(in), pipeEnd(out)
	switch {
	case a[2] == 0:
		return 0, 0
	case !in.Readable() || !out.Writable():
		return 0, unix.EBADF
	case from == nil || to == nil || from == to:
		return 0, unix.EINVAL
	case !to.HasReaders():
		t.k.sendTask(t, userInfo(unix.SIGPIPE, siUser, t.proc.pid, t.cred.UID))
		return 0, unix.EPIPE
	case from.Len() == 0 && !from.HasWriters():
		return 0, 0
	case from.Len() == 0:
		return 0, t.spliceWait(in, a[3]&spliceNonblock != 0)
	case to.Free() == 0:
		return 0, t.spliceWait(out, a[3]&spliceNonblock != 0)
	}
	return uint64(from.Tee(to, int(min(a[2], maxTransfer)))), 0
}

func sysVmsplice(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[3]&^spliceFlags != 0 {
		return 0, unix.EINVAL
	}
	f, errno := t.usableFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	if pipeEnd(f) == nil {
		return 0, unix.EBADF
	}
	if f.Writable() {
		return t.transferVector(a, position{}, t.doWrite)
	}
	return t.transferVector(a, position{}, t.doRead)
}
