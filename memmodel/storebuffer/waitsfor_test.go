package storebuffer

import (
	"fmt"
	"testing"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// TestCommitWithOlder: a store is committed after those that it waits for, and no others: all older ones
// under TSO, those to the same bytes and those before a fence under PSO.
func TestCommitWithOlder(t *testing.T) {
	for _, c := range []struct {
		model  string
		stores []emu.Store
		i      int
		want   string
		list   string
	}{
		{"tso", []emu.Store{store(1, 10, 0), store(2, 11, 0), store(3, 12, 0)}, 1, "7:1=0a 7:2=0b ", "[0]"},
		{"pso", []emu.Store{store(1, 10, 0), store(2, 11, 0), store(3, 12, 0)}, 1, "7:2=0b ", "[]"},
		{"pso", []emu.Store{store(1, 10, 0), store(2, 11, 0), store(1, 12, 0)}, 2, "7:1=0a 7:1=0c ", "[0]"},
		{"pso", []emu.Store{store(1, 10, 0), {}, store(2, 11, 0), store(3, 12, 0)}, 3, "7:1=0a 7:3=0c ", "[0]"},
		{"pso", []emu.Store{store(1, 10, 0), {}, store(2, 11, 0)}, 0, "7:1=0a ", "[]"},
	} {
		var w written
		b := &ByStore{Cores: New(2, 1, Options{Model: c.model}), memory: &w}
		keep(b.Cores, 0, 7, c.stores...)
		if got := fmt.Sprint(b.WaitsFor(0, c.i)); got != c.list {
			t.Errorf("%s: store %d waits for %s, want %s", c.model, c.i, got, c.list)
		}
		b.CommitWithOlder(0, c.i)
		if w.String() != c.want {
			t.Errorf("%s, store %d: committed %q, want %q", c.model, c.i, w.String(), c.want)
		}
		// They are decisions before the next quantum, which another machine follows.
		b.options.Commit = "lazy"
		var again written
		other := New(2, 1, Options{Model: c.model})
		keep(other, 0, 7, c.stores...)
		if decided := b.Decide(1, 0, nil); !other.Follow(decided, &again) || again.String() != c.want {
			t.Errorf("%s, store %d: %v are followed as %q", c.model, c.i, decided, again.String())
		}
		if more := b.Decide(1, 0, []event.Commit{}); len(more) > 0 {
			t.Errorf("%s, store %d: decided again: %v", c.model, c.i, more)
		}
	}
}
