package predict

import (
	"slices"
	"sort"
)

// EventID is the number of an event of the run, in their order, or NoEvent.
type EventID int32

// NoEvent is no event.
const NoEvent EventID = -1

// Clock is a set of events that has, of each thread, the first events: their number.
type Clock []int32

// clone returns a copy with room for a number of threads.
func (c Clock) clone(threads int) Clock {
	out := make(Clock, threads)
	copy(out, c)
	return out
}

// join adds the events of another set, and reports whether the set has grown.
func (c Clock) join(other Clock) bool {
	grown := false
	for i, n := range other {
		if n > c[i] {
			c[i], grown = n, true
		}
	}
	return grown
}

// version is the set of events on which those of a thread from a number on depend, besides the
// thread's own.
type version struct {
	from  int32
	clock Clock
}

// thread is the events of a thread.
type thread struct {
	events   []EventID
	versions []version
	after    []EventID // on which the next event depends
	held     map[uint64]int
}

// acquisition is an acquisition of a lock by a thread, with the release, or -1 without one.
type acquisition struct {
	local, release int32
	at             EventID
}

// lock is the acquisitions of a lock, by thread.
type lock struct {
	acquired [][]acquisition
}

// Builder has the events of a run.
type Builder struct {
	threads []thread
	owner   []int32 // by event, its thread
	local   []int32 // by event, its number in its thread
	locks   map[uint64]*lock
	ordered []*lock // in the order of their first acquisitions
	memory  map[uint64]*page
	vars    int32
	refs    []reference
	pcs     map[uint64]int32
	code    []uint64
}

// NewBuilder makes a Builder of a run with a number of threads.
func NewBuilder(threads int) *Builder {
	b := &Builder{threads: make([]thread, threads), locks: map[uint64]*lock{}, memory: map[uint64]*page{}, pcs: map[uint64]int32{}}
	for i := range b.threads {
		b.threads[i].held = map[uint64]int{}
	}
	return b
}

// Len is the number of events.
func (b *Builder) Len() int { return len(b.owner) }

// Thread returns the thread of an event.
func (b *Builder) Thread(e EventID) int { return int(b.owner[e]) }

// Local returns the number of an event in its thread, from 0.
func (b *Builder) Local(e EventID) int32 { return b.local[e] }

// At returns the event of a number of a thread, or NoEvent.
func (b *Builder) At(thread int, local int32) EventID {
	if list := b.threads[thread].events; int(local) < len(list) {
		return list[local]
	}
	return NoEvent
}

// IsEnabled reports whether a set has all events of other threads on which an event depends.
func (b *Builder) IsEnabled(e EventID, set Clock) bool {
	return !set.clone(len(set)).join(b.clockAt(b.Thread(e), b.local[e]))
}

// Last returns the last event of a thread so far, or NoEvent.
func (b *Builder) Last(thread int) EventID {
	if list := b.threads[thread].events; len(list) > 0 {
		return list[len(list)-1]
	}
	return NoEvent
}

// After makes the next event of a thread depend on another event.
func (b *Builder) After(thread int, on EventID) {
	if on != NoEvent {
		b.threads[thread].after = append(b.threads[thread].after, on)
	}
}

// Event adds an event of a thread, which depends on the earlier ones of the thread.
func (b *Builder) Event(n int) EventID {
	t := &b.threads[n]
	id := EventID(len(b.owner))
	b.owner = append(b.owner, int32(n))
	b.local = append(b.local, int32(len(t.events)))
	t.events = append(t.events, id)
	for _, on := range t.after {
		b.depend(id, on)
	}
	t.after = t.after[:0]
	return id
}

// depend makes the last event of a thread depend on another event.
func (b *Builder) depend(e, on EventID) {
	if b.owner[e] == b.owner[on] {
		return
	}
	t := &b.threads[b.owner[e]]
	have := b.clockAt(int(b.owner[e]), b.local[e])
	u := b.owner[on]
	if have != nil && have[u] > b.local[on] {
		return
	}
	next := have.clone(len(b.threads))
	next.join(b.clockAt(int(u), b.local[on]))
	next[u] = max(next[u], b.local[on]+1)
	if n := len(t.versions); n > 0 && t.versions[n-1].from == b.local[e] {
		t.versions[n-1].clock = next
	} else {
		t.versions = append(t.versions, version{b.local[e], next})
	}
}

// clockAt returns the events of other threads on which an event of a thread depends; nil: none.
func (b *Builder) clockAt(n int, local int32) Clock {
	list := b.threads[n].versions
	i := len(list)
	if i > 0 && list[i-1].from > local {
		i = sort.Search(i, func(i int) bool { return list[i].from > local })
	}
	if i == 0 {
		return nil
	}
	return list[i-1].clock
}

// addUpTo adds the first events of a thread to a set, with all on which they depend.
func (b *Builder) addUpTo(c Clock, n int, count int32) bool {
	if count <= c[n] {
		return false
	}
	c.join(b.clockAt(n, count-1))
	c[n] = count
	return true
}

// Acquire adds the acquisition of a lock by a thread. One of a lock that the thread holds is an event
// like others.
func (b *Builder) Acquire(n int, id uint64) EventID {
	t := &b.threads[n]
	e := b.Event(n)
	t.held[id]++
	if t.held[id] > 1 {
		return e
	}
	l := b.locks[id]
	if l == nil {
		l = &lock{acquired: make([][]acquisition, len(b.threads))}
		b.locks[id] = l
		b.ordered = append(b.ordered, l)
	}
	l.acquired[n] = append(l.acquired[n], acquisition{b.local[e], -1, e})
	return e
}

// Release adds the release of a lock by a thread.
func (b *Builder) Release(n int, id uint64) EventID {
	t := &b.threads[n]
	e := b.Event(n)
	if t.held[id] == 0 {
		return e
	}
	if t.held[id]--; t.held[id] == 0 {
		list := b.locks[id].acquired[n]
		list[len(list)-1].release = b.local[e]
	}
	return e
}

// LastAcquisition returns the last acquisition of a lock by any thread, or NoEvent.
func (b *Builder) LastAcquisition(id uint64) EventID {
	last := NoEvent
	if l := b.locks[id]; l != nil {
		for _, list := range l.acquired {
			if n := len(list); n > 0 {
				last = max(last, list[n-1].at)
			}
		}
	}
	return last
}

// sharedLocks are the locks of several threads.
func (b *Builder) sharedLocks() []*lock {
	return slices.DeleteFunc(slices.Clone(b.ordered), func(l *lock) bool {
		users := 0
		for _, list := range l.acquired {
			if len(list) > 0 {
				users++
			}
		}
		return users < 2
	})
}
