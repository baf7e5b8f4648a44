package vfs

import (
	"encoding/binary"
	"math"
	"strings"

	"golang.org/x/sys/unix"
)

// folder is an open folder.
type folder struct{ inode *Inode }

func (*folder) Read(*Ctx, []byte, int64) (int, unix.Errno)  { return 0, unix.EISDIR }
func (*folder) Write(*Ctx, []byte, int64) (int, unix.Errno) { return 0, unix.EBADF }

// SeekTo accepts positions that getdents64 returned, and 0.
func (*folder) SeekTo(off int64, whence int, at int64) (int64, unix.Errno) {
	if whence == unix.SEEK_END {
		return 0, unix.EINVAL
	}
	return newPosition(off, whence, at, 0, math.MaxInt64)
}

// direntHeader is the length of a linux_dirent64 before its name, and
// oldDirentHeader that of a linux_dirent.
const (
	direntHeader    = 19
	oldDirentHeader = 18
)

// Getdents fills buf with linux_dirent64 records and returns their length, 0 at the
// end. The first call, and the first after a seek to 0, fixes the names and their
// positions; names removed later are omitted. EINVAL: not even one record fits.
func (f *File) Getdents(c *Ctx, buf []byte) (int, unix.Errno) {
	return f.fillDirents(c, buf, putDirent)
}

// OldGetdents is Getdents with linux_dirent records, which have the type after the
// name.
func (f *File) OldGetdents(c *Ctx, buf []byte) (int, unix.Errno) {
	return f.fillDirents(c, buf, putOldDirent)
}

// fillDirents fills buf with records that put stores; put returns their length, and 0
// for one that does not fit.
func (f *File) fillDirents(c *Ctx, buf []byte, put func([]byte, Dirent, int64) int) (int, unix.Errno) {
	switch {
	case f.IsPath() || !f.Readable():
		return 0, unix.EBADF
	case !f.Inode().IsDir():
		return 0, unix.ENOTDIR
	case f.Inode().dir != nil && f.Inode().dir.dead:
		return 0, unix.ENOENT
	}
	if f.names == nil {
		names, errno := f.fs.openList(c, f.dentry)
		if errno != 0 {
			return 0, errno
		}
		f.names = names
	}
	n := 0
	for f.Offset < int64(2+len(f.names.items)) {
		e, ok := f.direntAt(c, f.Offset)
		if ok {
			size := put(buf[n:], e, f.Offset+1)
			if size == 0 && n == 0 {
				return 0, unix.EINVAL
			}
			if size == 0 {
				break
			}
			n += size
		}
		f.Offset++
	}
	return n, 0
}

// openList lists a folder for a description of it.
func (fs *FS) openList(c *Ctx, d *Dentry) (*nameList, unix.Errno) {
	folder, ok := d.inode.node.(DirNode)
	if !ok {
		return fs.listNames(d)
	}
	items, errno := folder.List(c)
	return &nameList{items}, errno
}

// direntAt returns the entry at a position, if it still exists.
func (f *File) direntAt(c *Ctx, at int64) (Dirent, bool) {
	switch at {
	case 0:
		return Dirent{".", f.Inode().ino, unix.S_IFDIR}, true
	case 1:
		return Dirent{"..", f.parentFolder(c).inode.ino, unix.S_IFDIR}, true
	}
	e := f.names.items[at-2]
	if f.Inode().node != nil {
		return e, true
	}
	d := f.Inode().dir.entries[e.Name]
	if d == nil {
		return Dirent{}, false
	}
	return Dirent{e.Name, d.inode.ino, d.inode.Type()}, true
}

// parentFolder is the folder that ".." means.
func (f *File) parentFolder(c *Ctx) *Dentry {
	if f.dentry == c.Root {
		return f.dentry
	}
	return f.dentry.Parent()
}

// putDirent stores one record and returns its length, 0 if it does not fit.
func putDirent(buf []byte, e Dirent, next int64) int {
	size := putDirentHeader(buf, e, next, direntHeader+len(e.Name)+1)
	if size > 0 {
		buf[18] = e.direntType()
		copy(buf[direntHeader:], e.Name)
	}
	return size
}

func putOldDirent(buf []byte, e Dirent, next int64) int {
	size := putDirentHeader(buf, e, next, oldDirentHeader+len(e.Name)+2)
	if size > 0 {
		copy(buf[oldDirentHeader:], e.Name)
		buf[size-1] = e.direntType()
	}
	return size
}

// putDirentHeader stores all but name and type of a record of at least size bytes and
// returns its length, 0 if it does not fit.
func putDirentHeader(buf []byte, e Dirent, next int64, size int) int {
	size = (size + 7) &^ 7
	if size > len(buf) {
		return 0
	}
	clear(buf[:size])
	binary.LittleEndian.PutUint64(buf, e.Ino)
	binary.LittleEndian.PutUint64(buf[8:], uint64(next))
	binary.LittleEndian.PutUint16(buf[16:], uint16(size))
	return size
}

// direntType is DT_REG and so on: the type bits of a mode.
func (e *Dirent) direntType() byte { return byte(e.Type >> 12) }

// ParseDirents is the reverse of Getdents, for the kernel's own use and tests.
func ParseDirents(buf []byte) []Dirent {
	var list []Dirent
	for len(buf) >= direntHeader {
		size := binary.LittleEndian.Uint16(buf[16:])
		name, _, _ := strings.Cut(string(buf[direntHeader:size]), "\x00")
		list = append(list, Dirent{name, binary.LittleEndian.Uint64(buf), uint32(buf[18]) << 12})
		buf = buf[size:]
	}
	return list
}
