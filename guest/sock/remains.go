package sock

// What remains of a TCP connection keeps its addresses for a while, so that
// late segments do not reach a new one: TIME_WAIT of RFC 9293, at the side that
// ended first.

const (
	// remainsNS is how long remains keep their port, TCP_TIMEWAIT_LEN and
	// net.ipv4.tcp_fin_timeout.
	remainsNS = 60e9
	// reuseNS is the age from which the same addresses may be used again, as
	// net.ipv4.tcp_tw_reuse allows on the loopback interface.
	reuseNS = 1e9
	// maxRemains is net.ipv4.tcp_max_tw_buckets.
	maxRemains = 16384
)

// now is the real time in nanoseconds.
func (st *Stack) now() int64 {
	if st.fs == nil || st.fs.Clock == nil {
		return 0
	}
	return st.fs.Clock.RealtimeNS()
}

// bury leaves the remains of a connection that is over.
func (st *Stack) bury(s *Socket) {
	st.expire()
	if len(st.remains) == maxRemains {
		return
	}
	x := &Socket{
		stack: st, family: s.family, kind: s.kind, protocol: s.protocol, state: timeWait,
		local: s.local, remote: s.remote, owner: s.owner, until: st.now() + remainsNS,
		opts: options{reuseAddr: s.opts.reuseAddr, reusePort: s.opts.reusePort, v6only: s.opts.v6only},
	}
	st.tcp.add(x)
	st.remains = append(st.remains, x)
}

// expire forgets the remains whose time is over.
func (st *Stack) expire() {
	now := st.now()
	for len(st.remains) > 0 && st.remains[0].until <= now {
		st.remains[0].release()
		st.remains[0] = nil
		st.remains = st.remains[1:]
	}
}

// gone tells whether nobody has the socket any more, and the other side has not
// ended the connection for so long that it is forgotten.
func (s *Socket) gone() bool { return s.closed && s.state == finWait && s.until <= s.stack.now() }

// old tells whether s is the remains of a connection for long enough that the
// same addresses may be used again.
func (s *Socket) old() bool {
	return s.state == timeWait && s.until-remainsNS+reuseNS <= s.stack.now()
}

// taken tells whether there is another connection between the two addresses of
// s.
func (s *Socket) taken() bool {
	for _, o := range s.ports().byPort[s.local.Port] {
		same := o.local.IP == s.local.IP && o.remote.IP == s.remote.IP && o.remote.Port == s.remote.Port
		if o != s && same && (o.live() || o.state == connecting || o.state == timeWait && !o.old()) && !o.gone() {
			return true
		}
	}
	return false
}
