package constraints

import (
	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// CLAP is the encoding of CLAP (H3 section 2.1, figure 3).
type CLAP struct{}

// Name implements Encoding, and so do the other methods.
func (CLAP) Name() string { return "clap" }

// Supports implements Encoding: CLAP can be used under every model.
func (CLAP) Supports(model.MemoryModel) error { return nil }

func (CLAP) givenOrders(*model.Trace, model.MemoryModel) []model.Edge { return nil }

func (CLAP) addReadWrites(b *systemBuilder) error { return b.addEachRead(CLAP{}) }

func (CLAP) matchRead(b *systemBuilder, r *read) *Formula {
	ways := []*Formula{b.readsInitialValue(r)}
	for _, w := range r.writes {
		way := []*Formula{b.readsFrom(r, w)}
		for _, o := range r.writes {
			if o != w {
				way = append(way, b.keepsApart(r, Clock(w.Event), o))
			}
		}
		ways = append(ways, conjunction(way...))
	}
	return choiceOf(ways...)
}

// read is a read of a cell, with the writes that it could see.
type read struct {
	*model.Access
	cell *model.Cell
	// value is the cell's part of the symbol.
	value  *symbolic.Expr
	writes []*model.Access
}

// matcher makes the constraints of a read without regard to other reads.
type matcher interface {
	matchRead(b *systemBuilder, r *read) *Formula
}

// addEachRead adds the constraints that a matcher makes for each read of each cell.
func (b *systemBuilder) addEachRead(m matcher) error {
	for c := range b.cells {
		for i := range b.cells[c].Reads {
			if err := b.addOneRead(m, &b.cells[c], i); err != nil {
				return err
			}
		}
	}
	return nil
}

// addOneRead adds the constraints that a matcher makes for a read of a cell.
func (b *systemBuilder) addOneRead(m matcher, c *model.Cell, i int) error {
	b.Reads++
	f := m.matchRead(b, b.visibleWrites(c, i))
	b.Matches++
	if f.Op == Choice {
		b.Matches += len(f.Args) - 1
	}
	return b.addReadWrite(f)
}

// visibleWrites finds the writes that a read could see: those of its own thread that come
// later, and those to other elements, are not among them.
func (b *systemBuilder) visibleWrites(c *model.Cell, i int) *read {
	a := &c.Reads[i]
	r := &read{Access: a, cell: c, value: c.Part(b.trace, a, b.trace.Events[a.Event].Symbol)}
	for k := range c.Writes {
		w := &c.Writes[k]
		if w.Event != a.Event && !b.trace.Before(a.Event, w.Event) && b.sameElement(a, w) != alwaysFalse {
			r.writes = append(r.writes, w)
		}
	}
	return r
}

// sameElement says that two accesses of a cell are to the same element.
func (b *systemBuilder) sameElement(x, y *model.Access) *Formula {
	if x.Index == nil {
		return alwaysTrue
	}
	return truthOf(b.pool.Eq(x.Index, y.Index))
}

func (b *systemBuilder) otherElement(x, y *model.Access) *Formula {
	if x.Index == nil {
		return alwaysFalse
	}
	return truthOf(b.pool.Not(b.pool.Eq(x.Index, y.Index)))
}

// readsFrom says that a write is to the element that the read reads, has the value that it reads,
// and is there in time: in memory, or in the buffer of the thread itself.
func (b *systemBuilder) readsFrom(r *read, w *model.Access) *Formula {
	value := r.cell.Part(b.trace, w, b.trace.Events[w.Event].Value)
	there := alwaysTrue
	if !b.trace.Before(w.Event, r.Event) {
		there = eventBefore(w.Event, r.Event)
	}
	return conjunction(truthOf(b.pool.Eq(r.value, value)), there, b.sameElement(r.Access, w))
}

// keepsApart keeps a write from hiding the one, at clock seen, that the read sees.
func (b *systemBuilder) keepsApart(r *read, seen Clock, w *model.Access) *Formula {
	earlier := alwaysFalse
	if seen != Start {
		earlier = clockBefore(Clock(w.Event), seen)
	}
	later := alwaysFalse
	if !b.trace.Before(w.Event, r.Event) {
		later = eventBefore(r.Event, w.Event)
	}
	return disjunction(b.otherElement(r.Access, w), earlier, later)
}

// readsInitialValue says that the read sees the initial content of memory.
func (b *systemBuilder) readsInitialValue(r *read) *Formula {
	way := []*Formula{truthOf(b.pool.Eq(r.value, r.cell.Content(b.trace, r.Index)))}
	for _, w := range r.writes {
		way = append(way, b.keepsApart(r, Start, w))
	}
	return conjunction(way...)
}
