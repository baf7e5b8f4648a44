package slice

import (
	"github.com/heddle-dmt/heddle/analyses/alias"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/path"
	"github.com/heddle-dmt/heddle/analyses/simplify"
	"github.com/heddle-dmt/heddle/analyses/symbolic/exec"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// program goes over a step of the program's own code.
func (t *walker) program(s *path.Step) {
	f := t.frame
	if f.skip {
		return
	}
	covers := t.run.Covers(f.Context.Function, s.Block)
	t.busy = false
	for i := len(covers) - 1; i >= 0; i-- {
		k := &covers[i]
		if k.First >= s.Done {
			continue
		}
		last := min(k.Last, s.Done)
		at := place(s.Index, i)
		t.reason = None
		if k.Ends && k.Last <= s.Done || s.Exited && last == s.Done {
			t.reason = t.decided(f, k.Block)
		}
		outcome := t.reason != None
		if outcome {
			f.nearest = at
			t.mark(Outcome)
		}
		t.statements(s, k.First, last, outcome, at)
		if k.Begins {
			f.visits[k.Block.Index] = at
			f.next = k.Block
		}
	}
}

// decided tells why where a block went is in the slice.
func (t *walker) decided(f *frame, b *cfg.Block) Reason {
	if len(b.Next) < 2 && !b.Indirect && !(b.Unknown && b.Jump != vex.JumpRet) {
		return None
	}
	taken := simplify.Successor(b, f.next)
	kept := t.needed(f, b, taken)
	if t.outcome != nil {
		t.outcome(f.Context, b, taken, kept != None)
	}
	return kept
}

// needed tells why going elsewhere at a block's end may matter.
func (t *walker) needed(f *frame, b *cfg.Block, taken int) Reason {
	if t.mode == TERN {
		return t.leads(t.sides.of(f.Context, b, -1))
	}
	back := never // where the post-dominator is; never: the end of the function
	if d := b.PostDominator(); d != nil {
		back = f.visits[d.Index]
	}
	if f.nearest < back {
		return Between
	}
	d := t.sides.of(f.Context, b, taken)
	if r := t.leads(d); r != None || t.mode == Lower {
		return r
	}
	switch {
	case d.registers.meets(&t.registers):
		return Registers
	case t.overwrites(f, d):
		return Memory
	case t.regions.keeps(f.Context, b, taken):
		return Race
	}
	return None
}

// leads tells whether a side comes to events, or not back. Where a thread is alone
// neither matters, but that it may make others.
func (t *walker) leads(d *side) Reason {
	switch {
	case d.event && !t.alone || d.forks && t.alone:
		return Event
	case d.lost && !t.alone:
		return Lost
	}
	return None
}

// overwrites tells whether code that may be executed instead may write what is live.
func (t *walker) overwrites(f *frame, d *side) bool {
	if t.space.bytes == 0 {
		return false
	}
	for _, o := range d.own {
		if t.ownLive(f, o) {
			return true
		}
	}
	for _, s := range d.writes {
		if t.clash(s).meets(t.space.sets) {
			return true
		}
	}
	return false
}

// frameReach is how far from the return address a frame is looked for.
const frameReach = 1 << 16

// ownLive tells whether a piece of a frame that may be written is live.
func (t *walker) ownLive(f *frame, o ownWrite) bool {
	low, high := max(o.at.Low, -frameReach), min(o.at.High, 0)
	if o.at.One() {
		return t.space.any(f.Slot+uint64(low), o.size)
	}
	return low <= high && t.space.any(f.Slot+uint64(low), int(high-low)+o.size)
}

// clash is which sets a set may have a place in common with.
func (w *walk) clash(s alias.Set) sparse {
	for int(s) >= len(w.clashes) {
		w.clashes = append(w.clashes, nil)
	}
	b := w.clashes[s]
	if b == nil {
		for _, k := range w.alias.Meeting(s) {
			b.set(int(k))
		}
		w.clashes[s] = b
	}
	return b
}

// sets are those of the accesses of a step's block, site by site.
func (t *walker) sets(f *frame, b *path.Block) []alias.Set {
	key := storeKey{f.Context.Number, b.Number}
	if list, ok := t.stores[key]; ok {
		return list
	}
	list := make([]alias.Set, len(b.Sites))
	if t.alias != nil {
		siteSets(t.run, t.alias, f.Context, b, list)
	}
	t.stores[key] = list
	return list
}

// siteSets finds the sets of the sites of a block: the accesses of one instruction come
// in one order.
func siteSets(r *simplify.Run, a *alias.Result, c *simplify.Context, b *path.Block, list []alias.Set) {
	nth := map[uint64]int{}
	for i := range b.Sites {
		pc := instructionOf(b.Block, b.Sites[i].Stmt)
		list[i] = alias.Unknown
		if g := c.Function.Block(pc); g != nil {
			n := 0
			for _, x := range a.Accesses(c, g) {
				if x.PC != pc {
					continue
				}
				if n == nth[pc] {
					list[i] = x.Set
				}
				n++
			}
		}
		nth[pc]++
	}
}

// instructionOf is the instruction that a statement is of.
func instructionOf(b *vex.Block, stmt int) uint64 {
	for i := stmt; i >= 0; i-- {
		if m, ok := b.Stmts[i].(*vex.Mark); ok {
			return m.Addr
		}
	}
	return b.Addr
}

// statements goes over statements of a block of the program.
func (t *walker) statements(s *path.Step, first, last int, outcome bool, at int) {
	place := t.mode != Lower && t.mode != TERN && t.regions.places(t.frame.Context, s.Block)
	if !outcome && !place && !t.busy && !t.touches(s, first, last) {
		t.division(s, first, last)
		return
	}
	t.fresh(s.Block)
	b := &backward{walker: t, step: s, outcome: outcome, place: place}
	if t.alias != nil {
		b.sets = t.sets(t.frame, s.Block)
	}
	if b.run(first, last) {
		t.frame.nearest = at
	}
}

// fresh has no temporary of a block live, the first time that one of a step is needed.
func (t *walker) fresh(b *path.Block) {
	if t.busy {
		return
	}
	t.busy = true
	if n := len(b.Types); len(t.temps) < n {
		t.temps = make([]bool, 2*n)
	}
	clear(t.temps[:len(b.Types)])
}

// touches tells whether a step may have to do with what is live.
func (t *walker) touches(s *path.Step, first, last int) bool {
	if t.mode == Lower || t.mode == TERN {
		return false
	}
	if t.writes(s.Block).meets(&t.registers) {
		return true
	}
	if t.space.bytes == 0 {
		return false
	}
	var sets []alias.Set
	for i := range s.Addrs {
		x := &s.Block.Sites[i]
		if !x.Store || x.Stmt < first || x.Stmt >= last || s.Addrs[i] == path.NoAddr {
			continue
		}
		if t.space.any(s.Addrs[i], x.Size) {
			return true
		}
		if sets == nil {
			sets = t.sets(t.frame, s.Block)
		}
		if t.elsewhere(sets[i]) {
			return true
		}
	}
	return false
}

// elsewhere tells whether a store to a set, which did not write what is live, may do so
// in another run.
func (t *walker) elsewhere(s alias.Set) bool {
	if at, _, own := t.alias.Own(s, t.frame.Context); own && at.One() {
		return false
	}
	return t.clash(s).meets(t.space.sets)
}

// division keeps constraints without which a thread dies.
func (t *walker) division(s *path.Step, first, last int) {
	for i := len(s.Constraints) - 1; i >= 0; i-- {
		c := &s.Constraints[i]
		if c.Kind == exec.Division && c.Stmt >= first && c.Stmt < last && t.mode != Lower && t.mode != TERN && !t.alone {
			t.keep(c)
		}
	}
}
