package publish

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/guest/sock"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Clients are the clients outside of the guest as far as a run depends on them: plain data.
type Clients struct {
	// Decisions is the number of decisions of the run so far, and Operations that of the clients'
	// operations.
	Decisions, Operations uint64
	Stats                 Stats

	connected map[uint64]*sock.Client // by the number of their connection
	before    uint64                  // operations up to the last decision
	waited    bool                    // Pause was called since the last decision
}

// Stats describes the clients of a run.
type Stats struct {
	// Connections is how many have connected to published ports.
	Connections uint64 `json:"connections"`
	// Received and Sent are the bytes that the guest has got from them, and that they have taken.
	Received uint64 `json:"received"`
	Sent     uint64 `json:"sent"`
	// Undelivered is how many bytes of the guest were not delivered, since clients did not
	// take them at the end of the run. A replay has none.
	Undelivered int `json:"undelivered,omitempty"`
	// Note says that the result depends on the clients, unless the run was recorded or is a replay.
	Note string `json:"note,omitempty"`
}

// NewClients returns the clients of a run that has not begun.
func NewClients() *Clients { return &Clients{connected: map[uint64]*sock.Client{}} }

// CarryOut carries out an operation on the guest's sockets, and returns the bytes that it takes.
// The error says that the guest has sent fewer, or has no room for those that the client sends.
func (c *Clients) CarryOut(e *event.Client, net *sock.Stack) (taken []byte, err error) {
	c.Operations++
	if e.Op == event.ClientConnects {
		c.Stats.Connections++
		c.connected[e.Connection] = net.ConnectFromOutside(e.Port)
		return nil, nil
	}
	x := c.connected[e.Connection]
	if x == nil {
		return nil, nil // the connection was over
	}
	switch e.Op {
	case event.ClientSends:
		if len(e.Data) > x.Room() {
			return nil, fmt.Errorf("client %d sends %d bytes, and the guest has room for %d", e.Connection, len(e.Data), x.Room())
		}
		c.Stats.Received += e.Size
		x.Send(e.Data)
	case event.ClientEnds:
		x.End()
	case event.ClientResets:
		x.Reset()
	case event.ClientTakes:
		if e.Size > uint64(x.Pending()) {
			return nil, fmt.Errorf("client %d takes %d bytes, and the guest has sent %d", e.Connection, e.Size, x.Pending())
		}
		c.Stats.Sent += e.Size
		taken = x.Take(int(e.Size))
	}
	return taken, nil
}

// CountDecision counts a decision of the run.
func (c *Clients) CountDecision() {
	c.Decisions++
	c.before, c.waited = c.Operations, false
}

// Pause counts that the machine waits for clients instead of taking a decision.
func (c *Clients) Pause() {
	c.CountDecision()
	c.waited = true
}

// HaveActed reports whether clients have acted since the last decision or pause.
func (c *Clients) HaveActed() bool { return c.Operations > c.before }

// HaveNotCome reports whether the machine has waited for clients since the last decision, and none has acted.
func (c *Clients) HaveNotCome() bool { return c.waited && !c.HaveActed() }

// End returns the guest's end of a connection, nil if it is over.
func (c *Clients) End(connection uint64) End {
	if x := c.connected[connection]; x != nil {
		return x
	}
	return nil
}

// Pending is the number of bytes that the guest has sent and no client has taken; without clients it is 0.
func (c *Clients) Pending() (n int) {
	if c == nil {
		return 0
	}
	for _, x := range c.connected {
		n += x.Pending()
	}
	return n
}

// SeeSame reports whether the clients of two states of a run see the same: the bytes that they can take, and the ends
// of their connections.
func (c *Clients) SeeSame(o *Clients) bool {
	return c.seesNoOther(o) && o.seesNoOther(c)
}

// seesNoOther is SeeSame for the connections of c. One that is over may be missing.
func (c *Clients) seesNoOther(o *Clients) bool {
	for n, x := range c.connected {
		switch y := o.connected[n]; {
		case y == nil && !x.IsOver(),
			y != nil && (x.HasEnded() != y.HasEnded() || x.HasFailed() != y.HasFailed() || !bytes.Equal(pendingBytes(x), pendingBytes(y))):
			return false
		}
	}
	return true
}

// MayAct reports whether a client is connected, or can connect to one of the ports.
func (c *Clients) MayAct(net *sock.Stack, ports []Port) bool {
	maps.DeleteFunc(c.connected, func(_ uint64, x *sock.Client) bool { return x.IsOver() })
	return len(c.connected) > 0 || slices.ContainsFunc(ports, func(p Port) bool { return net.ListensFor(p.Guest) })
}

// Left iterates over the bytes that the guest has sent and no client has taken, by connection.
func (c *Clients) Left() iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		for _, n := range slices.Sorted(maps.Keys(c.connected)) {
			if b := pendingBytes(c.connected[n]); len(b) > 0 && !yield(n, b) {
				return
			}
		}
	}
}

// pendingBytes returns the bytes that a client can take.
func pendingBytes(x *sock.Client) []byte {
	b := make([]byte, x.Pending())
	return b[:x.Peek(b)]
}

// EndedGuest is the guest after the end of a run, whose clients take what it has sent.
type EndedGuest struct{ Clients *Clients }

// ListensFor implements Guest.
func (EndedGuest) ListensFor(uint16) bool { return false }

// End implements Guest.
func (g EndedGuest) End(connection uint64) End { return g.Clients.End(connection) }

// Act implements Guest.
func (g EndedGuest) Act(e event.Client) {
	// A link takes no more than there is, and nothing is counted any more.
	_, _ = g.Clients.CarryOut(&e, nil)
}
