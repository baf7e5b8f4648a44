// Package ipc holds the common parts of the three kinds of System V objects
// (sysvipc(7)): identifiers, keys, owners and permissions. The kinds are in its
// sub-packages: shared memory segments in shm, semaphore sets in sem, message
// queues in msg. POSIX message queues, which have names, are in mqueue.
//
// Nothing blocks here: an operation that has to wait says so, and the kernel
// waits. All state is plain data.
//
// Invariants:
//
//  1. Identifiers are given out as Linux gives them out in a namespace that was
//     just made, so that they depend on the calls alone.
//  2. No order depends on a map: lists are sorted by index.
package ipc

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Private is the key of objects that no key finds (IPC_PRIVATE).
const Private int32 = 0

// Flags of the calls that find or make an object, and of calls that may wait.
const (
	Create    = 0o1000 // IPC_CREAT
	Exclusive = 0o2000 // IPC_EXCL
	NoWait    = 0o4000 // IPC_NOWAIT
)

// Commands that all three kinds have (include/uapi/linux/ipc.h).
const (
	Remove  = 0 // IPC_RMID
	SetPerm = 1 // IPC_SET
	Stat    = 2 // IPC_STAT
	Info    = 3 // IPC_INFO
)

// Access rights, in all three digits of a mode.
const (
	MayRead  = 0o444
	MayWrite = 0o222
	MayExec  = 0o111
)

// permissions are the bits of a mode that callers choose.
const permissions = 0o777

// Caller is the process on whose behalf a call acts.
type Caller struct {
	PID        int32
	EUID, EGID uint32   // of new objects
	FSGID      uint32   // together with Groups: the groups for permissions
	Groups     []uint32 // supplementary
	Now        int64    // seconds since 1970

	Admin    bool // CAP_SYS_ADMIN: may change and remove objects of others
	Owner    bool // CAP_IPC_OWNER: permissions do not bind
	Lock     bool // CAP_IPC_LOCK
	Resource bool // CAP_SYS_RESOURCE
}

func (c *Caller) isInGroup(gid uint32) bool { return c.FSGID == gid || slices.Contains(c.Groups, gid) }

// Perm is the common part of every object, struct kern_ipc_perm of Linux.
type Perm struct {
	ID, Key              int32
	UID, GID, CUID, CGID uint32
	Mode                 uint32 // permissions, and flags of the kind of object
	Changed              int64  // ctime, in seconds
	Removed              bool
	seq                  uint16
	index                int32
}

// NewPerm is the common part of an object that the caller makes. It has no
// identifier yet.
func NewPerm(c *Caller, key int32, flags uint32) Perm {
	return Perm{
		Key: key, UID: c.EUID, CUID: c.EUID, GID: c.EGID, CGID: c.EGID, Mode: flags & permissions, Changed: c.Now,
	}
}

// Allows checks that the caller may access the object in all the ways that
// the digits of want name; which digit counts depends on the caller (ipcperms of
// Linux). EACCES: it may not.
func (p *Perm) Allows(c *Caller, want uint32) unix.Errno {
	requested := (want>>6 | want>>3 | want) & 7
	granted := p.Mode
	switch {
	case c.EUID == p.CUID || c.EUID == p.UID:
		granted >>= 6
	case c.isInGroup(p.CGID) || c.isInGroup(p.GID):
		granted >>= 3
	}
	if requested&^granted != 0 && !c.Owner {
		return unix.EACCES
	}
	return 0
}

// MayControl checks that the caller may change or remove the object. EPERM: it
// may not.
func (p *Perm) MayControl(c *Caller) unix.Errno {
	if c.EUID == p.CUID || c.EUID == p.UID || c.Admin {
		return 0
	}
	return unix.EPERM
}

// Update changes owner and permissions as IPC_SET does. EINVAL: an id that
// stands for no user or group.
func (p *Perm) Update(c *Caller, in *Layout) unix.Errno {
	const invalid = ^uint32(0)
	if in.UID == invalid || in.GID == invalid {
		return unix.EINVAL
	}
	p.UID, p.GID = in.UID, in.GID
	p.Mode = p.Mode&^permissions | in.Mode&permissions
	p.Changed = c.Now
	return 0
}

// Layout is struct ipc64_perm of x86-64 (include/uapi/asm-generic/ipcbuf.h).
type Layout struct {
	Key                  int32
	UID, GID, CUID, CGID uint32
	Mode                 uint32
	Seq                  uint16
	_                    [6]byte
	_                    [2]uint64
}

// Layout is the common part as IPC_STAT stores it.
func (p *Perm) Layout() Layout {
	return Layout{Key: p.Key, UID: p.UID, GID: p.GID, CUID: p.CUID, CGID: p.CGID, Mode: p.Mode, Seq: p.seq}
}
