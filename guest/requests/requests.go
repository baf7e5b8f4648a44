// Package requests observes the requests that the guest's servers answer, at their sockets: when
// they came, were read and were answered, in virtual time, and how many bytes they and their replies have.
//
// A request is an exchange on a TCP connection to an observed port: bytes of the client, and the bytes that
// the server writes after it has read from them. It begins when its first byte arrives at the server's
// socket, and ends with the last byte of the reply. Bytes that arrive after the server has begun to reply
// belong to the next request; bytes that arrive before do not, so that requests that a client sends
// without waiting for replies (pipelining) count as one. Bytes that a server writes on a connection before the client has sent
// any, such as the greeting of MariaDB, are part of no request. The package knows no protocol:
// replies are counted and not judged.
//
// guest/sock reports the events to a Log, which is plain data: it is copied with the guest's kernel. A Log has no effect
// that the guest can observe.
package requests

import "slices"

// Never is the time of an event that has not happened.
const Never = -1

// Guest is the guest's kernel, as a Log needs it.
type Guest interface {
	// Now is the virtual time in ns since the start of the run.
	Now() int64
	// CommandOf is the name of a process (comm), or empty.
	CommandOf(pid int32) string
}

// Request is an exchange on a connection. Its times are virtual, in ns since the start of the run, or
// Never.
type Request struct {
	// Connection is the connection's index in Log.Connections.
	Connection int
	// Arrived is when its first byte arrived at the server's socket, Read when the server first read from it,
	// Replied when it wrote the first byte of the reply, and Ended when it wrote the last byte so far.
	Arrived, Read, Replied, Ended int64
	// Received and Sent are the numbers of bytes of the request and of the reply.
	Received, Sent uint64
}

// IsAnswered reports whether the server has written to the request's connection after it has read from the request.
func (r *Request) IsAnswered() bool { return r.Replied != Never }

// Connection is a TCP connection to an observed port. Its times are virtual, in ns since the
// start of the run, or Never.
type Connection struct {
	// Port is the port that the server listens on.
	Port uint16
	// ClientPID is the process that connected, and Client its name then; they are 0 and empty for a client on the host.
	ClientPID int32
	Client    string
	// Opened is when the connection was made, Accepted when the server accepted it, and Closed when it
	// had ended in both directions, or the server has closed it.
	Opened, Accepted, Closed int64
	// Greeted is the number of bytes that the server wrote before it read any.
	Greeted uint64

	newest  int // index in Log.Requests of the newest request, or none
	reading int // of the newest that the server has read from, or none
}

const none = -1

// Log has the connections and requests of the observed ports, in the order in which they began.
type Log struct {
	Connections []Connection
	Requests    []Request

	ports []uint16
	guest Guest
}

// NewLog makes a log for the connections to TCP ports of the guest.
func NewLog(ports []uint16, guest Guest) *Log {
	return &Log{ports: slices.Clone(ports), guest: guest}
}

// Observes reports whether connections to a port are observed. A nil Log observes none.
func (l *Log) Observes(port uint16) bool { return l != nil && slices.Contains(l.ports, port) }

// Open adds a connection that a process has made to a port, and returns its index.
func (l *Log) Open(port uint16, client int32) int {
	l.Connections = append(l.Connections, Connection{
		Port: port, ClientPID: client, Client: l.guest.CommandOf(client), Opened: l.guest.Now(), Accepted: Never, Closed: Never,
		newest: none, reading: none,
	})
	return len(l.Connections) - 1
}

// Accept notes that the server has accepted a connection.
func (l *Log) Accept(connection int) { l.Connections[connection].Accepted = l.guest.Now() }

// Close notes that a connection has ended. Later calls for it change nothing.
func (l *Log) Close(connection int) {
	if c := &l.Connections[connection]; c.Closed == Never {
		c.Closed = l.guest.Now()
	}
}

// Arrive notes that bytes of the client have arrived at the server's socket.
func (l *Log) Arrive(connection, n int) {
	c := &l.Connections[connection]
	if c.newest == none || l.Requests[c.newest].IsAnswered() {
		l.Requests = append(l.Requests, Request{Connection: connection, Arrived: l.guest.Now(), Read: Never, Replied: Never, Ended: Never})
		c.newest = len(l.Requests) - 1
	}
	l.Requests[c.newest].Received += uint64(n)
}

// Read notes that the server has read bytes of a connection.
func (l *Log) Read(connection int) {
	c := &l.Connections[connection]
	if c.newest == none {
		return
	}
	r := &l.Requests[c.newest]
	if r.Read == Never {
		r.Read = l.guest.Now()
	}
	c.reading = c.newest
}

// Write notes that the server has written bytes to a connection.
func (l *Log) Write(connection, n int) {
	c := &l.Connections[connection]
	if c.reading == none {
		c.Greeted += uint64(n)
		return
	}
	r := &l.Requests[c.reading]
	r.Ended = l.guest.Now()
	if !r.IsAnswered() {
		r.Replied = r.Ended
	}
	r.Sent += uint64(n)
}
