package alias

import (
	"strings"
	"sync"

	"github.com/heddle-dmt/heddle/analyses/vex"
)

// blockEvaluation evaluates one block.
type blockEvaluation struct {
	*analysis
	node             blockNode
	block            *vex.Block
	state            *registerState
	pc               uint64
	accesses         []rawAccess
	products         map[vex.Temp]productValue
	registerProducts [vectors]productValue // by general register
}

func (e *blockEvaluation) runBlock() {
	if len(e.temps) < len(e.block.Types) {
		e.temps = make([]Value, 2*len(e.block.Types))
	}
	for _, s := range e.block.Stmts {
		e.runStatement(s)
	}
}

func (e *blockEvaluation) addAccess(at Value, size int, store, atomic bool) {
	e.accesses = append(e.accesses, rawAccess{e.pc, at, size, store, atomic})
}

func (e *blockEvaluation) runStatement(s vex.Stmt) {
	switch s := s.(type) {
	case *vex.Mark:
		e.pc = s.Addr
	case *vex.Put:
		e.writeRegister(s.Offset, e.block.TypeOf(s.Data).Bytes(), e.evaluateExpr(s.Data))
		e.noteRegister(s)
	case *vex.Assign:
		e.temps[s.Temp] = e.evaluateExpr(s.Data)
		e.noteProduct(s)
	case *vex.Store:
		at := e.evaluateExpr(s.Addr)
		e.addAccess(at, e.block.TypeOf(s.Data).Bytes(), true, false)
		e.storeValue(at, e.block.TypeOf(s.Data).Bytes(), e.evaluateExpr(s.Data))
	case *vex.LoadG:
		size := s.Cvt.Type().Bytes()
		at := e.evaluateExpr(s.Addr)
		e.addAccess(at, size, false, false)
		e.temps[s.Temp] = joinValues(e.loadValue(at, size, e.node), e.evaluateExpr(s.Alt))
	case *vex.CAS:
		e.runExchange(s)
	case *vex.Dirty:
		e.runDirty(s)
	}
}

func (e *blockEvaluation) runExchange(s *vex.CAS) {
	at, size := e.evaluateExpr(s.Addr), e.block.Types[s.OldLo].Bytes()
	old := e.loadValue(at, size, e.node)
	e.temps[s.OldLo] = old
	e.addAccess(at, size, false, true)
	if s.DataHi != nil {
		e.temps[s.OldHi] = topValue
		e.addAccess(addValues(at, numberValue(Exactly(int64(size)))), size, false, true)
		e.storeValue(at, 2*size, topValue)
	}
	e.addAccess(at, size, true, true)
	e.storeValue(at, size, e.evaluateExpr(s.DataLo))
	if s.DataHi != nil {
		e.addAccess(addValues(at, numberValue(Exactly(int64(size)))), size, true, true)
	}
}

func (e *blockEvaluation) runDirty(s *vex.Dirty) {
	if s.Temp != vex.NoTemp {
		e.temps[s.Temp] = anyNumber
	}
	if s.MemAddr == nil {
		return
	}
	at := e.evaluateExpr(s.MemAddr)
	if s.Effect.Reads() {
		e.addAccess(at, s.MemSize, false, false)
	}
	if s.Effect.Writes() {
		e.addAccess(at, s.MemSize, true, false)
		e.storeValue(at, s.MemSize, anyNumber)
	}
}

// registerSlot returns the index of the tracked register at an offset of the guest state,
// or -1; first is set if the offset is the register's beginning.
func registerSlot(offset int) (n int, first bool) {
	switch {
	case offset >= vex.OffsetRAX && offset < vex.OffsetRAX+16*8:
		return (offset - vex.OffsetRAX) / 8, (offset-vex.OffsetRAX)%8 == 0
	case offset >= vex.OffsetXMM && offset < vex.OffsetXMM+16*32:
		return vectors + (offset-vex.OffsetXMM)/32, (offset-vex.OffsetXMM)%32 == 0
	}
	return -1, false
}

func (e *blockEvaluation) writeRegister(offset, size int, v Value) {
	n, first := registerSlot(offset)
	switch {
	case n < 0:
	case n < vectors && size < wordBytes:
		e.state[n] = anyNumber
	case n < vectors || first && size >= 2*wordBytes:
		e.state[n] = v
	case size >= wordBytes: // half of a vector
		e.state[n] = joinValues(e.state[n], v)
	}
}

func (e *blockEvaluation) evaluateExpr(x vex.Expr) Value {
	switch x := x.(type) {
	case *vex.Read:
		return e.temps[x.Temp]
	case *vex.Const:
		if x.Type != vex.I64 {
			return constantValue(x)
		}
		return e.analysis.constantAddress(x.Bits)
	case *vex.Get:
		n, _ := registerSlot(x.Offset)
		if n < 0 {
			return e.readSegment(x)
		}
		if x.Type.Bytes() < wordBytes {
			return e.lowerBytes(e.state[n], x.Type.Bytes())
		}
		return e.state[n]
	case *vex.Operation:
		return e.runOperation(x)
	case *vex.Load:
		at := e.evaluateExpr(x.Addr)
		e.addAccess(at, x.Type.Bytes(), false, false)
		return e.loadValue(at, x.Type.Bytes(), e.node)
	case *vex.ITE:
		return joinValues(e.evaluateExpr(x.Then), e.evaluateExpr(x.Else))
	}
	return anyNumber
}

// readSegment is the value of an untracked register: segments begin in memory of libraries,
// all others are numbers.
func (e *blockEvaluation) readSegment(x *vex.Get) Value {
	if x.Offset == vex.OffsetFS || x.Offset == vex.OffsetGS {
		return pointerValue(0, All)
	}
	return anyNumber
}

// lowerBytes is the lower bytes of a value.
func (e *blockEvaluation) lowerBytes(v Value, size int) Value {
	if v.isUnset() {
		return v
	}
	return truncateNumber(v, 8*size, false)
}

func constantValue(c *vex.Const) Value {
	switch c.Type {
	case vex.I1, vex.I8, vex.I16, vex.I32:
		return numberValue(Exactly(int64(c.Bits)))
	}
	return anyNumber
}

// operationFunc computes the result of an operation.
type operationFunc func(a []Value) Value

// operationFuncs are the operations whose results are more precise than any number; their
// names contain the number of bits.
var operationFuncs = sync.OnceValue(func() []operationFunc {
	list := make([]operationFunc, vex.NumOps())
	for i := range list {
		list[i] = operationByName(vex.Op(i).String())
	}
	return list
})

func operationByName(name string) operationFunc {
	switch name {
	case "Add64":
		return func(a []Value) Value { return addValues(a[0], a[1]) }
	case "Sub64":
		return func(a []Value) Value { return subtractValues(a[0], a[1]) }
	case "And64":
		return andValues
	case "Or64", "Xor64", "Max64U":
		return orValues
	case "Shl64":
		return shiftValue
	case "Mul64":
		return multiplyValues
	case "32Uto64":
		return func(a []Value) Value { return truncateNumber(a[0], 32, false) }
	case "32Sto64":
		return func(a []Value) Value { return truncateNumber(a[0], 32, true) }
	case "8Uto64", "8Uto32", "8Uto16":
		return func(a []Value) Value { return truncateNumber(a[0], 8, false) }
	case "16Uto64", "16Uto32":
		return func(a []Value) Value { return truncateNumber(a[0], 16, false) }
	case "64to32":
		return func(a []Value) Value { return truncateNumber(a[0], 32, false) }
	case "64HLtoV128", "InterleaveLO64x2", "InterleaveHI64x2", "SetV128lo64", "OrV128":
		return func(a []Value) Value { return joinValues(a[0], a[1]) }
	case "V128to64", "V128HIto64", "64UtoV128", "ReinterpI64asF64", "ReinterpF64asI64", "AndV128":
		return func(a []Value) Value { return a[0] }
	case "Add32":
		return func(a []Value) Value { return wordNumber(a[0].numberInterval().Add(a[1].numberInterval())) }
	}
	if strings.HasPrefix(name, "Cmp") {
		return func([]Value) Value { return truthValue }
	}
	return nil
}

// wordNumber is a number of 32 bits; a sum that does not fit wraps.
func wordNumber(at Interval) Value {
	if at.Low < 0 || at.High >= 1<<32 {
		return numberValue(Range(-1<<31, 1<<32-1))
	}
	return numberValue(at)
}

func andValues(a []Value) Value {
	for i := range 2 {
		if mask, ok := a[1-i].asConstant(); ok {
			return maskValue(a[i], mask)
		}
	}
	if a[0].isTop || a[1].isTop {
		return topValue
	}
	return joinValues(anyOffset(a[0]), anyOffset(a[1])).withAnyOffset()
}

// orValues is the result of OR and XOR: an address whose lower bits are changed, or a
// number.
func orValues(a []Value) Value {
	for i := range 2 {
		if zero, ok := a[i].asConstant(); ok && zero == 0 {
			return a[1-i]
		}
	}
	if a[0].isTop || a[1].isTop {
		return topValue
	}
	return joinValues(anyOffset(a[0]), anyOffset(a[1])).withAnyOffset()
}

// withAnyOffset widens the intervals of a value to all numbers.
func (v Value) withAnyOffset() Value {
	return v.mapParts(func(p valuePart) valuePart { return valuePart{p.region, All} })
}

func shiftValue(a []Value) Value {
	if by, ok := a[1].asConstant(); ok && by >= 0 && by < 62 {
		return scaleValue(a[0], 1<<by)
	}
	return anyNumber
}

func multiplyValues(a []Value) Value {
	for i := range 2 {
		if by, ok := a[1-i].asConstant(); ok && by > 0 {
			return scaleValue(a[i], by)
		}
	}
	return anyNumber
}

func (e *blockEvaluation) runOperation(x *vex.Operation) Value {
	f := operationFuncs()[x.Op]
	if f == nil {
		return anyNumber
	}
	var args [4]Value
	for i, arg := range x.Args {
		args[i] = e.evaluateExpr(arg)
		if args[i].isUnset() {
			return Value{}
		}
	}
	return f(args[:len(x.Args)])
}
