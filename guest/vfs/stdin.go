package vfs

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// StdinData is the host's side of the guest's standard input. Bytes are kept once they
// were read, so that a restored snapshot reads them again. Copies of a file system
// share it.
type StdinData struct {
	mu   sync.Mutex
	r    io.Reader
	have []byte
	err  error // that ended the reading; io.EOF is the usual one

	null bool     // the host's /dev/null
	file *os.File // a regular file: its bytes are not kept
	base int64    // where the file's position was
	size int64    // of the file
	used bool

	contents *contents // of the file, once its bytes were asked for
	failed   error     // why the file could not be read
}

// SharedInSnapshot marks that copies of a file system share the input.
func (*StdinData) SharedInSnapshot() {}

// NewStdin makes standard input of a reader; nil is empty. A regular file of
// the host looks like one to the guest, positions included; the host's /dev/null is the
// guest's; anything else looks like a pipe.
func NewStdin(r io.Reader) (*StdinData, error) {
	s := &StdinData{r: r, null: IsNull(r)}
	if r == nil {
		s.err = io.EOF
	}
	f, ok := r.(*os.File)
	if !ok {
		return s, nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return s, err
	}
	s.file, s.size = f, info.Size()
	s.base, err = f.Seek(0, io.SeekCurrent)
	return s, err
}

// IsNull reports whether a reader is the host's /dev/null, open for reading.
func IsNull(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode().Type() != os.ModeDevice|os.ModeCharDevice {
		return false
	}
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE != unix.O_WRONLY && info.Sys().(*syscall.Stat_t).Rdev == unix.Mkdev(1, 3)
}

// readUntil reads until at least n bytes are there or the input ends. It waits for the host:
// the guest's view must not depend on how fast input arrives.
func (s *StdinData) readUntil(n int64) {
	for int64(len(s.have)) < n && s.err == nil {
		buf := make([]byte, n-int64(len(s.have)))
		var got int
		got, s.err = io.ReadFull(s.r, buf)
		s.have = append(s.have, buf[:got]...)
	}
}

// readAt copies bytes from position at on, fewer than len(p) only at the end.
func (s *StdinData) readAt(p []byte, at int64) (int, unix.Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
	s.readUntil(at + int64(len(p)))
	if at < int64(len(s.have)) {
		return copy(p, s.have[at:]), 0
	}
	if s.err != nil && s.err != io.EOF && s.err != io.ErrUnexpectedEOF {
		return 0, readErrno(s.err)
	}
	return 0, 0
}

// readErrno is the guest's error when the host cannot read: the host's own errno, as
// EISDIR of a folder, if there is one.
func readErrno(err error) unix.Errno {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return unix.EIO
}

// manifestInput is the entry of the run's manifest, if the guest has read any byte. It fails if
// the guest has read bytes of a file that changed or could not be read.
func (s *StdinData) manifestInput() (Input, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.failed != nil:
		return Input{}, false, readFailure(s.file.Name(), s.failed)
	case !s.used:
		return Input{}, false, nil
	case s.file != nil:
		return Input{StdinPath, s.contents.hash()}, true, nil
	}
	sum := sha256.Sum256(s.have)
	return Input{StdinPath, hex.EncodeToString(sum[:])}, true, nil
}

// ReadAt is the source of a regular file's object. The first call reads the whole file
// for its hash.
func (s *StdinData) ReadAt(p []byte, off int64) unix.Errno {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil && s.contents == nil {
		all := readContents
		if s.size <= maxKeptFile {
			all = keepContents
		}
		s.contents, s.failed = all(s.file, s.size)
		s.used = s.failed == nil
	}
	if s.failed == nil {
		s.failed = s.contents.readAt(s.file, p, off)
	}
	if s.failed != nil {
		return unix.EIO
	}
	return 0
}

// stdinStream is a description of pipe-like standard input. All descriptions
// share the position, as readers of one pipe do.
type stdinStream struct {
	data *StdinData
	at   *stdinPosition
}

// stdinPosition is the number of bytes that the guest has read.
type stdinPosition struct {
	bytes   int64
	waiters wait.Queue
}

func (s *stdinStream) Read(_ *Ctx, p []byte, _ int64) (int, unix.Errno) {
	n, errno := s.data.readAt(p, s.at.bytes)
	s.at.bytes += int64(n)
	return n, errno
}

func (s *stdinStream) Write(*Ctx, []byte, int64) (int, unix.Errno) { return 0, unix.EBADF }

// Ready waits for the host until it is known whether there are more bytes.
func (s *stdinStream) Ready() uint32 {
	if s.available(1) == 0 {
		return unix.EPOLLIN | unix.EPOLLRDNORM | unix.EPOLLHUP
	}
	return unix.EPOLLIN | unix.EPOLLRDNORM
}

func (s *stdinStream) Waiters() *wait.Queue { return &s.at.waiters }

// IsStdin reports whether a description is standard input that looks like a pipe.
func (f *File) IsStdin() bool {
	_, ok := f.Impl.(*stdinStream)
	return ok
}

// available is the number of bytes that can be read, at most limit.
func (s *stdinStream) available(limit int64) int64 {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	s.data.readUntil(s.at.bytes + limit)
	return min(limit, int64(len(s.data.have))-s.at.bytes)
}

// Ioctl answers FIONREAD; a pipe holds no more than its capacity.
func (s *stdinStream) Ioctl(cmd uint32, _ int64) ([]byte, unix.Errno) {
	if cmd != unix.TIOCINQ {
		return nil, unix.ENOTTY
	}
	return binary.LittleEndian.AppendUint32(nil, uint32(s.available(pipeCapacity))), 0
}

const pipeCapacity = 65536

// streamNode is the object of a standard stream, which /dev/stdin and its like open
// again.
type streamNode struct {
	attr   Attr
	stream FileImpl
}

func (n *streamNode) Attr() Attr { return n.attr }

func (n *streamNode) Open(*Ctx, int) (FileImpl, unix.Errno) { return n.stream, 0 }

// OpenStdin makes the description of standard input.
func (fs *FS) OpenStdin(data *StdinData) *File {
	fs.host.mu.Lock()
	fs.host.stdin = data
	fs.host.mu.Unlock()
	if data.null {
		c := &Ctx{Cred: NewCred(0, 0), Root: fs.Root(), Cwd: fs.Root()}
		if f, errno := fs.Open(c, c.Root, "/dev/null", unix.O_RDONLY|OLargeFile, 0); errno == 0 {
			return f
		}
	}
	if data.file == nil {
		return fs.openStream(unix.O_RDONLY, &stdinStream{data, &stdinPosition{}})
	}
	i := fs.newInode(superOverlay, unix.S_IFREG|0o400, 0, 0)
	i.content = mm.NewObject(fs.ram, data, data.size)
	f := fs.newFile(anonDentry(i, data.file.Name()), unix.O_RDONLY|OLargeFile, &regular{i})
	f.Offset = data.base
	return f
}

// openStream makes a description of an object that looks like a pipe.
func (fs *FS) openStream(flags int, impl FileImpl) *File {
	i := fs.newInode(superPipe, unix.S_IFIFO|0o600, 0, 0)
	i.nlink = 1
	i.node = &streamNode{Attr{Ino: i.ino, Mode: i.mode, Nlink: 1, TimeNS: i.mtime}, impl}
	return fs.newFile(anonDentry(i, "pipe:["+decimal(i.ino)+"]"), flags, impl)
}

// Sink receives the guest's writes to standard output (fd 1) and standard error (fd 2).
type Sink interface {
	// Write writes bytes, which it must not keep. It returns the number of bytes
	// written, and an error if that is not all of them.
	Write(fd int, p []byte) (int, unix.Errno)
	// Broken reports whether the output has no reader any more.
	Broken(fd int) bool
}

// outStream is a description of standard output or standard error.
type outStream struct {
	sink    Sink
	fd      int
	waiters *wait.Queue
}

func (*outStream) Read(*Ctx, []byte, int64) (int, unix.Errno) { return 0, unix.EBADF }

func (o *outStream) Write(_ *Ctx, p []byte, _ int64) (int, unix.Errno) {
	return o.sink.Write(o.fd, p)
}

func (o *outStream) Ready() uint32 {
	if o.sink.Broken(o.fd) {
		return unix.EPOLLOUT | unix.EPOLLWRNORM | unix.EPOLLERR
	}
	return unix.EPOLLOUT | unix.EPOLLWRNORM
}

func (o *outStream) Waiters() *wait.Queue { return o.waiters }

// OpenOutput makes the description of standard output (fd 1) or standard error
// (fd 2): a pipe that is never full.
func (fs *FS) OpenOutput(sink Sink, fd int) *File {
	return fs.openStream(unix.O_WRONLY, &outStream{sink, fd, &wait.Queue{}})
}
