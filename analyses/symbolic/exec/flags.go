package exec

import "github.com/heddle-dmt/heddle/analyses/symbolic"

// The flags' numbers in RFLAGS (SDM volume 1, section 3.4.3.1).
const (
	carry    = 0
	parity   = 2
	adjust   = 4
	zero     = 6
	sign     = 7
	overflow = 11
)

// Kinds of what set the flags, in libVEX's order; each on 8, 16, 32 and 64 bits
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
	kinds
)

// thunk is what the flags are computed from.
type thunk struct {
	*symbolic.Pool
	copied     bool
	kind, n    int
	x, y       *symbolic.Expr // the lower n bits of the operands
	dep1, ndep *symbolic.Expr
}

// newThunk takes the number of an operation and its operands; nil: it is not
// known.
func newThunk(p *symbolic.Pool, op uint64, dep1, dep2, ndep *symbolic.Expr) *thunk {
	if op == 0 {
		return &thunk{Pool: p, copied: true, dep1: dep1}
	}
	if op > 4*kinds {
		return nil
	}
	n := 8 << ((op - 1) % 4)
	return &thunk{
		Pool: p, kind: int(op-1) / 4, n: n, x: p.Extract(dep1, 0, n), y: p.Extract(dep2, 0, n), dep1: dep1, ndep: ndep,
	}
}

// old is a flag from before the operation.
func (t *thunk) old(flag int) *symbolic.Expr { return t.Extract(t.ndep, flag, 1) }

func (t *thunk) number(x uint64) *symbolic.Expr { return t.Word(x, t.n) }

func (t *thunk) top(e *symbolic.Expr) *symbolic.Expr { return t.Extract(e, t.n-1, 1) }

// in is the carry that goes in, widened, and second the second operand with which
// it goes in: libVEX keeps it combined with the carry.
func (t *thunk) in() *symbolic.Expr { return t.ZeroExt(t.old(carry), t.n) }

func (t *thunk) second() *symbolic.Expr { return t.Xor(t.y, t.in()) }

// result is what the operation gave.
func (t *thunk) result() *symbolic.Expr {
	switch t.kind {
	case kindAdd:
		return t.Add(t.x, t.y)
	case kindSub:
		return t.Sub(t.x, t.y)
	case kindAdc:
		return t.Add(t.Add(t.x, t.second()), t.in())
	case kindSbb:
		return t.Sub(t.Sub(t.x, t.second()), t.in())
	case kindUmul, kindSmul:
		return t.Mul(t.x, t.y)
	}
	return t.x
}

// flag is one flag, a truth.
func (t *thunk) flag(flag int) *symbolic.Expr {
	if t.copied {
		return t.Extract(t.dep1, flag, 1)
	}
	if rotation := t.kind == kindRol || t.kind == kindRor; rotation && flag != carry && flag != overflow {
		return t.old(flag)
	}
	switch flag {
	case carry:
		return t.carry()
	case overflow:
		return t.overflow()
	case adjust:
		return t.adjust()
	case zero:
		return t.Eq(t.result(), t.number(0))
	case sign:
		return t.SLT(t.result(), t.number(0))
	default: // parity
		r, odd := t.result(), t.Bool(false)
		for i := range 8 {
			odd = t.Xor(odd, t.Extract(r, i, 1))
		}
		return t.Not(odd)
	}
}

func (t *thunk) carry() *symbolic.Expr {
	switch t.kind {
	case kindAdd:
		return t.ULT(t.result(), t.x)
	case kindSub:
		return t.ULT(t.x, t.y)
	case kindAdc:
		return t.Ite(t.old(carry), t.ULE(t.result(), t.x), t.ULT(t.result(), t.x))
	case kindSbb:
		return t.Ite(t.old(carry), t.ULE(t.x, t.second()), t.ULT(t.x, t.second()))
	case kindInc, kindDec:
		return t.old(carry)
	case kindShl:
		return t.top(t.y)
	case kindShr:
		return t.Extract(t.y, 0, 1)
	case kindRol:
		return t.Extract(t.x, 0, 1)
	case kindRor:
		return t.top(t.x)
	case kindUmul, kindSmul:
		return t.matters()
	}
	return t.Bool(false)
}

// matters tells whether the upper half of a product does.
func (t *thunk) matters() *symbolic.Expr {
	widen := t.ZeroExt
	if t.kind == kindSmul {
		widen = t.SignExt
	}
	product := t.Mul(widen(t.x, 2*t.n), widen(t.y, 2*t.n))
	return t.Not(t.Eq(widen(t.Extract(product, 0, t.n), 2*t.n), product))
}

func (t *thunk) overflow() *symbolic.Expr {
	r := t.result()
	switch t.kind {
	case kindAdd, kindAdc:
		y := t.y
		if t.kind == kindAdc {
			y = t.second()
		}
		return t.top(t.And(t.Not(t.Xor(t.x, y)), t.Xor(t.x, r)))
	case kindSub, kindSbb:
		y := t.y
		if t.kind == kindSbb {
			y = t.second()
		}
		return t.top(t.And(t.Xor(t.x, y), t.Xor(t.x, r)))
	case kindInc:
		return t.Eq(t.x, t.number(1<<(t.n-1)))
	case kindDec:
		return t.Eq(t.x, t.number(1<<(t.n-1)-1))
	case kindShl, kindShr:
		return t.top(t.Xor(t.y, t.x))
	case kindRol:
		return t.Xor(t.top(t.x), t.Extract(t.x, 0, 1))
	case kindRor:
		return t.Xor(t.top(t.x), t.Extract(t.x, t.n-2, 1))
	case kindUmul, kindSmul:
		return t.matters()
	}
	return t.Bool(false)
}

func (t *thunk) adjust() *symbolic.Expr {
	switch t.kind {
	case kindAdd, kindSub:
		return t.Extract(t.Xor(t.result(), t.Xor(t.x, t.y)), adjust, 1)
	case kindAdc, kindSbb:
		return t.Extract(t.Xor(t.result(), t.Xor(t.x, t.second())), adjust, 1)
	case kindInc:
		return t.Eq(t.Extract(t.x, 0, 4), t.Word(0, 4))
	case kindDec:
		return t.Eq(t.Extract(t.x, 0, 4), t.Word(15, 4))
	}
	return t.Bool(false)
}

// condition is one of the sixteen of Jcc, by its number in the opcode.
func (t *thunk) condition(number uint64) *symbolic.Expr {
	c := t.positive(number >> 1)
	if number&1 != 0 {
		return t.Not(c)
	}
	return c
}

func (t *thunk) positive(number uint64) *symbolic.Expr {
	comparison := !t.copied && t.kind == kindSub
	logic := !t.copied && t.kind == kindLogic
	switch number {
	case 0:
		return t.flag(overflow)
	case 1:
		return t.flag(carry)
	case 2:
		return t.flag(zero)
	case 3:
		if comparison {
			return t.ULE(t.x, t.y)
		}
		return t.Or(t.flag(carry), t.flag(zero))
	case 4:
		return t.flag(sign)
	case 5:
		return t.flag(parity)
	}
	less := number == 6
	switch {
	case comparison && less:
		return t.SLT(t.x, t.y)
	case comparison:
		return t.SLE(t.x, t.y)
	case logic && less:
		return t.SLT(t.x, t.number(0))
	case logic:
		return t.SLE(t.x, t.number(0))
	case less:
		return t.Xor(t.flag(sign), t.flag(overflow))
	}
	return t.Or(t.Xor(t.flag(sign), t.flag(overflow)), t.flag(zero))
}

// all is the six flags where RFLAGS has them, in 64 bits.
func (t *thunk) all() *symbolic.Expr {
	f := t.Word(0, 64)
	for _, flag := range []int{carry, parity, adjust, zero, sign, overflow} {
		f = t.Or(f, t.Shl(t.ZeroExt(t.flag(flag), 64), t.Word(uint64(flag), 64)))
	}
	return f
}
