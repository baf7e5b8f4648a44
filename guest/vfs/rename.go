package vfs

import (
	"golang.org/x/sys/unix"
)

// Rename moves a name; see renameat2(2). flags may be unix.RENAME_NOREPLACE or
// unix.RENAME_EXCHANGE.
func (fs *FS) Rename(c *Ctx, oldFrom *Dentry, oldPath string, newFrom *Dentry, newPath string, flags uint32) unix.Errno {
	if flags&^(unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE) != 0 || flags == unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE {
		return unix.EINVAL
	}
	from, errno := fs.oldName(c, oldFrom, oldPath)
	if errno != 0 {
		return errno
	}
	to, errno := fs.oldName(c, newFrom, newPath)
	if errno != 0 {
		return errno
	}
	m := renaming{fs: fs, c: c, from: &from, to: &to, exchange: flags == unix.RENAME_EXCHANGE}
	if errno := m.checkNames(flags == unix.RENAME_NOREPLACE); errno != 0 {
		return errno
	}
	if errno := m.checkNesting(); errno != 0 {
		return errno
	}
	if to.d != nil && to.d.inode == from.d.inode {
		return 0
	}
	if errno := m.checkRights(); errno != 0 {
		return errno
	}
	if errno := m.checkBusy(); errno != 0 {
		return errno
	}
	m.apply()
	return 0
}

// renaming is one rename.
type renaming struct {
	fs       *FS
	c        *Ctx
	from, to *target
	exchange bool
}

// checkNames checks the objects of the two paths.
func (m *renaming) checkNames(noReplace bool) unix.Errno {
	from, to := m.from, m.to
	switch {
	case superOf(from) != superOf(to):
		return unix.EXDEV
	case from.kind != lastName:
		return unix.EBUSY
	case to.kind != lastName && noReplace:
		return unix.EEXIST
	case to.kind != lastName:
		return unix.EBUSY
	case from.d != nil && superOf(from).isFlat():
		return unix.EPERM
	case from.d == nil:
		return from.missingErrno()
	case to.errno != 0:
		return to.errno
	case to.d != nil && noReplace:
		return unix.EEXIST
	case to.d == nil && m.exchange:
		return unix.ENOENT
	case m.exchange && to.slash && !to.d.inode.IsDir():
		return unix.ENOTDIR
	}
	if !from.d.inode.IsDir() && (from.slash || !m.exchange && to.slash) {
		return unix.ENOTDIR
	}
	return 0
}

// superOf is the file system a name is in.
func superOf(t *target) *Super { return t.dir.inode.super }

// checkNesting keeps folders from being moved into themselves.
func (m *renaming) checkNesting() unix.Errno {
	switch {
	case m.from.d.inode.IsDir() && m.to.dir.isBelow(m.from.d):
		return unix.EINVAL
	case m.to.d != nil && m.from.dir.isBelow(m.to.d):
		if m.exchange {
			return unix.EINVAL
		}
		return unix.ENOTEMPTY
	}
	return 0
}

// checkRights checks the permissions.
func (m *renaming) checkRights() unix.Errno {
	cred := &m.c.Cred
	from, to := m.from.d, m.to.d
	if errno := cred.mayRemove(m.from.dir.inode, from, from.inode.IsDir()); errno != 0 {
		return errno
	}
	var errno unix.Errno
	switch {
	case to == nil:
		errno = m.fs.mayCreate(m.c, m.to)
	case m.exchange:
		errno = cred.mayRemove(m.to.dir.inode, to, to.inode.IsDir())
	default:
		errno = cred.mayRemove(m.to.dir.inode, to, from.inode.IsDir())
	}
	if errno != 0 || m.from.dir == m.to.dir {
		return errno
	}
	// The entry ".." of a folder that gets another parent is written to.
	if from.inode.IsDir() {
		if errno := cred.mayAccess(from.inode, MayWrite); errno != 0 {
			return errno
		}
	}
	if m.exchange && to.inode.IsDir() {
		return cred.mayAccess(to.inode, MayWrite)
	}
	return 0
}

// checkBusy checks that both can be moved and that a replaced folder is empty.
func (m *renaming) checkBusy() unix.Errno {
	if errno := mayUnlink(m.from.d); errno != 0 {
		return errno
	}
	if m.nestsTooDeep() {
		return unix.ENAMETOOLONG
	}
	switch to := m.to.d; {
	case to == nil:
		return 0
	case to.inode.IsDir() && !m.exchange:
		return m.fs.checkRemovable(to)
	default:
		return mayUnlink(to)
	}
}

// nestsTooDeep reports whether a folder would be deeper than maxDepth. A guest that has
// made few inodes cannot have made a deep tree.
func (m *renaming) nestsTooDeep() bool {
	if !m.from.d.inode.IsDir() || m.fs.inodes < maxDepth/2 {
		return false
	}
	return m.to.dir.depthOf()+m.fs.heightBelow(m.from.d) >= maxDepth
}

// heightBelow is the depth of the known folders below d.
func (fs *FS) heightBelow(d *Dentry) int {
	if d.inode.dir == nil {
		return 0
	}
	deepest := 0
	for _, e := range d.inode.dir.entries {
		if e != nil && e.inode.dir != nil {
			deepest = max(deepest, 1+fs.heightBelow(e))
		}
	}
	return deepest
}

// apply moves the names.
func (m *renaming) apply() {
	fs, from, to := m.fs, m.from.d, m.to.d
	now := fs.currentTime()
	from.inode.ctime = now
	fs.removeName(from)
	if to == nil {
		fs.insertName(m.to.dir, from, m.to.name)
		m.notifyWatches(m.from, m.to, nil)
		return
	}
	fs.removeName(to)
	to.inode.ctime = now
	fs.insertName(m.to.dir, from, m.to.name)
	if m.exchange {
		fs.insertName(m.from.dir, to, m.from.name)
		m.notifyWatches(m.from, m.to, nil)
		m.notifyWatches(m.to, m.from, nil)
		return
	}
	m.notifyWatches(m.from, m.to, to.inode)
	if to.inode.IsDir() {
		fs.markRemoved(to.inode)
	} else {
		to.inode.dropName()
	}
}

// notifyWatches notifies watches of the move of a name, in place of an inode or nil.
func (m *renaming) notifyWatches(from, to *target, replaced *Inode) {
	m.fs.lastCookie++
	folder := from.d.inode.IsDir()
	from.dir.inode.notifyFolder(unix.IN_MOVED_FROM, m.fs.lastCookie, from.name, folder)
	to.dir.inode.notifyFolder(unix.IN_MOVED_TO, m.fs.lastCookie, to.name, folder)
	if replaced != nil {
		replaced.notifyOwn(unix.IN_ATTRIB)
	}
	from.d.inode.notifyOwn(unix.IN_MOVE_SELF)
}
