package constraints

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// CountCLAP and CountCores are how many read-write constraints an encoding has of a
// trace, as Formula.Clauses counts them, without making them: CLAP's grow with the
// cube of the length. An equation whose sides are not constants, nor the same, is
// taken for one that depends on what is read.
func CountCLAP(t *model.Trace) int { return count(t, (*rivals).clap) }

// CountCores is CountCLAP for H3's encoding.
func CountCores(t *model.Trace) int { return count(t, (*rivals).cores) }

// count adds up what others says of each match: how many constraints it has about
// other writes, for the write of a number among the rivals or -1 for what was there at
// the begin; negative: the match is not possible.
func count(t *model.Trace, others func(r *rivals, w int) int) int {
	n := 0
	cells := t.Cells()
	for i := range cells {
		c := newCounter(t, &cells[i])
		for k := range cells[i].Reads {
			n += c.rivals(&cells[i].Reads[k]).count(others)
		}
	}
	return n
}

// counter counts the constraints of a cell's reads.
type counter struct {
	*model.Trace
	cell *model.Cell
	// writes are those of each core in its order, and values what they write.
	writes []*model.Access
	values []*symbolic.Expr
}

func newCounter(t *model.Trace, c *model.Cell) *counter {
	n := &counter{Trace: t, cell: c}
	for i := range c.Writes {
		n.writes = append(n.writes, &c.Writes[i])
	}
	slices.SortStableFunc(n.writes, func(a, b *model.Access) int {
		x, y := &t.Events[a.Event], &t.Events[b.Event]
		return cmp.Or(cmp.Compare(x.Core, y.Core), cmp.Compare(x.Place, y.Place))
	})
	for _, w := range n.writes {
		n.values = append(n.values, c.Part(t, w, t.Events[w.Event].Value))
	}
	return n
}

// rivals are the writes that a read could see, those of each core in its order.
type rivals struct {
	start truth // whether the read may see what was there at the begin
	list  []rival
	of    int // cores
}

type rival struct {
	core event.CoreID
	// value tells whether it writes what is read, and alias whether to what is read.
	value, alias truth
	// before tells that the read's thread has made it before; last, that its core
	// makes no other.
	before, last bool
	// shut tells that the read cannot come before this and all later ones of the core.
	shut bool
}

// truth is what is known of an equation.
type truth uint8

const (
	open truth = iota
	always
	never
)

func equation(a, b *symbolic.Expr) truth {
	switch {
	case a == b:
		return always
	case a.IsConst() && b.IsConst():
		return never
	}
	return open
}

func (c *counter) rivals(a *model.Access) *rivals {
	value := c.cell.Part(c.Trace, a, c.Events[a.Event].Symbol)
	r := &rivals{start: equation(value, c.cell.Content(c.Trace, a.Index))}
	for i, w := range c.writes {
		alias := always
		if a.Index != nil {
			alias = equation(a.Index, w.Index)
		}
		if w.Event == a.Event || c.Before(a.Event, w.Event) || alias == never {
			continue
		}
		r.list = append(r.list, rival{
			core: c.Events[w.Event].Core, value: equation(value, c.values[i]), alias: alias, before: c.Before(w.Event, a.Event),
		})
	}
	for i := len(r.list) - 1; i >= 0; i-- {
		w := &r.list[i]
		w.last = i == len(r.list)-1 || r.list[i+1].core != w.core
		w.shut = w.before && (w.alias == always || !w.last && r.list[i+1].shut)
		if w.last {
			r.of++
		}
	}
	return r
}

// count adds up the matches of a read.
func (r *rivals) count(others func(*rivals, int) int) int {
	total, possible := 0, false
	for i := -1; i < len(r.list); i++ {
		about := others(r, i)
		if r.value(i) == never || about < 0 {
			continue
		}
		n := about + r.sees(i)
		if n == 0 {
			return 0 // the read may see it whatever else happens
		}
		total, possible = total+n, true
	}
	if !possible {
		return 1 // which says so
	}
	return total
}

func (r *rivals) value(i int) truth {
	if i < 0 {
		return r.start
	}
	return r.list[i].value
}

// sees counts what a match says of the write itself: its value, that it is there in
// time, and that it is to the same element.
func (r *rivals) sees(i int) int {
	n := 0
	if r.value(i) == open {
		n++
	}
	if i >= 0 && !r.list[i].before {
		n++
	}
	if i >= 0 && r.list[i].alias == open {
		n++
	}
	return n
}

// clap counts a condition for each other write.
func (r *rivals) clap(i int) int {
	if i >= 0 {
		return len(r.list) - 1
	}
	for k := range r.list {
		if r.list[k].before && r.list[k].alias == always {
			return -1
		}
	}
	return len(r.list)
}

// cores counts a condition for each core but that of the write, if it makes no other
// behind it.
func (r *rivals) cores(i int) int {
	switch {
	case i < 0:
		for k := range r.list {
			if r.list[k].shut && (k == 0 || r.list[k-1].last) {
				return -1
			}
		}
		return r.of
	case r.list[i].last:
		return r.of - 1
	case r.list[i+1].shut:
		return -1
	}
	return r.of
}
