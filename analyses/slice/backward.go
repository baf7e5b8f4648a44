package slice

import (
	"github.com/heddle-dmt/heddle/analyses/alias"
	"github.com/heddle-dmt/heddle/analyses/path"
	"github.com/heddle-dmt/heddle/analyses/symbolic/exec"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// backward goes over statements of a step from the last to the first.
type backward struct {
	*walker
	step    *path.Step
	outcome bool        // where it goes is in the slice
	place   bool        // and so are the addresses that it accesses
	sets    []alias.Set // of the block's sites
	library alias.Set   // of a library's loads, where there are no others
	any     bool
	site    int // behind the one that is next
}

// run tells whether something that is computed is in the slice.
func (b *backward) run(first, last int) bool {
	block := b.step.Block
	if b.outcome && last == len(block.Stmts) {
		b.use(block.Next)
		b.keepAt(last, func(exec.Kind) bool { return true })
	}
	b.site = len(b.step.Addrs)
	counted := false
	for i := last - 1; i >= first; i-- {
		hit := b.statement(i, block.Stmts[i])
		b.any = b.any || hit
		counted = counted || hit
		if _, ok := block.Stmts[i].(*vex.Mark); ok && counted {
			b.slice.Stats.Sliced++
			counted = false
		}
	}
	if b.any {
		b.mark(Value)
	}
	return b.any
}

// use makes an operand live.
func (b *backward) use(e vex.Expr) {
	switch e := e.(type) {
	case *vex.Read:
		b.temps[e.Temp] = true
	case *vex.Get:
		b.read(e.Offset, e.Type.Bytes())
	}
}

// read makes bytes of the state live.
func (b *backward) read(offset, n int) {
	if !fixed.any(offset, n) {
		b.registers.add(offset, n)
	}
}

// keepAt keeps the constraints of a statement that are of some kinds.
func (b *backward) keepAt(stmt int, which func(exec.Kind) bool) {
	for i := len(b.step.Constraints) - 1; i >= 0; i-- {
		if c := &b.step.Constraints[i]; c.Stmt == stmt && which(c.Kind) {
			b.keep(c)
		}
	}
}

func anyKind(exec.Kind) bool { return true }

func isAddress(k exec.Kind) bool { return k == exec.Address }

func isDivision(k exec.Kind) bool { return k == exec.Division }

// statement goes over a statement and tells whether it is in the slice for what it
// computes.
func (b *backward) statement(i int, s vex.Stmt) bool {
	switch s := s.(type) {
	case *vex.Put:
		if b.registers.take(s.Offset, b.step.Block.TypeOf(s.Data).Bytes()) {
			b.use(s.Data)
			return true
		}
	case *vex.Assign:
		return b.assign(i, s)
	case *vex.Store:
		return b.store(i, s.Addr, s.Data, s.Guard)
	case *vex.Exit:
		if b.outcome {
			b.use(s.Guard)
			b.keepAt(i, anyKind)
			return true
		}
	case *vex.PutI:
		if b.registers.any(s.Array.Base, s.Array.Count*s.Array.Elem.Bytes()) {
			b.use(s.Index)
			b.use(s.Data)
			b.keepAt(i, anyKind)
			return true
		}
	case *vex.LoadG:
		return b.guarded(i, s)
	case *vex.CAS:
		return b.exchange(i, s)
	case *vex.Dirty:
		return b.dirty(i, s)
	}
	return false
}

func (b *backward) assign(i int, s *vex.Assign) bool {
	wanted := b.temps[s.Temp]
	if l, ok := s.Data.(*vex.Load); ok {
		return b.load(i, l.Addr, wanted)
	}
	if !b.alone {
		b.keepAt(i, isDivision)
	}
	if !wanted {
		return false
	}
	b.temps[s.Temp] = false
	b.keepAt(i, anyKind)
	b.uses(s.Data)
	return true
}

// uses makes live what an expression is computed from.
func (b *backward) uses(e vex.Expr) {
	switch e := e.(type) {
	case *vex.Operation:
		for _, x := range e.Args {
			b.use(x)
		}
	case *vex.ITE:
		b.use(e.Cond)
		b.use(e.Then)
		b.use(e.Else)
	case *vex.Call:
		for _, x := range e.Args {
			b.use(x)
		}
	case *vex.GetI:
		b.read(e.Array.Base, e.Array.Count*e.Array.Elem.Bytes())
		b.use(e.Index)
	default:
		b.use(e)
	}
}

// back is the site before the one that was last, if it is of a statement.
func (b *backward) back(stmt int) int {
	for b.site > 0 && b.step.Block.Sites[b.site-1].Stmt > stmt {
		b.site--
	}
	if b.site > 0 && b.step.Block.Sites[b.site-1].Stmt == stmt {
		b.site--
		return b.site
	}
	return -1
}

// set is that of a site.
func (b *backward) set(site int) alias.Set {
	if b.sets == nil {
		return b.library
	}
	return b.sets[site]
}

// load makes live what is loaded, and from where.
func (b *backward) load(i int, addr vex.Expr, wanted bool) bool {
	n := b.back(i)
	if wanted || b.place {
		b.use(addr)
		b.keepAt(i, isAddress)
	}
	if !wanted {
		return false
	}
	if n >= 0 && b.step.Addrs[n] != path.NoAddr {
		b.space.add(b.step.Addrs[n], b.step.Block.Sites[n].Size, b.set(n))
	}
	b.keepAt(i, anyKind)
	return true
}

// store goes over a store: it is in the slice if it writes what is live, and its
// address is if it may.
func (b *backward) store(i int, addr, data, guard vex.Expr) bool {
	n := b.back(i)
	if n < 0 {
		return false
	}
	hit := b.step.Addrs[n] != path.NoAddr && b.space.kill(b.step.Addrs[n], b.step.Block.Sites[n].Size)
	if hit {
		b.use(data)
	}
	if hit || b.place || b.sets != nil && b.space.bytes > 0 && b.elsewhere(b.sets[n]) {
		if !hit {
			b.slice.Stats.Stores++
		}
		b.use(addr)
		if guard != nil {
			b.use(guard)
		}
		b.keepAt(i, isAddress)
		b.mark(Place)
	}
	if hit {
		b.keepAt(i, anyKind)
	}
	return hit
}

func (b *backward) guarded(i int, s *vex.LoadG) bool {
	wanted := b.temps[s.Temp]
	b.temps[s.Temp] = false
	if b.load(i, s.Addr, wanted) {
		b.use(s.Guard)
		b.use(s.Alt)
		return true
	}
	return false
}

// exchange goes over a compare-and-exchange: its sites are loads and then stores.
func (b *backward) exchange(i int, s *vex.CAS) bool {
	hit := b.temps[s.OldLo] || s.OldHi != vex.NoTemp && b.temps[s.OldHi]
	for n := b.back(i); n >= 0; n = b.back(i) {
		x, at := &b.step.Block.Sites[n], b.step.Addrs[n]
		if x.Store && at != path.NoAddr {
			hit = b.space.kill(at, x.Size) || hit
		}
		if !x.Store && hit && at != path.NoAddr {
			b.space.add(at, x.Size, b.set(n))
		}
	}
	if hit || b.place {
		b.use(s.Addr)
		b.keepAt(i, isAddress)
	}
	if !hit {
		return false
	}
	b.keepAt(i, anyKind)
	for _, e := range []vex.Expr{s.ExpectedLo, s.ExpectedHi, s.DataLo, s.DataHi} {
		if e != nil {
			b.use(e)
		}
	}
	return true
}

func (b *backward) dirty(i int, s *vex.Dirty) bool {
	hit := s.Temp != vex.NoTemp && b.temps[s.Temp]
	var w bytesOfState
	writesOf(b.step.Block.Block, s, &w)
	hit = w.meets(&b.registers) || hit
	for n := b.back(i); n >= 0; n = b.back(i) {
		x, at := &b.step.Block.Sites[n], b.step.Addrs[n]
		if at == path.NoAddr {
			continue
		}
		if x.Store {
			hit = b.space.kill(at, x.Size) || hit
		} else if hit {
			b.space.add(at, x.Size, b.set(n))
		}
	}
	if !hit {
		return false
	}
	b.keepAt(i, anyKind)
	b.use(s.Guard)
	for _, e := range s.Args {
		b.use(e)
	}
	if s.MemAddr != nil {
		b.use(s.MemAddr)
	}
	for _, fx := range s.State {
		if fx.Effect != vex.EffectWrite {
			b.read(fx.Offset, fx.Size)
		}
	}
	return true
}
