package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/inotify"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

func sysInotifyInit(t *Task, _ [6]uint64) (uint64, unix.Errno) { return t.newInotifyInstance(0) }

func sysInotifyInit1(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.newInotifyInstance(int(uint32(a[0])))
}

func (t *Task) newInotifyInstance(flags int) (uint64, unix.Errno) {
	if flags&^(unix.IN_CLOEXEC|unix.IN_NONBLOCK) != 0 {
		return 0, unix.EINVAL
	}
	if _, errno := t.proc.lowestFree(0); errno != 0 {
		return 0, errno
	}
	x, errno := t.k.inotify.NewInstance(t.cred.UID)
	if errno != 0 {
		return 0, errno
	}
	f := t.k.fs.NewFile(t.k.fs.Anon(), "anon_inode:inotify", unix.O_RDONLY|flags&unix.O_NONBLOCK, x)
	return t.installFile(f, flags&unix.IN_CLOEXEC != 0)
}

// findInotifyInstance finds the instance of a descriptor. EINVAL: the descriptor is of another kind
// of file.
func (t *Task) findInotifyInstance(fd uint64) (*inotify.Instance, unix.Errno) {
	f, errno := t.usableFile(fd)
	if errno != 0 {
		return nil, errno
	}
	x, ok := f.Impl.(*inotify.Instance)
	if !ok {
		return nil, unix.EINVAL
	}
	return x, 0
}

func sysInotifyAddWatch(t *Task, a [6]uint64) (uint64, unix.Errno) {
	mask := uint32(a[2])
	if errno := inotify.CheckMask(mask); errno != 0 {
		return 0, errno
	}
	x, errno := t.findInotifyInstance(a[0])
	if errno != 0 {
		return 0, errno
	}
	flags := uint32(0)
	if mask&unix.IN_DONT_FOLLOW != 0 {
		flags = unix.AT_SYMLINK_NOFOLLOW
	}
	d, errno := t.findObject(atCwd, a[1], flags)
	if errno != 0 {
		return 0, errno
	}
	i := d.Inode()
	if mask&unix.IN_ONLYDIR != 0 && !i.IsDir() {
		return 0, unix.ENOTDIR
	}
	if errno := t.vfsContext().Access(i, vfs.MayRead, true); errno != 0 {
		return 0, errno
	}
	wd, errno := x.Add(i, mask)
	return uint64(wd), errno
}

func sysInotifyRmWatch(t *Task, a [6]uint64) (uint64, unix.Errno) {
	x, errno := t.findInotifyInstance(a[0])
	if errno != 0 {
		return 0, errno
	}
	return 0, x.Remove(int32(a[1]))
}

// readEvents stores events one by one. If memory is missing, only the first event without room is
// lost.
func (x *transfer) readEvents(i *inotify.Instance) (uint64, unix.Errno) {
	done := uint64(0)
	for {
		size := uint64(i.NextSize())
		switch {
		case size == 0 && done == 0 && x.wait:
			return 0, x.t.ioWait(x.file, false)
		case size == 0 && done == 0:
			return 0, unix.EAGAIN
		case size > x.total-done && done == 0:
			return 0, unix.EINVAL
		case size == 0 || size > x.total-done:
			return done, 0
		}
		buf := x.t.k.scratch.buffer(size)
		if _, errno := i.Read(nil, buf, 0); errno != 0 {
			return 0, errno
		}
		if _, errno := x.t.proc.space.CopyOutRanges(x.remaining(done), buf); errno != 0 {
			return 0, errno
		}
		done += size
	}
}

// notifyAccess and notifyModify notify watches of a transfer of n bytes, unless n is 0.
func notifyAccess(f *vfs.File, n uint64) {
	if n > 0 {
		f.Dentry().Happen(unix.IN_ACCESS)
	}
}

func notifyModify(f *vfs.File, n uint64) {
	if n > 0 {
		f.Dentry().Happen(unix.IN_MODIFY)
	}
}
