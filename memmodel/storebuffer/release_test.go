package storebuffer

import (
	"fmt"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// TestRelease: stores that are not held are committed, as far as the model allows, but not
// those of the core that runs; held ones stay though they could be committed.
func TestRelease(t *testing.T) {
	for _, c := range []struct {
		model          string
		at             arch.Addr // of thread 7 that is held,
		newest         int       // the number of newest stores to hold
		want, withheld string
	}{
		{"tso", 0, 0, "7:1=0a 7:2=0b 7:1=0c 7:3=0d ", ""},
		{"tso", 1, 1, "7:1=0a 7:2=0b ", "1:true:1 3:false:1 "},
		{"tso", 1, 2, "", "1:true:2 2:false:1 1:false:1 3:false:1 "},
		{"tso", 3, 1, "7:1=0a 7:2=0b 7:1=0c ", "3:true:1 "},
		{"pso", 1, 1, "7:1=0a 7:2=0b 7:3=0d ", "1:true:1 "},
		{"pso", 1, 2, "7:2=0b 7:3=0d ", "1:true:2 1:false:1 "},
		{"pso", 2, 9, "7:1=0a 7:1=0c 7:3=0d ", "2:true:1 "},
	} {
		cores := New(3, 1, Options{Model: c.model})
		keep(cores, 0, 7, store(1, 10, 0), store(2, 11, 0), store(1, 12, 0), store(3, 13, 0))
		keep(cores, 1, 8, store(4, 14, 0))
		var w written
		commits := cores.Release(1, func(thread arch.ThreadID, at arch.Addr) int {
			if thread == 7 && at == c.at {
				return c.newest
			}
			return 0
		}, &w, nil)
		withheld := ""
		cores.Withheld(1, func(_ arch.ThreadID, at arch.Addr, may bool, n int) {
			withheld += fmt.Sprintf("%d:%v:%d ", at, may, n)
		})
		if w.String() != c.want || withheld != c.withheld {
			t.Errorf("%s, %d of %d held: committed %q, withheld %q, want %q, %q", c.model, c.newest, c.at, w.String(), withheld, c.want, c.withheld)
		}
		// The same commits are followed by another machine's buffers.
		other, again := New(3, 2, Options{Model: c.model}), written{}
		keep(other, 0, 7, store(1, 10, 0), store(2, 11, 0), store(1, 12, 0), store(3, 13, 0))
		if !other.Follow(commits, &again) || again.String() != w.String() {
			t.Errorf("%s: %v are followed as %q", c.model, commits, again.String())
		}
	}
}

// TestFirstStores: the stores that come first are committed in the order given, also those of the core that runs next, with
// the ones that they wait for, and as many as are to wait stay.
func TestFirstStores(t *testing.T) {
	var w written
	b := &ByStore{Cores: New(3, 1, Options{Model: "tso"}), memory: &w}
	keep(b.Cores, 0, 7, store(1, 10, 0), store(2, 11, 0), store(1, 12, 0))
	keep(b.Cores, 1, 8, store(3, 13, 0), store(2, 14, 0))
	b.KeepStores(func(arch.ThreadID, arch.Addr) int { return 9 }, func() []Waiting {
		return []Waiting{{8, 2, 0}, {7, 2, 0}, {7, 1, 1}, {9, 2, 0}}
	})
	commits := b.Decide(1, 0, nil)
	if got, want := w.String(), "8:3=0d 8:2=0e 7:1=0a 7:2=0b "; got != want || len(commits) != 4 {
		t.Errorf("committed %q, want %q; %v", got, want, commits)
	}
}
