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

func (Cores) readWrite(b *builder) error { return b.eachRead(Cores{}) }

func (Cores) match(b *builder, r *read) *Formula {
	lists := b.byCore(r)
	behind := make([][]*Formula, len(lists))
	start := []*Formula{holds(b.pool.Eq(r.value, r.cell.Content(b.trace, r.Index)))}
	for k, l := range lists {
		behind[k] = b.behindRead(r, l)
		start = append(start, behind[k][0])
	}
	ways := []*Formula{all(start...)}
	for k, l := range lists {
		for i, w := range l {
			way := []*Formula{b.sees(r, w), behind[k][i+1]} // case 1
			for other := range lists {
				if other != k {
					way = append(way, b.otherCore(r, w, lists[other], behind[other])) // case 2
				}
			}
			ways = append(ways, all(way...))
		}
	}
	return choice(ways...)
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

// behindRead tells, for each i, that the read comes before a core's writes from the
// i-th on: before the next one, as the rest follows. Of an array it is not known which
// is next to the same element: it may be any, if those before it are to others. That is
// one condition, as in algorithm 2.
func (b *builder) behindRead(r *read, l []*model.Access) []*Formula {
	behind := make([]*Formula, len(l)+1)
	behind[len(l)] = yes
	for i := len(l) - 1; i >= 0; i-- {
		before := no
		if !b.trace.Before(l[i].Event, r.Event) {
			before = less(r.Event, l[i].Event)
		}
		behind[i] = before
		if l[i].Index != nil {
			behind[i] = alternatives(before, all(b.noAlias(r.Access, l[i]), behind[i+1]))
		}
	}
	return behind
}

// otherCore puts the pair of write and read between two neighbours of another core's
// writes, before the first or behind the last.
func (b *builder) otherCore(r *read, w *model.Access, l []*model.Access, behind []*Formula) *Formula {
	if w.Index == nil {
		ways := []*Formula{behind[0]}
		for i := range l {
			ways = append(ways, all(less(l[i].Event, w.Event), behind[i+1]))
		}
		return either(ways...)
	}
	rest := yes
	for i := len(l) - 1; i >= 0; i-- {
		passed := either(less(l[i].Event, w.Event), b.noAlias(r.Access, l[i]))
		rest = alternatives(behind[i], all(passed, rest))
	}
	return rest
}
