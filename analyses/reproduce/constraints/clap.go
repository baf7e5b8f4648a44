package constraints

import (
	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// CLAP is the encoding of CLAP (H3 section 2.1, figure 3).
type CLAP struct{}

// Name implements Encoding, and so do the other methods.
func (CLAP) Name() string { return "clap" }

// Supports implements Encoding: CLAP can be used under every model.
func (CLAP) Supports(model.Memory) error { return nil }

func (CLAP) orders(*model.Trace, model.Memory) []model.Edge { return nil }

func (CLAP) readWrite(b *builder) error { return b.eachRead(CLAP{}) }

func (CLAP) match(b *builder, r *read) *Formula {
	ways := []*Formula{b.fromStart(r)}
	for _, w := range r.writes {
		way := []*Formula{b.sees(r, w)}
		for _, o := range r.writes {
			if o != w {
				way = append(way, b.apart(r, Clock(w.Event), o))
			}
		}
		ways = append(ways, all(way...))
	}
	return choice(ways...)
}

// read is what a read has of a cell, with the writes that it could see.
type read struct {
	*model.Access
	cell *model.Cell
	// value is the cell's part of the symbol.
	value  *symbolic.Expr
	writes []*model.Access
}

// matcher makes the constraints of a read without regard to other reads.
type matcher interface {
	match(b *builder, r *read) *Formula
}

// eachRead adds what a matcher makes of each read of each cell.
func (b *builder) eachRead(m matcher) error {
	for c := range b.cells {
		for i := range b.cells[c].Reads {
			if err := b.oneRead(m, &b.cells[c], i); err != nil {
				return err
			}
		}
	}
	return nil
}

// oneRead adds what a matcher makes of a read of a cell.
func (b *builder) oneRead(m matcher, c *model.Cell, i int) error {
	b.Reads++
	f := m.match(b, b.readOf(c, i))
	b.Matches++
	if f.Op == Choice {
		b.Matches += len(f.Args) - 1
	}
	return b.addReadWrite(f)
}

// readOf finds the writes that a read could see: those of its own thread that come
// later, and those to other elements, are not among them.
func (b *builder) readOf(c *model.Cell, i int) *read {
	a := &c.Reads[i]
	r := &read{Access: a, cell: c, value: c.Part(b.trace, a, b.trace.Events[a.Event].Symbol)}
	for k := range c.Writes {
		w := &c.Writes[k]
		if w.Event != a.Event && !b.trace.Before(a.Event, w.Event) && b.alias(a, w) != no {
			r.writes = append(r.writes, w)
		}
	}
	return r
}

// alias tells that two accesses of a cell are to the same element.
func (b *builder) alias(x, y *model.Access) *Formula {
	if x.Index == nil {
		return yes
	}
	return holds(b.pool.Eq(x.Index, y.Index))
}

func (b *builder) noAlias(x, y *model.Access) *Formula {
	if x.Index == nil {
		return no
	}
	return holds(b.pool.Not(b.pool.Eq(x.Index, y.Index)))
}

// sees tells that a write is to what the read reads, has the value that it reads,
// and is there in time: in memory, or in the buffer of the thread itself.
func (b *builder) sees(r *read, w *model.Access) *Formula {
	value := r.cell.Part(b.trace, w, b.trace.Events[w.Event].Value)
	there := yes
	if !b.trace.Before(w.Event, r.Event) {
		there = less(w.Event, r.Event)
	}
	return all(holds(b.pool.Eq(r.value, value)), there, b.alias(r.Access, w))
}

// apart keeps a write from hiding the one, at clock seen, that the read sees.
func (b *builder) apart(r *read, seen Clock, w *model.Access) *Formula {
	earlier := no
	if seen != Start {
		earlier = lessClock(Clock(w.Event), seen)
	}
	later := no
	if !b.trace.Before(w.Event, r.Event) {
		later = less(r.Event, w.Event)
	}
	return either(b.noAlias(r.Access, w), earlier, later)
}

// fromStart tells that the read sees what memory had at the begin.
func (b *builder) fromStart(r *read) *Formula {
	way := []*Formula{holds(b.pool.Eq(r.value, r.cell.Content(b.trace, r.Index)))}
	for _, w := range r.writes {
		way = append(way, b.apart(r, Start, w))
	}
	return all(way...)
}
