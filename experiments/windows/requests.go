package windows

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/bytesets"
	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/sock"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched/windows"
)

// requestFollower executes the server's threads in a window on expressions, with the bytes that the window was given at its
// begin as symbols. It keeps the conditions on them under which the threads take the same branches and access the same
// addresses.
type requestFollower struct {
	run   *concolicrun.Recording
	sets  *bytesets.Finder
	gate  *sock.Gate
	given []givenBytes
	terms int
	// unknown: bytes were read that cannot be told apart.
	unknown bool
}

// givenBytes are the bytes that a connection was given, and where they are among all that it reads.
type givenBytes struct {
	connection *sock.Gated
	bytes      []byte
	from       uint64 // that were read before
	begun      uint64 // Gated.Read at the begin of the window
	taken      uint64 // by inputs since then
}

// followRequests begins to follow a window.
func followRequests(r *recorder.Recorder, gate *sock.Gate, given []givenBytes, f *raceFinder) *requestFollower {
	q := &requestFollower{gate: gate, given: given}
	q.run = concolicrun.New(concolicrun.Options{
		Follow: func(t *kernel.Task) bool { return t.InService() },
		Choose: func(e *event.Input) bool { return e.Source == event.InputSocket && q.isGiven(e) },
		Name:   q.nameInput,
		Log:    f.feed,
	})
	q.sets = bytesets.New(q.run.Executor.Recorded)
	known := map[concolic.Term]bool{}
	q.run.Executor.OnConstraint = func(c *concolic.Constraint) {
		if c.Expr != nil && !c.Expr.IsConst() && !known[c.Term] {
			known[c.Term] = true
			q.terms++
			q.sets.Add(c.Expr)
		}
	}
	q.run.Join(r)
	return q
}

// isGiven reports whether an input is bytes that the window was given.
func (q *requestFollower) isGiven(e *event.Input) bool {
	g := q.latest()
	if g == nil {
		q.unknown = true
		return false
	}
	at := g.begun + g.taken
	switch n := uint64(len(e.Data)); {
	case at+n <= g.from:
		g.taken += n // left from an earlier window
		return false
	case at < g.from || at+n > g.from+uint64(len(g.bytes)) || at+n > g.connection.Read:
		q.unknown = true // also what a later round of the window was given
		return false
	}
	return true
}

// latest is the connection that was read last.
func (q *requestFollower) latest() *givenBytes {
	x := q.gate.LatestRead()
	for i := range q.given {
		if q.given[i].connection == x {
			return &q.given[i]
		}
	}
	return nil
}

// nameInput names the bytes of an input by connection.
func (q *requestFollower) nameInput(e *event.Input) (name string, first int) {
	g := q.latest()
	first = int(g.begun + g.taken - g.from)
	g.taken += uint64(len(e.Data))
	return connectionName(g.connection), first
}

func connectionName(x *sock.Gated) string { return fmt.Sprintf("connection%d", x.Number) }

// patterns ends the following, and returns the precondition of the window's schedule; nil: it is not known.
func (q *requestFollower) patterns() []windows.Pattern {
	defer q.run.Close()
	if q.run.Err() != nil || q.unknown || !q.sets.Complete() || len(q.run.Executor.Pinned()) > 0 {
		return nil
	}
	list := make([]windows.Pattern, len(q.given))
	for i := range q.given {
		g := &q.given[i]
		name := connectionName(g.connection)
		list[i] = make(windows.Pattern, len(g.bytes))
		for at := range g.bytes {
			list[i][at] = windows.Values(q.sets.Set(fmt.Sprintf("%s[%d]", name, at)))
		}
	}
	return list
}
