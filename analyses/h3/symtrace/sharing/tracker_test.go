package sharing_test

import (
	"maps"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/sharing"
)

// newTracker is a tracker that knows of no shared memory.
func newTracker() *sharing.Tracker {
	return sharing.NewTracker(map[uint64]bool{}, nil, nil)
}

// example is a main thread that creates another and joins it, with stretches before the
// fork, beside the thread and after the join. The other thread has one stretch. Clocks
// are vector clocks: each stretch counts itself.
type example struct {
	*sharing.Tracker
	before, beside, after, other int32
}

func newExample() *example {
	e := &example{Tracker: newTracker()}
	e.before = e.StartStretch(0, []int{1, 0})
	e.other = e.StartStretch(1, []int{1, 1})
	e.beside = e.StartStretch(0, []int{2, 0})
	e.after = e.StartStretch(0, []int{3, 1})
	return e
}

// Two accesses conflict if they are at the same time, to the same granule of eight bytes,
// by different threads, and one of them writes.
func TestConflicts(t *testing.T) {
	for _, c := range []struct {
		name     string
		accesses func(e *example)
		shared   []uint64
	}{
		{"a write beside a read", func(e *example) {
			e.NoteAccess(e.beside, 0x1000, 4, true)
			e.NoteAccess(e.other, 0x1004, 4, false)
		}, []uint64{0x1000}},
		{"two reads", func(e *example) {
			e.NoteAccess(e.beside, 0x1000, 4, false)
			e.NoteAccess(e.other, 0x1000, 4, false)
		}, nil},
		{"other granules", func(e *example) {
			e.NoteAccess(e.beside, 0x1000, 8, true)
			e.NoteAccess(e.other, 0x1008, 8, true)
		}, nil},
		{"one thread", func(e *example) {
			e.NoteAccess(e.before, 0x1000, 4, true)
			e.NoteAccess(e.beside, 0x1000, 4, true)
		}, nil},
		{"before the fork", func(e *example) {
			e.NoteAccess(e.before, 0x1000, 4, true)
			e.NoteAccess(e.other, 0x1000, 4, true)
		}, nil},
		{"across two granules", func(e *example) {
			e.NoteAccess(e.beside, 0x1004, 8, true)
			e.NoteAccess(e.other, 0x1000, 16, false)
		}, []uint64{0x1000, 0x1008}},
	} {
		e := newExample()
		c.accesses(e)
		if found := e.FindConflicts(); found != len(c.shared) || len(e.Shared) != len(c.shared) {
			t.Errorf("%s: %d conflicts, shared %v; want %d", c.name, found, e.Shared, len(c.shared))
		}
		for _, addr := range c.shared {
			if !e.Shared[addr/8] {
				t.Errorf("%s: %#x is not shared", c.name, addr)
			}
		}
		if again := e.FindConflicts(); again != 0 {
			t.Errorf("%s: %d conflicts are new the second time", c.name, again)
		}
	}
}

// A join orders the accesses of the thread before those of the thread that joins it.
func TestJoinOrders(t *testing.T) {
	s := newTracker()
	thread := s.StartStretch(1, []int{1, 1})
	after := s.StartStretch(0, []int{3, 1})
	s.NoteAccess(thread, 0x1000, 4, true)
	s.NoteAccess(after, 0x1000, 4, true)
	if n := s.FindConflicts(); n != 0 {
		t.Errorf("%d conflicts", n)
	}
}

// Memory that Only excludes is counted, and not shared.
func TestOnly(t *testing.T) {
	e := newExample()
	e.Only = func(addr uint64) bool { return addr != 0x1000 }
	for _, addr := range []uint64{0x1000, 0x2000} {
		e.NoteAccess(e.beside, addr, 4, true)
		e.NoteAccess(e.other, addr, 4, true)
	}
	if n := e.FindConflicts(); n != 1 || e.Excluded != 1 || !maps.Equal(e.Shared, map[uint64]bool{0x2000 / 8: true}) {
		t.Errorf("%d conflicts, %d excluded, shared %v", n, e.Excluded, e.Shared)
	}
}

// Of shared memory, the only writer is known, and several writers are.
func TestWriters(t *testing.T) {
	e := newExample()
	e.NoteAccess(e.beside, 0x1000, 4, true)
	e.NoteAccess(e.other, 0x1000, 4, false)
	e.NoteAccess(e.beside, 0x2000, 4, true)
	e.NoteAccess(e.other, 0x2000, 4, true)
	e.FindConflicts()
	if got := e.Writers(); !maps.Equal(got, map[uint64]int{0x1000 / 8: 0, 0x2000 / 8: sharing.Several}) {
		t.Errorf("writers %v", got)
	}
	next := sharing.NewTracker(e.Shared, e.Writers(), e.Writes())
	if !next.IsShared(0x1000, 4) || !next.OnlyWriter(0, 0x1000, 4) || next.OnlyWriter(1, 0x1000, 4) || next.OnlyWriter(0, 0x2000, 4) {
		t.Error("thread 0 alone writes at 0x1000, and both at 0x2000")
	}
}

// Memory has one value in a stretch if all its writes are ordered and known there.
func TestHasOneValue(t *testing.T) {
	e := newExample()
	e.Shared[0x1000/8], e.Shared[0x2000/8] = true, true
	e.NoteAccess(e.before, 0x1000, 4, true)
	e.NoteAccess(e.beside, 0x2000, 4, true)
	next := sharing.NewTracker(e.Shared, e.Writers(), e.Writes())
	other := next.StartStretch(1, []int{1, 1})
	if !next.HasOneValue(other, 0x1000, 4) || next.HasOneValue(other, 0x2000, 4) {
		t.Error("the thread sees the write before the fork, and not the one beside it")
	}
}
