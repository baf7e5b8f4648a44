package find

import (
	"maps"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
)

// entry is an access to 8 bytes by an instruction.
type entry struct {
	thread arch.ThreadID
	pc     uint64
	at     arch.Addr
	kind   memlog.Kind
	flags  uint8
}

// profileOf gives a profile the same accesses in both executions. Thread 1 exists from the start, and
// thread 2 before the accesses from number born on.
func profileOf(born int, list []entry) *decisionPoints {
	s := newProfile(nil)
	for second := range 2 {
		if second == 1 {
			s.beginSecond()
		}
		s.noteThread(1)
		for i, x := range list {
			if i == born {
				s.noteThread(2)
			}
			s.thread = x.thread
			s.take([]memlog.Entry{{Kind: x.kind, PC: x.pc, Addr: x.at, Size: 8, Flags: x.flags}})
		}
	}
	return s.result()
}

// TestSharing: which accesses are points follows from the definition alone: two threads that exist at
// the time of each other's accesses, of which one is a store.
func TestSharing(t *testing.T) {
	const load, store = memlog.Load, memlog.Store
	for _, x := range []struct {
		name string
		born int
		list []entry
		want []arch.Addr
	}{
		{"a load and a store", 0, []entry{{1, 10, 64, load, 0}, {2, 20, 64, store, 0}}, []arch.Addr{10, 20}},
		{"two loads", 0, []entry{{1, 10, 64, load, 0}, {2, 20, 64, load, 0}}, nil},
		{"one thread", 0, []entry{{1, 10, 64, load, 0}, {1, 11, 64, store, 0}}, nil},
		{"words side by side", 0, []entry{{1, 10, 64, store, 0}, {2, 20, 72, store, 0}}, nil},
		{"words that overlap", 0, []entry{{1, 10, 64, store, 0}, {2, 20, 68, store, 0}}, []arch.Addr{10, 20}},
		{"before the thread is created", 1, []entry{{1, 10, 64, store, 0}, {2, 20, 64, load, 0}}, nil},
		{"before and after", 1, []entry{{1, 10, 64, store, 0}, {2, 20, 64, load, 0}, {1, 11, 64, store, 0}}, []arch.Addr{10, 11, 20}},
		{"over the end of a page", 0, []entry{{1, 10, 4092, store, 0}, {2, 20, 4096, load, 0}}, []arch.Addr{10, 20}},
	} {
		d := profileOf(x.born, x.list)
		if got := slices.Sorted(maps.Keys(d.at)); !slices.Equal(got, x.want) {
			t.Errorf("%s: points %v, want %v", x.name, got, x.want)
		}
	}
}

// TestParts: threads can act between the accesses of an instruction that loads and stores, and not in
// one with a LOCK prefix, which is one operation.
func TestParts(t *testing.T) {
	list := []entry{
		{1, 10, 64, memlog.Load, 0},
		{1, 10, 64, memlog.Store, 0},
		{2, 20, 64, memlog.Load, memlog.FlagAtomic},
		{2, 20, 64, memlog.Store, memlog.FlagAtomic},
	}
	d := profileOf(0, list)
	if !d.at[10].hasParts() || d.at[20].hasParts() {
		t.Errorf("kinds %v", d.at)
	}
	if l := d.lines[1]; l == nil || l.operations[1] != 2 || l.operations[2] != 1 || l.total != 3 {
		t.Errorf("lines %+v", d.lines)
	}
}
