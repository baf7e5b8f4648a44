package constraints

import (
	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Pruned is heddle's own encoding.
type Pruned struct {
	// FreeCores takes no order from the cores: a schedule may be one that the cores
	// did not have.
	FreeCores bool
}

// Name implements Encoding, and so do the other methods.
func (Pruned) Name() string { return "heddle" }

// Supports implements Encoding: under PSO too, as context switches order the slices
// of a core under every model.
func (Pruned) Supports(model.Memory) error { return nil }

func (p Pruned) orders(t *model.Trace, m model.Memory) []model.Edge {
	if p.FreeCores {
		return nil
	}
	return t.CoreOrder(m)
}

func (Pruned) readWrite(b *builder) error {
	reads := b.neededReads()
	for _, r := range reads {
		b.byOrder(r)
	}
	b.byValue(reads)
	for _, r := range reads {
		b.Reads++
		b.Matches += r.matches()
		for _, f := range b.pruned(r) {
			if err := b.addReadWrite(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// candidates is a read with what it may see.
type candidates struct {
	*read
	// from are the writes, and start tells that it may be what was there at the begin.
	from  []*model.Access
	start bool
}

func (c *candidates) matches() int {
	if c.start {
		return len(c.from) + 1
	}
	return len(c.from)
}

// neededReads finds the reads that conditions depend on: on their symbols, or on
// what may have been written for others that are needed.
func (b *builder) neededReads() []*candidates {
	n := &needs{builder: b, symbols: map[string]bool{}, cells: map[*model.Cell]bool{}, seen: map[*symbolic.Expr]bool{}}
	for _, list := range [][]model.Condition{b.trace.Path, b.trace.Bug} {
		for _, c := range list {
			n.need(c.Expr)
		}
	}
	found := map[*model.Access]bool{}
	var reads []*candidates
	for changed := true; changed; {
		changed = false
		for c := range b.cells {
			cell := &b.cells[c]
			for i := range cell.Reads {
				a := &cell.Reads[i]
				if found[a] || !n.symbols[b.trace.Events[a.Event].Symbol.Name] {
					continue
				}
				found[a], changed = true, true
				n.cell(cell)
				reads = append(reads, &candidates{read: b.readOf(cell, i)})
			}
		}
	}
	return reads
}

// needs are the symbols that matter.
type needs struct {
	*builder
	symbols map[string]bool
	cells   map[*model.Cell]bool
	seen    map[*symbolic.Expr]bool
}

// need marks the symbols of an expression.
func (n *needs) need(e *symbolic.Expr) {
	if e == nil || n.seen[e] {
		return
	}
	n.seen[e] = true
	if e.Op == symbolic.Symbol {
		n.symbols[e.Name] = true
	}
	n.need(e.A)
	n.need(e.B)
	n.need(e.C)
}

// cell marks what is written to a cell, and which elements are accessed.
func (n *needs) cell(c *model.Cell) {
	if n.cells[c] {
		return
	}
	n.cells[c] = true
	for i := range c.Writes {
		w := &c.Writes[i]
		n.need(c.Part(n.trace, w, n.trace.Events[w.Event].Value))
		n.need(w.Index)
	}
	for i := range c.Reads {
		n.need(c.Reads[i].Index)
	}
}

// byOrder keeps the writes that a read can see in some schedule: none that comes
// after it, and none that another write hides.
func (b *builder) byOrder(c *candidates) {
	var hiding []*model.Access // writes to the same that are surely there
	for _, w := range c.writes {
		if b.alias(c.Access, w) == yes && (b.trace.Before(w.Event, c.Event) || b.graph.Before(w.Event, c.Event)) {
			hiding = append(hiding, w)
		}
	}
	c.start = len(hiding) == 0
	for _, w := range c.writes {
		if b.graph.Before(c.Event, w.Event) {
			continue
		}
		hidden := false
		for _, h := range hiding {
			hidden = hidden || b.graph.Before(w.Event, h.Event)
		}
		if !hidden {
			c.from = append(c.from, w)
		}
	}
}

// others are the writes of the cell that could come between the read and what it
// sees.
func (b *builder) others(c *candidates) []*model.Access {
	var found []*model.Access
	for _, w := range c.writes {
		if !b.graph.Before(c.Event, w.Event) && !b.earlier(c, w) {
			found = append(found, w)
		}
	}
	return found
}

// earlier tells that a write comes before all that the read may see.
func (b *builder) earlier(c *candidates, w *model.Access) bool {
	if c.start {
		return false
	}
	for _, f := range c.from {
		if !b.graph.Before(w.Event, f.Event) {
			return false
		}
	}
	return true
}

// pruned makes the constraints of a read.
func (b *builder) pruned(c *candidates) []*Formula {
	switch {
	case c.matches() == 0:
		return []*Formula{no}
	case len(c.from) == 0:
		return b.only(c, Start, holds(b.pool.Eq(c.value, c.cell.Content(b.trace, c.Index))))
	case c.matches() == 1:
		return b.only(c, Clock(c.from[0].Event), b.sees(c.read, c.from[0]))
	}
	seen := Clock(b.Clocks)
	b.Clocks++
	chosen := map[*model.Access]*Formula{}
	var ways, parts []*Formula
	choose := func(what *Formula, at Clock) *Formula {
		by := b.selector("sees")
		ways = append(ways, holds(by))
		parts = append(parts, either(b.not(by), all(what, same(seen, at))))
		return holds(by)
	}
	if c.start {
		choose(holds(b.pool.Eq(c.value, c.cell.Content(b.trace, c.Index))), Start)
	}
	for _, w := range c.from {
		chosen[w] = choose(b.sees(c.read, w), Clock(w.Event))
	}
	parts = append(parts, either(ways...))
	for _, w := range b.others(c) {
		keep := b.apart(c.read, seen, w)
		if by := chosen[w]; by != nil {
			keep = either(by, keep)
		}
		parts = append(parts, keep)
	}
	return parts
}

// only makes the constraints of a read that can see one thing alone.
func (b *builder) only(c *candidates, seen Clock, sees *Formula) []*Formula {
	parts := []*Formula{sees}
	for _, w := range b.others(c) {
		if Clock(w.Event) != seen {
			parts = append(parts, b.apart(c.read, seen, w))
		}
	}
	return parts
}
