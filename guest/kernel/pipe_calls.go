package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/pipe"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/recorder/event"
)

func sysPipe(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.pipe(a[0], 0) }

func sysPipe2(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.pipe(a[0], int(uint32(a[1]))) }

func (t *Task) pipe(addr uint64, flags int) (uint64, unix.Errno) {
	if flags&^(unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_DIRECT) != 0 {
		return 0, unix.EINVAL
	}
	i := t.k.fs.NewPipe(t.vfsContext())
	read, write := pipe.Pair(&t.k.pipes, flags&unix.O_DIRECT != 0)
	status := flags & (unix.O_NONBLOCK | unix.O_DIRECT)
	files := [2]*vfs.File{
		t.k.fs.NewFile(i, "pipe:", unix.O_RDONLY|status, read),
		t.k.fs.NewFile(i, "pipe:", unix.O_WRONLY|status, write),
	}
	return t.installPair(addr, files, flags&unix.O_CLOEXEC != 0)
}

// installPair gives two descriptions descriptors and stores these at addr.
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
	if errno := writeStruct(t, event.Addr(addr), &fds); errno != 0 {
		t.proc.files.close(t.proc, first)
		t.proc.files.close(t.proc, second)
		return 0, errno
	}
	return 0, 0
}

// openFIFO connects a description of a FIFO that was just opened to its pipe,
// and waits for the other side as fifo(7) says.
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
			p = pipe.New(&t.k.pipes)
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
	return t.wait(errRestart, forever, end.Opens())
}
