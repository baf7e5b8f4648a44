package slice

import (
	"github.com/heddle-dmt/heddle/analyses/alias"
	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/specialize"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// sliceProgramStep slices a step of the program's own code.
func (t *threadSlicer) sliceProgramStep(s *blocktrace.Step) {
	f := t.frame
	if f.skip {
		return
	}
	covers := t.run.CoversOf(f.Context.Function, s.Block)
	t.tempsLive = false
	for i := len(covers) - 1; i >= 0; i-- {
		k := &covers[i]
		if k.First >= s.Done {
			continue
		}
		last := min(k.Last, s.Done)
		at := position(s.Index, i)
		t.reason, t.at = None, at
		if k.Ends && k.Last <= s.Done || s.Exited && last == s.Done {
			t.reason = t.branchReason(f, k.Block)
		}
		outcome := t.reason != None
		if outcome {
			t.markStep(Outcome)
		}
		t.sliceCover(s, k.First, last, outcome)
		if k.Begins {
			f.visits[k.Block.Index] = at
			f.next = k.Block
		}
	}
}

// branchReason returns the reason for which a block's outcome is in the slice.
func (t *threadSlicer) branchReason(f *frameState, b *cfg.Block) Reason {
	if len(b.Next) < 2 && !b.Indirect && !(b.Unknown && b.Jump != vex.JumpRet) {
		return None
	}
	taken := specialize.Successor(b, f.next)
	kept := t.sideReason(f, b, taken)
	if t.outcome != nil {
		t.outcome(f.Context, b, taken, kept != None)
	}
	return kept
}

// sideReason returns the reason for which another outcome at a block's end may matter.
func (t *threadSlicer) sideReason(f *frameState, b *cfg.Block, taken int) Reason {
	if t.mode == TERN {
		return t.eventReason(t.sides.effectsOf(f.Context, b, -1))
	}
	back := noPosition // where the post-dominator was executed
	if f.Last < t.Len() {
		back = position(f.Last, 0) // the end of the function
	}
	if d := b.PostDominator(); d != nil {
		back = f.visits[d.Index]
	}
	if t.isNeededBefore(back) {
		return Between
	}
	d := t.sides.effectsOf(f.Context, b, taken)
	if r := t.eventReason(d); r != None || t.mode == Lower {
		return r
	}
	switch {
	case t.registers.isReadFrom(&d.registers, back):
		return Registers
	case t.mayOverwrite(f, d, back):
		return Memory
	case t.regions.keepsBranch(f.Context, b, taken):
		return Race
	}
	return None
}

// eventReason returns Event if a side may reach events, and Lost if it may not return. If
// the thread is the only one left, only the creation of threads matters.
func (t *threadSlicer) eventReason(d *sideEffects) Reason {
	switch {
	case d.reachesEvent && !t.alone || d.makesThreads && t.alone:
		return Event
	case d.mayNotReturn && !t.alone:
		return Lost
	}
	return None
}

// mayOverwrite reports whether code on the other side may write memory that the slice reads from a position on.
func (t *threadSlicer) mayOverwrite(f *frameState, d *sideEffects, back int) bool {
	if t.space.bytes == 0 {
		return false
	}
	for _, o := range d.own {
		if t.isFrameLive(f, o, back) {
			return true
		}
	}
	for _, s := range d.writes {
		if t.overlappingSets(s).intersects(t.space.sets) {
			return true
		}
	}
	return false
}

// frameReach is the size of the part of a frame that is searched.
const frameReach = 1 << 16

// isFrameLive reports whether a piece of a frame that may be written is live. Where the
// frame lies in memory is not known if its thread began in it: then it may be.
func (t *threadSlicer) isFrameLive(f *frameState, o ownWrite, back int) bool {
	if f.Slot == specialize.UnknownSlot {
		return true
	}
	low, high := max(o.at.Low, -frameReach), min(o.at.High, 0)
	if o.at.IsSingle() {
		return t.space.isReadFrom(f.Slot+uint64(low), o.size, t.Place, back)
	}
	return low <= high && t.space.isReadFrom(f.Slot+uint64(low), int(high-low)+o.size, t.Place, back)
}

// overlappingSets returns the sets that may have an address in common with a set.
func (w *runSlicer) overlappingSets(s alias.Set) sparseSet {
	for int(s) >= len(w.overlaps) {
		w.overlaps = append(w.overlaps, nil)
	}
	b := w.overlaps[s]
	if b == nil {
		for _, k := range w.alias.Overlapping(s) {
			b.append(int(k))
		}
		w.overlaps[s] = b
	}
	return b
}

// blockSets returns the sets of the accesses of a step's block, site by site.
func (t *threadSlicer) blockSets(f *frameState, b *blocktrace.Block) []alias.Set {
	key := storeKey{f.Context.Number, b.Number}
	if list, ok := t.stores[key]; ok {
		return list
	}
	list := make([]alias.Set, len(b.Sites))
	if t.alias != nil {
		findSiteSets(t.run, t.alias, f.Context, b, list)
	}
	t.stores[key] = list
	return list
}

// findSiteSets finds the sets of the sites of a block: the accesses of one instruction are
// in the same order in both.
func findSiteSets(r *specialize.CallTrace, a *alias.Result, c *specialize.Context, b *blocktrace.Block, list []alias.Set) {
	nth := map[uint64]int{}
	for i := range b.Sites {
		pc := instructionAddr(b.Block, b.Sites[i].Stmt)
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

// instructionAddr returns the instruction of a statement.
func instructionAddr(b *vex.Block, stmt int) uint64 {
	for i := stmt; i >= 0; i-- {
		if m, ok := b.Stmts[i].(*vex.Mark); ok {
			return m.Addr
		}
	}
	return b.Addr
}

// sliceCover slices the statements of a block of the program.
func (t *threadSlicer) sliceCover(s *blocktrace.Step, first, last int, outcome bool) {
	place := t.mode != Lower && t.mode != TERN && t.regions.keepsAddresses(t.frame.Context, s.Block)
	if !outcome && !place && !t.tempsLive && !t.mayTouchLive(s, first, last) {
		t.keepDivisions(s, first, last)
		return
	}
	t.clearTemps(s.Block)
	b := &stepSlicer{threadSlicer: t, step: s, keepOutcome: outcome, keepAddresses: place}
	if t.alias != nil {
		b.sets = t.blockSets(t.frame, s.Block)
	}
	b.sliceStatements(first, last)
}

// clearTemps makes all temporaries of a block dead, before the first one is used.
func (t *threadSlicer) clearTemps(b *blocktrace.Block) {
	if t.tempsLive {
		return
	}
	t.tempsLive = true
	if n := len(b.Types); len(t.temps) < n {
		t.temps = make([]int, 2*n)
	}
	clear(t.temps[:len(b.Types)])
}

// mayTouchLive reports whether a step may write live registers or memory.
func (t *threadSlicer) mayTouchLive(s *blocktrace.Step, first, last int) bool {
	if t.mode == Lower || t.mode == TERN {
		return false
	}
	if t.stateWrites(s.Block).intersects(&t.registers.stateBytes) {
		return true
	}
	if t.space.bytes == 0 {
		return false
	}
	var sets []alias.Set
	for i := range s.Addrs {
		x := &s.Block.Sites[i]
		if !x.Store || x.Stmt < first || x.Stmt >= last || s.Addrs[i] == blocktrace.NoAddr {
			continue
		}
		if t.space.anyLive(s.Addrs[i], x.Size) {
			return true
		}
		if sets == nil {
			sets = t.blockSets(t.frame, s.Block)
		}
		if t.mayWriteLive(sets[i]) {
			return true
		}
	}
	return false
}

// mayWriteLive reports whether a store to a set, which wrote nothing live, may do so in
// another run.
func (t *threadSlicer) mayWriteLive(s alias.Set) bool {
	if at, _, own := t.alias.OwnFrame(s, t.frame.Context); own && at.IsSingle() {
		return false
	}
	return t.overlappingSets(s).intersects(t.space.sets)
}

// keepDivisions keeps the constraints that divisions do not trap.
func (t *threadSlicer) keepDivisions(s *blocktrace.Step, first, last int) {
	for i := len(s.Constraints) - 1; i >= 0; i-- {
		c := &s.Constraints[i]
		if c.Kind == concolic.Division && c.Stmt >= first && c.Stmt < last && t.mode != Lower && t.mode != TERN && !t.alone {
			t.keepConstraint(c)
		}
	}
}
