package concolic

import "github.com/heddle-dmt/heddle/analyses/symbolic"

// The bits of the flags in RFLAGS (SDM volume 1, section 3.4.3.1).
const (
	flagCarry    = 0
	flagParity   = 2
	flagAdjust   = 4
	flagZero     = 6
	flagSign     = 7
	flagOverflow = 11
)

// Kinds of operations that set the flags, in libVEX's order; each for 8, 16, 32 and 64 bits
// (libvex_guest_amd64.h).
const (
	kindAdd = iota
	kindSub
	kindAdc
	kindSbb
	kindLogic
	kindInc
	kindDec
	kindShl
	kindShr
	kindRol
	kindRor
	kindUmul
	kindSmul
	numKinds
)

// flagThunk is the operation and the operands from which the flags are computed.
type flagThunk struct {
	*symbolic.Pool
	copied     bool
	kind, n    int
	x, y       *symbolic.Expr // the lower n bits of the operands
	dep1, ndep *symbolic.Expr
}

// newFlagThunk takes the number of an operation and its operands; nil: the operation is
// unknown.
func newFlagThunk(p *symbolic.Pool, op uint64, dep1, dep2, ndep *symbolic.Expr) *flagThunk {
	if op == 0 {
		return &flagThunk{Pool: p, copied: true, dep1: dep1}
	}
	if op > 4*numKinds {
		return nil
	}
	n := 8 << ((op - 1) % 4)
	return &flagThunk{
		Pool: p, kind: int(op-1) / 4, n: n, x: p.Extract(dep1, 0, n), y: p.Extract(dep2, 0, n), dep1: dep1, ndep: ndep,
	}
}

// oldFlag is a flag from before the operation.
func (t *flagThunk) oldFlag(flag int) *symbolic.Expr { return t.Extract(t.ndep, flag, 1) }

func (t *flagThunk) constantOperand(x uint64) *symbolic.Expr { return t.Word(x, t.n) }

func (t *flagThunk) topBit(e *symbolic.Expr) *symbolic.Expr { return t.Extract(e, t.n-1, 1) }

// carryIn is the incoming carry, widened; secondOperand is the second operand, which libVEX
// stores combined with the carry.
func (t *flagThunk) carryIn() *symbolic.Expr { return t.ZeroExt(t.oldFlag(flagCarry), t.n) }

func (t *flagThunk) secondOperand() *symbolic.Expr { return t.Xor(t.y, t.carryIn()) }

// operationResult is the result of the operation.
func (t *flagThunk) operationResult() *symbolic.Expr {
	switch t.kind {
	case kindAdd:
		return t.Add(t.x, t.y)
	case kindSub:
		return t.Sub(t.x, t.y)
	case kindAdc:
		return t.Add(t.Add(t.x, t.secondOperand()), t.carryIn())
	case kindSbb:
		return t.Sub(t.Sub(t.x, t.secondOperand()), t.carryIn())
	case kindUmul, kindSmul:
		return t.Mul(t.x, t.y)
	}
	return t.x
}

// flagValue is one flag, a truth.
func (t *flagThunk) flagValue(flag int) *symbolic.Expr {
	if t.copied {
		return t.Extract(t.dep1, flag, 1)
	}
	if rotation := t.kind == kindRol || t.kind == kindRor; rotation && flag != flagCarry && flag != flagOverflow {
		return t.oldFlag(flag)
	}
	switch flag {
	case flagCarry:
		return t.carryFlag()
	case flagOverflow:
		return t.overflowFlag()
	case flagAdjust:
		return t.adjustFlag()
	case flagZero:
		return t.Eq(t.operationResult(), t.constantOperand(0))
	case flagSign:
		return t.SLT(t.operationResult(), t.constantOperand(0))
	default: // flagParity
		r, odd := t.operationResult(), t.Bool(false)
		for i := range 8 {
			odd = t.Xor(odd, t.Extract(r, i, 1))
		}
		return t.Not(odd)
	}
}

func (t *flagThunk) carryFlag() *symbolic.Expr {
	switch t.kind {
	case kindAdd:
		return t.ULT(t.operationResult(), t.x)
	case kindSub:
		return t.ULT(t.x, t.y)
	case kindAdc:
		return t.Ite(t.oldFlag(flagCarry), t.ULE(t.operationResult(), t.x), t.ULT(t.operationResult(), t.x))
	case kindSbb:
		return t.Ite(t.oldFlag(flagCarry), t.ULE(t.x, t.secondOperand()), t.ULT(t.x, t.secondOperand()))
	case kindInc, kindDec:
		return t.oldFlag(flagCarry)
	case kindShl:
		return t.topBit(t.y)
	case kindShr:
		return t.Extract(t.y, 0, 1)
	case kindRol:
		return t.Extract(t.x, 0, 1)
	case kindRor:
		return t.topBit(t.x)
	case kindUmul, kindSmul:
		return t.upperHalfMatters()
	}
	return t.Bool(false)
}

// upperHalfMatters is the truth that a product needs its upper half.
func (t *flagThunk) upperHalfMatters() *symbolic.Expr {
	widen := t.ZeroExt
	if t.kind == kindSmul {
		widen = t.SignExt
	}
	product := t.Mul(widen(t.x, 2*t.n), widen(t.y, 2*t.n))
	return t.Not(t.Eq(widen(t.Extract(product, 0, t.n), 2*t.n), product))
}

func (t *flagThunk) overflowFlag() *symbolic.Expr {
	r := t.operationResult()
	switch t.kind {
	case kindAdd, kindAdc:
		y := t.y
		if t.kind == kindAdc {
			y = t.secondOperand()
		}
		return t.topBit(t.And(t.Not(t.Xor(t.x, y)), t.Xor(t.x, r)))
	case kindSub, kindSbb:
		y := t.y
		if t.kind == kindSbb {
			y = t.secondOperand()
		}
		return t.topBit(t.And(t.Xor(t.x, y), t.Xor(t.x, r)))
	case kindInc:
		return t.Eq(t.x, t.constantOperand(1<<(t.n-1)))
	case kindDec:
		return t.Eq(t.x, t.constantOperand(1<<(t.n-1)-1))
	case kindShl, kindShr:
		return t.topBit(t.Xor(t.y, t.x))
	case kindRol:
		return t.Xor(t.topBit(t.x), t.Extract(t.x, 0, 1))
	case kindRor:
		return t.Xor(t.topBit(t.x), t.Extract(t.x, t.n-2, 1))
	case kindUmul, kindSmul:
		return t.upperHalfMatters()
	}
	return t.Bool(false)
}

func (t *flagThunk) adjustFlag() *symbolic.Expr {
	switch t.kind {
	case kindAdd, kindSub:
		return t.Extract(t.Xor(t.operationResult(), t.Xor(t.x, t.y)), flagAdjust, 1)
	case kindAdc, kindSbb:
		return t.Extract(t.Xor(t.operationResult(), t.Xor(t.x, t.secondOperand())), flagAdjust, 1)
	case kindInc:
		return t.Eq(t.Extract(t.x, 0, 4), t.Word(0, 4))
	case kindDec:
		return t.Eq(t.Extract(t.x, 0, 4), t.Word(15, 4))
	}
	return t.Bool(false)
}

// conditionValue is one of the sixteen conditions of Jcc, by its number in the opcode.
func (t *flagThunk) conditionValue(number uint64) *symbolic.Expr {
	c := t.baseCondition(number >> 1)
	if number&1 != 0 {
		return t.Not(c)
	}
	return c
}

func (t *flagThunk) baseCondition(number uint64) *symbolic.Expr {
	comparison := !t.copied && t.kind == kindSub
	logic := !t.copied && t.kind == kindLogic
	switch number {
	case 0:
		return t.flagValue(flagOverflow)
	case 1:
		return t.flagValue(flagCarry)
	case 2:
		return t.flagValue(flagZero)
	case 3:
		if comparison {
			return t.ULE(t.x, t.y)
		}
		return t.Or(t.flagValue(flagCarry), t.flagValue(flagZero))
	case 4:
		return t.flagValue(flagSign)
	case 5:
		return t.flagValue(flagParity)
	}
	less := number == 6
	switch {
	case comparison && less:
		return t.SLT(t.x, t.y)
	case comparison:
		return t.SLE(t.x, t.y)
	case logic && less:
		return t.SLT(t.x, t.constantOperand(0))
	case logic:
		return t.SLE(t.x, t.constantOperand(0))
	case less:
		return t.Xor(t.flagValue(flagSign), t.flagValue(flagOverflow))
	}
	return t.Or(t.Xor(t.flagValue(flagSign), t.flagValue(flagOverflow)), t.flagValue(flagZero))
}

// allFlags is the six flags at their bits in RFLAGS, in 64 bits.
func (t *flagThunk) allFlags() *symbolic.Expr {
	f := t.Word(0, 64)
	for _, flag := range []int{flagCarry, flagParity, flagAdjust, flagZero, flagSign, flagOverflow} {
		f = t.Or(f, t.Shl(t.ZeroExt(t.flagValue(flag), 64), t.Word(uint64(flag), 64)))
	}
	return f
}
