package sock

// The addresses of an ended TCP connection stay in use for a while, so that late
// segments do not reach a new one: TIME_WAIT of RFC 9293, at the side that ended first.

const (
	// timeWaitNS is the time for which an ended connection keeps its port,
	// TCP_TIMEWAIT_LEN and net.ipv4.tcp_fin_timeout.
	timeWaitNS = 60e9
	// reuseNS is the age from which the same addresses may be used again, as
	// net.ipv4.tcp_tw_reuse allows on the loopback interface.
	reuseNS = 1e9
	// maxTimeWait is net.ipv4.tcp_max_tw_buckets.
	maxTimeWait = 16384
)

// realTime is the real time in nanoseconds.
func (st *Stack) realTime() int64 {
	if st.fs == nil || st.fs.Clock == nil {
		return 0
	}
	return st.fs.Clock.RealtimeNS()
}

// startTimeWait keeps the addresses of a connection that has ended.
func (st *Stack) startTimeWait(s *Socket) {
	st.expireTimeWait()
	if len(st.timeWaiting) == maxTimeWait {
		return
	}
	x := &Socket{
		stack: st, family: s.family, kind: s.kind, protocol: s.protocol, state: timeWait,
		local: s.local, remote: s.remote, owner: s.owner, until: st.realTime() + timeWaitNS,
		opts: options{reuseAddr: s.opts.reuseAddr, reusePort: s.opts.reusePort, v6only: s.opts.v6only},
	}
	st.tcp.addEnd(x)
	st.timeWaiting = append(st.timeWaiting, x)
}

// expireTimeWait removes the sockets whose TIME_WAIT has ended.
func (st *Stack) expireTimeWait() {
	now := st.realTime()
	for len(st.timeWaiting) > 0 && st.timeWaiting[0].until <= now {
		st.timeWaiting[0].releasePort()
		st.timeWaiting[0] = nil
		st.timeWaiting = st.timeWaiting[1:]
	}
}

// isForgotten reports whether no process has the socket any more, and the other side
// has not ended the connection within the time limit.
func (s *Socket) isForgotten() bool {
	return s.closed && s.state == finWait && s.until <= s.stack.realTime()
}

// isReusable reports whether s has been in TIME_WAIT long enough that the same
// addresses may be used again.
func (s *Socket) isReusable() bool {
	return s.state == timeWait && s.until-timeWaitNS+reuseNS <= s.stack.realTime()
}

// hasDuplicate reports whether there is another connection between the two addresses of
// s.
func (s *Socket) hasDuplicate() bool {
	return s.portsOfProtocol().socketAt(s.local.Port, func(o *Socket) bool {
		same := o.local.IP == s.local.IP && o.remote.IP == s.remote.IP && o.remote.Port == s.remote.Port
		return o != s && same && (o.isConnected() || o.state == connecting || o.state == timeWait && !o.isReusable()) && !o.isForgotten()
	}) != nil
}
