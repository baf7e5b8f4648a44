package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// capHeader and capData are struct __user_cap_header_struct and its data.
type capHeader struct {
	Version uint32
	PID     int32
}

type capData struct{ Effective, Permitted, Inheritable uint32 }

// Versions of the header (include/uapi/linux/capability.h); the first has half
// the data.
const (
	capVersion1 = 0x19980330
	capVersion2 = 0x20071026
	capVersion3 = 0x20080522
)

// capHeader reads the header and tells how many capData belong to it. EINVAL:
// an unknown version, in place of which the newest was stored.
func (t *Task) capHeader(addr event.Addr) (h capHeader, words int, errno unix.Errno) {
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
	h, words, errno := t.capHeader(event.Addr(a[0]))
	if errno == unix.EINVAL && a[1] == 0 {
		return 0, 0 // asked for the version
	}
	if errno != 0 || a[1] == 0 {
		return 0, errno
	}
	if h.PID < 0 {
		return 0, unix.EINVAL
	}
	p := t.proc
	if h.PID != 0 {
		of := t.k.tasks.At(event.ThreadID(h.PID))
		if of == nil {
			return 0, unix.ESRCH
		}
		p = of.proc
	}
	var d [2]capData
	if p.cred.EUID == 0 {
		d[0] = capData{Effective: ^uint32(0), Permitted: ^uint32(0)}
		d[1] = capData{Effective: 1<<(lastCapability-31) - 1, Permitted: 1<<(lastCapability-31) - 1}
	}
	return 0, t.copyOut(event.Addr(a[1]), bytesOf(&d)[:words*12])
}

func sysCapset(t *Task, a [6]uint64) (uint64, unix.Errno) {
	h, words, errno := t.capHeader(event.Addr(a[0]))
	if errno != 0 {
		return 0, errno
	}
	if h.PID != 0 && h.PID != int32(t.id) {
		return 0, unix.EPERM
	}
	var d [2]capData
	if errno := t.copyIn(event.Addr(a[1]), bytesOf(&d)[:words*12]); errno != 0 {
		return 0, errno
	}
	if t.proc.cred.EUID != 0 && d != [2]capData{} {
		return 0, unix.EPERM
	}
	return 0, 0
}
