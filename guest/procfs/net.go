package procfs

import (
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Socket is a socket as a line of /proc/net shows it.
type Socket struct {
	Type, State   int // unix.SOCK_STREAM and so on; a number of the file's
	Local, Remote Endpoint
	// Received is the number of bytes that are to be read, of a listener the number of connections that are to be accepted.
	Received int
	// Remaining is the time in ns until a connection in TIME_WAIT is forgotten.
	Remaining int64
	UID       uint32
	// Inode is that of the socket's file; 0: it has none, or none any more.
	Inode   uint64
	Listens bool
}

// Endpoint is an address of a socket: of AF_INET in the last four bytes of IP, of AF_UNIX the name.
type Endpoint struct {
	IP   [16]byte
	Port uint16
	Name string
}

// netDir is /proc/PID/net: the loopback interface, and the sockets.
var netDir = fixedFolder("net",
	constantFile("arp", "IP address       HW type     Flags       HW address            Mask     Device\n"),
	constantFile("dev", `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
`),
	constantFile("if_inet6", "00000000000000000000000000000001 01 80 10 80       lo\n"),
	constantFile("route", "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"),
	printedFile("sockstat", printSockets),
	printedFile("sockstat6", printSockets6),
	printedFile("tcp", func(r *request, p *textPrinter) {
		p.printf("%-149s\n", "  sl"+ipv4Header)
		printTCP(p, r.kernel.Sockets(unix.AF_INET, unix.SOCK_STREAM), unix.AF_INET, 149)
	}),
	printedFile("tcp6", func(r *request, p *textPrinter) {
		p.printf("  sl%s\n", ipv6Header)
		printTCP(p, r.kernel.Sockets(unix.AF_INET6, unix.SOCK_STREAM), unix.AF_INET6, 0)
	}),
	printedFile("udp", func(r *request, p *textPrinter) {
		p.printf("%-127s\n", "   sl"+ipv4Header+" ref pointer drops")
		printUDP(p, r.kernel.Sockets(unix.AF_INET, unix.SOCK_DGRAM), unix.AF_INET, 127)
	}),
	printedFile("udp6", func(r *request, p *textPrinter) {
		p.printf("  sl%s ref pointer drops\n", ipv6Header)
		printUDP(p, r.kernel.Sockets(unix.AF_INET6, unix.SOCK_DGRAM), unix.AF_INET6, 0)
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
func addresses(s *Socket, family int) string {
	return s.Local.text(family) + " " + s.Remote.text(family)
}

func (a *Endpoint) text(family int) string {
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
func printTCP(p *textPrinter, list []Socket, family, width int) {
	for i := range list {
		s := &list[i]
		line := fmt.Sprintf("%4d: %s %02X 00000000:%08X ", i, addresses(s, family), s.State, s.Received)
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
func printUDP(p *textPrinter, list []Socket, family, width int) {
	for i := range list {
		s := &list[i]
		p.printf("%-*s\n", width, fmt.Sprintf("%5d: %s %02X 00000000:%08X 00:00000000 00000000 %5d %8d %d 2 %s 0",
			s.Local.Port, addresses(s, family), s.State, s.Received, s.UID, 0, s.Inode, noAddress))
	}
}

// States of TCP (include/net/tcp_states.h).
const (
	finWait1 = 4
	finWait2 = 5
	timeWait = 6
	lastAck  = 9
	closing  = 11
)

// tcpCounts are the numbers of TCP's sockets as Linux counts them: inUse are all but those in TIME_WAIT, and orphans the ones that
// no process has any more.
type tcpCounts struct{ inUse, orphans, timeWait, received int }

func countTCP(list []Socket) (n tcpCounts) {
	for i := range list {
		s := &list[i]
		if s.State == timeWait {
			n.timeWait++
			continue
		}
		n.inUse++
		if !s.Listens {
			n.received += s.Received
		}
		switch s.State {
		case finWait1, finWait2, lastAck, closing:
			if s.Inode == 0 {
				n.orphans++
			}
		}
	}
	return n
}

// printSockets prints the numbers of sockets as sockstat_seq_show does (net/ipv4/proc.c). Bound and connected sockets count,
// those of UNIX with a descriptor; the memory is that of bytes that were received.
func printSockets(r *request, p *textPrinter) {
	const page = 4096
	four := countTCP(r.kernel.Sockets(unix.AF_INET, unix.SOCK_STREAM))
	six := countTCP(r.kernel.Sockets(unix.AF_INET6, unix.SOCK_STREAM))
	udp := r.kernel.Sockets(unix.AF_INET, unix.SOCK_DGRAM)
	udp6 := r.kernel.Sockets(unix.AF_INET6, unix.SOCK_DGRAM)
	received := 0
	for _, list := range [][]Socket{udp, udp6} {
		for i := range list {
			received += list[i].Received
		}
	}
	p.printf("sockets: used %d\n", four.inUse+six.inUse+len(udp)+len(udp6)+len(r.kernel.Sockets(unix.AF_UNIX, 0)))
	p.printf("TCP: inuse %d orphan %d tw %d alloc %d mem %d\n", four.inUse, four.orphans+six.orphans, four.timeWait+six.timeWait,
		four.inUse+six.inUse, (four.received+six.received+page-1)/page)
	p.printf("UDP: inuse %d mem %d\nUDPLITE: inuse 0\nRAW: inuse 0\nFRAG: inuse 0 memory 0\n", len(udp), (received+page-1)/page)
}

// printSockets6 prints those of IPv6 as sockstat6_seq_show does (net/ipv6/proc.c).
func printSockets6(r *request, p *textPrinter) {
	tcp := countTCP(r.kernel.Sockets(unix.AF_INET6, unix.SOCK_STREAM))
	p.printf("TCP6: inuse %d\nUDP6: inuse %d\nUDPLITE6: inuse 0\nRAW6: inuse 0\nFRAG6: inuse 0 memory 0\n",
		tcp.inUse, len(r.kernel.Sockets(unix.AF_INET6, unix.SOCK_DGRAM)))
}

// printUnix prints the sockets of all open descriptors as unix_seq_show does (net/unix/af_unix.c). Those that are only in
// messages, or that wait to be accepted, are left out.
func printUnix(r *request, p *textPrinter) {
	const accepts = 0x10000 // __SO_ACCEPTCON
	p.WriteString("Num       RefCount Protocol Flags    Type St Inode Path\n")
	for _, s := range r.kernel.Sockets(unix.AF_UNIX, 0) {
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
