package vfs

import (
	"math"

	"golang.org/x/sys/unix"
)

// Node is an object that the kernel generates at each lookup, such as a file of /proc.
// Nodes are plain data; two nodes with the same number are the same object.
type Node interface {
	Attr() Attr
}

// Attr is the attributes of a Node.
type Attr struct {
	Ino      uint64
	Mode     uint32 // type and permissions
	UID, GID uint32
	Nlink    uint32
	TimeNS   int64 // all of its times, ns since 1970
}

// DirNode is a generated folder.
type DirNode interface {
	Node
	// Child finds a name; ENOENT if it is absent.
	Child(c *Ctx, name string) (Node, unix.Errno)
	// List returns the names in the order in which readdir shows them.
	List(c *Ctx) ([]Dirent, unix.Errno)
}

// TextNode is a generated regular file. Its text is generated when it is opened for
// reading.
type TextNode interface {
	Node
	Text(c *Ctx) ([]byte, unix.Errno)
}

// WriteNode is a generated regular file that can be written to; each write is one
// value.
type WriteNode interface {
	Node
	Store(c *Ctx, p []byte) unix.Errno
}

// LinkNode is a generated symbolic link.
type LinkNode interface {
	Node
	Readlink(c *Ctx) (string, unix.Errno)
}

// MagicNode is a link that leads to an object itself, whatever its text is, such as
// /proc/self/fd/3.
type MagicNode interface {
	LinkNode
	Follow(c *Ctx) (*Dentry, unix.Errno)
}

// OpenNode is a generated object with a FileImpl of its own: a device, a stream.
type OpenNode interface {
	Node
	Open(c *Ctx, flags int) (FileImpl, unix.Errno)
}

// nodeInode makes the inode of a node.
func (fs *FS) nodeInode(super *Super, n Node) *Inode {
	a := n.Attr()
	return &Inode{
		fs: fs, super: super, ino: a.Ino, mode: a.Mode, uid: a.UID, gid: a.GID, nlink: a.Nlink, node: n,
		atime: a.TimeNS, mtime: a.TimeNS, ctime: a.TimeNS, btime: a.TimeNS,
	}
}

// nodeChild finds a name in a generated folder.
func (fs *FS) nodeChild(c *Ctx, dir *Dentry, name string) (*Dentry, unix.Errno) {
	folder, ok := dir.inode.node.(DirNode)
	if !ok {
		return nil, unix.ENOTDIR
	}
	n, errno := folder.Child(c, name)
	if errno != 0 {
		return nil, errno
	}
	return &Dentry{parent: dir, name: name, inode: fs.nodeInode(dir.inode.super, n)}, 0
}

// MountNode mounts a generated folder at a path of the tree; it makes an empty folder
// there if it is absent.
func (fs *FS) MountNode(path string, super *Super, n DirNode) {
	at := fs.makeFolder(path)
	at.inode = fs.nodeInode(super, n)
	at.mounted = true
	fs.addMount(MountInfo{Path: path, Super: super, Source: super.Type, Options: "rw,nosuid,nodev,noexec,relatime"})
}

// textFile is an open generated regular file.
type textFile struct {
	inode *Inode
	text  []byte
}

func (t *textFile) Read(_ *Ctx, p []byte, off int64) (int, unix.Errno) {
	if off >= int64(len(t.text)) {
		return 0, 0
	}
	return copy(p, t.text[off:]), 0
}

func (t *textFile) Write(c *Ctx, p []byte, _ int64) (int, unix.Errno) {
	w, ok := t.inode.node.(WriteNode)
	if !ok {
		return 0, unix.EIO
	}
	if errno := w.Store(c, p); errno != 0 {
		return 0, errno
	}
	return len(p), 0
}

func (t *textFile) SeekTo(off int64, whence int, at int64) (int64, unix.Errno) {
	return newPosition(off, whence, at, int64(len(t.text)), math.MaxInt64)
}

// openText opens a generated regular file.
func (fs *FS) openText(c *Ctx, i *Inode, flags int) (FileImpl, unix.Errno) {
	t := &textFile{inode: i}
	if text, ok := i.node.(TextNode); ok && flagsReadable(flags) {
		var errno unix.Errno
		if t.text, errno = text.Text(c); errno != 0 {
			return nil, errno
		}
	}
	return t, 0
}
