package publish

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// scriptedConn is a connection whose reads and writes have given answers.
type scriptedConn struct {
	reads  []any // strings of bytes, or errors; then EAGAIN
	room   int   // bytes that it takes
	broken error // of writes, when there is no room
	log    []string
	wrote  []byte
}

func (c *scriptedConn) Read(b []byte) (int, error) {
	if len(c.reads) == 0 {
		return 0, unix.EAGAIN
	}
	if err, ok := c.reads[0].(error); ok {
		c.reads = c.reads[1:]
		return 0, err
	}
	text := c.reads[0].(string)
	n := copy(b, text)
	if c.reads[0] = text[n:]; text[n:] == "" {
		c.reads = c.reads[1:]
	}
	return n, nil
}

func (c *scriptedConn) Write(b []byte) (int, error) {
	n := min(len(b), c.room)
	c.room -= n
	c.wrote = append(c.wrote, b[:n]...)
	if n == 0 && c.broken != nil {
		return 0, c.broken
	}
	if n == 0 {
		return 0, unix.EAGAIN
	}
	return n, nil
}

func (c *scriptedConn) CloseWrite() { c.log = append(c.log, "end") }
func (c *scriptedConn) Close()      { c.log = append(c.log, "close") }
func (c *scriptedConn) Reset()      { c.log = append(c.log, "reset") }

// fakeEnd is the guest's end of a connection.
type fakeEnd struct {
	room          int
	pending       []byte
	ended, failed bool
	log           []string
}

func (e *fakeEnd) Room() int         { return e.room }
func (e *fakeEnd) Pending() int      { return len(e.pending) }
func (e *fakeEnd) Peek(b []byte) int { return copy(b, e.pending) }
func (e *fakeEnd) HasEnded() bool    { return e.ended }
func (e *fakeEnd) HasFailed() bool   { return e.failed }

func (e *fakeEnd) act(op event.Client) {
	e.log = append(e.log, strings.TrimSpace(fmt.Sprintf("%v %d %s", op.Op, op.Size, op.Data)))
	switch op.Op {
	case event.ClientSends:
		e.room -= int(op.Size)
	case event.ClientTakes:
		e.pending = e.pending[op.Size:]
	case event.ClientResets:
		e.pending, e.failed, e.room = nil, true, 0
	}
}

// TestLink: each case is a connection in a situation, one step, and what the two ends are given.
func TestLink(t *testing.T) {
	for name, c := range map[string]struct {
		conn        scriptedConn
		end         fakeEnd
		before      state
		failed      bool
		after       state
		guest, host []string
	}{
		"a request":                {conn: scriptedConn{reads: []any{"GET"}}, end: fakeEnd{room: 9}, guest: []string{"sends 3 GET"}},
		"a request without room":   {conn: scriptedConn{reads: []any{"GET"}}},
		"a request with some room": {conn: scriptedConn{reads: []any{"GET"}}, end: fakeEnd{room: 2}, guest: []string{"sends 2 GE"}},
		"a reply":                  {conn: scriptedConn{room: 9}, end: fakeEnd{pending: []byte("OK")}, guest: []string{"takes 2"}},
		"a reply to a slow client": {conn: scriptedConn{room: 1}, end: fakeEnd{pending: []byte("OK")}, guest: []string{"takes 1"}},
		"the client has sent all":  {conn: scriptedConn{reads: []any{"x", io.EOF}}, end: fakeEnd{room: 9}, after: guestSends, guest: []string{"sends 1 x", "ends 0"}},
		"the guest has sent all":   {end: fakeEnd{ended: true}, after: clientSends, host: []string{"end"}},
		"the end waits for the reply": {
			end: fakeEnd{ended: true, pending: []byte("OK")},
		},
		"a reply after the client's end":   {before: guestSends, conn: scriptedConn{room: 9}, end: fakeEnd{pending: []byte("OK"), ended: true}, after: closed, guest: []string{"takes 2"}, host: []string{"close"}},
		"a request after the guest's end":  {before: clientSends, conn: scriptedConn{reads: []any{"x", io.EOF}}, end: fakeEnd{room: 9, ended: true}, after: closed, guest: []string{"sends 1 x", "ends 0"}, host: []string{"close"}},
		"refused, or reset by the guest":   {end: fakeEnd{failed: true}, after: closed, host: []string{"reset"}},
		"a reply, and a reset":             {conn: scriptedConn{room: 9}, end: fakeEnd{failed: true, pending: []byte("OK")}, after: closed, guest: []string{"takes 2"}, host: []string{"reset"}},
		"a reply that is lost by a reset":  {end: fakeEnd{failed: true, pending: []byte("OK")}, after: closed, guest: []string{"resets 0"}, host: []string{"reset"}},
		"reset by the client":              {conn: scriptedConn{reads: []any{"x", unix.ECONNRESET}}, end: fakeEnd{room: 9}, failed: true, after: closed, guest: []string{"sends 1 x", "resets 0"}, host: []string{"reset"}},
		"reset by the client without room": {failed: true, after: closed, guest: []string{"resets 0"}, host: []string{"reset"}},
		"reset after the client's end":     {before: guestSends, failed: true, after: closed, guest: []string{"resets 0"}, host: []string{"reset"}},
		"a client that is gone":            {conn: scriptedConn{broken: unix.EPIPE}, end: fakeEnd{pending: []byte("OK")}, after: closed, guest: []string{"resets 0"}, host: []string{"reset"}},
		"closed":                           {before: closed, conn: scriptedConn{room: 9, reads: []any{"x"}}, end: fakeEnd{room: 9, pending: []byte("OK")}, after: closed},
	} {
		l := newLink(1, 80, &c.conn, &c.end)
		l.state, l.failed = c.before, c.failed
		l.step(make([]byte, pieceSize), c.end.act)
		if l.state != c.after || !slices.Equal(c.end.log, c.guest) || !slices.Equal(c.conn.log, c.host) {
			t.Errorf("%s: state %d, guest %q, host %q; want %d, %q, %q", name, l.state, c.end.log, c.conn.log, c.after, c.guest, c.host)
		}
	}
}

// TestLinkKeepsTheOrder: bytes that are taken in any pieces are the bytes of the guest.
func TestLinkKeepsTheOrder(t *testing.T) {
	want := strings.Repeat("0123456789", 50_000)
	c, e := &scriptedConn{}, &fakeEnd{pending: []byte(want), ended: true}
	l := newLink(1, 80, c, e)
	for n := 1; l.state != clientSends; n++ {
		c.room, l.writable = n*7919%100_000, true
		l.step(make([]byte, pieceSize), e.act)
	}
	if string(c.wrote) != want {
		t.Errorf("%d bytes were written, which are not the %d of the guest", len(c.wrote), len(want))
	}
}
