package sock_test

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/sock"
)

// address encodes an address for both worlds.
func (w *world) address(s *both, text string) (native, guest []byte) {
	switch {
	case text == "unspec":
		b := make([]byte, 16)
		return b, b
	case text[0] == '@':
		return unixAddress("\x00" + w.prefix + text[1:]), unixAddress("\x00" + text[1:])
	case text[0] == '/':
		return unixAddress(filepath.Join(w.dir, text[1:]) + "\x00"), unixAddress("/tmp" + text + "\x00")
	case text == "none":
		return unixAddress(""), unixAddress("")
	}
	at := strings.LastIndexByte(text, ':')
	host, port := text[:at], text[at+1:]
	var np, gp uint16
	if port[0] == '=' {
		if o := w.sockets[port[1:]]; o != nil {
			np, gp = portOf(nativeName(o.fd)), portOf(o.guest().Name())
		} else if ports, ok := w.had[port[1:]]; ok {
			np, gp = ports[0], ports[1]
		} else {
			np, gp = 1, 1
		}
	} else {
		np = uint16(number(port))
		gp = np
	}
	return inetAddress(host, np), inetAddress(host, gp)
}

func unixAddress(name string) []byte { return append([]byte{unix.AF_UNIX, 0}, name...) }

func inetAddress(host string, port uint16) []byte {
	if host[0] == '[' {
		b := binary.LittleEndian.AppendUint16(nil, unix.AF_INET6)
		b = binary.BigEndian.AppendUint16(b, port)
		b = append(b, 0, 0, 0, 0)
		b = append(b, parseIP6(strings.Trim(host, "[]"))...)
		return append(b, 0, 0, 0, 0)
	}
	b := binary.LittleEndian.AppendUint16(nil, unix.AF_INET)
	b = binary.BigEndian.AppendUint16(b, port)
	for _, part := range strings.Split(host, ".") {
		b = append(b, byte(number(part)))
	}
	return append(b, make([]byte, 8)...)
}

func parseIP6(s string) []byte {
	ip := make([]byte, 16)
	switch {
	case s == "::":
	case s == "::1":
		ip[15] = 1
	case strings.HasPrefix(s, "::ffff:"):
		ip[10], ip[11] = 0xff, 0xff
		for i, part := range strings.Split(s[7:], ".") {
			ip[12+i] = byte(number(part))
		}
	default: // 2001:db8::1
		copy(ip, []byte{0x20, 0x01, 0x0d, 0xb8})
		ip[15] = 1
	}
	return ip
}

func (w *world) parsed(s *sock.Socket, raw []byte, do func(sock.Addr) unix.Errno) string {
	a, errno := sock.Parse(raw, s.Family())
	if errno == 0 {
		errno = do(a)
	}
	return show(errno, "ok")
}

func portOf(raw []byte) uint16 {
	if len(raw) < 4 {
		return 0
	}
	switch binary.LittleEndian.Uint16(raw) {
	case unix.AF_INET, unix.AF_INET6:
		return binary.BigEndian.Uint16(raw[2:])
	}
	return 0
}

// notePorts gives ports that are new the same name in both worlds.
func (w *world) notePorts() {
	for _, s := range w.sockets {
		np, gp := portOf(nativeName(s.fd)), portOf(s.guest().Name())
		if np < 20000 || gp < 20000 {
			continue
		}
		if w.ports[0][np] == "" && w.ports[1][gp] == "" {
			name := fmt.Sprintf("P%d", len(w.ports[0])+1)
			w.ports[0][np], w.ports[1][gp] = name, name
		}
	}
}

// portNames replaces a port in a result, which is marked as :<number>.
func (w *world) portNames(world int, s string) string {
	at := strings.LastIndex(s, ":<")
	if at < 0 {
		return s
	}
	end := at + strings.IndexByte(s[at:], '>')
	n, _ := strconv.Atoi(s[at+2 : end])
	name := w.ports[world][uint16(n)]
	if name == "" {
		name = strconv.Itoa(n)
	}
	return s[:at+1] + name + s[end+1:]
}

func (w *world) showAddress(world int, raw []byte) string {
	if len(raw) < 2 {
		return "-"
	}
	switch binary.LittleEndian.Uint16(raw) {
	case unix.AF_UNIX:
		name := string(raw[2:])
		if world == 0 {
			name = strings.Replace(name, w.prefix, "", 1)
			name = strings.Replace(name, w.dir, "/tmp", 1)
		}
		if len(name) == 6 && name[0] == 0 {
			name = "autobound"
		}
		return strconv.Quote(name)
	default:
		at := 4
		if len(raw) > 20 {
			at = 8
		}
		return fmt.Sprintf("%d/%d/%x:<%d>", raw[0], len(raw), raw[at:], portOf(raw))
	}
}

func (w *world) names(s *both, peer bool) (native, guest result) {
	call := uintptr(unix.SYS_GETSOCKNAME)
	raw, errno := s.guest().Name(), unix.Errno(0)
	if peer {
		call = unix.SYS_GETPEERNAME
		raw, errno = s.guest().Peer()
	}
	nraw, nerrno := rawName(call, s.fd)
	return one(show(nerrno, w.showAddress(0, nraw))), one(show(errno, w.showAddress(1, raw)))
}
