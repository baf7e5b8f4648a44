package sharing

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// TestAreShared: which memory is shared follows from the definition alone.
func TestAreShared(t *testing.T) {
	type step struct {
		thread, fiber uint32
		access        string // "load", "store", "born", or "handler", which is a load in one
	}
	for _, x := range []struct {
		name  string
		steps []step
		want  bool
	}{
		{"a load and a store", []step{{1, 0, "load"}, {2, 0, "store"}}, true},
		{"two loads", []step{{1, 0, "load"}, {2, 0, "load"}}, false},
		{"one thread", []step{{1, 0, "load"}, {1, 0, "store"}}, false},
		{"before the thread is created", []step{{1, 0, "store"}, {3, 0, "born"}, {3, 0, "load"}}, false},
		{"before and after", []step{{1, 0, "store"}, {3, 0, "born"}, {3, 0, "load"}, {1, 0, "store"}}, true},
		{"fibers of one thread", []step{{1, 1, "load"}, {1, 2, "store"}}, true},
		{"a fiber that goes to another thread", []step{{1, 1, "load"}, {2, 1, "store"}}, false},
		{"a thread and a fiber of it", []step{{1, 0, "store"}, {1, 2, "load"}}, false},
		{"a thread and a fiber of another", []step{{1, 0, "store"}, {2, 2, "load"}}, true},
		{"before the fiber is created", []step{{1, 1, "store"}, {0, 3, "born"}, {1, 3, "load"}}, false},
		{"a thread and its handler", []step{{1, 0, "store"}, {1, 0, "handler"}}, true},
		{"before the thread of the handler is created", []step{{1, 0, "store"}, {3, 0, "born"}, {3, 0, "handler"}}, false},
		{"a fiber, before and after", []step{{1, 1, "load"}, {0, 3, "born"}, {1, 3, "load"}, {1, 1, "store"}}, true},
	} {
		births := NewBirths()
		births.NoteThread(1)
		births.NoteThread(2)
		births.NoteFiber(1)
		births.NoteFiber(2)
		var uses Uses
		for _, s := range x.steps {
			switch {
			case s.access != "born":
				uses.Note(Agent{Thread: arch.ThreadID(s.thread), Fiber: s.fiber, Handler: s.access == "handler"}, births, s.access == "store")
			case s.fiber != 0:
				births.NoteFiber(s.fiber)
			default:
				births.NoteThread(arch.ThreadID(s.thread))
			}
		}
		if got := uses.AreShared(births); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}
