package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// interfaceSize is the size of struct ifreq: a name of 16 bytes and a value.
const interfaceSize = 40

// GuestIoctl answers the requests of netdevice(7) about the loopback interface, and the requests of
// the socket itself.
func (x *socketFile) GuestIoctl(t *Task, cmd uint32, arg arch.Addr) (uint64, unix.Errno) {
	if cmd == unix.SIOCGIFCONF {
		return 0, t.listInterfaces(arg)
	}
	known := cmd == unix.SIOCGIFNAME || cmd == unix.SIOCGIFTXQLEN || cmd >= unix.SIOCGIFFLAGS && cmd <= unix.SIOCGIFINDEX
	if !known {
		out, errno := x.Ioctl(cmd, 0)
		if errno != 0 {
			return 0, errno
		}
		return 0, t.copyOut(arg, out)
	}
	raw := make([]byte, interfaceSize)
	if errno := t.copyIn(arg, raw); errno != 0 {
		return 0, errno
	}
	if errno := describeInterface(cmd, raw); errno != 0 {
		return 0, errno
	}
	return 0, t.copyOut(arg, raw)
}

// loopbackName is the name of the one interface in a struct ifreq.
var loopbackName = [16]byte{'l', 'o'}

// describeInterface fills in a struct ifreq. ENODEV: there is no such interface.
func describeInterface(cmd uint32, raw []byte) unix.Errno {
	name, value := raw[:16], raw[16:]
	if cmd == unix.SIOCGIFNAME {
		if decodeStruct[int32](value) != 1 {
			return unix.ENODEV
		}
		copy(name, loopbackName[:])
		return 0
	}
	if string(name[:3]) != "lo\x00" {
		return unix.ENODEV
	}
	switch cmd {
	case unix.SIOCGIFFLAGS:
		value[0], value[1] = unix.IFF_UP|unix.IFF_LOOPBACK|unix.IFF_RUNNING, 0
	case unix.SIOCGIFADDR, unix.SIOCGIFDSTADDR:
		copy(value, []byte{unix.AF_INET, 0, 0, 0, 127, 0, 0, 1})
	case unix.SIOCGIFNETMASK:
		copy(value, []byte{unix.AF_INET, 0, 0, 0, 255, 0, 0, 0})
	case unix.SIOCGIFBRDADDR:
		copy(value, []byte{unix.AF_INET, 0, 0, 0, 0, 0, 0, 0})
	case unix.SIOCGIFMETRIC:
		putU32(value, 0)
	case unix.SIOCGIFMTU:
		putU32(value, 65536)
	case unix.SIOCGIFHWADDR:
		copy(value, append([]byte{unix.ARPHRD_LOOPBACK & 0xff, unix.ARPHRD_LOOPBACK >> 8}, make([]byte, 14)...))
	case unix.SIOCGIFINDEX:
		putU32(value, 1)
	case unix.SIOCGIFTXQLEN:
		putU32(value, 1000)
	default:
		return unix.EINVAL
	}
	return 0
}

// listInterfaces answers SIOCGIFCONF: a length and the address of a list of struct ifreq, or 0 to
// query the length.
func (t *Task) listInterfaces(arg arch.Addr) unix.Errno {
	raw := make([]byte, 16)
	if errno := t.copyIn(arg, raw); errno != 0 {
		return errno
	}
	room, list := decodeStruct[int32](raw), decodeStruct[uint64](raw[8:])
	used := uint32(0)
	if list == 0 || room >= interfaceSize {
		used = interfaceSize
	}
	if list != 0 && used > 0 {
		entry := make([]byte, interfaceSize)
		copy(entry, loopbackName[:])
		_ = describeInterface(unix.SIOCGIFADDR, entry)
		if errno := t.copyOut(arch.Addr(list), entry); errno != 0 {
			return errno
		}
	}
	return t.proc.space.WriteU32(arg, used)
}
