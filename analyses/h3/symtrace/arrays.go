package symtrace

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// maxElements is how many elements an array may have.
const maxElements = 1 << 14

// baseObject finds the one object into which a constant of an address points.
func (b *pass) baseObject(at *symbolic.Expr) (Object, bool) {
	var found []Object
	sure := false
	var visit func(e *symbolic.Expr, depth int)
	visit = func(e *symbolic.Expr, depth int) {
		switch {
		case depth > 8:
		case e.IsConst():
			if o, ok := b.objectAt(e.Value.Lo); ok {
				_, named := b.image.variableAt(e.Value.Lo)
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
	if !sure && !b.pointsInto(at, o) {
		if _, known := b.arrays[o.Addr]; known {
			b.rejectArray(o.Addr)
		}
		return Object{}, false
	}
	return o, true
}

// pointsInto reports whether an address lies in an object under all values that its symbol is known
// to have: a constant in the middle of a piece of memory may come from a pointer to another piece,
// with a negative offset.
func (b *pass) pointsInto(at *symbolic.Expr, o Object) bool {
	all := b.possibleValues(at)
	return len(all) > 0 && !slices.ContainsFunc(all, func(addr uint64) bool { return addr-o.Addr >= o.Size })
}

// declareArray makes an object an array of elements of a size; false: it cannot be one.
func (b *pass) declareArray(o Object, size int) bool {
	if b.notArrays[o.Addr] || size&(size-1) != 0 || size > 8 || o.Size/uint64(size) > maxElements || o.Size < uint64(size) {
		return false
	}
	if a, ok := b.arrays[o.Addr]; ok {
		if a.elem != size {
			b.rejectArray(o.Addr)
		}
		return a.elem == size
	}
	b.arrays[o.Addr] = array{o, size}
	for g := o.Addr / symmem.Granule; g <= (o.Addr+o.Size-1)/symmem.Granule; g++ {
		b.sharing.Shared[g] = true
	}
	b.arraysChanged = true
	return true
}

// targetOf is the element of an array at an address, or the address itself.
func (b *pass) targetOf(addr uint64, size int) target {
	o, ok := b.arrayAt(addr)
	if !ok {
		return target{addr: addr}
	}
	a := b.arrays[o]
	if offset := addr - o; size == a.elem && offset%uint64(size) == 0 {
		return target{o, b.pool.Word(offset/uint64(size), 64)}
	}
	b.rejectArray(o)
	return target{addr: addr}
}

// rejectArray notes that an object is accessed in pieces of several sizes.
func (b *pass) rejectArray(o uint64) {
	b.notArrays[o], b.arraysChanged = true, true
	delete(b.arrays, o)
}

// arrayAt finds the array at an address.
func (b *pass) arrayAt(addr uint64) (uint64, bool) {
	for o, a := range b.arrays { // at most one has it
		if addr >= o && addr < o+a.object.Size {
			return o, true
		}
	}
	return 0, false
}

type array struct {
	object Object
	elem   int
}
