package pathsearch

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// TestLubySequence has the beginning of the sequence as the paper prints it.
func TestLubySequence(t *testing.T) {
	want := []int{1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8, 1}
	for i, n := range want {
		if got := luby(i + 1); got != n {
			t.Errorf("number %d is %d, not %d", i+1, got, n)
		}
	}
}

// twoThreads is a profile in which thread 1 runs on core 0 before and after thread 2, which also runs on
// core 1.
func twoThreads() *paths.Profile {
	return &paths.Profile{
		Blocks: []paths.Block{{Instructions: []uint64{10, 11, 12}}, {Instructions: []uint64{20, 21}}},
		Threads: []paths.Thread{
			{ID: 1, Turns: []paths.Turn{{Core: 0, CoreInstructions: 0, Blocks: []int32{0}}, {Core: 0, CoreInstructions: 5, Blocks: []int32{1}}}},
			{ID: 2, Turns: []paths.Turn{{Core: 0, CoreInstructions: 3, Blocks: []int32{1}}, {Core: 1, CoreInstructions: 0, Blocks: []int32{0}}}},
		},
	}
}

func TestTurnsOfACoreComeInTheirOrder(t *testing.T) {
	r, ok := newRecorded(twoThreads())
	if !ok {
		t.Fatal("the paths are too long")
	}
	for i, want := range []arch.Addr{10, 11, 12, 20, 21} {
		if got := r.routes[0].pc(i); got != want {
			t.Errorf("instruction %d of thread 1 is at %d, not %d", i, got, want)
		}
	}
	want := []turn{{route: 0, end: 3, started: 0, length: 3}, {route: 1, end: 2, started: 3, length: 2}, {route: 0, end: 5, started: 5, length: 2}}
	if !slices.Equal(r.cores[0].turns, want) {
		t.Errorf("core 0 has the turns %+v", r.cores[0].turns)
	}
	p := newPosition(r, 3, 9)
	if p.turns[0] != 1 || p.turns[1] != 0 || p.ran[0] != 9 {
		t.Errorf("after 3 instructions of thread 1 turns %v are over", p.turns)
	}
}

func TestPlacesOfAPath(t *testing.T) {
	r, _ := newRecorded(twoThreads())
	r.setPlaces(map[arch.Addr]bool{11: true, 20: true})
	r.setRepeated(func(pc arch.Addr) bool { return pc == 12 })
	x := &r.routes[0]
	for _, c := range []struct{ from, place, repeated int }{{0, 1, 2}, {1, 3, 2}, {2, 3, 2}, {3, 5, 5}} {
		if got := x.nextPlace(c.from); got != c.place {
			t.Errorf("the place after %d is %d, not %d", c.from, got, c.place)
		}
		if got := x.nextRepeated(c.from); got != c.repeated {
			t.Errorf("the repeated instruction from %d on is %d, not %d", c.from, got, c.repeated)
		}
	}
}

// TestSharingNeedsAnotherOrder: memory that a thread has written before it made the one that reads it is not
// shared.
func TestSharingNeedsAnotherOrder(t *testing.T) {
	s := newSharedCells()
	s.births.NoteThread(0)
	s.note(0, 1, 100, true)
	s.births.NoteThread(1)
	if s.note(1, 1, 101, false) {
		t.Error("a cell that was written before its reader existed is shared")
	}
	if !s.note(0, 1, 102, true) {
		t.Error("a cell that is written while its reader exists is not shared")
	}
	if s.note(0, 2, 103, false) || s.note(1, 2, 104, false) {
		t.Error("a cell that is only read is shared")
	}
	for _, pc := range []arch.Addr{101, 102} {
		if !s.at[pc] {
			t.Errorf("instruction %d accesses shared memory", pc)
		}
	}
	if s.at[103] {
		t.Error("instruction 103 accesses no shared memory")
	}
}

// TestStatesByWhatWasRead: the order of accesses to different cells does not matter, and that of a read
// and a write of one cell does.
func TestStatesByWhatWasRead(t *testing.T) {
	r, _ := newRecorded(twoThreads())
	type step struct {
		thread int
		cell   uint64
		store  bool
	}
	key := func(steps ...step) uint64 {
		s, p := &search{writes: map[uint64]uint64{}}, newPosition(r, 3, 3)
		for _, x := range steps {
			s.note(&p, x.thread, x.cell, x.store)
		}
		k := p.key()
		if s.undo(s.changes); s.writes[1] != 0 || s.writes[2] != 0 {
			t.Errorf("after all moves are taken back the last writes are %v", s.writes)
		}
		return k
	}
	write, read, other := step{0, 1, true}, step{1, 1, false}, step{1, 2, true}
	if key(write, other) != key(other, write) {
		t.Error("writes of different cells lead to different states")
	}
	if key(write, read) == key(read, write) {
		t.Error("a read before and after a write leads to one state")
	}
}
