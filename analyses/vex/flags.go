package vex

import "math/bits"

// Flags, as in RFLAGS (SDM volume 1, section 3.4.3.1).
const (
	flagC = 1 << 0
	flagP = 1 << 2
	flagA = 1 << 4
	flagZ = 1 << 6
	flagS = 1 << 7
	flagO = 1 << 11
)

// What was done last that set the flags, in libVEX's numbering: four operations
// a kind, on 8, 16, 32 and 64 bits. The flags are computed when they are needed.
const (
	ccCopy = iota
	ccAdd  // 1 to 4, and so on
	_
	_
	_
	ccSub
	_
	_
	_
	ccAdc
	_
	_
	_
	ccSbb
	_
	_
	_
	ccLogic
	_
	_
	_
	ccInc
	_
	_
	_
	ccDec
	_
	_
	_
	ccShl
	_
	_
	_
	ccShr
	_
	_
	_
	ccRol
	_
	_
	_
	ccRor
	_
	_
	_
	ccUmul
	_
	_
	_
	ccSmul
	_
	_
	_
	ccEnd
)

// operands are those of the operation that set the flags, and its width.
type operands struct {
	n                int
	dep1, dep2, ndep uint64
}

// common are the flags that depend on the result alone.
func (o *operands) common(result uint64) uint64 {
	var f uint64
	if bits.OnesCount8(uint8(result))%2 == 0 {
		f |= flagP
	}
	if low(result, o.n) == 0 {
		f |= flagZ
	}
	if o.top(result) {
		f |= flagS
	}
	return f
}

// top tells whether the most significant bit is set.
func (o *operands) top(x uint64) bool { return x>>(o.n-1)&1 != 0 }

func when(c bool, flag uint64) uint64 { return choose(c, flag, 0) }

// sum are the flags of an addition with carry, and difference those of a
// subtraction with borrow.
func (o *operands) sum(x, y, carry uint64) uint64 {
	result := low(x+y+carry, o.n)
	over := result < x || carry == 1 && result == x
	return o.common(result) | when(over, flagC) | (result^x^y)&flagA | when(o.top(^(x^y)&(x^result)), flagO)
}

func (o *operands) difference(x, y, borrow uint64) uint64 {
	result := low(x-y-borrow, o.n)
	under := x < y || borrow == 1 && x == y
	return o.common(result) | when(under, flagC) | (result^x^y)&flagA | when(o.top((x^y)&(x^result)), flagO)
}

// flags computes O, S, Z, A, P and C from the thunk (libvex_guest_amd64.h).
func flags(op, dep1, dep2, ndep uint64) (uint64, bool) {
	if op == ccCopy {
		return dep1 & (flagC | flagP | flagA | flagZ | flagS | flagO), true
	}
	if op >= ccEnd {
		return 0, false
	}
	n := 8 << ((op - 1) % 4)
	o := &operands{n, dep1, dep2, ndep}
	x, y := low(dep1, n), low(dep2, n)
	switch op - (op-1)%4 {
	case ccAdd:
		return o.sum(x, y, 0), true
	case ccSub:
		return o.difference(x, y, 0), true
	case ccAdc:
		return o.sum(x, low(dep2^ndep&flagC, n), ndep&flagC), true
	case ccSbb:
		return o.difference(x, low(dep2^ndep&flagC, n), ndep&flagC), true
	case ccLogic:
		return o.common(x), true
	case ccInc:
		return o.sum(low(x-1, n), 1, 0)&^flagC | ndep&flagC, true
	case ccDec:
		return o.difference(low(x+1, n), 1, 0)&^flagC | ndep&flagC, true
	case ccUmul, ccSmul:
		return o.product(op-(op-1)%4 == ccSmul), true
	default:
		return o.shifted(op - (op-1)%4), true
	}
}

// shifted are the flags of shifts and rotations. For shifts dep2 is what one
// place less would have given; rotations leave the other flags as they were.
func (o *operands) shifted(kind uint64) uint64 {
	result := o.dep1
	rest := o.ndep & (flagP | flagA | flagZ | flagS)
	switch kind {
	case ccShl:
		return o.common(result) | when(o.top(o.dep2), flagC) | when(o.top(o.dep2^result), flagO)
	case ccShr:
		return o.common(result) | o.dep2&flagC | when(o.top(o.dep2^result), flagO)
	case ccRol:
		return rest | result&flagC | when(o.top(result) != (result&1 != 0), flagO)
	default: // ccRor
		return rest | when(o.top(result), flagC) | when(o.top(result^result<<1), flagO)
	}
}

// product are the flags of a multiplication: C and O if the upper half matters.
func (o *operands) product(sign bool) uint64 {
	x, y := low(o.dep1, o.n), low(o.dep2, o.n)
	result, matters := x*y, false
	switch {
	case sign:
		p := multiplySigned(signed(x, o.n), signed(y, o.n))
		whole := uint64(signed(p.Lo, o.n))
		matters = whole != p.Lo || p.Hi != uint64(int64(whole)>>63)
	case o.n == 64:
		matters = multiply(x, y).Hi != 0
	default:
		matters = result>>o.n != 0
	}
	return o.common(result) | when(matters, flagC|flagO)
}

// condition is one of the sixteen of Jcc, by its number in the opcode.
func condition(number, f uint64) bool {
	var c bool
	less := f&flagS != 0 != (f&flagO != 0)
	switch number >> 1 {
	case 0:
		c = f&flagO != 0
	case 1:
		c = f&flagC != 0
	case 2:
		c = f&flagZ != 0
	case 3:
		c = f&(flagC|flagZ) != 0
	case 4:
		c = f&flagS != 0
	case 5:
		c = f&flagP != 0
	case 6:
		c = less
	case 7:
		c = less || f&flagZ != 0
	}
	return c != (number&1 != 0)
}
