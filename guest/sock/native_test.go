package sock_test

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

func pointer(b []byte) uintptr {
	if len(b) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(&b[0]))
}

func rawAddress(call uintptr, fd int, addr []byte) unix.Errno {
	_, _, errno := unix.Syscall(call, uintptr(fd), uintptr(unsafe.Pointer(&addr[0])), uintptr(len(addr)))
	return errno
}

func rawName(call uintptr, fd int) ([]byte, unix.Errno) {
	b := make([]byte, 128)
	n := uint32(len(b))
	_, _, errno := unix.Syscall(call, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&n)))
	return b[:n], errno
}

func nativeName(fd int) []byte {
	b, _ := rawName(unix.SYS_GETSOCKNAME, fd)
	return b
}

func rawOption(call uintptr, fd, level, name int, raw []byte) unix.Errno {
	_, _, errno := unix.Syscall6(call, uintptr(fd), uintptr(level), uintptr(name), pointer(raw), uintptr(len(raw)), 0)
	return errno
}

func rawSend(fd int, data, to, control []byte, flags int) (int, unix.Errno) {
	vector := unix.Iovec{Len: uint64(len(data))}
	if len(data) > 0 {
		vector.Base = &data[0]
	}
	m := unix.Msghdr{Iov: &vector, Iovlen: 1}
	if len(to) > 0 {
		m.Name, m.Namelen = &to[0], uint32(len(to))
	}
	if len(control) > 0 {
		m.Control, m.Controllen = &control[0], uint64(len(control))
	}
	n, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&m)), uintptr(flags))
	return int(n), errno
}

// received is the result of recvmsg.
type received struct {
	n, flags int
	from     []byte
	rights   []int
	cred     string
}

func rawRecv(fd int, data []byte, flags int) (received, unix.Errno) {
	vector := unix.Iovec{Len: uint64(len(data))}
	if len(data) > 0 {
		vector.Base = &data[0]
	}
	from, control := make([]byte, 128), make([]byte, 2048)
	m := unix.Msghdr{Iov: &vector, Iovlen: 1, Name: &from[0], Namelen: 128, Control: &control[0], Controllen: 2048}
	n, _, errno := unix.Syscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&m)), uintptr(flags|unix.MSG_CMSG_CLOEXEC))
	if errno != 0 {
		return received{}, errno
	}
	r := received{n: int(n), flags: int(m.Flags), from: from[:m.Namelen]}
	list, err := unix.ParseSocketControlMessage(control[:m.Controllen])
	if err != nil {
		panic(err)
	}
	for _, c := range list {
		switch {
		case c.Header.Level != unix.SOL_SOCKET:
		case c.Header.Type == unix.SCM_RIGHTS:
			r.rights, _ = unix.ParseUnixRights(&c)
		case c.Header.Type == unix.SCM_CREDENTIALS:
			u, _ := unix.ParseUnixCredentials(&c)
			r.cred = fmt.Sprint(u.Pid, u.Uid, u.Gid)
		}
	}
	return r, 0
}

// polled are all events that poll can report.
const polled = 0x7fff &^ unix.POLLNVAL

func pollNative(fd int) uint32 {
	fds := []unix.PollFd{{Fd: int32(fd), Events: polled}}
	_, err := unix.Poll(fds, 0)
	for err == unix.EINTR {
		_, err = unix.Poll(fds, 0)
	}
	if err != nil {
		panic(err)
	}
	return uint32(fds[0].Revents)
}

func showEvents(mask uint32) string {
	var names []string
	for _, e := range []struct {
		bit  uint32
		name string
	}{
		{unix.EPOLLIN, "in"},
		{unix.EPOLLPRI, "pri"},
		{unix.EPOLLOUT, "out"},
		{unix.EPOLLERR, "err"},
		{unix.EPOLLHUP, "hup"},
		{unix.EPOLLRDHUP, "rdhup"},
		{unix.EPOLLRDNORM, "rdnorm"},
		{unix.EPOLLWRNORM, "wrnorm"},
		{unix.EPOLLRDBAND, "rdband"},
		{unix.EPOLLWRBAND, "wrband"},
	} {
		if mask&e.bit != 0 {
			names = append(names, e.name)
			mask &^= e.bit
		}
	}
	if mask != 0 {
		names = append(names, fmt.Sprintf("%#x", mask))
	}
	return strings.Join(names, "+")
}

var optionNames = map[string][2]int{
	"type": {unix.SOL_SOCKET, unix.SO_TYPE}, "domain": {unix.SOL_SOCKET, unix.SO_DOMAIN},
	"protocol": {unix.SOL_SOCKET, unix.SO_PROTOCOL}, "error": {unix.SOL_SOCKET, unix.SO_ERROR},
	"acceptconn": {unix.SOL_SOCKET, unix.SO_ACCEPTCONN}, "sndbuf": {unix.SOL_SOCKET, unix.SO_SNDBUF},
	"rcvbuf": {unix.SOL_SOCKET, unix.SO_RCVBUF}, "reuseaddr": {unix.SOL_SOCKET, unix.SO_REUSEADDR},
	"reuseport": {unix.SOL_SOCKET, unix.SO_REUSEPORT}, "broadcast": {unix.SOL_SOCKET, unix.SO_BROADCAST},
	"passcred": {unix.SOL_SOCKET, unix.SO_PASSCRED}, "peercred": {unix.SOL_SOCKET, unix.SO_PEERCRED},
	"keepalive": {unix.SOL_SOCKET, unix.SO_KEEPALIVE}, "linger": {unix.SOL_SOCKET, unix.SO_LINGER},
	"rcvtimeo": {unix.SOL_SOCKET, unix.SO_RCVTIMEO}, "sndtimeo": {unix.SOL_SOCKET, unix.SO_SNDTIMEO},
	"rcvlowat": {unix.SOL_SOCKET, unix.SO_RCVLOWAT}, "sndlowat": {unix.SOL_SOCKET, unix.SO_SNDLOWAT},
	"oobinline": {unix.SOL_SOCKET, unix.SO_OOBINLINE}, "priority": {unix.SOL_SOCKET, unix.SO_PRIORITY},
	"timestamp": {unix.SOL_SOCKET, unix.SO_TIMESTAMP}, "peek_off": {unix.SOL_SOCKET, unix.SO_PEEK_OFF},
	"nosuch": {unix.SOL_SOCKET, 9999}, "nolevel": {4444, 1},
	"nodelay": {unix.IPPROTO_TCP, unix.TCP_NODELAY}, "cork": {unix.IPPROTO_TCP, unix.TCP_CORK},
	"keepidle": {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE}, "keepintvl": {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL},
	"keepcnt": {unix.IPPROTO_TCP, unix.TCP_KEEPCNT}, "syncnt": {unix.IPPROTO_TCP, unix.TCP_SYNCNT},
	"quickack": {unix.IPPROTO_TCP, unix.TCP_QUICKACK}, "user_timeout": {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT},
	"defer_accept": {unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT}, "linger2": {unix.IPPROTO_TCP, unix.TCP_LINGER2},
	"maxseg": {unix.IPPROTO_TCP, unix.TCP_MAXSEG},
	"v6only": {unix.IPPROTO_IPV6, unix.IPV6_V6ONLY}, "hops": {unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS},
	"recvpktinfo": {unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO}, "tclass": {unix.IPPROTO_IPV6, unix.IPV6_TCLASS},
	"tos": {unix.IPPROTO_IP, unix.IP_TOS}, "ttl": {unix.IPPROTO_IP, unix.IP_TTL}, "pktinfo": {unix.IPPROTO_IP, unix.IP_PKTINFO},
	"recverr": {unix.IPPROTO_IP, unix.IP_RECVERR}, "mtu_discover": {unix.IPPROTO_IP, unix.IP_MTU_DISCOVER},
	"multicast_ttl": {unix.IPPROTO_IP, unix.IP_MULTICAST_TTL}, "multicast_loop": {unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP},
	"udp_cork": {unix.IPPROTO_UDP, unix.UDP_CORK}, "freebind": {unix.IPPROTO_IP, unix.IP_FREEBIND}, "mtu": {unix.IPPROTO_IP, unix.IP_MTU},
}

func optionNumber(name string) (level, number int) {
	o, ok := optionNames[name]
	if !ok {
		panic("unknown option " + name)
	}
	return o[0], o[1]
}

// optionValue is a number as an int, "short" for one byte, or numbers joined by
// commas, each of 4 bytes, or of 8 if the whole begins with "long,".
func optionValue(text string) []byte {
	if text == "short" {
		return []byte{1}
	}
	long := strings.HasPrefix(text, "long,")
	var b []byte
	for _, part := range strings.Split(strings.TrimPrefix(text, "long,"), ",") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			panic(err)
		}
		if long {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		} else {
			b = binary.LittleEndian.AppendUint32(b, uint32(n))
		}
	}
	return b
}

func (w *world) get(s *both, option string) (native, guest result) {
	level, name := optionNumber(option)
	b := make([]byte, 256)
	n := uint32(len(b))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&n)), 0)
	raw, gerrno := s.guest().Option(level, name)
	return one(show(errno, fmt.Sprintf("%x", b[:n]))), one(show(gerrno, fmt.Sprintf("%x", raw)))
}

func (w *world) ioctl(s *both, name string) (native, guest result) {
	cmd := map[string]uint32{"inq": unix.TIOCINQ, "outq": unix.TIOCOUTQ, "atmark": 0x8905, "nosuch": 0x1234}[name]
	var v int32
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s.fd), uintptr(cmd), uintptr(unsafe.Pointer(&v)))
	raw, gerrno := s.guest().Ioctl(cmd, 0)
	g := int32(0)
	if gerrno == 0 {
		g = int32(binary.LittleEndian.Uint32(raw))
	}
	return one(show(errno, v)), one(show(gerrno, g))
}
