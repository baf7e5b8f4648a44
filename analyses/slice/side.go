package slice

import (
	"slices"
	"sort"

	"github.com/heddle-dmt/heddle/analyses/alias"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/simplify"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// side is what code that is executed instead of what was may do: the blocks between a
// branch and its post-dominator, with what they call.
type side struct {
	// event tells that it may come to an event of a schedule, and lost that it may
	// not come to the post-dominator, or goes where nobody knows.
	event, lost bool
	// forks tells that it may make threads.
	forks     bool
	registers bytesOfState
	reads     []alias.Set
	writes    []alias.Set
	// own are pieces of its context's frame that it writes.
	own []ownWrite
	// plainReads and plainWrites are those that not only atomic instructions access.
	plainReads, plainWrites []alias.Set

	seen map[alias.Set]bool
}

type ownWrite struct {
	at   alias.Interval
	size int
}

type sideKey struct {
	context, block, taken int
}

// sides finds and keeps them.
type sides struct {
	run       *simplify.Run
	alias     *alias.Result
	known     map[sideKey]*side
	functions map[int]*side // of contexts
	open      map[int]bool
	effects   map[*vex.Block]*bytesOfState
	// points are the instructions of the schedule's constraints, and pointed the
	// imports that have come to some: coming there once more is an event.
	points  map[uint64]bool
	pointed map[string]bool
}

func newSides(r *simplify.Run, a *alias.Result) *sides {
	s := &sides{
		run: r, alias: a, known: map[sideKey]*side{}, functions: map[int]*side{}, open: map[int]bool{},
		effects: map[*vex.Block]*bytesOfState{}, points: map[uint64]bool{}, pointed: map[string]bool{},
	}
	for _, t := range r.Threads {
		for _, e := range r.Events.Of(t.Thread) {
			if e.Point {
				s.point(t, &e)
			}
		}
	}
	return s
}

// point notes the instruction of a constraint.
func (s *sides) point(t *simplify.Thread, e *simplify.Event) {
	s.points[e.PC] = true
	step := t.Find(e.From)
	n := sort.Search(len(t.Moves), func(i int) bool { return t.Moves[i].Step > step }) - 1
	if n < 0 {
		return
	}
	for i := t.Moves[n].Frame; i >= 0; i = t.Frames[i].Parent {
		if b := t.Frames[i].Site; b != nil && t.Frames[i].Context == nil {
			s.pointed[b.Import] = true
			return
		}
	}
}

// of is what may be executed of a context from a block on if the successor of a number
// is not taken; all: -1.
func (s *sides) of(c *simplify.Context, b *cfg.Block, taken int) *side {
	key := sideKey{c.Number, b.Index, taken}
	if d := s.known[key]; d != nil {
		return d
	}
	var without *cfg.Block
	if taken >= 0 {
		without = b.Next[taken]
	}
	d := &side{seen: map[alias.Set]bool{}}
	for _, x := range b.Between(without) {
		s.block(d, c, x)
	}
	if b.Unknown {
		d.lost, d.forks = true, true
	}
	d.seen = nil
	s.known[key] = d
	return d
}

// block adds what a block may do.
func (s *sides) block(d *side, c *simplify.Context, b *cfg.Block) {
	d.registers.join(s.written(b.Block))
	s.accesses(d, c, b)
	if b.Never || b.Unknown && len(b.Calls) == 0 {
		d.lost = true
	}
	if b.System || b.Import != "" && s.pointed[b.Import] || s.hasPoint(b) {
		d.event = true
	}
	d.forks = d.forks || b.System || b.Unknown && len(b.Calls) == 0 && b.Jump != vex.JumpRet
	if b.Import != "" {
		s.library(d, c, b, s.run.Graph.Models.Of(b.Import))
	}
	for _, f := range b.Calls {
		if f.Model != nil {
			s.library(d, c, b, f.Model)
			continue
		}
		for _, callee := range s.run.Callees(c, b, f) {
			d.join(s.function(callee))
		}
	}
}

// hasPoint tells whether an instruction of a constraint is in a block.
func (s *sides) hasPoint(b *cfg.Block) bool {
	if len(s.points) == 0 {
		return false
	}
	for _, x := range b.Stmts {
		if m, ok := x.(*vex.Mark); ok && s.points[m.Addr] {
			return true
		}
	}
	return false
}

func (s *sides) accesses(d *side, c *simplify.Context, b *cfg.Block) {
	if s.alias == nil {
		return
	}
	for _, a := range s.alias.Accesses(c, b) {
		if at, size, own := s.alias.Own(a.Set, c); own {
			if a.Store {
				d.own = append(d.own, ownWrite{at, size})
			}
			if !s.alias.Private(a.Set) {
				d.add(a.Set, a.Store, a.Atomic)
			}
			continue
		}
		d.add(a.Set, a.Store, a.Atomic)
	}
}

// add adds an access.
func (d *side) add(set alias.Set, store, atomic bool) {
	key := set << 2
	if store {
		key |= 1
	}
	if atomic {
		key |= 2
	}
	if d.seen[key] {
		return
	}
	d.seen[key] = true
	switch {
	case store && !atomic:
		d.plainWrites = append(d.plainWrites, set)
	case !atomic:
		d.plainReads = append(d.plainReads, set)
	}
	if store {
		d.writes = append(d.writes, set)
	} else {
		d.reads = append(d.reads, set)
	}
}

// library adds what a function of a library may do.
func (s *sides) library(d *side, c *simplify.Context, b *cfg.Block, m *cfg.Model) {
	d.event = d.event || m.Event
	d.lost = d.lost || m.Never
	d.forks = d.forks || m.Forks
	called := all.without(&kept)
	d.registers.join(&called)
	if s.alias == nil {
		return
	}
	if l := s.alias.Called(c, b); l != nil {
		if l.Reads != alias.Nothing {
			d.add(l.Reads, false, false)
		}
		if l.Writes != alias.Nothing {
			d.add(l.Writes, true, false)
		}
	}
}

// all are all bytes of the state but those that are fixed.
var all = func() bytesOfState {
	var s bytesOfState
	s.add(0, int(vex.StateSize))
	return s.without(&fixed)
}()

// function is what a whole call of a context may do, seen from outside.
func (s *sides) function(c *simplify.Context) *side {
	if d := s.functions[c.Number]; d != nil {
		return d
	}
	d := &side{seen: map[alias.Set]bool{}}
	if s.open[c.Number] {
		return d // it calls itself: the call further out has what it does
	}
	s.open[c.Number] = true
	for _, b := range c.Function.Blocks {
		s.block(d, c, b)
	}
	delete(s.open, c.Number)
	d.own = nil
	d.registers = d.registers.without(&kept)
	s.functions[c.Number] = d
	return d
}

// join adds what another does.
func (d *side) join(o *side) {
	d.event, d.lost, d.forks = d.event || o.event, d.lost || o.lost, d.forks || o.forks
	d.registers.join(&o.registers)
	for _, x := range o.reads {
		d.add(x, false, !slices.Contains(o.plainReads, x))
	}
	for _, x := range o.writes {
		d.add(x, true, !slices.Contains(o.plainWrites, x))
	}
}

// written are the bytes of the state that a block may write.
func (s *sides) written(b *vex.Block) *bytesOfState {
	if w := s.effects[b]; w != nil {
		return w
	}
	w := &bytesOfState{}
	for _, x := range b.Stmts {
		writesOf(b, x, w)
	}
	*w = w.without(&fixed)
	s.effects[b] = w
	return w
}

// writesOf adds the bytes of the state that a statement may write.
func writesOf(b *vex.Block, x vex.Stmt, w *bytesOfState) {
	switch x := x.(type) {
	case *vex.Put:
		w.add(x.Offset, b.TypeOf(x.Data).Bytes())
	case *vex.PutI:
		w.add(x.Array.Base, x.Array.Count*x.Array.Elem.Bytes())
	case *vex.Dirty:
		for _, fx := range x.State {
			if fx.Effect == vex.EffectRead {
				continue
			}
			for _, at := range fx.Spans() {
				w.add(at.From, at.Size())
			}
		}
	}
}
