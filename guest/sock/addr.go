package sock

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Addr is the address of a socket, in all families.
type Addr struct {
	Family uint16
	Name   string   // AF_UNIX: a path, or a name that begins with a zero byte
	IP     [16]byte // AF_INET: mapped to AF_INET6
	Port   uint16
	Scope  uint32
	Flow   uint32
	size   int    // of the structure, AF_INET and AF_INET6; 0: large enough
	PID    uint32 // AF_NETLINK
	Groups uint32 // AF_NETLINK
}

// Sizes of address structures: the fixed part of sockaddr_un, sockaddr_in,
// sockaddr_in6 with and without the scope, sockaddr_nl.
const (
	unixPrefix  = 2
	unixSize    = 110
	inetSize    = 16
	inet6Short  = 24
	inet6Size   = 28
	netlinkSize = 12
	// MaxAddr is the size of struct sockaddr_storage, which no address exceeds.
	MaxAddr = 128
)

var mapped = [12]byte{10: 0xff, 11: 0xff}

func ipv4Address(a, b, c, d byte) [16]byte {
	return [16]byte{10: 0xff, 11: 0xff, 12: a, 13: b, 14: c, 15: d}
}

var (
	loopback4 = ipv4Address(127, 0, 0, 1)
	any4      = ipv4Address(0, 0, 0, 0)
	loopback6 = [16]byte{15: 1}
	any6      [16]byte
)

func isIPv4(ip [16]byte) bool { return bytes.Equal(ip[:12], mapped[:]) }

func isUnspecified(ip [16]byte) bool { return ip == any4 || ip == any6 }

// isLocal reports whether the address is one of this machine's.
func isLocal(ip [16]byte) bool { return ip == loopback6 || isIPv4(ip) && ip[12] == 127 }

// Parse decodes an address for a socket of the family. EINVAL: it is too short or too
// long, or of another family; that of an Internet address is checked when it is used.
func Parse(raw []byte, family int) (Addr, unix.Errno) {
	if len(raw) < 2 {
		return Addr{}, unix.EINVAL
	}
	a := Addr{Family: binary.LittleEndian.Uint16(raw)}
	switch family {
	case unix.AF_UNIX:
		return a.parseUnix(raw)
	case unix.AF_INET, unix.AF_INET6:
		return a.parseInet(raw), 0
	}
	if len(raw) < netlinkSize {
		return a, unix.EINVAL
	}
	if a.Family != unix.AF_NETLINK {
		return a, unix.EINVAL
	}
	a.PID = binary.LittleEndian.Uint32(raw[4:])
	a.Groups = binary.LittleEndian.Uint32(raw[8:])
	return a, 0
}

func (a Addr) parseUnix(raw []byte) (Addr, unix.Errno) {
	switch {
	case a.Family == unix.AF_UNSPEC:
		return a, 0
	case a.Family != unix.AF_UNIX, len(raw) > unixSize:
		return a, unix.EINVAL
	case len(raw) == unixPrefix:
		return a, 0
	case raw[unixPrefix] == 0:
		a.Name = string(raw[unixPrefix:])
		return a, 0
	}
	name, _, _ := bytes.Cut(raw[unixPrefix:], []byte{0})
	a.Name = string(name)
	return a, 0
}

// parseInet decodes as much as there is; see checkInet.
func (a Addr) parseInet(raw []byte) Addr {
	a.size = len(raw)
	b := append(append([]byte(nil), raw...), make([]byte, inet6Size)...)
	a.Port = binary.BigEndian.Uint16(b[2:])
	if a.Family == unix.AF_INET6 {
		a.Flow = binary.LittleEndian.Uint32(b[4:])
		copy(a.IP[:], b[8:24])
		a.Scope = binary.LittleEndian.Uint32(b[24:])
		return a
	}
	copy(a.IP[:], mapped[:])
	copy(a.IP[12:], b[4:8])
	return a
}

// checkInet checks that an address is one for a socket of the family. EINVAL:
// it is too short; EAFNOSUPPORT: it is of another family.
func (a *Addr) checkInet(family int) unix.Errno {
	least := inetSize
	if family == unix.AF_INET6 {
		least = inet6Short
	}
	switch {
	case a.size != 0 && a.size < least:
		return unix.EINVAL
	case int(a.Family) != family:
		return unix.EAFNOSUPPORT
	}
	return 0
}

// Bytes encodes the address as a socket of the family shows it.
func (a Addr) Bytes(family int) []byte {
	b := binary.LittleEndian.AppendUint16(nil, uint16(family))
	switch family {
	case unix.AF_UNIX:
		b = append(b, a.Name...)
		if a.Name != "" && a.Name[0] != 0 {
			b = append(b, 0)
		}
	case unix.AF_INET:
		b = binary.BigEndian.AppendUint16(b, a.Port)
		if isIPv4(a.IP) {
			b = append(b, a.IP[12:]...)
		} else {
			b = append(b, 0, 0, 0, 0)
		}
		b = append(b, make([]byte, 8)...)
	case unix.AF_INET6:
		b = binary.BigEndian.AppendUint16(b, a.Port)
		b = binary.LittleEndian.AppendUint32(b, a.Flow)
		b = append(b, a.IP[:]...)
		b = binary.LittleEndian.AppendUint32(b, a.Scope)
	case unix.AF_NETLINK:
		b = append(b, 0, 0)
		b = binary.LittleEndian.AppendUint32(b, a.PID)
		b = binary.LittleEndian.AppendUint32(b, a.Groups)
	}
	return b
}
