package sock

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/guest/vfs"
)

// Descriptions that messages carry (SCM_RIGHTS) are in flight: a message's
// reference keeps them alive when no descriptor does. UNIX sockets that are in
// flight only in each other's queues could never be received; they are found
// and closed as unix_gc of Linux does.

// maxInFlight bounds the descriptions in messages of the whole stack.
const maxInFlight = 1 << 16

// inflight counts how often a UNIX socket's description is in flight.
type inflight struct {
	count int
	order uint64 // of its first message
}

// unixSocketOf returns the UNIX socket of a description, or nil.
func unixSocketOf(f *vfs.File) *Socket {
	x, ok := f.Impl.(interface{ Base() *Socket })
	if !ok || !x.Base().isUnix() {
		return nil
	}
	return x.Base()
}

// Base is the socket itself, for types that embed it.
func (s *Socket) Base() *Socket { return s }

// tooManyInflight reports whether this number of further descriptions cannot be sent
// (too_many_unix_fds of Linux).
func (st *Stack) tooManyInflight(more int) bool { return st.inFlight+more > maxInFlight }

// addInflight counts the rights of a message as in flight, and takes references for it
// (unix_inflight of Linux).
func (st *Stack) addInflight(files []*vfs.File) []*vfs.File {
	st.inFlight += len(files)
	for _, f := range files {
		if unixSocketOf(f) == nil {
			continue
		}
		x := st.inflightSockets[f]
		if x == nil {
			st.flights++
			x = &inflight{order: st.flights}
			st.inflightSockets[f] = x
		}
		x.count++
	}
	return refAll(files)
}

// removeInflight counts a message's rights as no longer in flight; their references are
// now the caller's (unix_notinflight of Linux).
func (st *Stack) removeInflight(files []*vfs.File) {
	st.inFlight -= len(files)
	for _, f := range files {
		if x := st.inflightSockets[f]; x != nil {
			if x.count--; x.count == 0 {
				delete(st.inflightSockets, f)
			}
		}
	}
}

// forEachRight calls do for every UNIX socket in messages in the queues of s.
func (s *Socket) forEachRight(do func(*vfs.File)) {
	for _, m := range s.recv {
		for _, f := range m.rights {
			if unixSocketOf(f) != nil {
				do(f)
			}
		}
	}
	for _, n := range s.accepts {
		n.forEachRight(do)
	}
}

// collectGarbage drops the messages of sockets that no process can reach.
func (st *Stack) collectGarbage() {
	if len(st.inflightSockets) == 0 || st.collecting {
		return
	}
	var candidates []*vfs.File // that only messages refer to
	for f, x := range st.inflightSockets {
		if f.Refs() == x.count {
			candidates = append(candidates, f)
		}
	}
	slices.SortFunc(candidates, func(a, b *vfs.File) int { return cmp.Compare(st.inflightSockets[a].order, st.inflightSockets[b].order) })
	inside := map[*vfs.File]int{} // in messages that candidates hold
	for _, f := range candidates {
		inside[f] += 0
	}
	for _, f := range candidates {
		unixSocketOf(f).forEachRight(func(r *vfs.File) {
			if _, ok := inside[r]; ok {
				inside[r]++
			}
		})
	}
	reachable := map[*vfs.File]bool{}
	var mark func(f *vfs.File)
	mark = func(f *vfs.File) {
		if _, ok := inside[f]; !ok || reachable[f] {
			return
		}
		reachable[f] = true
		unixSocketOf(f).forEachRight(mark)
	}
	for _, f := range candidates {
		if inside[f] < st.inflightSockets[f].count {
			mark(f)
		}
	}
	st.collecting = true
	var lost []*message
	for _, f := range candidates {
		if !reachable[f] {
			lost = append(lost, unixSocketOf(f).takeMessages()...)
		}
	}
	for _, m := range lost {
		m.discard()
	}
	st.collecting = false
}

// takeMessages removes the messages in the queues of s and of its connections.
func (s *Socket) takeMessages() []*message {
	list := s.recv
	s.recv, s.recvCost = nil, 0
	s.addReceived(-s.recvBytes)
	for _, n := range s.accepts {
		list = append(list, n.takeMessages()...)
	}
	return list
}
