package constraints

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// CountCLAP and CountCores count the read-write constraints that an encoding has for a trace, as
// Formula.Clauses counts them, without making them: CLAP's grow with the cube of the length. An
// equation whose sides are neither constants nor the same counts as one that depends on values that
// are read.
func CountCLAP(t *model.Trace) int { return countConstraints(t, (*rivals).countCLAP) }

// CountCores is CountCLAP for H3's encoding.
func CountCores(t *model.Trace) int { return countConstraints(t, (*rivals).countCores) }

// countConstraints adds up the results of others for each match: the number of constraints about
// other writes, for the rival write of the given number or -1 for the initial value; negative: the
// match is not possible.
func countConstraints(t *model.Trace, others func(r *rivals, w int) int) int {
	n := 0
	cells := t.Cells()
	for i := range cells {
		c := newCellCounter(t, &cells[i])
		for k := range cells[i].Reads {
			n += c.rivalWrites(&cells[i].Reads[k]).countMatches(others)
		}
	}
	return n
}

// cellCounter counts the constraints of a cell's reads.
type cellCounter struct {
	*model.Trace
	cell *model.Cell
	// writes are the writes of each core in its order, and values their values.
	writes []*model.Access
	values []*symbolic.Expr
}

func newCellCounter(t *model.Trace, c *model.Cell) *cellCounter {
	n := &cellCounter{Trace: t, cell: c}
	for i := range c.Writes {
		n.writes = append(n.writes, &c.Writes[i])
	}
	slices.SortStableFunc(n.writes, func(a, b *model.Access) int {
		x, y := &t.Events[a.Event], &t.Events[b.Event]
		return cmp.Or(cmp.Compare(x.Core, y.Core), cmp.Compare(x.CoreInstructions, y.CoreInstructions))
	})
	for _, w := range n.writes {
		n.values = append(n.values, c.Part(t, w, t.Events[w.Event].Value))
	}
	return n
}

// rivals are the writes that a read could see, those of each core in its order.
type rivals struct {
	start truth // whether the read may see the initial value
	list  []rival
	cores int // cores
}

type rival struct {
	core arch.CoreID
	// value says whether it writes the value that is read, and alias whether it is to the same
	// element.
	value, alias truth
	// before: the read's thread has made it before. last: its core makes no later one.
	before, last bool
	// shut: the read cannot come before this write and all later ones of the core.
	shut bool
}

// truth is the knowledge about an equation.
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

func (c *cellCounter) rivalWrites(a *model.Access) *rivals {
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
			r.cores++
		}
	}
	return r
}

// countMatches adds up the matches of a read.
func (r *rivals) countMatches(others func(*rivals, int) int) int {
	total, possible := 0, false
	for i := -1; i < len(r.list); i++ {
		about := others(r, i)
		if r.valueMatch(i) == never || about < 0 {
			continue
		}
		n := about + r.countOwnConditions(i)
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

func (r *rivals) valueMatch(i int) truth {
	if i < 0 {
		return r.start
	}
	return r.list[i].value
}

// countOwnConditions counts the conditions of a match about the write itself: its value, that it is
// there in time, and that it is to the same element.
func (r *rivals) countOwnConditions(i int) int {
	n := 0
	if r.valueMatch(i) == open {
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

// countCLAP counts a condition for each other write.
func (r *rivals) countCLAP(i int) int {
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

// countCores counts a condition for each core but that of the write, if the write is the last of
// its core.
func (r *rivals) countCores(i int) int {
	switch {
	case i < 0:
		for k := range r.list {
			if r.list[k].shut && (k == 0 || r.list[k-1].last) {
				return -1
			}
		}
		return r.cores
	case r.list[i].last:
		return r.cores - 1
	case r.list[i+1].shut:
		return -1
	}
	return r.cores
}
