package sock

import "github.com/heddle-dmt/heddle/guest/requests"

// The functions of this file report the events of observed TCP connections to Stack.requests. A
// connection is known by the server's end, whose number is Socket.observed.

// Observe has a log observe the requests on TCP connections that are made from now on.
func (st *Stack) Observe(log *requests.Log) { st.requests = log }

// Requests returns the log of Observe, or nil.
func (st *Stack) Requests() *requests.Log { return st.requests }

// noteOpen notes a connection with its ends.
func (st *Stack) noteOpen(server, client *Socket) {
	if st.requests.Observes(server.local.Port) {
		server.observed = st.requests.Open(server.local.Port, client.owner.PID) + 1
	}
}

// noteAccept notes that a socket is accepted.
func (s *Socket) noteAccept() {
	if s.observed > 0 {
		s.stack.requests.Accept(s.observed - 1)
	}
}

// noteSent notes that an end has sent bytes, more than none.
func (s *Socket) noteSent(n int) {
	switch {
	case s.observed > 0:
		s.stack.requests.Write(s.observed-1, n)
	case s.peer.observed > 0:
		s.stack.requests.Arrive(s.peer.observed-1, n)
	}
}

// noteRead notes that an end has read bytes.
func (s *Socket) noteRead() {
	if s.observed > 0 {
		s.stack.requests.Read(s.observed - 1)
	}
}

// noteEnd notes that an end is closed, or that its connection has ended in both directions.
func (s *Socket) noteEnd() {
	if s.observed > 0 {
		s.stack.requests.Close(s.observed - 1)
	}
}
