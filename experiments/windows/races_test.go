package windows

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu/memlog"
)

// TestWindowWithTooManyAccesses: a window that has more accesses than the bound keeps none of them, and the next one does.
func TestWindowWithTooManyAccesses(t *testing.T) {
	f := newRaceFinder(nil)
	defer f.close()
	f.most = 3
	th := &raceThread{serves: true}
	f.numbered = append(f.numbered, th)
	entries := func(n uint64) (list []memlog.Entry) {
		for i := range n {
			list = append(list, memlog.Entry{Kind: memlog.Load, PC: 0x1000 + i, Size: 8})
		}
		return list
	}
	f.noteSteps(th, entries(3))
	if f.isOverfull() || len(th.steps) != 3 {
		t.Errorf("three accesses of three are too many, or %d were kept", len(th.steps))
	}
	f.noteSteps(th, entries(1))
	if !f.isOverfull() || th.steps != nil {
		t.Errorf("four accesses of three are not too many, or %d are kept", len(th.steps))
	}
	f.cuts, f.found, f.steps = nil, nil, 0
	f.noteSteps(th, entries(2))
	if f.isOverfull() || len(th.steps) != 2 {
		t.Errorf("of the next window's two accesses %d are kept", len(th.steps))
	}
}
