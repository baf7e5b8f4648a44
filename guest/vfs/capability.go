package vfs

// Capability is one of the rights of root that a thread may have separately; see
// capabilities(7).
type Capability uint8

// Capabilities by their numbers (include/uapi/linux/capability.h).
const (
	CapChown          Capability = 0
	CapDACOverride    Capability = 1
	CapDACReadSearch  Capability = 2
	CapFowner         Capability = 3
	CapFsetid         Capability = 4
	CapKill           Capability = 5
	CapSetgid         Capability = 6
	CapSetuid         Capability = 7
	CapSetpcap        Capability = 8
	CapLinuxImmutable Capability = 9
	CapNetBindService Capability = 10
	CapNetAdmin       Capability = 12
	CapNetRaw         Capability = 13
	CapIPCLock        Capability = 14
	CapIPCOwner       Capability = 15
	CapSysChroot      Capability = 18
	CapSysPtrace      Capability = 19
	CapSysAdmin       Capability = 21
	CapSysNice        Capability = 23
	CapSysResource    Capability = 24
	CapSysTime        Capability = 25
	CapSysTTYConfig   Capability = 26
	CapMknod          Capability = 27
	CapLease          Capability = 28
	CapMACOverride    Capability = 32
	CapWakeAlarm      Capability = 35

	// LastCapability is the highest number that this kernel has.
	LastCapability Capability = 40
)

// Caps is a set of capabilities: bit n is capability n.
type Caps uint64

// AllCaps is the set of root.
const AllCaps Caps = 1<<(LastCapability+1) - 1

// CapsOf makes a set.
func CapsOf(list ...Capability) (s Caps) {
	for _, c := range list {
		s |= 1 << c
	}
	return s
}

// Has reports whether c is in the set.
func (s Caps) Has(c Capability) bool { return s>>c&1 != 0 }

// Contains reports whether all of o is in the set.
func (s Caps) Contains(o Caps) bool { return o&^s == 0 }

// Bits of Cred.SecureBits (include/uapi/linux/securebits.h). The bit above each
// locks it.
const (
	SecureNoRoot         uint32 = 1 << 0
	SecureNoSetuidFixup  uint32 = 1 << 2
	SecureKeepCaps       uint32 = 1 << 4
	SecureKeepCapsLocked uint32 = 1 << 5
	SecureNoAmbientRaise uint32 = 1 << 6

	// SecureLocks are all locks, SecureAll all bits and locks that there are.
	SecureLocks uint32 = 0xaa
	SecureAll   uint32 = 0xff
)

// fileCaps are the capabilities that are gained and lost with the file system's user id
// (CAP_FS_SET of Linux).
var fileCaps = CapsOf(CapChown, CapMknod, CapDACOverride, CapDACReadSearch, CapFowner, CapFsetid, CapLinuxImmutable,
	CapMACOverride)

// hasRoot reports whether one of the real, effective and saved user ids is root's.
func (c *Cred) hasRoot() bool { return c.UID == 0 || c.EUID == 0 || c.SUID == 0 }

// AdjustForUserChange has the effect on capabilities of a change of user ids from those
// of old: a task that ceases to be root loses them (cap_emulate_setxuid of Linux).
func (c *Cred) AdjustForUserChange(old *Cred) {
	if c.SecureBits&SecureNoSetuidFixup != 0 {
		return
	}
	if old.hasRoot() && !c.hasRoot() {
		if c.SecureBits&SecureKeepCaps == 0 {
			c.Permitted, c.Effective = 0, 0
		}
		c.Ambient = 0
	}
	switch {
	case old.EUID == 0 && c.EUID != 0:
		c.Effective = 0
	case old.EUID != 0 && c.EUID == 0:
		c.Effective = c.Permitted
	}
}

// AdjustForFSUserChange is AdjustForUserChange for a change of the file system's user
// id alone.
func (c *Cred) AdjustForFSUserChange(old *Cred) {
	switch {
	case c.SecureBits&SecureNoSetuidFixup != 0:
	case old.FSUID == 0 && c.FSUID != 0:
		c.Effective &^= fileCaps
	case old.FSUID != 0 && c.FSUID == 0:
		c.Effective |= c.Permitted & fileCaps
	}
}

// OfProgram returns the credentials of the caller after executing a program of the
// given mode and owners, and whether that is more than the caller had, which AT_SECURE
// reports to the program. raises is false when the caller may gain nothing
// (PR_SET_NO_NEW_PRIVS). Files have no capabilities of their own here.
// (cap_bprm_creds_from_file of Linux.)
func (c *Cred) OfProgram(mode, uid, gid uint32, raises bool) (n Cred, secure bool) {
	const setgid = 0o2010 // without the group's right to execute it means a mandatory lock
	n = *c
	if raises && mode&0o4000 != 0 {
		n.EUID = uid
	}
	if raises && mode&setgid == setgid {
		n.EGID = gid
	}
	n.Permitted = 0
	all := false
	if n.SecureBits&SecureNoRoot == 0 {
		if n.UID == 0 || n.EUID == 0 {
			n.Permitted = c.Bounding | c.Inheritable
		}
		all = n.EUID == 0
	}
	other := n.EUID != c.UID || n.EGID != c.GID
	n.SUID, n.FSUID, n.SGID, n.FSGID = n.EUID, n.EUID, n.EGID, n.EGID
	if other {
		n.Ambient = 0
	}
	grew := !(c.Permitted | n.Ambient).Contains(n.Permitted)
	n.Permitted |= n.Ambient
	if n.Effective = n.Ambient; all {
		n.Effective = n.Permitted
	}
	n.SecureBits &^= SecureKeepCaps
	return n, other || n.UID != 0 && (all || grew)
}
