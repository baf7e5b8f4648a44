package vfs

import (
	"math"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// OLargeFile is O_LARGEFILE as the kernel stores it in the flags of every
// description that open(2) makes on x86-64.
const OLargeFile = 0o100000

// creationFlags act on open alone and are not kept.
const creationFlags = unix.O_CREAT | unix.O_EXCL | unix.O_NOCTTY | unix.O_TRUNC | unix.O_CLOEXEC

// statusFlags can be changed by fcntl(F_SETFL).
const statusFlags = unix.O_APPEND | unix.O_ASYNC | unix.O_DIRECT | unix.O_NOATIME | unix.O_NONBLOCK

// FileImpl is the object that an open description acts on: a file, a pipe end, a
// socket. Nothing blocks: EAGAIN means that the operation cannot be done now, and that
// Waiters will be woken when it may be. Offsets are given for every call; an object
// without positions ignores them.
//
// A FileImpl that can do more implements some of Poller, Seeker, Mapper,
// Ioctler and Closer.
type FileImpl interface {
	// Read fills p from offset off on and returns the number of bytes, 0 at the
	// end.
	Read(c *Ctx, p []byte, off int64) (int, unix.Errno)
	// Write writes p at offset off and returns the number of bytes, at least
	// one if there is no error and p is not empty.
	Write(c *Ctx, p []byte, off int64) (int, unix.Errno)
}

// Poller is an object that can be not ready. Any other is always ready for reading and
// writing.
type Poller interface {
	// Ready is a set of poll events: unix.EPOLLIN and so on.
	Ready() uint32
	// Waiters is woken when the set may have grown.
	Waiters() *wait.Queue
}

// Seeker is an object that has positions. Without it lseek, pread and pwrite fail with
// ESPIPE.
type Seeker interface {
	// SeekTo returns the new position for whence (unix.SEEK_SET to SEEK_HOLE) and off,
	// when the current one is at.
	SeekTo(off int64, whence int, at int64) (int64, unix.Errno)
}

// Mapper is an object that can be mapped. Without it mmap fails with ENODEV.
type Mapper interface {
	// Map returns the bytes with a reference for the caller, who drops it once the
	// object is mapped. shared says that the mapping is MAP_SHARED and that the
	// description may write, so that writes through memory are to be expected.
	Map(shared bool) (*mm.Object, unix.Errno)
}

// Ioctler answers ioctls that return data. Without it ioctl fails with ENOTTY.
type Ioctler interface {
	// Ioctl returns the data to store at the third argument; at is the position of the
	// description.
	Ioctl(cmd uint32, at int64) ([]byte, unix.Errno)
}

// Closer is notified when the last reference to a description is dropped.
type Closer interface {
	Close()
}

// File is an open file description, see open(2): the object of descriptors.
type File struct {
	fs     *FS
	dentry *Dentry
	flags  int
	refs   int

	// Offset is the position of read, write and getdents.
	Offset int64
	// Impl receives reads and writes. It is nil for O_PATH, and for a FIFO or message
	// queue until the kernel sets it.
	Impl FileImpl
	// Owner is the receiver of SIGIO that F_SETOWN sets; Signal is that of F_SETSIG.
	// They are kept for the kernel.
	Owner  FileOwner
	Signal int32

	exec    bool      // keeps writers away from a running program
	names   *nameList // of a folder, from its first getdents on
	counted bool      // among the inode's writers

	opened    bool // watches have noticed the opening
	truncated bool // by the opening
	truncates bool // when the opening is finished

	watchers []Watcher
}

// FileOwner is the receiver of signals about a description, with the user ids of the
// task that has set it.
type FileOwner struct {
	Kind, ID  int32 // no ID: there is no owner
	UID, EUID uint32
}

// Kinds of owners (F_OWNER_TID and so on).
const (
	OwnerThread int32 = iota
	OwnerProcess
	OwnerGroup
)

// Watcher is notified when a description that it watches ends: an epoll instance that
// the description is registered with.
type Watcher interface{ FileClosed(f *File) }

// NewFile makes a description with one reference of an object without a name, such as a
// pipe. impl may be nil if it is set before use. label is shown by /proc/PID/fd, for
// example "anon_inode:[eventfd]"; if it ends in ":" the inode's number is added, as in
// "pipe:[3]".
func (fs *FS) NewFile(i *Inode, label string, flags int, impl FileImpl) *File {
	if strings.HasSuffix(label, ":") {
		label += "[" + decimal(i.ino) + "]"
	}
	return fs.newFile(anonDentry(i, label), flags, impl)
}

// newFile makes a description with one reference.
func (fs *FS) newFile(d *Dentry, flags int, impl FileImpl) *File {
	f := &File{fs: fs, dentry: d, flags: flags &^ creationFlags, refs: 1, Impl: impl}
	fs.memory.Force(kmem.File)
	d.inode.opens++
	d.countOpens(1)
	f.countAsWriter(flagsWritable(flags) && flags&unix.O_PATH == 0)
	if f.isReader() {
		d.inode.readers++
	}
	return f
}

// isReader reports whether the description is one that may only read.
func (f *File) isReader() bool { return f.Readable() && !f.Writable() }

// countAsWriter sets whether the description counts among the inode's writers; a file
// that has writers cannot be executed.
func (f *File) countAsWriter(on bool) {
	if on == f.counted {
		return
	}
	f.counted = on
	if on {
		f.dentry.inode.writers++
	} else {
		f.dentry.inode.writers--
	}
}

// Ref adds a reference: dup, fork, a message that carries the descriptor.
func (f *File) Ref() { f.refs++ }

// Unref drops a reference. With the last one locks of the description are released and
// the object is notified.
func (f *File) Unref() {
	if f.refs--; f.refs > 0 {
		return
	}
	if f.refs < 0 {
		panic("bug: open file description released twice")
	}
	for _, w := range f.watchers {
		w.FileClosed(f)
	}
	f.watchers = nil
	f.notifyClosed()
	f.fs.memory.Release(kmem.File)
	i := f.dentry.inode
	f.fs.unlockFile(f)
	if c, ok := f.Impl.(Closer); ok {
		c.Close()
	}
	f.countAsWriter(false)
	if f.isReader() {
		i.readers--
	}
	if f.exec {
		i.runners--
	}
	i.opens--
	i.release()
	f.dentry.countOpens(-1)
}

// Refs is the number of references: descriptors, and messages in transit.
func (f *File) Refs() int { return f.refs }

// Watch has w notified when the last reference is dropped.
func (f *File) Watch(w Watcher) { f.watchers = append(f.watchers, w) }

// Unwatch undoes one Watch of w. It must not be called by FileClosed.
func (f *File) Unwatch(w Watcher) {
	if at := slices.Index(f.watchers, w); at >= 0 {
		f.watchers = slices.Delete(f.watchers, at, at+1)
	}
}

// Inode returns the open object.
func (f *File) Inode() *Inode { return f.dentry.inode }

// Dentry is the name under which the object was opened.
func (f *File) Dentry() *Dentry { return f.dentry }

// Flags are the access mode and the status flags, as F_GETFL returns them.
func (f *File) Flags() int { return f.flags }

// SetFlags changes the status flags that F_SETFL can change. EPERM: O_NOATIME on
// another user's file.
func (f *File) SetFlags(c *Ctx, flags int) unix.Errno {
	if flags&unix.O_NOATIME != 0 && f.flags&unix.O_NOATIME == 0 && !c.Cred.isOwner(f.Inode()) {
		return unix.EPERM
	}
	f.flags = f.flags&^statusFlags | flags&statusFlags
	return 0
}

// Nonblock reports whether O_NONBLOCK is set.
func (f *File) Nonblock() bool { return f.flags&unix.O_NONBLOCK != 0 }

// IsPath reports whether the description only names a file, as made with O_PATH.
func (f *File) IsPath() bool { return f.flags&unix.O_PATH != 0 }

// flagsReadable and writable report the rights of the access mode in flags.
func flagsReadable(flags int) bool {
	return flags&unix.O_ACCMODE == unix.O_RDONLY || flags&unix.O_ACCMODE == unix.O_RDWR
}

func flagsWritable(flags int) bool {
	return flags&unix.O_ACCMODE == unix.O_WRONLY || flags&unix.O_ACCMODE == unix.O_RDWR
}

// Readable reports whether the description allows reading.
func (f *File) Readable() bool { return flagsReadable(f.flags) && !f.IsPath() }

// Writable reports whether the description allows writing.
func (f *File) Writable() bool { return flagsWritable(f.flags) && !f.IsPath() }

// mayRead and mayWrite check the access mode.
func (f *File) mayRead() unix.Errno {
	switch {
	case !f.Readable():
		return unix.EBADF
	case f.Inode().IsDir():
		return unix.EISDIR
	}
	return 0
}

func (f *File) mayWrite() unix.Errno {
	if !f.Writable() {
		return unix.EBADF
	}
	return 0
}

// Read reads at the position and moves it.
func (f *File) Read(c *Ctx, p []byte) (int, unix.Errno) {
	if errno := f.mayRead(); errno != 0 {
		return 0, errno
	}
	n, errno := f.readAt(c, p, f.Offset)
	if f.isSeekable() {
		f.Offset += int64(n)
	}
	return n, errno
}

func (f *File) readAt(c *Ctx, p []byte, off int64) (int, unix.Errno) {
	n, errno := f.Impl.Read(c, p, off)
	if errno == 0 && len(p) > 0 {
		f.noteAccess()
	}
	return n, errno
}

// Write writes at the position, or at the end with O_APPEND, and moves it.
func (f *File) Write(c *Ctx, p []byte) (int, unix.Errno) {
	return f.WriteFrom(c, p, f.WriteOffset(f.Offset, false))
}

// WriteFrom writes at an offset and moves the position to where the write ends. A file without
// positions ignores the offset.
func (f *File) WriteFrom(c *Ctx, p []byte, at int64) (int, unix.Errno) {
	if errno := f.mayWrite(); errno != 0 {
		return 0, errno
	}
	if !f.isSeekable() {
		return f.Impl.Write(c, p, 0)
	}
	n, errno := f.Impl.Write(c, p, at)
	if n > 0 {
		f.Offset = at + int64(n)
	}
	return n, errno
}

// WriteOffset returns the offset at which a write for offset off is done: the file's end with
// O_APPEND, or if the write itself appends.
func (f *File) WriteOffset(off int64, appends bool) int64 {
	if (appends || f.flags&unix.O_APPEND != 0) && f.Inode().IsRegular() && f.Inode().node == nil {
		return f.Inode().Size()
	}
	return off
}

// Pread reads at an offset and does not move the position.
func (f *File) Pread(c *Ctx, p []byte, off int64) (int, unix.Errno) {
	if errno := f.mayTransferAt(off); errno != 0 {
		return 0, errno
	}
	if errno := f.mayRead(); errno != 0 {
		return 0, errno
	}
	return f.readAt(c, p, off)
}

// Pwrite writes at an offset, or at the end with O_APPEND as Linux does, and
// does not move the position.
func (f *File) Pwrite(c *Ctx, p []byte, off int64) (int, unix.Errno) {
	if errno := f.mayTransferAt(off); errno != 0 {
		return 0, errno
	}
	if errno := f.mayWrite(); errno != 0 {
		return 0, errno
	}
	return f.Impl.Write(c, p, f.WriteOffset(off, false))
}

// mayTransferAt is the error of a transfer at an offset, whatever its direction.
func (f *File) mayTransferAt(off int64) unix.Errno {
	switch {
	case off < 0:
		return unix.EINVAL
	case f.IsPath():
		return unix.EBADF
	case !f.isSeekable():
		return unix.ESPIPE
	}
	return 0
}

func (f *File) isSeekable() bool {
	_, ok := f.Impl.(Seeker)
	return ok
}

// Lseek moves the position; see lseek(2).
func (f *File) Lseek(off int64, whence int) (int64, unix.Errno) {
	if f.IsPath() {
		return 0, unix.EBADF
	}
	s, ok := f.Impl.(Seeker)
	switch {
	case whence < unix.SEEK_SET || whence > unix.SEEK_HOLE:
		return 0, unix.EINVAL
	case !ok && f.Inode() == f.fs.anonInode:
		return 0, 0 // the position of an eventfd and the like never moves
	case !ok:
		return 0, unix.ESPIPE
	}
	at, errno := s.SeekTo(off, whence, f.Offset)
	if errno != 0 {
		return 0, errno
	}
	if f.Inode().IsDir() && at == 0 {
		f.names = nil // rewinddir shows the folder's current names
	}
	f.Offset = at
	return at, 0
}

// Ready is the set of poll events that hold now.
func (f *File) Ready() uint32 {
	if p, ok := f.Impl.(Poller); ok {
		return p.Ready()
	}
	return unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDNORM | unix.EPOLLWRNORM
}

// Waiters is woken when Ready may have changed; nil if that never happens.
func (f *File) Waiters() *wait.Queue {
	if p, ok := f.Impl.(Poller); ok {
		return p.Waiters()
	}
	return nil
}

// Map returns the bytes for a mapping, with a reference that the caller drops (Unref)
// when the object is mapped. EACCES: the access mode does not allow it. ENODEV: the
// object cannot be mapped.
func (f *File) Map(shared, write bool) (*mm.Object, unix.Errno) {
	switch {
	case f.IsPath():
		return nil, unix.EBADF
	case !f.Readable(), shared && write && !f.Writable():
		return nil, unix.EACCES
	}
	m, ok := f.Impl.(Mapper)
	if !ok {
		return nil, unix.ENODEV
	}
	o, errno := m.Map(shared && f.Writable())
	if errno == 0 {
		f.noteAccess()
	}
	return o, errno
}

// NoteMapping and NoteUnmapping count the mappings that keep the description open,
// whether or not a descriptor is left.
func (f *File) NoteMapping() { f.Ref() }

// NoteUnmapping is the opposite of NoteMapping.
func (f *File) NoteUnmapping() { f.Unref() }

// Tracking returns which writes to mapped pages change the file's times.
func (f *File) Tracking() mm.Tracking {
	switch i := f.Inode(); {
	case !i.IsRegular() || i.node != nil:
		return mm.TrackNone
	case i.super == superOverlay:
		return mm.TrackFirst
	}
	return mm.TrackFaults
}

// NoteWrite stamps a write to a mapped page.
func (f *File) NoteWrite() { f.Inode().touchData() }

// Sync makes the next writes to mapped pages be noted, as after writing back.
func (f *File) Sync() {
	if i := f.Inode(); i.IsRegular() && i.content != nil {
		i.content.Clean(0, math.MaxUint64)
	}
}

// noteAccess is touch_atime of Linux for a file system mounted with relatime. Files of
// the host that the guest has not changed keep their times, as the lower files of
// Linux's overlay do.
func (f *File) noteAccess() {
	const day = 24 * 3600 * 1e9
	i := f.Inode()
	if f.flags&unix.O_NOATIME != 0 || !i.IsRegular() || i.node != nil || i.lower != nil && !i.dataChanged && !i.metaChanged {
		return
	}
	if now := f.fs.currentTime(); i.atime <= i.mtime || i.atime <= i.ctime || now-i.atime >= day {
		i.atime = now
	}
}

// MapName is the name that /proc/PID/maps shows of a mapping of the file.
func (f *File) MapName() (path string, dev, inode uint64) {
	return f.dentry.Path(), f.Inode().Dev(), f.Inode().Ino()
}

// Ioctl answers ioctls that return data.
func (f *File) Ioctl(cmd uint32) ([]byte, unix.Errno) {
	if f.IsPath() {
		return nil, unix.EBADF
	}
	if i, ok := f.Impl.(Ioctler); ok {
		return i.Ioctl(cmd, f.Offset)
	}
	return nil, unix.ENOTTY
}
