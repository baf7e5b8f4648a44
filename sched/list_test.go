package sched

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
)

func TestListKeepsOrder(t *testing.T) {
	l := newSlotList()
	for s := range slot(5) {
		l.appendSlot(s)
	}
	for _, s := range []slot{2, 2, 0, 4, 9} {
		l.removeSlot(s)
	}
	l.appendSlot(2)
	var got []slot
	for s := l.firstSlot; s != noSlot; s = l.successorOf(s) {
		got = append(got, s)
	}
	if len(got) != 3 || got[0] != 1 || got[1] != 3 || got[2] != 2 || l.contains(0) || !l.contains(2) || l.isEmpty() {
		t.Errorf("list %v, want 1 3 2", got)
	}
}

// Threads that have exited take no room, however many there were.
func TestNoTraceOfExitedThreads(t *testing.T) {
	for _, policy := range []string{Timed, RR, Random, PCT} {
		c, err := New(2, 1, Options{Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		for id := range arch.ThreadID(1000) {
			c.Ready(id, 0)
			if id > 0 {
				c.Exit(id - 1)
			}
		}
		if len(c.threads) > 2 || c.slots.Len() != 1 {
			t.Errorf("%s: %d slots, %d ids for one thread", policy, len(c.threads), c.slots.Len())
		}
		if p, ok := c.policy.(*pct); ok && len(p.priorities) != 1 {
			t.Errorf("%d priorities for one thread", len(p.priorities))
		}
	}
}
