package symtrace

import (
	"math/bits"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// where is what an access goes to: an address, or an element of an array.
type where struct {
	addr  uint64
	index *symbolic.Expr
}

// load is what a load gets.
func (r *round) load(at *symbolic.Expr, size int) *symbolic.Expr {
	to, ok := r.resolve(at, size)
	if !ok {
		return r.b.pool.Word(0, 8*size)
	}
	return r.read(to, size)
}

// maxOwn is the size of expressions of its own that a thread reads back from shared
// memory: a larger one gets a symbol, so that expressions do not grow without end.
const maxOwn = 16

func (r *round) read(to where, size int) *symbolic.Expr {
	r.access(to, size)
	r.touched(to.addr, size, false)
	if to.index == nil {
		have := r.settled(r.mem.load(r.b.pool, to.addr, size))
		own := !r.block.locked[r.n] && have.Size() <= maxOwn && r.knows(to.addr, size)
		if own || !r.b.sharing.shared(to.addr, size) {
			return have
		}
	}
	s := r.symbol(8 * size)
	r.b.bits[s.Name], r.b.places[s.Name] = s.Bits, location{to.addr, size}
	if r.block.locked[r.n] {
		r.lockedAddr, r.lockedRead = to.addr, s
		return s
	}
	delete(r.b.guesses, s.Name)
	delete(r.b.seen, s.Name)
	if to.index == nil {
		if have := r.mem.load(r.b.pool, to.addr, size); have.IsConst() {
			r.b.seen[s.Name] = have.Value
		}
	}
	if to.index == nil && !r.b.options.Plain {
		r.b.guess(s.Name, to.addr, size)
	}
	r.add(model.Event{Kind: model.Read, Addr: to.addr, Size: size, Index: to.index, Symbol: s}, false)
	r.coords[len(r.coords)-1].Accesses = r.inside()
	return s
}

// access counts an access of the present instruction.
func (r *round) access(to where, size int) {
	r.accesses++
	r.pieces++
	if to.index == nil && to.addr/event.LineSize != (to.addr+uint64(size)-1)/event.LineSize {
		r.pieces++
	}
}

// inside is how many accesses of the present instruction are done, if more are to come between
// which others may act.
func (r *round) inside() uint8 {
	if r.block.locked[r.n] || r.accesses == r.block.accesses[r.n] {
		return 0
	}
	return uint8(r.pieces)
}

func (r *round) store(at, e *symbolic.Expr) {
	if e.Bits%8 != 0 {
		e = r.b.pool.ZeroExt(e, (e.Bits+7)/8*8)
	}
	if to, ok := r.resolve(at, e.Bits/8); ok {
		r.write(to, e)
	}
}

func (r *round) write(to where, e *symbolic.Expr) {
	size := e.Bits / 8
	r.access(to, size)
	r.touched(to.addr, size, true)
	if to.index == nil {
		r.stored = append(r.stored, storedBefore{to.addr, r.mem.load(r.b.pool, to.addr, size)})
		r.mem.store(to.addr, e)
		if !r.b.sharing.shared(to.addr, size) {
			return
		}
	}
	r.add(model.Event{Kind: model.Write, Addr: to.addr, Size: size, Index: to.index, Value: r.settled(e)}, false)
	r.coords[len(r.coords)-1].Accesses = r.inside()
}

// lowest is the first address at which a program can have memory (vm.mmap_min_addr). A
// thread that goes on has not followed a null pointer.
const lowest = 1 << 16

// goesOn tells that the path has an instruction behind the present one.
func (r *round) goesOn() bool {
	_, more := r.path.pc(r.path.after(r.from, r.n))
	return more
}

// resolve finds what an access goes to; false: there is an error.
func (r *round) resolve(at *symbolic.Expr, size int) (where, bool) {
	if r.err != nil {
		return where{}, false
	}
	if at = r.settled(at); at.IsConst() {
		if r.faulting && !r.b.image.mapped(at.Value.Lo) && !r.b.allocated(at.Value.Lo) {
			r.err = errFault{}
			return where{}, false
		}
		if at.Value.Lo < lowest && r.goesOn() {
			r.err = errWrong{why: "it would fault"}
			return where{}, false
		}
		return r.b.element(at.Value.Lo, size), true
	}
	if r.faulting || r.b.options.Fault && !r.goesOn() {
		r.err = errFault{r.b.unmapped(at)}
		return where{}, false
	}
	o, ok := r.b.based(at)
	if !ok || r.strayed > 0 || !r.b.array(o, size) {
		r.choose1(at)
		return where{}, false
	}
	p := r.b.pool
	index := p.LShr(p.Sub(at, p.Word(o.Addr, 64)), p.Word(uint64(bits.TrailingZeros(uint(size))), 64))
	if count := o.Size / uint64(size); !r.b.below(index, count) {
		if r.err = r.assume(p.ULT(index, p.Word(count, 64))); r.err != nil {
			return where{}, false
		}
	}
	return where{o.Addr, index}, true
}

// based finds the one object into which a constant of an address points.
func (b *builder) based(at *symbolic.Expr) (Object, bool) {
	var found []Object
	sure := false
	var visit func(e *symbolic.Expr, depth int)
	visit = func(e *symbolic.Expr, depth int) {
		switch {
		case depth > 8:
		case e.IsConst():
			if o, ok := b.object(e.Value.Lo); ok {
				_, named := b.image.variable(e.Value.Lo)
				found, sure = append(found, o), named || o.Addr == e.Value.Lo
			}
		case e.Op == symbolic.Add:
			visit(e.A, depth+1)
			visit(e.B, depth+1)
		}
	}
	visit(at, 0)
	if len(found) != 1 {
		return Object{}, false
	}
	o := found[0]
	if !sure && !b.within(at, o) {
		if _, known := b.arrays[o.Addr]; known {
			b.noArray(o.Addr)
		}
		return Object{}, false
	}
	return o, true
}

// within tells that an address is in an object under all values that its symbol is known
// to have: a constant in the middle of a piece of memory may be what is left of a pointer to
// another, with a negative offset.
func (b *builder) within(at *symbolic.Expr, o Object) bool {
	all := b.possible(at)
	return len(all) > 0 && !slices.ContainsFunc(all, func(addr uint64) bool { return addr-o.Addr >= o.Size })
}

// maxElements is how many elements an array may have.
const maxElements = 1 << 14

// array makes an object an array of elements of a size; false: it is none.
func (b *builder) array(o Object, size int) bool {
	if b.plain[o.Addr] || size&(size-1) != 0 || size > 8 || o.Size/uint64(size) > maxElements || o.Size < uint64(size) {
		return false
	}
	if a, ok := b.arrays[o.Addr]; ok {
		if a.elem != size {
			b.noArray(o.Addr)
		}
		return a.elem == size
	}
	b.arrays[o.Addr] = arrayOf{o, size}
	for g := o.Addr / granule; g <= (o.Addr+o.Size-1)/granule; g++ {
		b.sharing.known[g] = true
	}
	b.grew = true
	return true
}

// element is the element of an array at an address, or the address itself.
func (b *builder) element(addr uint64, size int) where {
	o, ok := b.inArray(addr)
	if !ok {
		return where{addr: addr}
	}
	a := b.arrays[o]
	if offset := addr - o; size == a.elem && offset%uint64(size) == 0 {
		return where{o, b.pool.Word(offset/uint64(size), 64)}
	}
	b.noArray(o)
	return where{addr: addr}
}

// noArray notes that an object is accessed in pieces of several sizes.
func (b *builder) noArray(o uint64) {
	b.plain[o], b.grew = true, true
	delete(b.arrays, o)
}

// inArray finds the array at an address.
func (b *builder) inArray(addr uint64) (uint64, bool) {
	for o, a := range b.arrays { // at most one has it
		if addr >= o && addr < o+a.object.Size {
			return o, true
		}
	}
	return 0, false
}

// guarded is a load with a condition.
func (r *round) guarded(s *vex.LoadG) {
	if !r.holds(r.value(s.Guard)) {
		r.temps[s.Temp] = r.value(s.Alt)
		return
	}
	e, to := r.load(r.value(s.Addr), s.Cvt.Type().Bytes()), r.block.Types[s.Temp].Bits()
	if s.Cvt.Signed() {
		r.temps[s.Temp] = r.b.pool.SignExt(e, to)
	} else {
		r.temps[s.Temp] = r.b.pool.ZeroExt(e, to)
	}
}

// exchange is a locked instruction: it reads and writes as one.
func (r *round) exchange(s *vex.CAS) {
	if s.ExpectedHi != nil {
		r.fail("a compare-and-exchange of 16 bytes depends on what is not known")
		return
	}
	p := r.b.pool
	size := r.block.Types[s.OldLo].Bytes()
	to, ok := r.resolve(r.value(s.Addr), size)
	if !ok {
		r.temps[s.OldLo] = p.Word(0, 8*size)
		return
	}
	expected, data := r.value(s.ExpectedLo), r.value(s.DataLo)
	if to.index == nil && !r.b.sharing.shared(to.addr, size) {
		old := r.read(to, size)
		r.temps[s.OldLo] = old
		r.write(to, p.Ite(p.Eq(old, expected), data, old))
		r.add(model.Event{Kind: model.Fence}, false)
		return
	}
	old := r.lockedRead
	if old == nil || old.Bits != 8*size || r.lockedAddr != to.addr {
		old = r.read(to, size)
	}
	r.temps[s.OldLo] = old
	value := r.settled(p.Ite(p.Eq(old, expected), data, old))
	r.touched(to.addr, size, true)
	if to.index == nil {
		r.stored = append(r.stored, storedBefore{to.addr, r.mem.load(p, to.addr, size)})
		r.mem.store(to.addr, value)
	}
	r.add(model.Event{Kind: model.Update, Addr: to.addr, Size: size, Index: to.index, Symbol: old, Value: value}, false)
}

// errFault tells that an instruction faults, if the condition holds.
type errFault struct{ condition *symbolic.Expr }

func (errFault) Error() string { return "it faults" }

// unmapped is that there is no memory at an address.
func (b *builder) unmapped(at *symbolic.Expr) *symbolic.Expr {
	p, all := b.pool, b.pool.Bool(true)
	for _, m := range b.image.Mapped {
		inside := p.ULT(p.Sub(at, p.Word(m.Start, 64)), p.Word(m.End-m.Start, 64))
		all = p.And(all, p.Not(inside))
	}
	return all
}
