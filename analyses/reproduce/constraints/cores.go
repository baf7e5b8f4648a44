package constraints

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
)

var errCoresPSO = errs.Define("reproduce-cores-under-pso",
	"the h3 encoding cannot be used under PSO",
	"It takes the order in which a core executed its writes for the order in which they reached memory, and under PSO these differ (H3 section 3.4).",
	"Use --encoding heddle or --encoding clap.")

// Cores is H3's reduction by the order of the writes of each core (section 3.4,
// algorithm 2).
type Cores struct{}

// Name implements Encoding, and so do the other methods.
func (Cores) Name() string { return "h3" }

// Supports implements Encoding: not under PSO.
func (Cores) Supports(m model.Memory) error {
	if m == model.PSO {
		return errCoresPSO.New()
	}
	return nil
}

func (Cores) orders(t *model.Trace, m model.Memory) []model.Edge { return t.CoreOrder(m) }

func (Cores) readWrite(b *builder) error {
	return b.eachRead(func(r *read) *Formula {
		lists := b.byCore(r)
		start := []*Formula{holds(b.pool.Eq(r.value, r.cell.Content(b.trace, r.Index)))}
		for _, l := range lists {
			start = append(start, b.behindRead(r, l, 0))
		}
		ways := []*Formula{all(start...)}
		for _, l := range lists {
			for i := range l {
				ways = append(ways, b.coreMatch(r, lists, l, i))
			}
		}
		return choice(ways...)
	})
}

// byCore has the writes that the read could see, for each core in its order.
func (b *builder) byCore(r *read) [][]*model.Access {
	lists := map[event.CoreID][]*model.Access{}
	var cores []event.CoreID
	for _, w := range r.writes {
		c := b.trace.Events[w.Event].Core
		if lists[c] == nil {
			cores = append(cores, c)
		}
		lists[c] = append(lists[c], w)
	}
	slices.Sort(cores)
	var out [][]*model.Access
	for _, c := range cores {
		slices.SortStableFunc(lists[c], func(x, y *model.Access) int {
			return cmp.Compare(b.trace.Events[x.Event].Place, b.trace.Events[y.Event].Place)
		})
		out = append(out, lists[c])
	}
	return out
}

// coreMatch is algorithm 2 for the write at a place in its core's list.
func (b *builder) coreMatch(r *read, lists [][]*model.Access, own []*model.Access, i int) *Formula {
	w := own[i]
	way := []*Formula{b.sees(r, w), b.behindRead(r, own, i+1)} // case 1
	for _, l := range lists {
		if l[0] != own[0] {
			way = append(way, b.otherCore(r, w, l)) // case 2
		}
	}
	return all(way...)
}

// behindRead tells that the read comes before a core's writes from the i-th on:
// before the next one, as the rest follows. Of an array it is not known which is
// next to the same element.
func (b *builder) behindRead(r *read, l []*model.Access, i int) *Formula {
	var way []*Formula
	for ; i < len(l); i++ {
		way = append(way, b.apart(r, Start, l[i]))
		if l[i].Index == nil {
			break
		}
	}
	return all(way...)
}

// otherCore puts the pair of write and read between two neighbours of another
// core's writes, before the first or behind the last.
func (b *builder) otherCore(r *read, w *model.Access, l []*model.Access) *Formula {
	if w.Index != nil {
		var way []*Formula
		for _, o := range l {
			way = append(way, b.apart(r, Clock(w.Event), o))
		}
		return all(way...)
	}
	var ways []*Formula
	for i := range len(l) + 1 {
		place := b.behindRead(r, l, i)
		if i > 0 {
			place = all(less(l[i-1].Event, w.Event), place)
		}
		ways = append(ways, place)
	}
	return either(ways...)
}
