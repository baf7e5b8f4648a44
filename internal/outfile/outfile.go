// Package outfile writes the files that a command is asked to make: reports,
// traces, schedules, tables. Such a file is written beside its final name and
// renamed when it is complete, so that an interrupted or failed write neither
// leaves a part of a file under that name nor destroys the file that was there.
//
// The name while a file is written is the final one with ".part" or ".part-N"
// appended. A process that is killed leaves that file.
//
// A pipe, a terminal or a device is written directly, and so is a name of an
// open descriptor of this process, such as /dev/stdout: it shares the position
// of that descriptor.
//
// Not for this package: temporary files, and SQLite's, which have a journal.
package outfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// File is an output file that is being written. Exactly one of Commit, Keep and
// Discard ends it; a Discard after one of the others does nothing.
type File struct {
	file *os.File
	path string // final name, with symbolic links resolved
	part string // name while it is written; empty if it is written directly
	err  error  // the first failure to write
}

// Create begins an output file. It fails if the file cannot be written to, or if
// no file can be made beside it. Errors of this package name no path but the
// part's.
func Create(path string) (*File, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	if fd, ok := ownDescriptor(path); ok {
		return createDuplicate(fd)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return createPart(path, nil)
	case err != nil:
		return nil, plain(err)
	case info.IsDir():
		return nil, unix.EISDIR
	case !info.Mode().IsRegular():
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &File{file: file}, plain(err)
	}
	if err := unix.Access(path, unix.W_OK); err != nil {
		return nil, err
	}
	return createPart(path, info)
}

// Write makes a file with the content that a function writes.
func Write(path string, write func(io.Writer) error) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}

// WriteBytes makes a file with the content.
func WriteBytes(path string, content []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// Check reports why Create would fail, and changes nothing.
func Check(path string) error {
	resolved, err := resolve(path)
	if err != nil {
		return err
	}
	// Opening and closing a pipe would end its reader.
	if info, err := os.Stat(resolved); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return plain(unix.Access(resolved, unix.W_OK))
	}
	f, err := Create(path)
	if err == nil {
		f.Discard()
	}
	return err
}

// Write implements io.Writer.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	if err != nil && f.err == nil {
		f.err = plain(err)
	}
	return n, plain(err)
}

// Truncate shortens the file, after which writing continues at its end. It
// fails if the file is written directly.
func (f *File) Truncate(size int64) error {
	if f.part == "" {
		return unix.EINVAL
	}
	if err := f.file.Truncate(size); err != nil {
		return plain(err)
	}
	_, err := f.file.Seek(size, io.SeekStart)
	return plain(err)
}

// Size is the number of bytes in the file; 0 if it is written directly.
func (f *File) Size() int64 {
	info, err := f.file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// Chmod sets the permissions that the file will have.
func (f *File) Chmod(mode os.FileMode) error { return plain(f.file.Chmod(mode)) }

// Part is the name that the content has until the file is ended; empty if it is
// written directly.
func (f *File) Part() string { return f.part }

// Names are the absolute paths under which the file can be found now or later; none
// if it is written directly.
func (f *File) Names() (names []string) {
	if f.part == "" {
		return nil
	}
	for _, name := range []string{f.path, f.part} {
		if name, err := filepath.Abs(name); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// Err is the first failure to write, or nil.
func (f *File) Err() error { return f.err }

// Commit completes the file: it takes its final name. Where a Write has failed
// Commit fails for the same reason, and nothing is left.
func (f *File) Commit() error {
	err := f.err
	if err == nil && f.part != "" {
		err = plain(f.file.Sync())
	}
	if closeErr := plain(f.file.Close()); err == nil {
		err = closeErr
	}
	part := f.part
	f.part = ""
	if part == "" {
		return err
	}
	if err != nil {
		_ = os.Remove(part) // the failure to write is the one to report
		return err
	}
	if err := os.Rename(part, f.path); err != nil {
		return fmt.Errorf("rename %s, which has the content: %w", part, plain(err))
	}
	return nil
}

// Keep ends a file that is not complete, and leaves it beside the final name. It
// returns the name under which it is; empty if it was written directly.
func (f *File) Keep() string {
	part := f.part
	f.part = ""
	_ = f.file.Close() // the caller knows already that the content is not complete
	return part
}

// Discard gives the file up: the file that was there before is left as it is.
func (f *File) Discard() {
	_ = f.file.Close() // closed twice if the file is ended already
	if f.part != "" {
		_ = os.Remove(f.part)
		f.part = ""
	}
}

// createPart begins a file beside the one that it will replace, if there is one,
// whose permissions it takes, and whose owner if that is allowed.
func createPart(path string, replaced os.FileInfo) (*File, error) {
	file, err := openPart(path)
	if err != nil {
		return nil, err
	}
	f := &File{file: file, path: path, part: file.Name()}
	if replaced == nil {
		return f, nil
	}
	var st, now unix.Stat_t
	if unix.Stat(path, &st) == nil && unix.Fstat(int(file.Fd()), &now) == nil && (st.Uid != now.Uid || st.Gid != now.Gid) {
		_ = file.Chown(int(st.Uid), int(st.Gid)) // only a privileged user can
	}
	if err := f.Chmod(replaced.Mode().Perm()); err != nil {
		f.Discard()
		return nil, err
	}
	return f, nil
}

// Bounds of the names of parts.
const (
	longestName = 240 // leaves room for the suffix in the 255 bytes of a name
	mostParts   = 10_000
)

// openPart makes a new file beside a path.
func openPart(path string) (*os.File, error) {
	dir, name := filepath.Split(path)
	if len(name) > unix.NAME_MAX {
		return nil, unix.ENAMETOOLONG
	}
	name = dir + name[:min(len(name), longestName)] + ".part"
	for n := 1; ; n++ {
		part := name
		if n > 1 {
			part += "-" + strconv.Itoa(n)
		}
		file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, os.ErrExist) || n == mostParts {
			return file, plain(err)
		}
	}
}

// createDuplicate is a file that is an open descriptor of this process.
func createDuplicate(fd int) (*File, error) {
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_ACCMODE == unix.O_RDONLY {
		return nil, unix.EBADF
	}
	copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &File{file: os.NewFile(uintptr(copied), "/proc/self/fd/"+strconv.Itoa(fd))}, nil
}

// mostLinks is how many symbolic links Linux follows (path_resolution(7)).
const mostLinks = 40

// resolve follows the symbolic links of a path whose last name need not exist,
// except the links of /proc that stand for open files.
func resolve(path string) (string, error) {
	if path == "" {
		return "", unix.ENOENT
	}
	if strings.HasSuffix(path, "/") {
		return "", unix.EISDIR
	}
	for range mostLinks {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", plain(err)
		}
		path = filepath.Join(dir, filepath.Base(path))
		if strings.HasPrefix(path, "/proc/") {
			return path, nil
		}
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil // it is no link, or does not exist
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		path = target
	}
	return "", unix.ELOOP
}

// ownDescriptor is the number of the descriptor that a resolved path of /proc
// stands for, if it is one of this process.
func ownDescriptor(path string) (int, bool) {
	dir, name := filepath.Split(path)
	self, err := filepath.EvalSymlinks("/proc/self/fd")
	if err != nil || filepath.Clean(dir) != self {
		return 0, false
	}
	fd, err := strconv.Atoi(name)
	return fd, err == nil
}

// plain is an error without the name of a file, which the caller knows.
func plain(err error) error {
	var path *os.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
