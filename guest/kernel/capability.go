package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// capHeader and capData are struct __user_cap_header_struct and struct __user_cap_data_struct.
type capHeader struct {
	Version uint32
	PID     int32
}

type capData struct{ Effective, Permitted, Inheritable uint32 }

// Versions of the header (include/uapi/linux/capability.h); the first has half the data.
const (
	capVersion1 = 0x19980330
	capVersion2 = 0x20071026
	capVersion3 = 0x20080522
)

// capHeader reads the header and returns how many capData follow it. EINVAL: the version is
// unknown; the newest one has been stored in its place.
func (t *Task) capHeader(addr arch.Addr) (h capHeader, words int, errno unix.Errno) {
	if errno := readStruct(t, addr, &h.Version); errno != 0 {
		return h, 0, errno
	}
	switch words = 2; h.Version {
	case capVersion1:
		words = 1
	case capVersion2, capVersion3:
	default:
		version := uint32(capVersion3)
		if errno := writeStruct(t, addr, &version); errno != 0 {
			return h, 0, errno
		}
		return h, 0, unix.EINVAL
	}
	return h, words, readStruct(t, addr, &h)
}

func sysCapget(t *Task, a [6]uint64) (uint64, unix.Errno) {
	h, words, errno := t.capHeader(arch.Addr(a[0]))
	if errno == unix.EINVAL && a[1] == 0 {
		return 0, 0 // asked for the version
	}
	if errno != 0 || a[1] == 0 {
		return 0, errno
	}
	if h.PID < 0 {
		return 0, unix.EINVAL
	}
	of := &t.cred
	if h.PID != 0 {
		other, errno := t.schedulingTarget(uint64(h.PID))
		if errno != 0 {
			return 0, errno
		}
		of = &other.cred
	}
	var d [2]capData
	for i := range d {
		half := func(s vfs.Caps) uint32 { return uint32(s >> (32 * i)) }
		d[i] = capData{half(of.Effective), half(of.Permitted), half(of.Inheritable)}
	}
	return 0, t.copyOut(arch.Addr(a[1]), bytesOf(&d)[:words*12])
}

func sysCapset(t *Task, a [6]uint64) (uint64, unix.Errno) {
	h, words, errno := t.capHeader(arch.Addr(a[0]))
	if errno != 0 {
		return 0, errno
	}
	if h.PID != 0 && h.PID != int32(t.id) {
		return 0, unix.EPERM
	}
	var d [2]capData
	if errno := t.copyIn(arch.Addr(a[1]), bytesOf(&d)[:words*12]); errno != 0 {
		return 0, errno
	}
	caps := func(low, high uint32) vfs.Caps { return (vfs.Caps(high)<<32 | vfs.Caps(low)) & vfs.AllCaps }
	n, old := t.cred, &t.cred
	n.Effective = caps(d[0].Effective, d[1].Effective)
	n.Permitted = caps(d[0].Permitted, d[1].Permitted)
	n.Inheritable = caps(d[0].Inheritable, d[1].Inheritable)
	switch {
	case !t.cred.Can(vfs.CapSetpcap) && !(old.Inheritable | old.Permitted).Contains(n.Inheritable),
		!(old.Inheritable | old.Bounding).Contains(n.Inheritable),
		!old.Permitted.Contains(n.Permitted), !n.Permitted.Contains(n.Effective):
		return 0, unix.EPERM
	}
	n.Ambient &= n.Permitted & n.Inheritable
	t.setCredentials(n)
	return 0, 0
}

// setCredentials gives the task other credentials. A process whose rights have changed can no
// longer be inspected by others, and gets no signal when its parent dies, until it asks for either
// again (commit_creds of Linux).
func (t *Task) setCredentials(n vfs.Cred) {
	old := &t.cred
	if old.EUID != n.EUID || old.EGID != n.EGID || old.FSUID != n.FSUID || old.FSGID != n.FSGID || !old.Permitted.Contains(n.Permitted) {
		t.proc.dumpable = 0
		t.parentDeath = 0
	}
	t.cred = n
}

// sameUser reports whether all ids of another task equal the caller's.
func (t *Task) sameUser(other *Task) bool {
	c, of := &t.cred, &other.cred
	return c.UID == of.UID && c.UID == of.EUID && c.UID == of.SUID && c.GID == of.GID && c.GID == of.EGID && c.GID == of.SGID
}

// mayExamine reports whether a process with the credentials c may read the state of this one
// (ptrace_may_access of Linux). byFile: the file-system ids count, not the real ones.
func (p *Process) mayExamine(c *vfs.Cred, byFile bool) bool {
	of := p.cred()
	uid, gid, caps := c.UID, c.GID, c.Permitted
	if byFile {
		uid, gid, caps = c.FSUID, c.FSGID, c.Effective
	}
	same := uid == of.UID && uid == of.EUID && uid == of.SUID && gid == of.GID && gid == of.EGID && gid == of.SGID
	return c.Can(vfs.CapSysPtrace) || same && p.dumpable == 1 && caps.Contains(of.Permitted)
}

// prctlCaps carries out the commands of prctl that concern capabilities.
func (t *Task) prctlCaps(a [6]uint64) (uint64, unix.Errno) {
	n := t.cred
	switch a[0] {
	case unix.PR_CAPBSET_READ:
		if a[1] > uint64(vfs.LastCapability) {
			return 0, unix.EINVAL
		}
		return uint64(n.Bounding >> a[1] & 1), 0
	case unix.PR_CAPBSET_DROP:
		if !n.Can(vfs.CapSetpcap) {
			return 0, unix.EPERM
		}
		if a[1] > uint64(vfs.LastCapability) {
			return 0, unix.EINVAL
		}
		n.Bounding &^= 1 << a[1]
	case unix.PR_CAP_AMBIENT:
		return t.prctlAmbient(a)
	case unix.PR_GET_KEEPCAPS:
		return uint64(boolToUint32(n.SecureBits&vfs.SecureKeepCaps != 0)), 0
	case unix.PR_SET_KEEPCAPS:
		if a[1] > 1 {
			return 0, unix.EINVAL
		}
		if n.SecureBits&vfs.SecureKeepCapsLocked != 0 {
			return 0, unix.EPERM
		}
		n.SecureBits &^= vfs.SecureKeepCaps
		if a[1] == 1 {
			n.SecureBits |= vfs.SecureKeepCaps
		}
	case unix.PR_GET_SECUREBITS:
		return uint64(n.SecureBits), 0
	case unix.PR_SET_SECUREBITS:
		bits, old := uint32(a[1]), n.SecureBits
		locked := old & vfs.SecureLocks >> 1
		if a[1]&^uint64(vfs.SecureAll) != 0 || (old^bits)&locked != 0 || old&vfs.SecureLocks&^bits != 0 || !n.Can(vfs.CapSetpcap) {
			return 0, unix.EPERM
		}
		n.SecureBits = bits
	}
	t.setCredentials(n)
	return 0, 0
}

// prctlAmbient carries out PR_CAP_AMBIENT.
func (t *Task) prctlAmbient(a [6]uint64) (uint64, unix.Errno) {
	n := t.cred
	if a[1] == unix.PR_CAP_AMBIENT_CLEAR_ALL {
		if a[2]|a[3]|a[4] != 0 {
			return 0, unix.EINVAL
		}
		n.Ambient = 0
		t.setCredentials(n)
		return 0, 0
	}
	if a[2] > uint64(vfs.LastCapability) || a[3]|a[4] != 0 {
		return 0, unix.EINVAL
	}
	one := vfs.CapsOf(vfs.Capability(a[2]))
	switch a[1] {
	case unix.PR_CAP_AMBIENT_IS_SET:
		return uint64(boolToUint32(n.Ambient.Contains(one))), 0
	case unix.PR_CAP_AMBIENT_LOWER:
		n.Ambient &^= one
	case unix.PR_CAP_AMBIENT_RAISE:
		if !(n.Permitted & n.Inheritable).Contains(one) || n.SecureBits&vfs.SecureNoAmbientRaise != 0 {
			return 0, unix.EPERM
		}
		n.Ambient |= one
	default:
		return 0, unix.EINVAL
	}
	t.setCredentials(n)
	return 0, 0
}
