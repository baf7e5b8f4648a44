package constraints

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
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
func (Cores) Supports(m model.MemoryModel) error {
	if m == model.PSO {
		return errCoresPSO.New()
	}
	return nil
}

func (Cores) givenOrders(t *model.Trace, m model.MemoryModel) []model.Edge { return t.CoreOrder(m) }

func (Cores) addReadWrites(b *systemBuilder) error { return b.addEachRead(Cores{}) }

func (Cores) matchRead(b *systemBuilder, r *read) *Formula {
	lists := b.writesByCore(r)
	behind := make([][]*Formula, len(lists))
	start := []*Formula{truthOf(b.pool.Eq(r.value, r.cell.Content(b.trace, r.Index)))}
	for k, l := range lists {
		behind[k] = b.readBeforeWrites(r, l)
		start = append(start, behind[k][0])
	}
	ways := []*Formula{conjunction(start...)}
	for k, l := range lists {
		for i, w := range l {
			way := []*Formula{b.readsFrom(r, w), behind[k][i+1]} // case 1
			for other := range lists {
				if other != k {
					way = append(way, b.betweenOtherCore(r, w, lists[other], behind[other])) // case 2
				}
			}
			ways = append(ways, conjunction(way...))
		}
	}
	return choiceOf(ways...)
}

// writesByCore has the writes that the read could see, for each core in its order.
func (b *systemBuilder) writesByCore(r *read) [][]*model.Access {
	lists := map[arch.CoreID][]*model.Access{}
	var cores []arch.CoreID
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
			return cmp.Compare(b.trace.Events[x.Event].CoreInstructions, b.trace.Events[y.Event].CoreInstructions)
		})
		out = append(out, lists[c])
	}
	return out
}

// readBeforeWrites says, for each i, that the read comes before a core's writes from the i-th on:
// before the next one, which implies the rest. Of an array it is not known which write is the next
// to the same element: it may be any, if those before it are to other elements. That is one
// condition, as in algorithm 2.
func (b *systemBuilder) readBeforeWrites(r *read, l []*model.Access) []*Formula {
	behind := make([]*Formula, len(l)+1)
	behind[len(l)] = alwaysTrue
	for i := len(l) - 1; i >= 0; i-- {
		before := alwaysFalse
		if !b.trace.Before(l[i].Event, r.Event) {
			before = eventBefore(r.Event, l[i].Event)
		}
		behind[i] = before
		if l[i].Index != nil {
			behind[i] = alternatives(before, conjunction(b.otherElement(r.Access, l[i]), behind[i+1]))
		}
	}
	return behind
}

// betweenOtherCore places the pair of write and read between two neighbours of another core's
// writes, before the first or after the last.
func (b *systemBuilder) betweenOtherCore(r *read, w *model.Access, l []*model.Access, behind []*Formula) *Formula {
	if w.Index == nil {
		ways := []*Formula{behind[0]}
		for i := range l {
			ways = append(ways, conjunction(eventBefore(l[i].Event, w.Event), behind[i+1]))
		}
		return disjunction(ways...)
	}
	rest := alwaysTrue
	for i := len(l) - 1; i >= 0; i-- {
		passed := disjunction(eventBefore(l[i].Event, w.Event), b.otherElement(r.Access, l[i]))
		rest = alternatives(behind[i], conjunction(passed, rest))
	}
	return rest
}
