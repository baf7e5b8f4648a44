package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// sysSendfile and sysCopyFileRange copy through the kernel's buffer.
func sysSendfile(t *Task, a [6]uint64) (uint64, unix.Errno) {
	out, in, errno := t.usableFiles(a[0], a[1])
	if errno != 0 {
		return 0, errno
	}
	switch {
	case !in.Readable() || !out.Writable():
		return 0, unix.EBADF
	case out.Flags()&unix.O_APPEND != 0 || !in.Inode().IsRegular():
		return 0, unix.EINVAL
	}
	return t.copyFile(in, out, a[2], 0, a[3])
}

func sysCopyFileRange(t *Task, a [6]uint64) (uint64, unix.Errno) {
	in, out, errno := t.usableFiles(a[0], a[2])
	if errno != 0 {
		return 0, errno
	}
	switch {
	case a[5] != 0:
		return 0, unix.EINVAL
	case in.Inode().IsDir() || out.Inode().IsDir():
		return 0, unix.EISDIR
	case !in.Inode().IsRegular() || !out.Inode().IsRegular():
		return 0, unix.EINVAL
	case out.Flags()&unix.O_APPEND != 0 || !in.Readable() || !out.Writable():
		return 0, unix.EBADF
	}
	if in.Inode() == out.Inode() {
		from, errno := t.readFilePosition(in, a[1])
		if errno != 0 {
			return 0, errno
		}
		to, errno := t.readFilePosition(out, a[3])
		if errno != 0 {
			return 0, errno
		}
		n := int64(min(a[4], maxTransfer))
		if from.at < to.at+n && to.at < from.at+n {
			return 0, unix.EINVAL
		}
	}
	return t.copyFile(in, out, a[1], a[3], a[4])
}

// filePosition is the offset argument of a copying call: an address that holds
// it, or the description's own position.
type filePosition struct {
	addr arch.Addr
	at   int64
}

func (t *Task) readFilePosition(f *vfs.File, addr uint64) (filePosition, unix.Errno) {
	if addr == 0 {
		return filePosition{at: f.Offset}, 0
	}
	at, errno := t.proc.space.ReadU64(arch.Addr(addr))
	return filePosition{arch.Addr(addr), int64(at)}, errno
}

func (p *filePosition) storePosition(t *Task, f *vfs.File) unix.Errno {
	if p.addr == 0 {
		f.Offset = p.at
		return 0
	}
	return t.proc.space.WriteU64(p.addr, uint64(p.at))
}

// copyFile calls copyBetween and notifies watches.
func (t *Task) copyFile(in, out *vfs.File, inAt, outAt, n uint64) (uint64, unix.Errno) {
	done, errno := t.copyBetween(in, out, inAt, outAt, n)
	notifyAccess(in, done)
	notifyModify(out, done)
	return done, errno
}

func (t *Task) copyBetween(in, out *vfs.File, inAt, outAt, n uint64) (uint64, unix.Errno) {
	from, errno := t.readFilePosition(in, inAt)
	if errno != 0 {
		return 0, errno
	}
	to, errno := t.readFilePosition(out, outAt)
	if errno != 0 {
		return 0, errno
	}
	c := t.vfsContext()
	done := uint64(t.call.progress)
	n = min(n, maxTransfer)
	for done < n {
		buf := t.k.scratch.buffer(min(n-done, chunkSize))
		got, errno := in.Pread(c, buf, from.at)
		if errno != 0 {
			return partialResult(done, errno)
		}
		if got == 0 {
			break
		}
		var put int
		if out.Inode().IsRegular() {
			put, errno = out.Pwrite(c, buf[:got], to.at)
		} else {
			put, errno = out.Write(c, buf[:got])
		}
		done += uint64(put)
		from.at += int64(put)
		to.at += int64(put)
		if errno := from.storePosition(t, in); errno != 0 {
			return 0, errno
		}
		if out.Inode().IsRegular() {
			if errno := to.storePosition(t, out); errno != 0 {
				return 0, errno
			}
		}
		if errno == unix.EAGAIN && !out.Nonblock() {
			t.call.progress = int(done)
			if errno = t.ioWait(out, true); errno == errBlocked {
				return 0, errno
			}
		}
		if errno == unix.EPIPE {
			t.k.sendTask(t, userInfo(unix.SIGPIPE, siUser, t.proc.pid, t.cred.UID))
		}
		if errno != 0 {
			return partialResult(done, errno)
		}
	}
	return done, 0
}
