package sched

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// tally counts at which instructions threads stop. There may be tens of thousands of
// stops, at a few places mostly.
type tally struct {
	first [16]counted // the places that came first
	n     int
	rest  map[event.Addr]int
	total int
}

type counted struct {
	pc event.Addr
	n  int
}

func (t *tally) add(pc event.Addr) {
	t.total++
	for i := range t.first[:t.n] {
		if t.first[i].pc == pc {
			t.first[i].n++
			return
		}
	}
	switch {
	case t.n < len(t.first):
		t.first[t.n] = counted{pc, 1}
		t.n++
	case t.rest == nil:
		t.rest = map[event.Addr]int{pc: 1}
	default:
		t.rest[pc]++
	}
}

// most is the share of the stops, in percent, that count: the few at other places may
// take longer.
const most = 98

// frequent are the places, as few as there can be, where that share of the stops is,
// sorted.
func (t *tally) frequent() []event.Addr {
	list := slices.Clone(t.first[:t.n])
	for pc, n := range t.rest {
		list = append(list, counted{pc, n})
	}
	slices.SortFunc(list, func(a, b counted) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.pc, b.pc)) })
	var chosen []event.Addr
	for i, n := 0, 0; i < len(list) && 100*n < most*t.total; i++ {
		chosen = append(chosen, list[i].pc)
		n += list[i].n
	}
	slices.Sort(chosen)
	return chosen
}
