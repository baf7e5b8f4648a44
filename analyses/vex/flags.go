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

// The operation that set the flags last, in libVEX's numbering: four numbers for each kind,
// for 8, 16, 32 and 64 bits. The flags are computed when they are needed.
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

// flagOperands are the operands and the width of the operation that set the flags.
type flagOperands struct {
	n                int
	dep1, dep2, ndep uint64
}

// resultFlags returns the flags that depend on the result alone.
func (o *flagOperands) resultFlags(result uint64) uint64 {
	var f uint64
	if bits.OnesCount8(uint8(result))%2 == 0 {
		f |= flagP
	}
	if lowBits(result, o.n) == 0 {
		f |= flagZ
	}
	if o.topBit(result) {
		f |= flagS
	}
	return f
}

// topBit reports whether the most significant bit is set.
func (o *flagOperands) topBit(x uint64) bool { return x>>(o.n-1)&1 != 0 }

func flagIf(c bool, flag uint64) uint64 { return chooseWord(c, flag, 0) }

// sumFlags returns the flags of an addition with carry, differenceFlags those of a
// subtraction with borrow.
func (o *flagOperands) sumFlags(x, y, carry uint64) uint64 {
	result := lowBits(x+y+carry, o.n)
	over := result < x || carry == 1 && result == x
	return o.resultFlags(result) | flagIf(over, flagC) | (result^x^y)&flagA | flagIf(o.topBit(^(x^y)&(x^result)), flagO)
}

func (o *flagOperands) differenceFlags(x, y, borrow uint64) uint64 {
	result := lowBits(x-y-borrow, o.n)
	under := x < y || borrow == 1 && x == y
	return o.resultFlags(result) | flagIf(under, flagC) | (result^x^y)&flagA | flagIf(o.topBit((x^y)&(x^result)), flagO)
}

// thunkFlags computes O, S, Z, A, P and C from the thunk (libvex_guest_amd64.h).
func thunkFlags(op, dep1, dep2, ndep uint64) (uint64, bool) {
	if op == ccCopy {
		return dep1 & (flagC | flagP | flagA | flagZ | flagS | flagO), true
	}
	if op >= ccEnd {
		return 0, false
	}
	n := 8 << ((op - 1) % 4)
	o := &flagOperands{n, dep1, dep2, ndep}
	x, y := lowBits(dep1, n), lowBits(dep2, n)
	switch op - (op-1)%4 {
	case ccAdd:
		return o.sumFlags(x, y, 0), true
	case ccSub:
		return o.differenceFlags(x, y, 0), true
	case ccAdc:
		return o.sumFlags(x, lowBits(dep2^ndep&flagC, n), ndep&flagC), true
	case ccSbb:
		return o.differenceFlags(x, lowBits(dep2^ndep&flagC, n), ndep&flagC), true
	case ccLogic:
		return o.resultFlags(x), true
	case ccInc:
		return o.sumFlags(lowBits(x-1, n), 1, 0)&^flagC | ndep&flagC, true
	case ccDec:
		return o.differenceFlags(lowBits(x+1, n), 1, 0)&^flagC | ndep&flagC, true
	case ccUmul, ccSmul:
		return o.productFlags(op-(op-1)%4 == ccSmul), true
	default:
		return o.shiftFlags(op - (op-1)%4), true
	}
}

// shiftFlags returns the flags of shifts and rotations. For shifts, dep2 is the result of
// shifting by one bit less; rotations keep the other flags.
func (o *flagOperands) shiftFlags(kind uint64) uint64 {
	result := o.dep1
	rest := o.ndep & (flagP | flagA | flagZ | flagS)
	switch kind {
	case ccShl:
		return o.resultFlags(result) | flagIf(o.topBit(o.dep2), flagC) | flagIf(o.topBit(o.dep2^result), flagO)
	case ccShr:
		return o.resultFlags(result) | o.dep2&flagC | flagIf(o.topBit(o.dep2^result), flagO)
	case ccRol:
		return rest | result&flagC | flagIf(o.topBit(result) != (result&1 != 0), flagO)
	default: // ccRor
		return rest | flagIf(o.topBit(result), flagC) | flagIf(o.topBit(result^result<<1), flagO)
	}
}

// productFlags returns the flags of a multiplication: C and O are set if the upper half
// matters.
func (o *flagOperands) productFlags(sign bool) uint64 {
	x, y := lowBits(o.dep1, o.n), lowBits(o.dep2, o.n)
	result, matters := x*y, false
	switch {
	case sign:
		p := multiplyWideSigned(signedBits(x, o.n), signedBits(y, o.n))
		whole := uint64(signedBits(p.Lo, o.n))
		matters = whole != p.Lo || p.Hi != uint64(int64(whole)>>63)
	case o.n == 64:
		matters = multiplyWide(x, y).Hi != 0
	default:
		matters = result>>o.n != 0
	}
	return o.resultFlags(result) | flagIf(matters, flagC|flagO)
}

// conditionHolds evaluates one of the sixteen conditions of Jcc, by its number in the
// opcode.
func conditionHolds(number, f uint64) bool {
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
