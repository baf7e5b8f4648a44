package slice

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/alias"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/specialize"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/internal/effort"
)

// sideEffects are the possible effects of the code on the other side of a branch: the
// blocks between it and its post-dominator, and the functions that they call.
type sideEffects struct {
	// reachesEvent is set if it may reach an event of a schedule, mayNotReturn if it may
	// not reach the post-dominator or its target is unknown.
	reachesEvent, mayNotReturn bool
	// makesThreads is set if it may create threads.
	makesThreads bool
	registers    stateBytes
	reads        []alias.Set
	writes       []alias.Set
	// own are pieces of its context's frame that it writes.
	own []ownWrite
	// plainReads and plainWrites are the sets that other than atomic instructions access, in order.
	plainReads, plainWrites []alias.Set

	// seen are the accesses, as accessKey numbers them, and joined the calls whose effects are among these.
	seen   map[alias.Set]bool
	joined map[*sideEffects]bool
}

func newSideEffects() *sideEffects {
	return &sideEffects{seen: map[alias.Set]bool{}, joined: map[*sideEffects]bool{}}
}

// accessKey numbers the accesses of a set.
func accessKey(set alias.Set, store, atomic bool) alias.Set {
	key := set << 2
	if store {
		key |= 1
	}
	if atomic {
		key |= 2
	}
	return key
}

type ownWrite struct {
	at   alias.Interval
	size int
}

type sideKey struct {
	context, block, taken int
}

// sideCache computes and caches the effects of sides.
type sideCache struct {
	run       *specialize.CallTrace
	alias     *alias.Result
	known     map[sideKey]*sideEffects
	functions map[int]*sideEffects // of contexts
	open      map[int]bool
	effects   map[*vex.Block]*stateBytes
	// points are the instructions of the schedule's constraints, pointed the imports that
	// have executed one: executing it again is an event.
	points  map[uint64]bool
	pointed map[string]bool
	// orderedCalls is set if the schedule orders system calls.
	orderedCalls bool
	meter        *effort.Meter
}

func newSideCache(r *specialize.CallTrace, a *alias.Result, meter *effort.Meter) *sideCache {
	s := &sideCache{
		run: r, alias: a, known: map[sideKey]*sideEffects{}, functions: map[int]*sideEffects{}, open: map[int]bool{},
		effects: map[*vex.Block]*stateBytes{}, points: map[uint64]bool{}, pointed: map[string]bool{}, meter: meter,
		orderedCalls: !r.Events.FreeCalls,
	}
	for _, t := range r.Threads {
		for _, e := range r.Events.OfThread(t.Thread) {
			if e.Point {
				s.notePoint(t, &e)
			}
		}
	}
	return s
}

// notePoint records the instruction of a constraint.
func (s *sideCache) notePoint(t *specialize.Thread, e *specialize.Event) {
	s.points[e.PC] = true
	for i := frameAt(t, t.StepAt(e.From)); i >= 0; i = t.Frames[i].Parent {
		if b := t.Frames[i].Site; b != nil && t.Frames[i].Context == nil {
			s.pointed[b.Import] = true
			return
		}
	}
}

// effectsOf returns the effects of the code that follows a block of a context, without the
// taken successor; -1 excludes no successor.
func (s *sideCache) effectsOf(c *specialize.Context, b *cfg.Block, taken int) *sideEffects {
	key := sideKey{c.Number, b.Index, taken}
	if d := s.known[key]; d != nil {
		return d
	}
	var without *cfg.Block
	if taken >= 0 {
		without = b.Next[taken]
	}
	d := newSideEffects()
	for _, x := range b.ReachableWithout(without) {
		s.addBlock(d, c, x)
	}
	if b.Unknown {
		d.mayNotReturn, d.makesThreads = true, true
	}
	d.seen, d.joined = nil, nil
	slices.Sort(d.plainReads)
	slices.Sort(d.plainWrites)
	s.known[key] = d
	return d
}

// addBlock adds the effects of a block.
func (s *sideCache) addBlock(d *sideEffects, c *specialize.Context, b *cfg.Block) {
	if s.run.Graph.IsImpossible(b) {
		return
	}
	s.meter.Add(1 + len(b.Stmts))
	d.registers.addAll(s.writtenState(b.Block))
	s.addAccesses(d, c, b)
	if b.NoReturn || b.Unknown && len(b.Calls) == 0 {
		d.mayNotReturn = true
	}
	if b.Syscall && s.orderedCalls || b.Import != "" && s.pointed[b.Import] || s.hasPoint(b) {
		d.reachesEvent = true
	}
	d.makesThreads = d.makesThreads || b.Syscall || b.Unknown && len(b.Calls) == 0 && b.Jump != vex.JumpRet
	if b.Import != "" {
		s.addLibrary(d, c, b, s.run.Graph.Models.Of(b.Import))
	}
	for _, f := range b.Calls {
		if f.Model != nil {
			s.addLibrary(d, c, b, f.Model)
			continue
		}
		for _, callee := range s.run.CalleeContexts(c, b, f) {
			s.joinEffects(d, s.callEffects(callee))
		}
	}
}

// hasPoint reports whether a block contains an instruction of a constraint.
func (s *sideCache) hasPoint(b *cfg.Block) bool {
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

func (s *sideCache) addAccesses(d *sideEffects, c *specialize.Context, b *cfg.Block) {
	if s.alias == nil {
		return
	}
	for _, a := range s.alias.Accesses(c, b) {
		if at, size, own := s.alias.OwnFrame(a.Set, c); own {
			if a.Store {
				d.own = append(d.own, ownWrite{at, size})
			}
			if !s.alias.IsPrivate(a.Set) {
				d.addAccess(a.Set, a.Store, a.Atomic)
			}
			continue
		}
		d.addAccess(a.Set, a.Store, a.Atomic)
	}
}

// addAccess adds an access.
func (d *sideEffects) addAccess(set alias.Set, store, atomic bool) {
	key := accessKey(set, store, atomic)
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

// addLibrary adds the effects of a function of a library.
func (s *sideCache) addLibrary(d *sideEffects, c *specialize.Context, b *cfg.Block, m *cfg.Model) {
	d.reachesEvent = d.reachesEvent || m.MayBeEvent(s.orderedCalls)
	d.mayNotReturn = d.mayNotReturn || m.NoReturn
	d.makesThreads = d.makesThreads || m.Forks
	called := allState.minus(&preservedState)
	if !m.Unknown {
		called = called.minus(&roundingState)
	}
	d.registers.addAll(&called)
	if s.alias == nil {
		return
	}
	if l := s.alias.LibraryEffects(c, b); l != nil {
		if l.Reads != alias.Nothing {
			d.addAccess(l.Reads, false, false)
		}
		if l.Writes != alias.Nothing {
			d.addAccess(l.Writes, true, false)
		}
	}
}

// allState is all bytes of the state except the fixed ones.
var allState = func() stateBytes {
	var s stateBytes
	s.add(0, int(vex.StateSize))
	return s.minus(&fixedState)
}()

// callEffects returns the effects of a whole call of a context, as its caller sees them.
func (s *sideCache) callEffects(c *specialize.Context) *sideEffects {
	if d := s.functions[c.Number]; d != nil {
		return d
	}
	d := newSideEffects()
	if s.open[c.Number] {
		return d // recursion: the outer call has the effects
	}
	s.open[c.Number] = true
	for _, b := range c.Function.Blocks {
		s.addBlock(d, c, b)
	}
	delete(s.open, c.Number)
	d.own, d.joined = nil, nil
	d.registers = d.registers.minus(&preservedState)
	s.functions[c.Number] = d
	return d
}

// joinEffects adds the effects of a call.
func (s *sideCache) joinEffects(d, o *sideEffects) {
	if d.joined[o] {
		return
	}
	d.joined[o] = true
	s.meter.Add(1 + len(o.reads) + len(o.writes))
	d.reachesEvent, d.mayNotReturn, d.makesThreads = d.reachesEvent || o.reachesEvent, d.mayNotReturn || o.mayNotReturn, d.makesThreads || o.makesThreads
	d.registers.addAll(&o.registers)
	for _, x := range o.reads {
		d.addAccess(x, false, !o.seen[accessKey(x, false, false)])
	}
	for _, x := range o.writes {
		d.addAccess(x, true, !o.seen[accessKey(x, true, false)])
	}
}

// writtenState returns the bytes of the state that a block may write.
func (s *sideCache) writtenState(b *vex.Block) *stateBytes {
	if w := s.effects[b]; w != nil {
		return w
	}
	w := &stateBytes{}
	for _, x := range b.Stmts {
		addStateWrites(b, x, w)
	}
	*w = w.minus(&fixedState)
	s.effects[b] = w
	return w
}

// addStateWrites adds the bytes of the state that a statement may write.
func addStateWrites(b *vex.Block, x vex.Stmt, w *stateBytes) {
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
