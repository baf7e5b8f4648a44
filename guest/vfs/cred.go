package vfs

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Cred is the user, the groups and the rights that a task acts with; see
// credentials(7).
type Cred struct {
	UID, EUID, SUID, FSUID uint32
	GID, EGID, SGID, FSGID uint32
	Groups                 []uint32 // supplementary

	Inheritable, Permitted, Effective, Bounding, Ambient Caps

	SecureBits uint32
}

// NewCred makes the credentials of an ordinary login: all user ids are uid, all
// group ids gid. Root has all capabilities.
func NewCred(uid, gid uint32) Cred {
	c := Cred{UID: uid, EUID: uid, SUID: uid, FSUID: uid, GID: gid, EGID: gid, SGID: gid, FSGID: gid, Bounding: AllCaps}
	if uid == 0 {
		c.Permitted, c.Effective = AllCaps, AllCaps
	}
	return c
}

// Can reports whether the task has a capability in force.
func (c *Cred) Can(right Capability) bool { return c.Effective.Has(right) }

// Ctx is the caller of an operation: all that a path lookup depends on besides the path
// and the tree. The kernel makes one for each system call.
type Ctx struct {
	Cred     Cred
	Root     *Dentry // the meaning of "/", see chroot(2)
	Cwd      *Dentry // where relative paths begin when no other start is given
	Umask    uint32
	PID, TID int32 // the targets of /proc/self and /proc/thread-self
	Service  bool  // the process belongs to the kernel's service
}

// Access rights, as in access(2) and in each digit of a mode.
const (
	MayExec  = unix.X_OK
	MayWrite = unix.W_OK
	MayRead  = unix.R_OK
)

// inGroup reports whether the task is in the group for file access.
func (c *Cred) inGroup(gid uint32) bool { return c.FSGID == gid || slices.Contains(c.Groups, gid) }

// isOwner reports whether the task may act as the owner of i.
func (c *Cred) isOwner(i *Inode) bool { return c.FSUID == i.uid || c.Can(CapFowner) }

// mayAccess checks the mode bits of i for all of the rights in mask, a set of
// MayExec, MayWrite and MayRead.
func (c *Cred) mayAccess(i *Inode, mask uint32) unix.Errno {
	if c.overrides(i, mask) {
		return 0
	}
	class := i.mode
	switch {
	case c.FSUID == i.uid:
		class >>= 6
	case c.inGroup(i.gid):
		class >>= 3
	}
	if class&mask != mask {
		return unix.EACCES
	}
	return 0
}

// overrides reports whether capabilities give the rights in mask whatever the mode
// bits say (generic_permission of Linux).
func (c *Cred) overrides(i *Inode, mask uint32) bool {
	switch {
	case i.IsDir():
		return c.Can(CapDACOverride) || mask&MayWrite == 0 && c.Can(CapDACReadSearch)
	case mask == MayRead && c.Can(CapDACReadSearch):
		return true
	}
	return c.Can(CapDACOverride) && (mask&MayExec == 0 || i.mode&0o111 != 0)
}

// mayCopy reports whether a hard link gives the task no more than a copy of the file
// would: the rule of fs.protected_hardlinks.
func (c *Cred) mayCopy(i *Inode) bool {
	const setgid = unix.S_ISGID | 0o010
	return i.IsRegular() && i.mode&unix.S_ISUID == 0 && i.mode&setgid != setgid && c.mayAccess(i, MayRead|MayWrite) == 0
}

// mayFollow reports whether the task may follow a link at the end of a path: in a
// sticky world-writable folder only its own links and those of the folder's owner. It
// is the rule of fs.protected_symlinks.
func (c *Cred) mayFollow(link *Dentry) bool {
	const shared = unix.S_ISVTX | 0o002
	dir := link.Parent().inode
	return dir.mode&shared != shared || link.inode.uid == c.FSUID || link.inode.uid == dir.uid
}

// mayReuse reports whether an object that exists may be opened with O_CREAT: in a
// sticky world-writable folder not if it is another user's, regular files and FIFOs
// excepted (fs.protected_regular and fs.protected_fifos are off).
func (c *Cred) mayReuse(dir, i *Inode) bool {
	const shared = unix.S_ISVTX | 0o002
	return dir.mode&shared != shared || i.IsRegular() || i.Type() == unix.S_IFIFO || i.uid == dir.uid || i.uid == c.FSUID
}

// mayChange checks that names may be added to or removed from directory dir.
func (c *Cred) mayChange(dir *Inode) unix.Errno {
	if dir.super.ReadOnly {
		return unix.EROFS
	}
	return c.mayAccess(dir, MayWrite|MayExec)
}

// mayRemove checks that the name of victim may be taken out of dir.
func (c *Cred) mayRemove(dir *Inode, victim *Dentry, asDir bool) unix.Errno {
	if errno := c.mayChange(dir); errno != 0 {
		return errno
	}
	if dir.mode&unix.S_ISVTX != 0 && !c.Can(CapFowner) && c.FSUID != victim.inode.uid && c.FSUID != dir.uid {
		return unix.EPERM
	}
	switch {
	case asDir && !victim.inode.IsDir():
		return unix.ENOTDIR
	case !asDir && victim.inode.IsDir():
		return unix.EISDIR
	case victim.parent == nil:
		return unix.EBUSY
	}
	return 0
}
