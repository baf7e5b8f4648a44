package alias

import (
	"strings"
	"sync"

	"github.com/heddle-dmt/heddle/analyses/vex"
)

// evaluation is of one block.
type evaluation struct {
	*analysis
	node     node
	block    *vex.Block
	state    *state
	pc       uint64
	accesses []rawAccess
	products map[vex.Temp]product
	held     [vectors]product // by general register
}

func (e *evaluation) run() {
	if len(e.temps) < len(e.block.Types) {
		e.temps = make([]Value, 2*len(e.block.Types))
	}
	for _, s := range e.block.Stmts {
		e.statement(s)
	}
}

func (e *evaluation) access(at Value, size int, store, atomic bool) {
	e.accesses = append(e.accesses, rawAccess{e.pc, at, size, store, atomic})
}

func (e *evaluation) statement(s vex.Stmt) {
	switch s := s.(type) {
	case *vex.Mark:
		e.pc = s.Addr
	case *vex.Put:
		e.put(s.Offset, e.block.TypeOf(s.Data).Bytes(), e.value(s.Data))
		e.hold(s)
	case *vex.Assign:
		e.temps[s.Temp] = e.value(s.Data)
		e.multiple(s)
	case *vex.Store:
		at := e.value(s.Addr)
		e.access(at, e.block.TypeOf(s.Data).Bytes(), true, false)
		e.store(at, e.block.TypeOf(s.Data).Bytes(), e.value(s.Data))
	case *vex.LoadG:
		size := s.Cvt.Type().Bytes()
		at := e.value(s.Addr)
		e.access(at, size, false, false)
		e.temps[s.Temp] = join(e.load(at, size, e.node), e.value(s.Alt))
	case *vex.CAS:
		e.exchange(s)
	case *vex.Dirty:
		e.dirty(s)
	}
}

func (e *evaluation) exchange(s *vex.CAS) {
	at, size := e.value(s.Addr), e.block.Types[s.OldLo].Bytes()
	old := e.load(at, size, e.node)
	e.temps[s.OldLo] = old
	e.access(at, size, false, true)
	if s.DataHi != nil {
		e.temps[s.OldHi] = top
		e.access(add(at, numeric(Exactly(int64(size)))), size, false, true)
		e.store(at, 2*size, top)
	}
	e.access(at, size, true, true)
	e.store(at, size, e.value(s.DataLo))
	if s.DataHi != nil {
		e.access(add(at, numeric(Exactly(int64(size)))), size, true, true)
	}
}

func (e *evaluation) dirty(s *vex.Dirty) {
	if s.Temp != vex.NoTemp {
		e.temps[s.Temp] = numbers
	}
	if s.MemAddr == nil {
		return
	}
	at := e.value(s.MemAddr)
	if s.Effect.Reads() {
		e.access(at, s.MemSize, false, false)
	}
	if s.Effect.Writes() {
		e.access(at, s.MemSize, true, false)
		e.store(at, s.MemSize, numbers)
	}
}

// slot is which register that is followed a place in the guest state is in, or -1;
// first tells that it is at its begin.
func slot(offset int) (n int, first bool) {
	switch {
	case offset >= vex.OffsetRAX && offset < vex.OffsetRAX+16*8:
		return (offset - vex.OffsetRAX) / 8, (offset-vex.OffsetRAX)%8 == 0
	case offset >= vex.OffsetXMM && offset < vex.OffsetXMM+16*32:
		return vectors + (offset-vex.OffsetXMM)/32, (offset-vex.OffsetXMM)%32 == 0
	}
	return -1, false
}

func (e *evaluation) put(offset, size int, v Value) {
	n, first := slot(offset)
	switch {
	case n < 0:
	case n < vectors && size < wordBytes:
		e.state[n] = numbers
	case n < vectors || first && size >= 2*wordBytes:
		e.state[n] = v
	case size >= wordBytes: // half of a vector
		e.state[n] = join(e.state[n], v)
	}
}

func (e *evaluation) value(x vex.Expr) Value {
	switch x := x.(type) {
	case *vex.Read:
		return e.temps[x.Temp]
	case *vex.Const:
		if x.Type != vex.I64 {
			return constantOf(x)
		}
		return e.analysis.value(x.Bits)
	case *vex.Get:
		n, _ := slot(x.Offset)
		if n < 0 {
			return e.segment(x)
		}
		if x.Type.Bytes() < wordBytes {
			return e.cut(e.state[n], x.Type.Bytes())
		}
		return e.state[n]
	case *vex.Operation:
		return e.operate(x)
	case *vex.Load:
		at := e.value(x.Addr)
		e.access(at, x.Type.Bytes(), false, false)
		return e.load(at, x.Type.Bytes(), e.node)
	case *vex.ITE:
		return join(e.value(x.Then), e.value(x.Else))
	}
	return numbers
}

// segment is what is no register that is followed: segments begin in memory of
// libraries, and all else is numbers.
func (e *evaluation) segment(x *vex.Get) Value {
	if x.Offset == vex.OffsetFS || x.Offset == vex.OffsetGS {
		return pointer(0, All)
	}
	return numbers
}

// cut is the lower bytes of a value.
func (e *evaluation) cut(v Value, size int) Value {
	if v.none() {
		return v
	}
	return narrowed(v, 8*size, false)
}

func constantOf(c *vex.Const) Value {
	switch c.Type {
	case vex.I1, vex.I8, vex.I16, vex.I32:
		return numeric(Exactly(int64(c.Bits)))
	}
	return numbers
}

// operation computes from values.
type operation func(a []Value) Value

// operations are those that are more than numbers; what they are called says how many
// bits they have.
var operations = sync.OnceValue(func() []operation {
	list := make([]operation, vex.Ops())
	for i := range list {
		list[i] = operationOf(vex.Op(i).String())
	}
	return list
})

func operationOf(name string) operation {
	switch name {
	case "Add64":
		return func(a []Value) Value { return add(a[0], a[1]) }
	case "Sub64":
		return func(a []Value) Value { return subtract(a[0], a[1]) }
	case "And64":
		return and
	case "Or64", "Xor64", "Max64U":
		return or
	case "Shl64":
		return shift
	case "Mul64":
		return multiply
	case "32Uto64":
		return func(a []Value) Value { return narrowed(a[0], 32, false) }
	case "32Sto64":
		return func(a []Value) Value { return narrowed(a[0], 32, true) }
	case "8Uto64", "8Uto32", "8Uto16":
		return func(a []Value) Value { return narrowed(a[0], 8, false) }
	case "16Uto64", "16Uto32":
		return func(a []Value) Value { return narrowed(a[0], 16, false) }
	case "64to32":
		return func(a []Value) Value { return narrowed(a[0], 32, false) }
	case "64HLtoV128", "InterleaveLO64x2", "InterleaveHI64x2", "SetV128lo64", "OrV128":
		return func(a []Value) Value { return join(a[0], a[1]) }
	case "V128to64", "V128HIto64", "64UtoV128", "ReinterpI64asF64", "ReinterpF64asI64", "AndV128":
		return func(a []Value) Value { return a[0] }
	case "Add32":
		return func(a []Value) Value { return small(a[0].numbers().Add(a[1].numbers())) }
	}
	if strings.HasPrefix(name, "Cmp") {
		return func([]Value) Value { return bit }
	}
	return nil
}

// small is a number of 32 bits: what does not fit is around the end.
func small(at Interval) Value {
	if at.Low < 0 || at.High >= 1<<32 {
		return numeric(Range(-1<<31, 1<<32-1))
	}
	return numeric(at)
}

func and(a []Value) Value {
	for i := range 2 {
		if mask, ok := a[1-i].constant(); ok {
			return masked(a[i], mask)
		}
	}
	if a[0].any || a[1].any {
		return top
	}
	return join(whole(a[0]), whole(a[1])).orNumber()
}

// or is what OR and XOR may give: an address whose lower bits are changed, or a number.
func or(a []Value) Value {
	for i := range 2 {
		if zero, ok := a[i].constant(); ok && zero == 0 {
			return a[1-i]
		}
	}
	if a[0].any || a[1].any {
		return top
	}
	return join(whole(a[0]), whole(a[1])).orNumber()
}

// orNumber widens the numbers among what a value may be to all.
func (v Value) orNumber() Value {
	return v.each(func(p part) part { return part{p.region, All} })
}

func shift(a []Value) Value {
	if by, ok := a[1].constant(); ok && by >= 0 && by < 62 {
		return scale(a[0], 1<<by)
	}
	return numbers
}

func multiply(a []Value) Value {
	for i := range 2 {
		if by, ok := a[1-i].constant(); ok && by > 0 {
			return scale(a[i], by)
		}
	}
	return numbers
}

func (e *evaluation) operate(x *vex.Operation) Value {
	f := operations()[x.Op]
	if f == nil {
		return numbers
	}
	var args [4]Value
	for i, arg := range x.Args {
		args[i] = e.value(arg)
		if args[i].none() {
			return Value{}
		}
	}
	return f(args[:len(x.Args)])
}
