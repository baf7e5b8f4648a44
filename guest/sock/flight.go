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

// flight is how often a UNIX socket's description is in flight.
type flight struct {
	count int
	order uint64 // of its first message
}

// base finds the UNIX socket that a description is of, or nil.
func base(f *vfs.File) *Socket {
	x, ok := f.Impl.(interface{ Base() *Socket })
	if !ok || !x.Base().isUnix() {
		return nil
	}
	return x.Base()
}

// Base is the socket itself, for those who embed it.
func (s *Socket) Base() *Socket { return s }

// crowdedSky tells whether so many more descriptions cannot be sent.
func (st *Stack) crowdedSky(more int) bool { return st.inFlight+more > maxInFlight }

// launch makes the rights of a message, with references of their own.
func (st *Stack) launch(files []*vfs.File) []*vfs.File {
	st.inFlight += len(files)
	for _, f := range files {
		if base(f) == nil {
			continue
		}
		x := st.flying[f]
		if x == nil {
			st.flights++
			x = &flight{order: st.flights}
			st.flying[f] = x
		}
		x.count++
	}
	return refAll(files)
}

// land ends the flight of a message's rights, whose references are now the
// caller's.
func (st *Stack) land(files []*vfs.File) {
	st.inFlight -= len(files)
	for _, f := range files {
		if x := st.flying[f]; x != nil {
			if x.count--; x.count == 0 {
				delete(st.flying, f)
			}
		}
	}
}

// eachRight calls do for every UNIX socket in messages that wait for s.
func (s *Socket) eachRight(do func(*vfs.File)) {
	for _, m := range s.recv {
		for _, f := range m.rights {
			if base(f) != nil {
				do(f)
			}
		}
	}
	for _, n := range s.accepts {
		n.eachRight(do)
	}
}

// collect drops the messages of sockets that nobody can reach any more.
func (st *Stack) collect() {
	if len(st.flying) == 0 || st.collecting {
		return
	}
	var candidates []*vfs.File // that only messages refer to
	for f, x := range st.flying {
		if f.Refs() == x.count {
			candidates = append(candidates, f)
		}
	}
	slices.SortFunc(candidates, func(a, b *vfs.File) int { return cmp.Compare(st.flying[a].order, st.flying[b].order) })
	inside := map[*vfs.File]int{} // in messages that candidates hold
	for _, f := range candidates {
		inside[f] += 0
	}
	for _, f := range candidates {
		base(f).eachRight(func(r *vfs.File) {
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
		base(f).eachRight(mark)
	}
	for _, f := range candidates {
		if inside[f] < st.flying[f].count {
			mark(f)
		}
	}
	st.collecting = true
	var lost []*message
	for _, f := range candidates {
		if !reachable[f] {
			lost = append(lost, base(f).takeMessages()...)
		}
	}
	for _, m := range lost {
		m.discard()
	}
	st.collecting = false
}

// takeMessages removes what waits for s and for its connections.
func (s *Socket) takeMessages() []*message {
	list := s.recv
	s.recv, s.recvCost = nil, 0
	s.hold(-s.recvBytes)
	for _, n := range s.accepts {
		list = append(list, n.takeMessages()...)
	}
	return list
}
