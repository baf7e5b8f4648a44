package kernel

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/inotify"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

const (
	// maxTransfer is the most that one call transfers (MAX_RW_COUNT of Linux).
	maxTransfer = 0x7ffff000
	// chunkSize is the size of one step of a transfer, through the kernel's buffer.
	chunkSize = 256 << 10
)

// scratch is the kernel's buffer for data on its way between files and guest memory. Its content is
// meaningless between system calls.
type scratch struct{ buf []byte }

// BoundInSnapshot marks that copies of the kernel of one machine share the buffer.
func (*scratch) BoundInSnapshot() {}

func (s *scratch) buffer(n uint64) []byte {
	if uint64(len(s.buf)) < n {
		s.buf = make([]byte, n)
	}
	return s.buf[:n]
}

// position is where a call reads or writes: at the description's own position, or at a given
// offset, which leaves that position unchanged. A write that appends is done at the file's end
// instead, and leaves a given offset without use.
type position struct {
	given   bool
	off     int64
	appends bool
}

func positionAt(offset uint64) position { return position{given: true, off: int64(offset)} }

// transfer is a read or write in progress.
type transfer struct {
	t      *Task
	file   *vfs.File
	ranges []mm.Range
	total  uint64
	pos    position
	wait   bool // whether it blocks when nothing can be transferred
}

func (t *Task) newTransfer(f *vfs.File, ranges []mm.Range, pos position) (*transfer, unix.Errno) {
	total := uint64(0)
	for _, r := range ranges {
		if r.Len > 1<<63-1-total {
			return nil, unix.EINVAL
		}
		if r.Addr > mm.TaskSize-arch.Addr(min(r.Len, uint64(mm.TaskSize))) {
			return nil, unix.EFAULT
		}
		total += r.Len
	}
	return &transfer{t: t, file: f, ranges: ranges, total: min(total, maxTransfer), pos: pos, wait: !f.Nonblock()}, 0
}

// remaining is the memory after the first done bytes.
func (x *transfer) remaining(done uint64) []mm.Range { return mm.SkipRanges(x.ranges, done) }

// read transfers bytes from the file to memory: all that there are without a wait after the first of them.
func (x *transfer) read() (uint64, unix.Errno) {
	c := x.t.vfsContext()
	done := uint64(0)
	for {
		buf := x.t.k.scratch.buffer(min(x.total-done, chunkSize))
		if p := pipeEnd(x.file); p != nil {
			// Bytes that cannot be stored must stay in the pipe.
			if errno := x.t.checkWritable(x.remaining(done), min(uint64(p.Len()), x.total-done)); errno != 0 {
				return partialResult(done, errno)
			}
		}
		var n int
		var errno unix.Errno
		if x.pos.given {
			n, errno = x.file.Pread(c, buf, x.pos.off+int64(done))
		} else {
			n, errno = x.file.Read(c, buf)
		}
		if errno != 0 && done > 0 {
			return done, 0
		}
		if errno == unix.EAGAIN && x.wait {
			return 0, x.t.ioWait(x.file, false)
		}
		if errno != 0 {
			return 0, errno
		}
		copied, errno := x.t.proc.space.CopyOutRanges(x.remaining(done), buf[:n])
		if errno != 0 && !x.file.Inode().IsRegular() {
			return partialResult(done, errno) // a counter's value is consumed as a whole
		}
		done += uint64(copied)
		if errno != 0 {
			if !x.pos.given && x.file.Inode().IsRegular() {
				x.file.Offset -= int64(n - copied)
			}
			if done == 0 {
				return 0, errno
			}
			return done, 0
		}
		if n < len(buf) || done == x.total {
			return done, 0
		}
	}
}

// checkWritable checks that n bytes can be written to memory, one byte of each page.
func (t *Task) checkWritable(ranges []mm.Range, n uint64) unix.Errno {
	for _, r := range ranges {
		end := r.Addr + arch.Addr(min(r.Len, n))
		for at := r.Addr; at < end; at = (at | (arch.PageSize - 1)) + 1 {
			b, errno := t.proc.space.ReadU8(at)
			if errno == 0 {
				errno = t.proc.space.WriteU8(at, b)
			}
			if errno != 0 {
				return errno
			}
		}
		n -= min(r.Len, n)
	}
	return 0
}

// write transfers bytes from memory to the file. A call that blocks in the middle stores its
// progress in the task.
func (x *transfer) write() (uint64, unix.Errno) {
	t := x.t
	c := t.vfsContext()
	done := uint64(t.call.progress)
	for {
		buf := t.k.scratch.buffer(min(x.total-done, chunkSize))
		n, errno := t.proc.space.CopyInRanges(x.remaining(done), buf)
		if errno != 0 && !x.file.Inode().IsRegular() {
			n -= n % arch.PageSize // pipes take whole pages
		}
		if errno != 0 && n == 0 {
			return partialResult(done, errno)
		}
		n, errno = x.writeChunk(c, buf[:n], done)
		done += uint64(n)
		switch {
		case errno == unix.EAGAIN && x.wait:
			t.call.progress = int(done)
			if errno = t.ioWait(x.file, true); errno == errBlocked {
				return 0, errno
			}
			return partialResult(done, errno)
		case errno == unix.EPIPE && !x.pos.given:
			t.k.sendTask(t, userInfo(unix.SIGPIPE, siUser, t.proc.pid, t.cred.UID))
			return partialResult(done, errno)
		case errno == unix.EFBIG && !x.file.Inode().IsRegular():
			// The host's limit on file size; writeChunk applies the guest's.
			t.k.sendTask(t, signalInfo(unix.SIGXFSZ, siKernel))
			return partialResult(done, errno)
		case errno != 0:
			return partialResult(done, errno)
		case done == x.total || n == 0:
			return done, 0
		case n < len(buf) && (!x.wait || x.file.Inode().IsRegular()):
			return done, 0
		}
	}
}

func (x *transfer) writeChunk(c *vfs.Ctx, p []byte, done uint64) (int, unix.Errno) {
	at := x.file.Offset
	if x.pos.given {
		at = x.pos.off + int64(done)
	}
	at = x.file.WriteOffset(at, x.pos.appends)
	if limit := x.t.proc.limits[unix.RLIMIT_FSIZE].Cur; limit != infinity && x.file.Inode().IsRegular() {
		if uint64(at) >= limit && len(p) > 0 {
			x.t.k.sendTask(x.t, signalInfo(unix.SIGXFSZ, siKernel))
			return 0, unix.EFBIG
		}
		p = p[:min(uint64(len(p)), limit-uint64(at))]
	}
	if x.pos.given {
		return x.file.Pwrite(c, p, at)
	}
	return x.file.WriteFrom(c, p, at)
}

// partialResult returns the number of bytes transferred before an error, or the error if there are
// none.
func partialResult(done uint64, errno unix.Errno) (uint64, unix.Errno) {
	if done > 0 {
		return done, 0
	}
	return 0, errno
}

// ioWait waits until a description can be read or written; for a socket, at most as long as its
// time-out.
func (t *Task) ioWait(f *vfs.File, write bool) unix.Errno {
	if s, ok := f.Impl.(*socketFile); ok {
		return t.socketWait(s.Socket, write, f.Waiters())
	}
	return t.waitInterruptibly(errRestart, forever, f.Waiters())
}

// ioResult turns a time-out into EAGAIN, as read and write report it.
func ioResult(n uint64, errno unix.Errno) (uint64, unix.Errno) {
	if errno == unix.ETIMEDOUT {
		errno = unix.EAGAIN
	}
	return n, errno
}

func (t *Task) doRead(fd uint64, ranges []mm.Range, pos position) (uint64, unix.Errno) {
	f, errno := t.usableFile(fd)
	if errno != 0 {
		return 0, errno
	}
	if s, ok := f.Impl.(*socketFile); ok && !pos.given {
		return t.readSocket(f, s.Socket, ranges)
	}
	if x, ok := f.Impl.(*terminalFile); ok && !pos.given {
		n, errno := t.readTerminal(f, x, ranges)
		notifyAccess(f, n)
		return n, errno
	}
	x, errno := t.newTransfer(f, ranges, pos)
	if errno != 0 {
		return 0, errno
	}
	if i, ok := f.Impl.(*inotify.Instance); ok && !pos.given {
		return x.readEvents(i)
	}
	n, errno := x.read()
	notifyAccess(f, n)
	return n, errno
}

func (t *Task) doWrite(fd uint64, ranges []mm.Range, pos position) (uint64, unix.Errno) {
	f, errno := t.usableFile(fd)
	if errno != 0 {
		return 0, errno
	}
	if s, ok := f.Impl.(*socketFile); ok && !pos.given {
		return t.sendMessage(&sending{file: f, socket: s.Socket, ranges: ranges})
	}
	if x, ok := f.Impl.(*terminalFile); ok && !pos.given {
		n, errno := t.writeTerminal(f, x, ranges)
		notifyModify(f, n)
		return n, errno
	}
	x, errno := t.newTransfer(f, ranges, pos)
	if errno != 0 {
		return 0, errno
	}
	mode := f.Inode().Mode()
	n, errno := x.write()
	if f.Inode().Mode() != mode {
		f.Dentry().Happen(unix.IN_ATTRIB) // privileges were dropped
	}
	notifyModify(f, n)
	return n, errno
}

// singleRange is the buffer of a call with an address and a length.
func singleRange(addr, n uint64) []mm.Range {
	return []mm.Range{{Addr: arch.Addr(addr), Len: min(n, maxTransfer)}}
}

// ReachesMemory reports whether the system call that the thread makes with the registers r
// reads or writes memory by a file, /proc/PID/mem.
func (t *Task) ReachesMemory(r *arch.Regs) bool {
	if number := CallNumber(r.GPR[arch.RAX]); number != unix.SYS_SPLICE && !(linux.Has(number, linux.MovesData) && linux.Has(number, linux.Blocks)) {
		return false
	}
	d := t.proc.files.openEntry(r.GPR[arch.RDI])
	if d == nil {
		return false
	}
	_, reaches := d.file.Impl.(interface{ ReachesMemory() })
	return reaches
}

func sysRead(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.doRead(a[0], singleRange(a[1], a[2]), position{})
}

func sysWrite(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.doWrite(a[0], singleRange(a[1], a[2]), position{})
}

func sysPread64(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.doRead(a[0], singleRange(a[1], a[2]), positionAt(a[3]))
}

func sysPwrite64(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.doWrite(a[0], singleRange(a[1], a[2]), positionAt(a[3]))
}

func (t *Task) transferVector(a [6]uint64, pos position, do func(uint64, []mm.Range, position) (uint64, unix.Errno)) (uint64, unix.Errno) {
	if _, errno := t.usableFile(a[0]); errno != 0 {
		return 0, errno
	}
	ranges, errno := t.proc.space.ReadRanges(arch.Addr(a[1]), a[2])
	if errno != 0 {
		return 0, errno
	}
	return do(a[0], ranges, pos)
}

func sysReadv(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.transferVector(a, position{}, t.doRead)
}

func sysWritev(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.transferVector(a, position{}, t.doWrite)
}

func sysPreadv(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.transferVector(a, positionAt(a[3]), t.doRead)
}

func sysPwritev(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.transferVector(a, positionAt(a[3]), t.doWrite)
}

// Flags of preadv2 and pwritev2. Reads and writes are as soon on the disk as they ever are, which
// RWF_HIPRI, RWF_DSYNC and RWF_SYNC ask for.
const (
	rwfHiPri  = 1
	rwfDsync  = 2
	rwfSync   = 4
	rwfNowait = 8
	rwfAppend = 16
)

// transferVectorV2 is transferVector for a call with flags, at the description's own position if the
// offset is -1. As on Linux, a transfer of no bytes ignores the flags.
func (t *Task) transferVectorV2(a [6]uint64, write bool) (uint64, unix.Errno) {
	pos := position{given: int64(a[3]) != -1, off: int64(a[3]), appends: a[5]&rwfAppend != 0}
	if pos.given && pos.off < 0 {
		return 0, unix.EINVAL
	}
	do := t.doRead
	if write {
		do = t.doWrite
	}
	return t.transferVector(a, pos, func(fd uint64, ranges []mm.Range, pos position) (uint64, unix.Errno) {
		if errno := t.checkTransferFlags(fd, ranges, pos, a[5], write); errno != 0 {
			return 0, errno
		}
		return do(fd, ranges, pos)
	})
}

// checkTransferFlags returns the error of the flags of a transfer that is possible without flags.
// RWF_NOWAIT is supported where Linux 6.1 supports it with ext4: in reads of regular files.
func (t *Task) checkTransferFlags(fd uint64, ranges []mm.Range, pos position, flags uint64, write bool) unix.Errno {
	f, errno := t.usableFile(fd)
	if errno != 0 {
		return errno
	}
	_, seekable := f.Impl.(vfs.Seeker)
	hasBytes := slices.ContainsFunc(ranges, func(r mm.Range) bool { return r.Len > 0 })
	if pos.given && !seekable || write && !f.Writable() || !write && !f.Readable() || !hasBytes {
		return 0
	}
	if flags&^(rwfHiPri|rwfDsync|rwfSync|rwfNowait|rwfAppend) != 0 || flags&rwfNowait != 0 && (write || !f.Inode().IsRegular()) {
		return unix.EOPNOTSUPP
	}
	return 0
}

func sysPreadv2(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.transferVectorV2(a, false) }

func sysPwritev2(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.transferVectorV2(a, true) }

func sysLseek(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, errno := t.usableFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	at, errno := f.Lseek(int64(a[1]), int(int32(a[2])))
	return uint64(at), errno
}

func sysReadahead(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, errno := t.usableFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	if !f.Inode().IsRegular() {
		return 0, unix.EINVAL
	}
	return 0, 0
}

func sysFadvise64(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, errno := t.usableFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	if !f.Inode().IsRegular() && !f.Inode().IsDir() {
		return 0, unix.ESPIPE
	}
	if a[3] > 5 || int64(a[2]) < 0 {
		return 0, unix.EINVAL
	}
	return 0, 0
}

// sysFsync does nothing: the guest's files are in memory.
func sysFsync(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, errno := t.usableFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	if !f.Inode().IsRegular() && !f.Inode().IsDir() {
		return 0, unix.EINVAL
	}
	f.Sync()
	return 0, 0
}

func sysSync(t *Task, _ [6]uint64) (uint64, unix.Errno) {
	for _, p := range t.k.sortedProcesses() {
		if !p.status.zombie && !p.outside {
			p.space.Sync()
		}
	}
	return 0, 0
}
