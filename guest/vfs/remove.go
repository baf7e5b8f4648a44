package vfs

import (
	"golang.org/x/sys/unix"
)

// oldName resolves a path whose last component is to be removed.
func (fs *FS) oldName(c *Ctx, from *Dentry, path string) (target, unix.Errno) {
	return fs.findTarget(c, from, path, followNever)
}

// missingErrno is the reason why a target has no object.
func (t *target) missingErrno() unix.Errno {
	if t.errno != 0 {
		return t.errno
	}
	return unix.ENOENT
}

// Unlink removes a name of an object that is not a folder; see unlinkat(2).
func (fs *FS) Unlink(c *Ctx, from *Dentry, path string) unix.Errno {
	t, errno := fs.oldName(c, from, path)
	switch {
	case errno != 0:
		return errno
	case t.kind != lastName:
		return unix.EISDIR
	case t.d == nil:
		return t.missingErrno()
	case t.slash && t.d.inode.IsDir():
		return unix.EISDIR
	case t.slash:
		return unix.ENOTDIR
	}
	if errno := c.Cred.mayRemove(t.dir.inode, t.d, false); errno != 0 {
		return errno
	}
	if errno := mayUnlink(t.d); errno != 0 {
		return errno
	}
	fs.removeName(t.d)
	t.d.inode.notifyOwn(unix.IN_ATTRIB)
	t.d.inode.dropName()
	t.dir.inode.notifyFolder(unix.IN_DELETE, 0, t.name, false)
	return 0
}

// mayUnlink checks that a name is neither generated nor a mount point.
func mayUnlink(d *Dentry) unix.Errno {
	switch {
	case d.mounted:
		return unix.EBUSY
	case d.inode.node != nil && d.parent.inode.node != nil, d.inode.super == superTerminals:
		return unix.EPERM
	}
	return 0
}

// Rmdir removes an empty folder; see unlinkat(2) with AT_REMOVEDIR.
func (fs *FS) Rmdir(c *Ctx, from *Dentry, path string) unix.Errno {
	t, errno := fs.oldName(c, from, path)
	if errno != 0 {
		return errno
	}
	switch t.kind {
	case lastRoot:
		return unix.EBUSY
	case lastDot:
		return unix.EINVAL
	case lastDotDot:
		return unix.ENOTEMPTY
	}
	if t.d == nil {
		return t.missingErrno()
	}
	if errno := c.Cred.mayRemove(t.dir.inode, t.d, true); errno != 0 {
		return errno
	}
	if errno := fs.checkRemovable(t.d); errno != 0 {
		return errno
	}
	fs.removeName(t.d)
	fs.markRemoved(t.d.inode)
	t.dir.inode.notifyFolder(unix.IN_DELETE, 0, t.name, true)
	return 0
}

// checkRemovable checks that a folder can be removed.
func (fs *FS) checkRemovable(d *Dentry) unix.Errno {
	if errno := mayUnlink(d); errno != 0 {
		return errno
	}
	empty, errno := fs.isEmpty(d)
	if errno == 0 && !empty {
		return unix.ENOTEMPTY
	}
	return errno
}

// markRemoved marks a folder as removed.
func (fs *FS) markRemoved(i *Inode) {
	i.dir.dead = true
	i.nlink = 0
	i.ctime = fs.currentTime()
	i.release()
}
