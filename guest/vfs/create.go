package vfs

import (
	"strconv"

	"golang.org/x/sys/unix"
)

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// maxNlink bounds the names of a file, as ext4 does.
const maxNlink = 65000

// makeInode makes an inode for a new name in a folder: it belongs to the caller and
// inherits the group of a set-group-id folder.
func (fs *FS) makeInode(c *Ctx, dir *Inode, mode uint32) (*Inode, unix.Errno) {
	gid := c.Cred.FSGID
	if dir.mode&unix.S_ISGID != 0 {
		gid = dir.gid
		switch {
		case mode&unix.S_IFMT == unix.S_IFDIR:
			mode |= unix.S_ISGID
		case mode&unix.S_ISGID != 0 && mode&0o010 != 0 && !c.Cred.Can(CapFsetid) && !c.Cred.inGroup(gid):
			mode &^= unix.S_ISGID
		}
	}
	return fs.newCounted(dir.super, mode, c.Cred.FSUID, gid)
}

// create makes a new object at a target that does not exist.
func (fs *FS) create(c *Ctx, t *target, mode uint32) (*Dentry, unix.Errno) {
	if errno := fs.mayCreate(c, t); errno != 0 {
		return nil, errno
	}
	if errno := t.dir.inode.super.mayMake(mode & unix.S_IFMT); errno != 0 {
		return nil, errno
	}
	i, errno := fs.makeInode(c, t.dir.inode, mode)
	if errno != 0 {
		return nil, errno
	}
	if !i.IsDir() {
		i.nlink = 1
	}
	d := &Dentry{inode: i}
	fs.insertName(t.dir, d, t.name)
	t.dir.inode.notifyFolder(unix.IN_CREATE, 0, t.name, i.IsDir())
	return d, 0
}

// isFlat reports whether names of the file system are made in one way only: it has
// no folders, and a file has one name, which cannot be changed.
func (s *Super) isFlat() bool { return s == superQueue || s == superTerminals }

// mayMake checks that the file system supports new objects of a type.
func (s *Super) mayMake(kind uint32) unix.Errno {
	switch {
	case !s.isFlat() || s == superQueue && kind == unix.S_IFREG:
		return 0
	case kind == unix.S_IFREG:
		return unix.EACCES
	}
	return unix.EPERM
}

// mayCreate checks that a name can be made.
func (fs *FS) mayCreate(c *Ctx, t *target) unix.Errno {
	dir := t.dir.inode
	switch {
	case dir.node != nil:
		return unix.ENOENT
	case dir.dir.dead:
		return unix.ENOENT
	}
	return c.Cred.mayChange(dir)
}

// newName resolves a path at which an object is to be made. A path that ends in slashes
// can only become a folder.
func (fs *FS) newName(c *Ctx, from *Dentry, path string, folder bool) (target, unix.Errno) {
	t, errno := fs.findTarget(c, from, path, followNever)
	switch {
	case errno != 0:
		return t, errno
	case t.kind != lastName, t.d != nil:
		return t, unix.EEXIST
	case t.errno != 0:
		return t, t.errno
	case t.slash && !folder:
		return t, unix.ENOENT
	}
	return t, 0
}

// Mkdir makes a folder; see mkdirat(2).
func (fs *FS) Mkdir(c *Ctx, from *Dentry, path string, mode uint32) unix.Errno {
	t, errno := fs.newName(c, from, path, true)
	if errno != 0 {
		return errno
	}
	if t.dir.depthOf() >= maxDepth {
		return unix.ENAMETOOLONG
	}
	_, errno = fs.create(c, &t, unix.S_IFDIR|mode&0o1777&^c.Umask)
	return errno
}

// Mknod makes a regular file, a FIFO or a socket, by the type in mode; see mknodat(2).
// EPERM: devices cannot be made. The dentry is for bind(2), which makes the socket's
// name.
func (fs *FS) Mknod(c *Ctx, from *Dentry, path string, mode uint32) (*Dentry, unix.Errno) {
	switch mode & unix.S_IFMT {
	case 0:
		mode |= unix.S_IFREG
	case unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK, unix.S_IFCHR, unix.S_IFBLK:
	case unix.S_IFDIR:
		return nil, unix.EPERM
	default:
		return nil, unix.EINVAL
	}
	t, errno := fs.newName(c, from, path, false)
	if errno != 0 {
		return nil, errno
	}
	if kind := mode & unix.S_IFMT; kind == unix.S_IFCHR || kind == unix.S_IFBLK {
		return nil, unix.EPERM
	}
	return fs.create(c, &t, mode&(unix.S_IFMT|0o7777)&^c.Umask)
}

// Symlink makes a symbolic link with a text; see symlinkat(2).
func (fs *FS) Symlink(c *Ctx, text string, from *Dentry, path string) unix.Errno {
	switch {
	case text == "":
		return unix.ENOENT
	case len(text) > maxPath:
		return unix.ENAMETOOLONG
	}
	t, errno := fs.newName(c, from, path, false)
	if errno != 0 {
		return errno
	}
	d, errno := fs.create(c, &t, unix.S_IFLNK|0o777)
	if errno == 0 {
		d.inode.target = text
	}
	return errno
}

// Link makes another name for the file at a path; see linkat(2). follow is
// AT_SYMLINK_FOLLOW.
func (fs *FS) Link(c *Ctx, from *Dentry, path string, toFrom *Dentry, to string, follow bool) unix.Errno {
	d, errno := fs.Lookup(c, from, path, follow)
	if errno != 0 {
		return errno
	}
	return fs.LinkDentry(c, d, toFrom, to)
}

// LinkDentry makes another name for an object that was found already, such as
// an open file without a name (linkat with AT_EMPTY_PATH).
func (fs *FS) LinkDentry(c *Ctx, d *Dentry, from *Dentry, path string) unix.Errno {
	t, errno := fs.newName(c, from, path, false)
	if errno != 0 {
		return errno
	}
	if t.dir.inode.super != d.inode.super {
		return unix.EXDEV
	}
	i := d.inode
	if fs.protectedHardlinks && !c.Cred.isOwner(i) && !c.Cred.mayCopy(i) {
		return unix.EPERM
	}
	if errno := fs.mayCreate(c, &t); errno != 0 {
		return errno
	}
	switch {
	case i.IsDir() || i.super.isFlat():
		return unix.EPERM
	case i.node != nil || d.label != "":
		return unix.EXDEV
	case i.nlink == 0 && !i.tmpfile:
		return unix.ENOENT
	case i.nlink >= maxNlink:
		return unix.EMLINK
	}
	i.nlink++
	i.tmpfile = false
	i.ctime = fs.currentTime()
	fs.insertName(t.dir, &Dentry{inode: i}, t.name)
	i.notifyOwn(unix.IN_ATTRIB)
	t.dir.inode.notifyFolder(unix.IN_CREATE, 0, t.name, false)
	return 0
}
