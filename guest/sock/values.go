package sock

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
)

// storeOption stores an option without an effect. ENOPROTOOPT: it is not known; EINVAL:
// the value is out of range; EPERM: it needs privileges.
func (s *Socket) storeOption(c *vfs.Ctx, o option, v int32) unix.Errno {
	n, ok := knownOptions[o]
	if !ok {
		return unix.ENOPROTOOPT
	}
	if errno := s.checkValue(c, o, v); errno != 0 {
		return errno
	}
	v, isDefault := s.normalize(o, v)
	switch {
	case isDefault:
		delete(s.opts.values, o)
		return 0
	case n.least == 0 && n.most == 1:
		v = min(1, max(v, -v))
	case v < n.least || v > n.most:
		return unix.EINVAL
	}
	if s.opts.values == nil {
		s.opts.values = map[option]int32{}
	}
	s.opts.values[o] = v
	return 0
}

// checkValue refuses values that not every socket or program can have.
func (s *Socket) checkValue(c *vfs.Ctx, o option, v int32) unix.Errno {
	switch o {
	case option{unix.SOL_SOCKET, unix.SO_PRIORITY}:
		if (v < 0 || v > 6) && !mayAdminister(c) {
			return unix.EPERM
		}
	case option{unix.SOL_SOCKET, unix.SO_MARK}:
		if !mayAdminister(c) {
			return unix.EPERM
		}
	case option{unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS}:
		if s.isTCP() {
			return unix.ENOPROTOOPT
		}
	case option{unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_LOOP}:
		if v < 0 || v > 1 {
			return unix.EINVAL
		}
	case option{unix.IPPROTO_IP, unix.IP_MULTICAST_TTL}:
		if s.isTCP() {
			return unix.EINVAL
		}
	}
	return 0
}

// mayAdminister reports whether the caller may set marks and high priorities.
func mayAdminister(c *vfs.Ctx) bool { return c.Cred.Can(vfs.CapNetAdmin) || c.Cred.Can(vfs.CapNetRaw) }

// congestion are the bits of the type of service that are TCP's own.
const congestion = 3

// normalize is the value that Linux stores, and reports whether that is the default.
func (s *Socket) normalize(o option, v int32) (int32, bool) {
	switch o {
	case option{unix.IPPROTO_IP, unix.IP_TTL}, option{unix.IPPROTO_IP, unix.IP_MULTICAST_TTL},
		option{unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS}, option{unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS},
		option{unix.IPPROTO_IPV6, unix.IPV6_TCLASS}:
		if v == -1 {
			return v, true
		}
		if s.isTCP() && o.name == unix.IPV6_TCLASS && o.level == unix.IPPROTO_IPV6 && v >= 0 && v < 256 {
			v &^= congestion
		}
	case option{unix.IPPROTO_IP, unix.IP_TOS}:
		if v &= 0xff; s.isTCP() {
			v &^= congestion
		}
	case option{unix.SOL_SOCKET, unix.SO_RCVLOWAT}:
		return s.lowWater(v), false
	case option{unix.IPPROTO_TCP, unix.TCP_MAXSEG}:
		return v, v == 0
	case option{unix.IPPROTO_TCP, unix.TCP_LINGER2}:
		return max(-1, min(v, 120)), v == 0
	case option{unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT}:
		return roundRetransmissions(v), false
	case option{unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP}:
		if v != 0 {
			v = max(v, minRecv/2)
		}
	}
	return v, false
}

// lowWater is the value that SO_RCVLOWAT gets: at least 1; negative means the maximum,
// which for TCP is half the receive buffer.
func (s *Socket) lowWater(v int32) int32 {
	if v < 0 {
		v = most
	}
	if s.isTCP() && s.opts.recvLocked {
		v = min(v, int32(s.opts.recvBuffer/2))
	}
	return max(1, v)
}

// roundRetransmissions rounds seconds up to the duration of a number of
// retransmissions, each after twice the time of the one before, but two minutes at most
// (secs_to_retrans).
func roundRetransmissions(seconds int32) int32 {
	const longest, last = 120, 255
	if seconds <= 0 {
		return 0
	}
	period, timeout := int32(1), int32(1)
	for n := 1; seconds > period && n < last; n++ {
		timeout = min(2*timeout, longest)
		period += timeout
	}
	return period
}
