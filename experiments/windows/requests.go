package windows

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/bytesets"
	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
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
	run      *concolicrun.Recording
	sets     *bytesets.Finder
	pointers *pointerFinder
	gate     *sock.Gate
	given    []givenBytes
	terms    int
	joint    []*symbolic.Expr // conditions that are kept as they are
	// seen are the bytes of each process that were read or written in the window.
	seen map[seenPage]*[4096 / 64]uint64
	// waiting are the threads that have not run in the window yet, with the system call that each waits in.
	waiting map[arch.ThreadID]uint64
	// unknown: bytes were read that cannot be told apart.
	unknown bool
}

// seenPage is a page of a process.
type seenPage struct {
	process int32
	number  uint64
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
func followRequests(r *recorder.Recorder, gate *sock.Gate, given []givenBytes, waiting map[arch.ThreadID]uint64, f *raceFinder) *requestFollower {
	q := &requestFollower{gate: gate, given: given, seen: map[seenPage]*[4096 / 64]uint64{}, waiting: waiting}
	q.run = concolicrun.New(concolicrun.Options{
		Follow: func(t *kernel.Task) bool { return t.InService() },
		Choose: func(e *event.Input) bool { return e.Source == event.InputSocket && q.isGiven(e) },
		Name:   q.nameInput,
		Log:    f.feed,
		Tables: true,
	})
	q.run.Executor.NoInputMarks = true // all memory from before the window is a symbol already
	q.sets = bytesets.New(q.run.Executor.Recorded)
	q.pointers = newPointerFinder(q.sets)
	q.run.Executor.OnAddress = q.pointers.addAddress
	known := map[concolic.Term]bool{}
	q.run.Executor.OnConstraint = func(c *concolic.Constraint) {
		if c.Expr != nil && !c.Expr.IsConst() && !known[c.Term] {
			known[c.Term] = true
			q.terms++
			switch {
			case q.pointers.addCondition(c.Expr):
			case isJoint(c.Expr):
				q.joint = append(q.joint, c.Expr)
			default:
				q.sets.Add(c.Expr)
			}
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
		q.unknown = true // also if a later round of the window was given them
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

// noteState makes symbols of the memory that a thread reads and that nothing in the window has written before: hidden state.
// It is called before the thread's execution is followed.
func (q *requestFollower) noteState(t *kernel.Task, entries []memlog.Entry) {
	if t == nil || q.run.Err() != nil {
		return
	}
	for i := range entries {
		e := &entries[i]
		switch e.Kind {
		case memlog.Kernel:
			for at, end := uint64(e.Addr), uint64(e.Addr)+uint64(e.Branches); at < end; at++ {
				q.see(t, at)
			}
		case memlog.Load, memlog.Store:
			var b [16]byte
			binary.LittleEndian.PutUint64(b[:], e.Value)
			if e.Size > 8 {
				binary.LittleEndian.PutUint64(b[8:], entries[i+1].Value)
			}
			for n := range min(int(e.Size), len(b)) {
				if at := uint64(e.Addr) + uint64(n); q.see(t, at) && e.Kind == memlog.Load {
					q.run.AddState(t, stateName(t.Process().PID()), at, b[n:n+1])
				}
			}
		}
	}
}

// see notes that a byte is read or written, and reports whether that is the first time. Memory that cannot be written is
// seen.
func (q *requestFollower) see(t *kernel.Task, at uint64) bool {
	key := seenPage{t.Process().PID(), at / 4096}
	p := q.seen[key]
	if p == nil {
		p = new([4096 / 64]uint64)
		q.seen[key] = p
		if v, ok := t.Process().Space().Find(arch.Addr(at)); !ok || v.Prot&unix.PROT_WRITE == 0 {
			for i := range p {
				p[i] = ^uint64(0)
			}
		}
	}
	word, bit := &p[at%4096/64], uint64(1)<<(at%64)
	first := *word&bit == 0
	*word |= bit
	return first
}

// precondition ends the following, and returns the precondition of the window's schedule, without registers; false: it is not known.
func (q *requestFollower) precondition() (p windows.Precondition, known bool) {
	defer q.run.Close()
	if q.run.Err() != nil || q.unknown || !q.sets.Complete() || len(q.run.Executor.Pinned()) > 0 {
		return p, false
	}
	p.Patterns = make([]windows.Pattern, len(q.given))
	for i := range q.given {
		g := &q.given[i]
		name := connectionName(g.connection)
		p.Patterns[i] = make(windows.Pattern, len(g.bytes))
		for at := range g.bytes {
			p.Patterns[i][at] = windows.Values(q.sets.Set(fmt.Sprintf("%s[%d]", name, at)))
		}
	}
	var leads func(pointerWord) int
	p.Pointers, leads = q.pointers.pointers()
	p.Hidden = q.hidden(leads)
	p.Joint = newJoint(q.joint, leads)
	return p, true
}

// hidden lists the memory that the conditions are about, in the order of addresses, and the pointers that lead to it.
func (q *requestFollower) hidden(leads func(pointerWord) int) (list []windows.HiddenState) {
	var all []pointerWord
	names := q.sets.Names()
	symbolic.SymbolsOf(q.joint, func(s *symbolic.Expr) { names = append(names, s.Name) })
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if w, ok := parseState(name); ok {
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(a, b pointerWord) int { return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.at, b.at)) })
	for _, w := range all {
		v, by := windows.Values(q.sets.Set(fmt.Sprintf("%s[%d]", stateName(w.process), w.at))), leads(w)
		if n := len(list) - 1; n >= 0 && list[n].Process == w.process && list[n].By == by && uint64(list[n].At)+uint64(len(list[n].Pattern)) == w.at {
			list[n].Pattern = append(list[n].Pattern, v)
			continue
		}
		list = append(list, windows.HiddenState{Process: w.process, At: arch.Addr(w.at), By: by, Pattern: windows.Pattern{v}})
	}
	return list
}
