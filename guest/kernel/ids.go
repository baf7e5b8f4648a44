package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

func sysGetuid(t *Task, _ [6]uint64) (uint64, unix.Errno) { return uint64(t.cred.UID), 0 }

func sysGetgid(t *Task, _ [6]uint64) (uint64, unix.Errno) { return uint64(t.cred.GID), 0 }

func sysGeteuid(t *Task, _ [6]uint64) (uint64, unix.Errno) { return uint64(t.cred.EUID), 0 }

func sysGetegid(t *Task, _ [6]uint64) (uint64, unix.Errno) { return uint64(t.cred.EGID), 0 }

// idSet is a task's user or group ids: real, effective, saved, file system;
// see credentials(7).
type idSet struct{ r, e, s, fs *uint32 }

func usersOf(c *vfs.Cred) idSet { return idSet{&c.UID, &c.EUID, &c.SUID, &c.FSUID} }

func groupsOf(c *vfs.Cred) idSet { return idSet{&c.GID, &c.EGID, &c.SGID, &c.FSGID} }

// unchangedID as an argument leaves the id as it is.
const unchangedID = ^uint32(0)

// set is setuid(2) or setgid(2).
func (ids idSet) setID(id uint32, privileged bool) unix.Errno {
	switch {
	case id == unchangedID:
		return unix.EINVAL
	case privileged:
		*ids.r, *ids.s = id, id
	case id != *ids.r && id != *ids.s:
		return unix.EPERM
	}
	*ids.e, *ids.fs = id, id
	return 0
}

// setRE is setreuid(2) or setregid(2).
func (ids idSet) setREIDs(r, e uint32, privileged bool) unix.Errno {
	if !privileged && (r != unchangedID && r != *ids.r && r != *ids.e ||
		e != unchangedID && e != *ids.r && e != *ids.e && e != *ids.s) {
		return unix.EPERM
	}
	old := *ids.r
	if r != unchangedID {
		*ids.r = r
	}
	if e != unchangedID {
		*ids.e = e
	}
	if r != unchangedID || e != unchangedID && e != old {
		*ids.s = *ids.e
	}
	*ids.fs = *ids.e
	return 0
}

// setRES is setresuid(2) or setresgid(2).
func (ids idSet) setRESIDs(want [3]uint32, privileged bool) unix.Errno {
	for _, id := range want {
		if !privileged && id != unchangedID && id != *ids.r && id != *ids.e && id != *ids.s {
			return unix.EPERM
		}
	}
	for i, p := range []*uint32{ids.r, ids.e, ids.s} {
		if want[i] != unchangedID {
			*p = want[i]
		}
	}
	*ids.fs = *ids.e
	return 0
}

// setFSID is setfsuid(2) or setfsgid(2); it returns the old id.
func (ids idSet) setFSID(id uint32, privileged bool) uint64 {
	old := *ids.fs
	if privileged || id == *ids.r || id == *ids.e || id == *ids.s || id == *ids.fs {
		if id != unchangedID {
			*ids.fs = id
		}
	}
	return uint64(old)
}

// idChange is a method of idSet with its arguments.
type idChange func(ids idSet, privileged bool) unix.Errno

// changeUsers changes the task's user ids by a method of idSet.
func (t *Task) changeUsers(change idChange) unix.Errno {
	n := t.cred
	if errno := change(usersOf(&n), n.Can(vfs.CapSetuid)); errno != 0 {
		return errno
	}
	n.AdjustForUserChange(&t.cred)
	t.setCredentials(n)
	return 0
}

// changeGroups is changeUsers for group ids.
func (t *Task) changeGroups(change idChange) unix.Errno {
	n := t.cred
	if errno := change(groupsOf(&n), n.Can(vfs.CapSetgid)); errno != 0 {
		return errno
	}
	t.setCredentials(n)
	return 0
}

func setIDRequest(a [6]uint64) idChange {
	return func(ids idSet, privileged bool) unix.Errno { return ids.setID(uint32(a[0]), privileged) }
}

func setREIDRequest(a [6]uint64) idChange {
	return func(ids idSet, privileged bool) unix.Errno {
		return ids.setREIDs(uint32(a[0]), uint32(a[1]), privileged)
	}
}

func setRESIDRequest(a [6]uint64) idChange {
	return func(ids idSet, privileged bool) unix.Errno {
		return ids.setRESIDs([3]uint32{uint32(a[0]), uint32(a[1]), uint32(a[2])}, privileged)
	}
}

func sysSetuid(t *Task, a [6]uint64) (uint64, unix.Errno) { return 0, t.changeUsers(setIDRequest(a)) }

func sysSetgid(t *Task, a [6]uint64) (uint64, unix.Errno) { return 0, t.changeGroups(setIDRequest(a)) }

func sysSetreuid(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.changeUsers(setREIDRequest(a))
}

func sysSetregid(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.changeGroups(setREIDRequest(a))
}

func sysSetresuid(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.changeUsers(setRESIDRequest(a))
}

func sysSetresgid(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.changeGroups(setRESIDRequest(a))
}

func sysSetfsuid(t *Task, a [6]uint64) (uint64, unix.Errno) {
	n := t.cred
	old := usersOf(&n).setFSID(uint32(a[0]), n.Can(vfs.CapSetuid))
	n.AdjustForFSUserChange(&t.cred)
	t.setCredentials(n)
	return old, 0
}

func sysSetfsgid(t *Task, a [6]uint64) (uint64, unix.Errno) {
	n := t.cred
	old := groupsOf(&n).setFSID(uint32(a[0]), n.Can(vfs.CapSetgid))
	t.setCredentials(n)
	return old, 0
}

// writeIDs stores the three ids for getresuid and getresgid.
func (t *Task) writeIDs(a [6]uint64, ids idSet) unix.Errno {
	for i, p := range []*uint32{ids.r, ids.e, ids.s} {
		if errno := t.proc.space.WriteU32(arch.Addr(a[i]), *p); errno != 0 {
			return errno
		}
	}
	return 0
}

func sysGetresuid(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.writeIDs(a, usersOf(&t.cred))
}

func sysGetresgid(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.writeIDs(a, groupsOf(&t.cred))
}
