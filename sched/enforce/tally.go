package enforce

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// stopTally counts at which instructions threads stop. There may be tens of thousands of
// stops, at a few places mostly.
type stopTally struct {
	first [16]counted // the places that came first
	n     int
	rest  map[arch.Addr]int
	total int
}

type counted struct {
	pc arch.Addr
	n  int
}

func (t *stopTally) addStop(pc arch.Addr) {
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
		t.rest = map[arch.Addr]int{pc: 1}
	default:
		t.rest[pc]++
	}
}

// most is the share of the stops, in percent, that count: the few at other places may
// take longer.
const most = 98

// frequentPlaces are the places, as few as there can be, where that share of the stops is,
// sorted.
func (t *stopTally) frequentPlaces() []arch.Addr {
	list := slices.Clone(t.first[:t.n])
	for pc, n := range t.rest {
		list = append(list, counted{pc, n})
	}
	slices.SortFunc(list, func(a, b counted) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.pc, b.pc)) })
	var chosen []arch.Addr
	for i, n := 0, 0; i < len(list) && 100*n < most*t.total; i++ {
		chosen = append(chosen, list[i].pc)
		n += list[i].n
	}
	slices.Sort(chosen)
	return chosen
}
