package sock

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// netlinkBind gives a netlink socket its number.
func (s *Socket) netlinkBind(a Addr) unix.Errno {
	if s.local.PID != 0 && a.PID != 0 && a.PID != s.local.PID {
		return unix.EINVAL
	}
	if s.local.PID == 0 {
		if s.local.PID = a.PID; a.PID == 0 {
			s.stack.lastNetlink++
			s.local.PID = uint32(s.owner.PID)
			if s.stack.lastNetlink > 1 {
				s.local.PID = -s.stack.lastNetlink - 4096
			}
		}
	}
	s.local.Groups = a.Groups
	return 0
}

// netlinkSend executes requests, and queues the answers.
func (s *Socket) netlinkSend(out *Outgoing) unix.Errno {
	if out.OOB {
		return unix.EOPNOTSUPP
	}
	if s.local.PID == 0 {
		if errno := s.netlinkBind(Addr{}); errno != 0 {
			return errno
		}
	}
	for b := out.Data; len(b) >= unix.SizeofNlMsghdr; {
		h := netlinkRequest{
			size: binary.LittleEndian.Uint32(b), kind: binary.LittleEndian.Uint16(b[4:]),
			flags: binary.LittleEndian.Uint16(b[6:]), seq: binary.LittleEndian.Uint32(b[8:]), pid: s.local.PID,
		}
		if h.size < unix.SizeofNlMsghdr || int(h.size) > len(b) {
			break
		}
		if h.flags&unix.NLM_F_REQUEST != 0 {
			s.answerRequest(&h, b[:h.size])
		}
		b = b[min(len(b), align4(int(h.size))):]
	}
	return 0
}

func align4(n int) int { return (n + 3) &^ 3 }

// netlinkRequest is the head of a message, struct nlmsghdr.
type netlinkRequest struct {
	size        uint32
	kind, flags uint16
	seq, pid    uint32
}

// newReply makes a message with the numbers of the request.
func (h *netlinkRequest) newReply(kind, flags uint16, body []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	b = binary.LittleEndian.AppendUint16(b, kind)
	b = binary.LittleEndian.AppendUint16(b, flags)
	b = binary.LittleEndian.AppendUint32(b, h.seq)
	b = binary.LittleEndian.AppendUint32(b, h.pid)
	b = append(b, body...)
	return append(b, make([]byte, align4(len(b))-len(b))...)
}

// lastRequest is RTM_MAX: four types of requests, of which the third queries.
const lastRequest = 123

// answerRequest queues the kernel's answer to a request: the lists of interfaces, of
// addresses and, empty, of routes and neighbours.
func (s *Socket) answerRequest(h *netlinkRequest, whole []byte) {
	var list []byte
	dump := h.flags&unix.NLM_F_DUMP == unix.NLM_F_DUMP
	head, body := whole[:unix.SizeofNlMsghdr], append(slices.Clone(whole[unix.SizeofNlMsghdr:]), make([]byte, 8)...)
	family := body[0]
	switch h.kind {
	case unix.RTM_GETLINK:
		if index := binary.LittleEndian.Uint32(body[4:]); !dump && index > loIndex {
			s.netlinkError(h, unix.ENODEV, head)
			return
		}
		list = h.newReply(unix.RTM_NEWLINK, multipartFlag(dump), loopbackLink())
	case unix.RTM_GETADDR:
		if family != unix.AF_INET6 {
			list = h.newReply(unix.RTM_NEWADDR, multipartFlag(dump), loopbackAddress(unix.AF_INET))
		}
		if family != unix.AF_INET {
			list = append(list, h.newReply(unix.RTM_NEWADDR, multipartFlag(dump), loopbackAddress(unix.AF_INET6))...)
		}
	case unix.RTM_GETROUTE, unix.RTM_GETNEIGH, unix.RTM_GETRULE:
		if !dump {
			s.netlinkError(h, unix.ENETUNREACH, head)
			return
		}
	default:
		errno := unix.EPERM
		if get := h.kind&3 == 2; get || h.kind < unix.RTM_NEWLINK || h.kind > lastRequest {
			errno = unix.EOPNOTSUPP
		}
		s.netlinkError(h, errno, head)
		return
	}
	if len(list) > 0 {
		s.netlinkQueue(list)
	}
	if dump {
		s.netlinkQueue(h.newReply(unix.NLMSG_DONE, unix.NLM_F_MULTI, []byte{0, 0, 0, 0}))
	} else if h.flags&unix.NLM_F_ACK != 0 {
		s.netlinkError(h, 0, head)
	}
}

func multipartFlag(dump bool) uint16 {
	if dump {
		return unix.NLM_F_MULTI
	}
	return 0
}

func (s *Socket) netlinkError(h *netlinkRequest, errno unix.Errno, head []byte) {
	body := binary.LittleEndian.AppendUint32(nil, uint32(-int32(errno)))
	s.netlinkQueue(h.newReply(unix.NLMSG_ERROR, 0, append(body, head...)))
}

// Deliver queues a message of the kernel in a netlink socket.
func (s *Socket) Deliver(data []byte) { s.netlinkQueue(data) }

func (s *Socket) netlinkQueue(data []byte) {
	if s.recvBytes > s.opts.recvBuffer {
		s.setPendingError(unix.ENOBUFS)
		return
	}
	s.enqueue(&message{data: data, from: Addr{Family: unix.AF_NETLINK}})
}

// appendAttribute appends a struct rtattr.
func appendAttribute(b []byte, kind uint16, value []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(value)))
	b = binary.LittleEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, align4(len(b))-len(b))...)
}

func littleEndianWord(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }

// Interface is the attributes of the loopback interface.
const (
	loIndex = 1
	loMTU   = 65536
	loFlags = unix.IFF_UP | unix.IFF_LOOPBACK | unix.IFF_RUNNING | unix.IFF_LOWER_UP
)

// loopbackLink is struct ifinfomsg of lo with attributes.
func loopbackLink() []byte {
	b := []byte{unix.AF_UNSPEC, 0}
	b = binary.LittleEndian.AppendUint16(b, unix.ARPHRD_LOOPBACK)
	b = append(b, littleEndianWord(loIndex)...)
	b = append(b, littleEndianWord(loFlags)...)
	b = append(b, littleEndianWord(0)...)
	b = appendAttribute(b, unix.IFLA_IFNAME, []byte("lo\x00"))
	b = appendAttribute(b, unix.IFLA_TXQLEN, littleEndianWord(1000))
	b = appendAttribute(b, unix.IFLA_OPERSTATE, []byte{0})
	b = appendAttribute(b, unix.IFLA_MTU, littleEndianWord(loMTU))
	b = appendAttribute(b, unix.IFLA_ADDRESS, make([]byte, 6))
	return appendAttribute(b, unix.IFLA_BROADCAST, make([]byte, 6))
}

// loopbackAddress is struct ifaddrmsg of lo with attributes.
func loopbackAddress(family byte) []byte {
	if family == unix.AF_INET6 {
		b := append([]byte{family, 128, unix.IFA_F_PERMANENT, unix.RT_SCOPE_HOST}, littleEndianWord(loIndex)...)
		b = appendAttribute(b, unix.IFA_ADDRESS, loopback6[:])
		return appendAttribute(b, unix.IFA_FLAGS, littleEndianWord(unix.IFA_F_PERMANENT))
	}
	b := append([]byte{family, 8, unix.IFA_F_PERMANENT, unix.RT_SCOPE_HOST}, littleEndianWord(loIndex)...)
	b = appendAttribute(b, unix.IFA_ADDRESS, loopback4[12:])
	b = appendAttribute(b, unix.IFA_LOCAL, loopback4[12:])
	b = appendAttribute(b, unix.IFA_LABEL, []byte("lo\x00"))
	return appendAttribute(b, unix.IFA_FLAGS, littleEndianWord(unix.IFA_F_PERMANENT))
}
