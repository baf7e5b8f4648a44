package constraints

import (
	"github.com/heddle-dmt/heddle/analyses/h3/model"
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
func (Pruned) Supports(model.MemoryModel) error { return nil }

func (p Pruned) givenOrders(t *model.Trace, m model.MemoryModel) []model.Edge {
	if p.FreeCores {
		return nil
	}
	return t.CoreOrder(m)
}

func (Pruned) addReadWrites(b *systemBuilder) error {
	reads := b.neededReads()
	for _, r := range reads {
		b.pruneByOrder(r)
	}
	b.pruneByValue(reads)
	for _, r := range reads {
		b.Reads++
		b.Matches += r.countMatches()
		for _, f := range b.prunedRead(r) {
			if err := b.addReadWrite(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// candidates is a read with the writes that it may see.
type candidates struct {
	*read
	// from are the writes; start: the read may see the initial value.
	from  []*model.Access
	start bool
}

func (c *candidates) countMatches() int {
	if c.start {
		return len(c.from) + 1
	}
	return len(c.from)
}

// neededReads finds the reads that conditions depend on: on their symbols, or on values that may
// have been written for other needed reads.
func (b *systemBuilder) neededReads() []*candidates {
	n := &neededSymbols{systemBuilder: b, symbols: map[string]bool{}, cells: map[*model.Cell]bool{}, seen: map[*symbolic.Expr]bool{}}
	for _, list := range [][]model.Condition{b.trace.Path, b.trace.Bug} {
		for _, c := range list {
			n.markExpr(c.Expr)
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
				n.markCell(cell)
				reads = append(reads, &candidates{read: b.visibleWrites(cell, i)})
			}
		}
	}
	return reads
}

// neededSymbols are the symbols that matter.
type neededSymbols struct {
	*systemBuilder
	symbols map[string]bool
	cells   map[*model.Cell]bool
	seen    map[*symbolic.Expr]bool
}

// markExpr marks the symbols of an expression.
func (n *neededSymbols) markExpr(e *symbolic.Expr) {
	if e == nil || n.seen[e] {
		return
	}
	n.seen[e] = true
	if e.Op == symbolic.Symbol {
		n.symbols[e.Name] = true
	}
	n.markExpr(e.A)
	n.markExpr(e.B)
	n.markExpr(e.C)
}

// markCell marks the symbols in the values that are written to a cell, and in the indices of its
// accesses.
func (n *neededSymbols) markCell(c *model.Cell) {
	if n.cells[c] {
		return
	}
	n.cells[c] = true
	for i := range c.Writes {
		w := &c.Writes[i]
		n.markExpr(c.Part(n.trace, w, n.trace.Events[w.Event].Value))
		n.markExpr(w.Index)
	}
	for i := range c.Reads {
		n.markExpr(c.Reads[i].Index)
	}
}

// pruneByOrder keeps the writes that a read can see in some schedule: none that comes
// after it, and none that another write hides.
func (b *systemBuilder) pruneByOrder(c *candidates) {
	var hiding []*model.Access // writes to the same that are surely there
	for _, w := range c.writes {
		if b.sameElement(c.Access, w) == alwaysTrue && (b.trace.Before(w.Event, c.Event) || b.graph.Before(w.Event, c.Event)) {
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

// interferingWrites are the writes of the cell that could come between the read and the write that
// it sees.
func (b *systemBuilder) interferingWrites(c *candidates) []*model.Access {
	var found []*model.Access
	for _, w := range c.writes {
		if !b.graph.Before(c.Event, w.Event) && !b.precedesAll(c, w) {
			found = append(found, w)
		}
	}
	return found
}

// precedesAll reports whether a write comes before every write that the read may see.
func (b *systemBuilder) precedesAll(c *candidates, w *model.Access) bool {
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

// prunedRead makes the constraints of a read.
func (b *systemBuilder) prunedRead(c *candidates) []*Formula {
	switch {
	case c.countMatches() == 0:
		return []*Formula{alwaysFalse}
	case len(c.from) == 0:
		return b.onlyMatch(c, Start, truthOf(b.pool.Eq(c.value, c.cell.Content(b.trace, c.Index))))
	case c.countMatches() == 1:
		return b.onlyMatch(c, Clock(c.from[0].Event), b.readsFrom(c.read, c.from[0]))
	}
	seen := Clock(b.Clocks)
	b.Clocks++
	chosen := map[*model.Access]*Formula{}
	var ways, parts []*Formula
	choose := func(what *Formula, at Clock) *Formula {
		by := b.newSelector("sees")
		ways = append(ways, truthOf(by))
		parts = append(parts, disjunction(b.negation(by), conjunction(what, sameClock(seen, at))))
		return truthOf(by)
	}
	if c.start {
		choose(truthOf(b.pool.Eq(c.value, c.cell.Content(b.trace, c.Index))), Start)
	}
	for _, w := range c.from {
		chosen[w] = choose(b.readsFrom(c.read, w), Clock(w.Event))
	}
	parts = append(parts, disjunction(ways...))
	for _, w := range b.interferingWrites(c) {
		keep := b.keepsApart(c.read, seen, w)
		if by := chosen[w]; by != nil {
			keep = disjunction(by, keep)
		}
		parts = append(parts, keep)
	}
	return parts
}

// onlyMatch makes the constraints of a read that can see one thing alone.
func (b *systemBuilder) onlyMatch(c *candidates, seen Clock, sees *Formula) []*Formula {
	parts := []*Formula{sees}
	for _, w := range b.interferingWrites(c) {
		if Clock(w.Event) != seen {
			parts = append(parts, b.keepsApart(c.read, seen, w))
		}
	}
	return parts
}
