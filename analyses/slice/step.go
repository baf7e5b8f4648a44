package slice

import (
	"github.com/heddle-dmt/heddle/analyses/alias"
	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// stepSlicer slices the statements of a step, from the last to the first.
type stepSlicer struct {
	*threadSlicer
	step          *blocktrace.Step
	keepOutcome   bool        // the successor is in the slice
	keepAddresses bool        // the addresses of the accesses are in the slice
	sets          []alias.Set // of the block's sites
	library       alias.Set   // set of the loads of a library, which have no sets of their own
	any           bool
	site          int // index after the next site
}

// sliceStatements slices a part of a step.
func (b *stepSlicer) sliceStatements(first, last int) {
	block := b.step.Block
	if b.keepOutcome && last == len(block.Stmts) {
		b.useOperand(block.Next)
		b.keepConstraintsAt(last, func(concolic.Kind) bool { return true })
	}
	b.site = len(b.step.Addrs)
	counted := false
	for i := last - 1; i >= first; i-- {
		hit := b.sliceStatement(i, block.Stmts[i])
		b.any = b.any || hit
		counted = counted || hit
		if _, ok := block.Stmts[i].(*vex.Mark); ok && counted {
			b.slice.Stats.Sliced++
			counted = false
		}
	}
	if b.any {
		b.markStep(Value)
	}
}

// killTemp makes a temporary dead, and reports whether it was live. Other blocks of the program in the step may read it.
func (b *stepSlicer) killTemp(n vex.Temp) bool {
	until := b.temps[n] - 1
	b.temps[n] = 0
	return until >= 0 && b.need(until, true)
}

// needState records a write of bytes of the state, and reports whether one is live. They stay live.
func (b *stepSlicer) needState(w *stateBytes) bool {
	hit := w.intersects(&b.registers.stateBytes)
	for slot := 0; hit && slot < stateSlots; slot++ {
		if !w.isEmpty(slot) {
			b.need(b.registers.lastUse(slot*8, 8), true)
		}
	}
	return hit
}

// useOperand makes an operand live.
func (b *stepSlicer) useOperand(e vex.Expr) {
	switch e := e.(type) {
	case *vex.Read:
		b.temps[e.Temp] = max(b.temps[e.Temp], b.at+1)
	case *vex.Get:
		b.useState(e.Offset, e.Type.Bytes())
	}
}

// useState makes bytes of the state live.
func (b *stepSlicer) useState(offset, n int) {
	if !fixedState.containsAny(offset, n) {
		b.registers.use(offset, n, b.at)
	}
}

// keepConstraintsAt keeps the constraints of a statement that are of some kinds.
func (b *stepSlicer) keepConstraintsAt(stmt int, which func(concolic.Kind) bool) {
	for i := len(b.step.Constraints) - 1; i >= 0; i-- {
		if c := &b.step.Constraints[i]; c.Stmt == stmt && which(c.Kind) {
			b.keepConstraint(c)
		}
	}
}

func anyKind(concolic.Kind) bool { return true }

func isAddress(k concolic.Kind) bool { return k == concolic.Address }

func isDivision(k concolic.Kind) bool { return k == concolic.Division }

// sliceStatement slices a statement and reports whether a value that it computes is in the
// slice.
func (b *stepSlicer) sliceStatement(i int, s vex.Stmt) bool {
	switch s := s.(type) {
	case *vex.Put:
		if b.need(b.registers.kill(s.Offset, b.step.Block.TypeOf(s.Data).Bytes())) {
			b.useOperand(s.Data)
			return true
		}
	case *vex.Assign:
		return b.sliceAssign(i, s)
	case *vex.Store:
		return b.sliceStore(i, s.Addr, s.Data, s.Guard)
	case *vex.Exit:
		if b.keepOutcome {
			b.useOperand(s.Guard)
			b.keepConstraintsAt(i, anyKind)
			return true
		}
	case *vex.PutI:
		if b.registers.containsAny(s.Array.Base, s.Array.Count*s.Array.Elem.Bytes()) {
			b.need(b.registers.lastUse(s.Array.Base, s.Array.Count*s.Array.Elem.Bytes()), true)
			b.useOperand(s.Index)
			b.useOperand(s.Data)
			b.keepConstraintsAt(i, anyKind)
			return true
		}
	case *vex.LoadG:
		return b.sliceGuardedLoad(i, s)
	case *vex.CAS:
		return b.sliceExchange(i, s)
	case *vex.Dirty:
		return b.sliceDirty(i, s)
	}
	return false
}

func (b *stepSlicer) sliceAssign(i int, s *vex.Assign) bool {
	wanted := b.killTemp(s.Temp)
	if l, ok := s.Data.(*vex.Load); ok {
		return b.sliceLoad(i, l.Addr, wanted)
	}
	if !b.alone {
		b.keepConstraintsAt(i, isDivision)
	}
	if !wanted {
		return false
	}
	b.keepConstraintsAt(i, anyKind)
	b.useExpr(s.Data)
	return true
}

// useExpr makes the operands of an expression live.
func (b *stepSlicer) useExpr(e vex.Expr) {
	switch e := e.(type) {
	case *vex.Operation:
		for _, x := range e.Args {
			b.useOperand(x)
		}
	case *vex.ITE:
		b.useOperand(e.Cond)
		b.useOperand(e.Then)
		b.useOperand(e.Else)
	case *vex.Call:
		for _, x := range e.Args {
			b.useOperand(x)
		}
	case *vex.GetI:
		b.useState(e.Array.Base, e.Array.Count*e.Array.Elem.Bytes())
		b.useOperand(e.Index)
	default:
		b.useOperand(e)
	}
}

// previousSite returns the site before the last one, if it belongs to a statement;
// otherwise -1.
func (b *stepSlicer) previousSite(stmt int) int {
	for b.site > 0 && b.step.Block.Sites[b.site-1].Stmt > stmt {
		b.site--
	}
	if b.site > 0 && b.step.Block.Sites[b.site-1].Stmt == stmt {
		b.site--
		return b.site
	}
	return -1
}

// siteSet returns the set of a site.
func (b *stepSlicer) siteSet(site int) alias.Set {
	if b.sets == nil {
		return b.library
	}
	return b.sets[site]
}

// sliceLoad makes the loaded memory and its address live.
func (b *stepSlicer) sliceLoad(i int, addr vex.Expr, wanted bool) bool {
	n := b.previousSite(i)
	if wanted || b.keepAddresses {
		b.useOperand(addr)
		b.keepConstraintsAt(i, isAddress)
	}
	if !wanted {
		return false
	}
	if n >= 0 && b.step.Addrs[n] != blocktrace.NoAddr {
		b.space.addBytes(b.step.Addrs[n], b.step.Block.Sites[n].Size, b.siteSet(n), b.Place, b.at)
	}
	b.keepConstraintsAt(i, anyKind)
	return true
}

// sliceStore slices a store: it is in the slice if it writes live memory; its address is,
// too, if it may do so.
func (b *stepSlicer) sliceStore(i int, addr, data, guard vex.Expr) bool {
	n := b.previousSite(i)
	if n < 0 {
		return false
	}
	hit := b.step.Addrs[n] != blocktrace.NoAddr && b.need(b.space.killBytes(b.step.Addrs[n], b.step.Block.Sites[n].Size, b.Place))
	if hit {
		b.useOperand(data)
	}
	if hit || b.keepAddresses || b.sets != nil && b.space.bytes > 0 && b.mayWriteLive(b.sets[n]) {
		if !hit {
			b.slice.Stats.Stores++
		}
		b.useOperand(addr)
		if guard != nil {
			b.useOperand(guard)
		}
		b.keepConstraintsAt(i, isAddress)
		b.markStep(Address)
	}
	if hit {
		b.keepConstraintsAt(i, anyKind)
	}
	return hit
}

func (b *stepSlicer) sliceGuardedLoad(i int, s *vex.LoadG) bool {
	wanted := b.killTemp(s.Temp)
	if b.sliceLoad(i, s.Addr, wanted) {
		b.useOperand(s.Guard)
		b.useOperand(s.Alt)
		return true
	}
	return false
}

// sliceExchange slices a compare-and-exchange: its sites are loads and then stores.
func (b *stepSlicer) sliceExchange(i int, s *vex.CAS) bool {
	hit := b.killTemp(s.OldLo)
	hit = s.OldHi != vex.NoTemp && b.killTemp(s.OldHi) || hit
	for n := b.previousSite(i); n >= 0; n = b.previousSite(i) {
		x, at := &b.step.Block.Sites[n], b.step.Addrs[n]
		if x.Store && at != blocktrace.NoAddr {
			hit = b.need(b.space.killBytes(at, x.Size, b.Place)) || hit
		}
		if !x.Store && hit && at != blocktrace.NoAddr {
			b.space.addBytes(at, x.Size, b.siteSet(n), b.Place, b.at)
		}
	}
	if hit || b.keepAddresses {
		b.useOperand(s.Addr)
		b.keepConstraintsAt(i, isAddress)
	}
	if !hit {
		return false
	}
	b.keepConstraintsAt(i, anyKind)
	for _, e := range []vex.Expr{s.ExpectedLo, s.ExpectedHi, s.DataLo, s.DataHi} {
		if e != nil {
			b.useOperand(e)
		}
	}
	return true
}

func (b *stepSlicer) sliceDirty(i int, s *vex.Dirty) bool {
	hit := s.Temp != vex.NoTemp && b.killTemp(s.Temp)
	var w stateBytes
	addStateWrites(b.step.Block.Block, s, &w)
	hit = b.needState(&w) || hit
	for n := b.previousSite(i); n >= 0; n = b.previousSite(i) {
		x, at := &b.step.Block.Sites[n], b.step.Addrs[n]
		if at == blocktrace.NoAddr {
			continue
		}
		if x.Store {
			hit = b.need(b.space.killBytes(at, x.Size, b.Place)) || hit
		} else if hit {
			b.space.addBytes(at, x.Size, b.siteSet(n), b.Place, b.at)
		}
	}
	if !hit {
		return false
	}
	b.keepConstraintsAt(i, anyKind)
	b.useOperand(s.Guard)
	for _, e := range s.Args {
		b.useOperand(e)
	}
	if s.MemAddr != nil {
		b.useOperand(s.MemAddr)
	}
	for _, fx := range s.State {
		if fx.Effect != vex.EffectWrite {
			b.useState(fx.Offset, fx.Size)
		}
	}
	return true
}
