package vfs

import (
	"golang.org/x/sys/unix"
)

const tmpfileBit = unix.O_TMPFILE &^ unix.O_DIRECTORY

// Open opens or creates the file at a path; see openat(2). from is the start of
// relative paths, nil for the working directory; mode is for new files, before the
// umask. If a lease conflicts (Inode.LeaseConflict), the caller breaks it and then
// calls File.FinishOpening. For a FIFO, a message queue or a terminal the description
// has no Impl: the kernel makes the object, keeps it in Inode.Object and sets Impl.
func (fs *FS) Open(c *Ctx, from *Dentry, path string, flags int, mode uint32) (*File, unix.Errno) {
	flags, errno := openFlags(flags)
	if errno != 0 {
		return nil, errno
	}
	if flags&tmpfileBit != 0 {
		return fs.openTemp(c, from, path, flags, mode)
	}
	how := followAlways
	switch {
	case flags&unix.O_CREAT != 0 && flags&(unix.O_NOFOLLOW|unix.O_EXCL) != 0:
		how = followNever
	case flags&unix.O_CREAT != 0:
		how = followCreate
	case flags&unix.O_NOFOLLOW != 0:
		how = followSlash
	}
	t, errno := fs.findTarget(c, from, path, how)
	if errno != 0 {
		return nil, errno
	}
	if flags&unix.O_CREAT != 0 {
		return fs.openCreate(c, &t, flags, mode)
	}
	d, errno := t.existingObject()
	if errno != 0 {
		return nil, errno
	}
	return fs.OpenDentry(c, d, flags)
}

// openFlags checks flags and drops the ones without an effect.
func openFlags(flags int) (int, unix.Errno) {
	if flags&unix.O_PATH != 0 {
		return flags & (unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC), 0
	}
	if flags&tmpfileBit != 0 {
		if flags&unix.O_DIRECTORY == 0 || flags&unix.O_ACCMODE == unix.O_RDONLY || flags&unix.O_CREAT != 0 {
			return 0, unix.EINVAL
		}
	} else if flags&(unix.O_CREAT|unix.O_DIRECTORY) == unix.O_CREAT|unix.O_DIRECTORY {
		return 0, unix.EINVAL
	}
	return flags | OLargeFile, 0
}

// openCreate opens the file at a target, or makes it.
func (fs *FS) openCreate(c *Ctx, t *target, flags int, mode uint32) (*File, unix.Errno) {
	switch {
	case t.slash && t.kind == lastName:
		return nil, unix.EISDIR
	case t.errno != 0:
		return nil, t.errno
	case t.d != nil && flags&unix.O_EXCL != 0:
		return nil, unix.EEXIST
	case t.d != nil && t.d.inode.IsDir():
		return nil, unix.EISDIR
	case t.d != nil && t.kind == lastName && !c.Cred.mayReuse(t.dir.inode, t.d.inode):
		return nil, unix.EACCES
	case t.d != nil:
		return fs.OpenDentry(c, t.d, flags)
	}
	d, errno := fs.create(c, t, unix.S_IFREG|mode&0o7777&^c.Umask)
	if errno != 0 {
		return nil, errno
	}
	// A file that was just created may be opened in any way, whatever its mode.
	if d.inode.IsQueue() {
		return fs.newFile(d, flags, nil), 0
	}
	return fs.newFile(d, flags, &regular{d.inode}), 0
}

// openTemp makes a file without a name in the folder at a path.
func (fs *FS) openTemp(c *Ctx, from *Dentry, path string, flags int, mode uint32) (*File, unix.Errno) {
	dir, errno := fs.Lookup(c, from, path, flags&unix.O_NOFOLLOW == 0)
	switch {
	case errno != 0:
		return nil, errno
	case !dir.inode.IsDir():
		return nil, unix.ENOTDIR
	case dir.inode.node != nil || dir.inode.super.isFlat():
		return nil, unix.EOPNOTSUPP
	}
	if errno := c.Cred.mayChange(dir.inode); errno != 0 {
		return nil, errno
	}
	i, errno := fs.makeInode(c, dir.inode, unix.S_IFREG|mode&0o7777&^c.Umask)
	if errno != 0 {
		return nil, errno
	}
	i.tmpfile = flags&unix.O_EXCL == 0
	d := &Dentry{parent: dir, name: "#" + decimal(i.ino), inode: i, gone: true}
	return fs.newFile(d, flags&^(unix.O_DIRECTORY|tmpfileBit), &regular{i}), 0
}

// OpenDentry opens an object that was already found, as Open does without O_CREAT.
func (fs *FS) OpenDentry(c *Ctx, d *Dentry, flags int) (*File, unix.Errno) {
	i := d.inode
	switch {
	case flags&unix.O_DIRECTORY != 0 && !i.IsDir():
		return nil, unix.ENOTDIR
	case flags&unix.O_PATH != 0:
		return fs.newFile(d, flags, nil), 0
	case i.IsSymlink():
		return nil, unix.ELOOP
	case i.IsDir() && (flagsWritable(flags) || flags&unix.O_ACCMODE == 3 || flags&unix.O_TRUNC != 0):
		return nil, unix.EISDIR
	}
	if errno := c.Cred.mayAccess(i, openMask(flags)); errno != 0 {
		return nil, errno
	}
	if flags&unix.O_NOATIME != 0 && !c.Cred.isOwner(i) {
		return nil, unix.EPERM
	}
	impl, errno := fs.openImpl(c, i, flags)
	if errno != 0 {
		return nil, errno
	}
	f := fs.newFile(d, flags|OLargeFile, impl)
	f.truncated = flags&unix.O_TRUNC != 0 && i.IsRegular() && i.node == nil
	f.truncates = f.truncated
	if _, conflict := i.LeaseConflict(flags&unix.O_ACCMODE != unix.O_RDONLY); conflict {
		return f, 0
	}
	if errno := f.FinishOpening(); errno != 0 {
		f.Unref()
		return nil, errno
	}
	return f, 0
}

// FinishOpening does the part of opening that follows the breaking of leases: O_TRUNC.
// It has no effect if no lease conflicted.
func (f *File) FinishOpening() unix.Errno {
	if !f.truncates {
		return 0
	}
	f.truncates = false
	return f.Inode().truncate(0)
}

// openMask is the set of rights that opening needs.
func openMask(flags int) uint32 {
	var mask uint32
	if flags&unix.O_ACCMODE != unix.O_WRONLY {
		mask |= MayRead
	}
	if flags&unix.O_ACCMODE != unix.O_RDONLY || flags&unix.O_TRUNC != 0 {
		mask |= MayWrite
	}
	return mask
}

// openImpl makes the object that a description of an inode acts on.
func (fs *FS) openImpl(c *Ctx, i *Inode, flags int) (FileImpl, unix.Errno) {
	if i.node != nil {
		return fs.openNode(c, i, flags)
	}
	switch i.Type() {
	case unix.S_IFREG:
		if i.IsQueue() {
			return nil, 0
		}
		return fs.openRegular(i, flags)
	case unix.S_IFDIR:
		return &folder{i}, 0
	case unix.S_IFIFO:
		return nil, 0
	case unix.S_IFCHR, unix.S_IFBLK:
		if i.super == superTerminals {
			return nil, 0
		}
		return nil, unix.EACCES // device files of the host have no meaning here
	}
	return nil, unix.ENXIO
}

func (fs *FS) openNode(c *Ctx, i *Inode, flags int) (FileImpl, unix.Errno) {
	if n, ok := i.node.(OpenNode); ok {
		return n.Open(c, flags)
	}
	switch i.Type() {
	case unix.S_IFREG:
		return fs.openText(c, i, flags)
	case unix.S_IFDIR:
		return &folder{i}, 0
	}
	return nil, unix.ENXIO
}

func (fs *FS) openRegular(i *Inode, flags int) (FileImpl, unix.Errno) {
	if flagsWritable(flags) && i.runners > 0 {
		return nil, unix.ETXTBSY
	}
	// Of a file that is truncated nothing is read.
	if i.lower != nil && i.content == nil && flags&unix.O_TRUNC == 0 {
		if errno := i.lower.openContents(); errno != 0 {
			return nil, errno
		}
	}
	return &regular{i}, 0
}

// AllowWriters ends the effect of OpenExec: the file may be opened for writing while
// the description is still open.
func (f *File) AllowWriters() {
	if f.exec {
		f.exec = false
		f.Inode().runners--
	}
}

// OpenExec opens a program to be run: a regular file with an execute bit for the
// caller. While the description is open the file cannot be opened for writing. EACCES:
// no permission, or not a regular file; ETXTBSY: it is open for writing.
func (fs *FS) OpenExec(c *Ctx, d *Dentry) (*File, unix.Errno) {
	i := d.inode
	if i.IsSymlink() {
		return nil, unix.ELOOP
	}
	if !i.IsRegular() || i.node != nil {
		return nil, unix.EACCES
	}
	if errno := c.Cred.mayAccess(i, MayExec); errno != 0 {
		return nil, errno
	}
	if i.writers > 0 {
		return nil, unix.ETXTBSY
	}
	impl, errno := fs.openRegular(i, unix.O_RDONLY)
	if errno != 0 {
		return nil, errno
	}
	f := fs.newFile(d, unix.O_RDONLY|OLargeFile, impl)
	f.exec = true
	i.runners++
	return f, 0
}
