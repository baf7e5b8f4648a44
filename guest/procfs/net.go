package procfs

import (
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/sock"
)

// netDir is /proc/PID/net: the loopback interface, and the sockets.
var netDir = fixedFolder("net",
	constantFile("arp", "IP address       HW type     Flags       HW address            Mask     Device\n"),
	constantFile("dev", `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
`),
	constantFile("if_inet6", "00000000000000000000000000000001 01 80 10 80       lo\n"),
	constantFile("route", "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"),
	printedFile("tcp", func(r *request, p *textPrinter) {
		p.printf("%-149s\n", "  sl"+ipv4Header)
		printTCP(p, r.kernel.Network().TCP(unix.AF_INET), 149)
	}),
	printedFile("tcp6", func(r *request, p *textPrinter) {
		p.printf("  sl%s\n", ipv6Header)
		printTCP(p, r.kernel.Network().TCP(unix.AF_INET6), 0)
	}),
	printedFile("udp", func(r *request, p *textPrinter) {
		p.printf("%-127s\n", "   sl"+ipv4Header+" ref pointer drops")
		printUDP(p, r.kernel.Network().UDP(unix.AF_INET), 127)
	}),
	printedFile("udp6", func(r *request, p *textPrinter) {
		p.printf("  sl%s ref pointer drops\n", ipv6Header)
		printUDP(p, r.kernel.Network().UDP(unix.AF_INET6), 0)
	}),
	printedFile("unix", printUnix),
)

const (
	ipv4Header = "  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
	ipv6Header = "  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
)

// tick is the length of a jiffy that user space sees, in ns.
const tick = 10_000_000

// Addresses of the kernel, and the state of congestion control, are constants.
const (
	noAddress   = "0000000000000000"
	ofListener  = "100 0 0 10 0"
	ofConnected = "20 4 30 10 -1"
)

// addresses are both addresses of a socket: each 32-bit word of an address as the number that it is in memory.
func addresses(s *sock.Status) string {
	return endpoint(&s.Local, s.Family) + " " + endpoint(&s.Remote, s.Family)
}

func endpoint(a *sock.Addr, family int) string {
	words := a.IP[:]
	if family == unix.AF_INET {
		words = words[12:]
	}
	var b strings.Builder
	for ; len(words) > 0; words = words[4:] {
		fmt.Fprintf(&b, "%08X", binary.LittleEndian.Uint32(words))
	}
	return fmt.Sprintf("%s:%04X", &b, a.Port)
}

// printTCP prints sockets as get_tcp4_sock and get_timewait4_sock do (net/ipv4/tcp_ipv4.c), each in a line of at least a width.
func printTCP(p *textPrinter, list []sock.Status, width int) {
	for i := range list {
		s := &list[i]
		line := fmt.Sprintf("%4d: %s %02X 00000000:%08X ", i, addresses(s), s.State, s.Received)
		switch {
		case s.Remaining > 0:
			line += fmt.Sprintf("03:%08X 00000000 %5d %8d 0 3 %s", s.Remaining/tick, s.UID, 0, noAddress)
		case s.Listens:
			line += fmt.Sprintf("00:00000000 00000000 %5d %8d %d 1 %s %s", s.UID, 0, s.Inode, noAddress, ofListener)
		default:
			line += fmt.Sprintf("00:00000000 00000000 %5d %8d %d 1 %s %s", s.UID, 0, s.Inode, noAddress, ofConnected)
		}
		p.printf("%-*s\n", width, line)
	}
}

// printUDP prints sockets as udp4_format_sock does (net/ipv4/udp.c).
func printUDP(p *textPrinter, list []sock.Status, width int) {
	for i := range list {
		s := &list[i]
		p.printf("%-*s\n", width, fmt.Sprintf("%5d: %s %02X 00000000:%08X 00:00000000 00000000 %5d %8d %d 2 %s 0",
			s.Local.Port, addresses(s), s.State, s.Received, s.UID, 0, s.Inode, noAddress))
	}
}

// printUnix prints the sockets of all open descriptors as unix_seq_show does (net/unix/af_unix.c). Those that are only in
// messages, or that wait to be accepted, are left out.
func printUnix(r *request, p *textPrinter) {
	const accepts = 0x10000 // __SO_ACCEPTCON
	p.WriteString("Num       RefCount Protocol Flags    Type St Inode Path\n")
	for _, s := range r.kernel.UnixSockets() {
		flags, references := 0, 2
		if s.Listens {
			flags = accepts
		}
		if s.State == 3 {
			references = 3
		}
		p.printf("%s: %08X %08X %08X %04X %02X %5d", noAddress, references, 0, flags, s.Type, s.State, s.Inode)
		if s.Local.Name != "" {
			p.printf(" %s", strings.ReplaceAll(s.Local.Name, "\x00", "@"))
		}
		p.WriteString("\n")
	}
}
