package sock

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
)

// Bounds and defaults of buffers: net.core.[rw]mem_default and _max,
// net.ipv4.tcp_[rw]mem, and the smallest sizes that Linux accepts.
const (
	defaultBuffer  = 212992
	maxBuffer      = 4194304
	tcpSendDefault = 16384
	tcpRecvDefault = 131072
	minSend        = 4608
	minRecv        = 2304
)

// options are the socket options, those without an effect included.
type options struct {
	sendBuffer, recvBuffer   int
	sendLocked, recvLocked   bool  // the program chose the size
	sendTimeout, recvTimeout int64 // ns, 0 for none
	linger                   unix.Linger
	reuseAddr, reusePort     bool
	broadcast, v6only        bool
	passCred                 bool
	values                   map[option]int32
}

type option struct{ level, name int }

func defaultOptions(s *Socket) options {
	o := options{sendBuffer: defaultBuffer, recvBuffer: defaultBuffer}
	if s.isTCP() {
		o.sendBuffer, o.recvBuffer = tcpSendDefault, tcpRecvDefault
	}
	return o
}

// inheritedBy returns the options that an accepted connection inherits from its
// listener.
func (o options) inheritedBy() options {
	values := make(map[option]int32, len(o.values))
	for k, v := range o.values { // the order does not matter
		values[k] = v
	}
	o.values = values
	return o
}

// limits of an option that is a number, and its value at first.
type number struct{ first, least, most int32 }

const most int32 = 1<<31 - 1

// flag is an option that is 0 or 1.
var flag = number{0, 0, 1}

// knownOptions are the options that are kept and read back.
var knownOptions = map[option]number{
	{unix.SOL_SOCKET, unix.SO_DEBUG}:            flag,
	{unix.SOL_SOCKET, unix.SO_DONTROUTE}:        flag,
	{unix.SOL_SOCKET, unix.SO_KEEPALIVE}:        flag,
	{unix.SOL_SOCKET, unix.SO_OOBINLINE}:        flag,
	{unix.SOL_SOCKET, unix.SO_NO_CHECK}:         flag,
	{unix.SOL_SOCKET, unix.SO_TIMESTAMP}:        flag,
	{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS}:      flag,
	{unix.SOL_SOCKET, unix.SO_SELECT_ERR_QUEUE}: flag,
	{unix.SOL_SOCKET, unix.SO_PASSSEC}:          flag,
	{unix.SOL_SOCKET, unix.SO_RXQ_OVFL}:         flag,
	{unix.SOL_SOCKET, unix.SO_ZEROCOPY}:         flag,
	{unix.SOL_SOCKET, unix.SO_PRIORITY}:         {0, -most, most},
	{unix.SOL_SOCKET, unix.SO_RCVLOWAT}:         {1, -most - 1, most},
	{unix.SOL_SOCKET, unix.SO_BUSY_POLL}:        {0, 0, most},
	{unix.SOL_SOCKET, unix.SO_INCOMING_CPU}:     {-1, -1, most},
	{unix.SOL_SOCKET, unix.SO_MARK}:             {0, -most, most},
	{unix.IPPROTO_TCP, unix.TCP_NODELAY}:        flag,
	{unix.IPPROTO_TCP, unix.TCP_CORK}:           flag,
	{unix.IPPROTO_TCP, unix.TCP_QUICKACK}:       {1, 0, 1},
	{unix.IPPROTO_TCP, unix.TCP_MAXSEG}:         {536, 88, 32767},
	{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE}:       {7200, 1, 32767},
	{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL}:      {75, 1, 32767},
	{unix.IPPROTO_TCP, unix.TCP_KEEPCNT}:        {9, 1, 127},
	{unix.IPPROTO_TCP, unix.TCP_SYNCNT}:         {6, 1, 127},
	{unix.IPPROTO_TCP, unix.TCP_LINGER2}:        {60, -most - 1, most},
	{unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT}:   {0, -most, most},
	{unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP}:   {0, 0, most},
	{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT}:   {0, 0, most},
	{unix.IPPROTO_TCP, unix.TCP_FASTOPEN}:       {0, 0, most},
	{unix.IPPROTO_UDP, unix.UDP_CORK}:           flag,
	{unix.IPPROTO_UDP, unix.UDP_GRO}:            flag,
	{unix.IPPROTO_IP, unix.IP_TOS}:              {0, -most - 1, most},
	{unix.IPPROTO_IP, unix.IP_TTL}:              {64, 1, 255},
	{unix.IPPROTO_IP, unix.IP_RECVERR}:          flag,
	{unix.IPPROTO_IP, unix.IP_PKTINFO}:          flag,
	{unix.IPPROTO_IP, unix.IP_RECVTTL}:          flag,
	{unix.IPPROTO_IP, unix.IP_RECVTOS}:          flag,
	{unix.IPPROTO_IP, unix.IP_FREEBIND}:         flag,
	{unix.IPPROTO_IP, unix.IP_TRANSPARENT}:      flag,
	{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER}:     {1, 0, 5},
	{unix.IPPROTO_IP, unix.IP_MULTICAST_TTL}:    {1, 0, 255},
	{unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP}:   {1, 0, 1},

	{unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT}:  flag,
	{unix.IPPROTO_IPV6, unix.IPV6_RECVERR}:           flag,
	{unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO}:       flag,
	{unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT}:      flag,
	{unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS}:        flag,
	{unix.IPPROTO_IPV6, unix.IPV6_TCLASS}:            {0, 0, 255},
	{unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS}:      {64, 0, 255},
	{unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS}:    {1, 0, 255},
	{unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_LOOP}:    {1, 0, 1},
	{unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER}:      {1, 0, 5},
	{unix.SOL_NETLINK, unix.NETLINK_EXT_ACK}:         flag,
	{unix.SOL_NETLINK, unix.NETLINK_CAP_ACK}:         flag,
	{unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK}:  flag,
	{unix.SOL_NETLINK, unix.NETLINK_PKTINFO}:         flag,
	{unix.SOL_NETLINK, unix.NETLINK_NO_ENOBUFS}:      flag,
	{unix.SOL_NETLINK, unix.NETLINK_BROADCAST_ERROR}: flag,
	{unix.SOL_NETLINK, unix.NETLINK_LISTEN_ALL_NSID}: flag,
	{unix.SOL_NETLINK, unix.NETLINK_DROP_MEMBERSHIP}: {0, 0, most},
	{unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP}:  {0, 0, most},
}

// hasLevel reports whether the socket has options of a level.
func (s *Socket) hasLevel(level int) bool {
	switch level {
	case unix.SOL_SOCKET:
		return true
	case unix.IPPROTO_TCP:
		return s.isTCP()
	case unix.IPPROTO_UDP:
		return s.isUDP()
	case unix.IPPROTO_IP:
		return s.family == unix.AF_INET || s.family == unix.AF_INET6
	case unix.IPPROTO_IPV6:
		return s.family == unix.AF_INET6
	case unix.SOL_NETLINK:
		return s.isNetlink()
	}
	return false
}

// unknownLevel is the errno for setting an option of a level that the socket does not
// have.
func (s *Socket) unknownLevel() unix.Errno {
	if s.isUnix() {
		return unix.EOPNOTSUPP
	}
	return unix.ENOPROTOOPT
}

// SetOption is setsockopt(2). EINVAL: raw is too short or the value is out of
// range. ENOPROTOOPT: there is no such option.
func (s *Socket) SetOption(c *vfs.Ctx, level, name int, raw []byte) unix.Errno {
	if !s.hasLevel(level) {
		return s.unknownLevel()
	}
	if level == unix.SOL_SOCKET {
		switch name {
		case unix.SO_LINGER:
			return s.setLinger(raw)
		case unix.SO_RCVTIMEO, unix.SO_SNDTIMEO:
			return s.setTimeout(name, raw)
		case unix.SO_BINDTODEVICE:
			return 0
		}
	}
	if level == unix.IPPROTO_TCP && name == unix.TCP_CONGESTION {
		return 0
	}
	oneByte := level == unix.IPPROTO_IP && len(raw) >= 1
	if len(raw) < 4 && !oneByte {
		return unix.EINVAL
	}
	var v int32
	if len(raw) >= 4 {
		v = int32(binary.LittleEndian.Uint32(raw))
	} else {
		v = int32(raw[0])
	}
	return s.setNumber(c, option{level, name}, v)
}

func (s *Socket) setNumber(c *vfs.Ctx, o option, v int32) unix.Errno {
	x := &s.opts
	switch o {
	case option{unix.SOL_SOCKET, unix.SO_REUSEADDR}:
		x.reuseAddr = v != 0
	case option{unix.SOL_SOCKET, unix.SO_REUSEPORT}:
		if s.isUnix() && v != 0 {
			return unix.EOPNOTSUPP
		}
		x.reusePort = v != 0
	case option{unix.SOL_SOCKET, unix.SO_BROADCAST}:
		x.broadcast = v != 0
	case option{unix.SOL_SOCKET, unix.SO_PASSCRED}:
		if !s.isUnix() && !s.isNetlink() {
			return unix.EOPNOTSUPP
		}
		x.passCred = v != 0
	case option{unix.SOL_SOCKET, unix.SO_SNDBUF}:
		x.sendBuffer = max(minSend, 2*min(int(uint32(v)), maxBuffer))
		x.sendLocked = true
		s.queue.Wake(unix.EPOLLOUT | unix.EPOLLWRNORM)
	case option{unix.SOL_SOCKET, unix.SO_RCVBUF}:
		x.recvBuffer = max(minRecv, 2*min(int(uint32(v)), maxBuffer))
		x.recvLocked = true
	case option{unix.SOL_SOCKET, unix.SO_PEEK_OFF}:
		return unix.EOPNOTSUPP
	case option{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY}:
		if s.reserved {
			return unix.EINVAL
		}
		x.v6only = v != 0
	case option{unix.IPPROTO_UDP, unix.UDP_CORK}:
		if s.corked && v == 0 {
			s.udpPush()
		}
		return s.storeOption(c, o, v)
	default:
		return s.storeOption(c, o, v)
	}
	return 0
}

func (s *Socket) setLinger(raw []byte) unix.Errno {
	if len(raw) < 8 {
		return unix.EINVAL
	}
	s.opts.linger.Onoff = 0
	if binary.LittleEndian.Uint32(raw) != 0 {
		s.opts.linger = unix.Linger{Onoff: 1, Linger: int32(binary.LittleEndian.Uint32(raw[4:]))}
	}
	return 0
}

func (s *Socket) setTimeout(name int, raw []byte) unix.Errno {
	if len(raw) < 16 {
		return unix.EINVAL
	}
	sec, usec := int64(binary.LittleEndian.Uint64(raw)), int64(binary.LittleEndian.Uint64(raw[8:]))
	if usec < 0 || usec >= 1e6 {
		return unix.EDOM
	}
	to := &s.opts.recvTimeout
	if name == unix.SO_SNDTIMEO {
		to = &s.opts.sendTimeout
	}
	switch {
	case sec < 0:
		*to = 1
	case sec > 1<<33:
		*to = 0
	default:
		*to = sec*1e9 + usec*1e3
	}
	return 0
}

// Option is getsockopt(2): the value as the structure that the option has.
func (s *Socket) Option(level, name int) ([]byte, unix.Errno) {
	if !s.hasLevel(level) {
		if s.family == unix.AF_INET6 {
			return nil, unix.ENOPROTOOPT
		}
		return nil, unix.EOPNOTSUPP
	}
	if level == unix.SOL_SOCKET {
		if out := s.structOption(name); out != nil {
			return out, 0
		}
	}
	if level == unix.IPPROTO_TCP {
		switch name {
		case unix.TCP_INFO:
			return s.tcpInfo(), 0
		case unix.TCP_CONGESTION:
			return append([]byte("cubic"), make([]byte, 11)...), 0
		}
	}
	v, errno := s.numberOption(option{level, name})
	return binary.LittleEndian.AppendUint32(nil, uint32(v)), errno
}

// structOption is a value of SOL_SOCKET that is a structure, or nil.
func (s *Socket) structOption(name int) []byte {
	word := binary.LittleEndian.AppendUint32
	switch name {
	case unix.SO_LINGER:
		return word(word(nil, uint32(s.opts.linger.Onoff)), uint32(s.opts.linger.Linger))
	case unix.SO_RCVTIMEO, unix.SO_SNDTIMEO:
		ns := s.opts.recvTimeout
		if name == unix.SO_SNDTIMEO {
			ns = s.opts.sendTimeout
		}
		b := binary.LittleEndian.AppendUint64(nil, uint64(ns/1e9))
		return binary.LittleEndian.AppendUint64(b, uint64(ns%1e9/1e3))
	case unix.SO_PEERCRED:
		c := s.peerOwner
		return word(word(word(nil, uint32(c.PID)), c.UID), c.GID)
	case unix.SO_BINDTODEVICE:
		return []byte{}
	}
	return nil
}

func flagValue(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

func (s *Socket) numberOption(o option) (int32, unix.Errno) {
	x := &s.opts
	if o.level == unix.SOL_SOCKET {
		switch o.name {
		case unix.SO_TYPE:
			return int32(s.kind), 0
		case unix.SO_DOMAIN:
			return int32(s.family), 0
		case unix.SO_PROTOCOL:
			return int32(s.protocol), 0
		case unix.SO_ERROR:
			return int32(s.takeError()), 0
		case unix.SO_ACCEPTCONN:
			return flagValue(s.state == listening), 0
		case unix.SO_SNDBUF:
			return int32(x.sendBuffer), 0
		case unix.SO_RCVBUF:
			return int32(x.recvBuffer), 0
		case unix.SO_REUSEADDR:
			return flagValue(x.reuseAddr), 0
		case unix.SO_REUSEPORT:
			return flagValue(x.reusePort), 0
		case unix.SO_BROADCAST:
			return flagValue(x.broadcast), 0
		case unix.SO_PASSCRED:
			if !s.isUnix() && !s.isNetlink() {
				return 0, unix.EOPNOTSUPP
			}
			return flagValue(x.passCred), 0
		case unix.SO_SNDLOWAT:
			return 1, 0
		case unix.SO_PEEK_OFF:
			return -1, 0
		}
	}
	switch o {
	case option{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY}:
		return flagValue(x.v6only), 0
	case option{unix.IPPROTO_IPV6, unix.IPV6_MTU}, option{unix.IPPROTO_IP, unix.IP_MTU}:
		if s.state != connected {
			return 0, unix.ENOTCONN
		}
		return 65536, 0
	case option{unix.IPPROTO_TCP, unix.TCP_MAXSEG}:
		if s.state == connected {
			return segment, 0
		}
	}
	n, ok := knownOptions[o]
	if !ok {
		return 0, unix.ENOPROTOOPT
	}
	if v, set := x.values[o]; set {
		return v, 0
	}
	return n.first, 0
}

// tcpInfo is struct tcp_info with the state and the sizes of segments.
func (s *Socket) tcpInfo() []byte {
	const (
		established, synSent, closeWait, closedState, listenState, finWait = 1, 2, 8, 7, 10, 5
	)
	b := make([]byte, 248)
	switch s.state {
	case connected:
		b[0] = established
		if s.done {
			b[0] = closeWait
		} else if s.shut&shutWrite != 0 {
			b[0] = finWait
		}
	case connecting:
		b[0] = synSent
	case listening:
		b[0] = listenState
	default:
		b[0] = closedState
	}
	binary.LittleEndian.PutUint32(b[16:], segment) // tcpi_snd_mss
	binary.LittleEndian.PutUint32(b[20:], segment) // tcpi_rcv_mss
	return b
}
