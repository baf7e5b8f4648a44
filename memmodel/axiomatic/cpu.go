package axiomatic

import (
	"math/bits"

	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

// flags are the arithmetic flags that conditions look at.
type flags struct{ c, p, z, s, o bool }

// registers are the state of a thread between instructions.
type registers struct {
	r [16]uint64
	f flags
}

func sizeMask(size int) uint64 { return ^uint64(0) >> (64 - 8*size) }

func signBit(v uint64, size int) bool { return v>>(8*size-1)&1 != 0 }

func signExtend(v uint64, size int) uint64 {
	shift := 64 - 8*size
	return uint64(int64(v<<shift) >> shift)
}

// readPart reads a register or a part of it.
func (g *registers) readPart(o litmus.Operand, size int) uint64 {
	v := g.r[o.Reg]
	if o.High {
		v >>= 8
	}
	return v & sizeMask(size)
}

// writePart writes a register or a part of it: four bytes clear the upper half, one
// or two leave the rest as it is (SDM volume 1, 3.4.1.1).
func (g *registers) writePart(o litmus.Operand, size int, v uint64) {
	v &= sizeMask(size)
	old := g.r[o.Reg]
	switch {
	case o.High:
		v = old&^0xff00 | v<<8
	case size < 4:
		v |= old &^ sizeMask(size)
	}
	g.r[o.Reg] = v
}

// addressOf is the address of an operand in memory.
func (g *registers) addressOf(t *litmus.Test, o litmus.Operand) uint64 {
	at := uint64(t.Number(o))
	if o.Reg != litmus.NoReg {
		at += g.r[o.Reg]
	}
	if o.Index != litmus.NoReg {
		at += g.r[o.Index] * uint64(o.Scale)
	}
	return at
}

// setLogic sets the flags as AND, OR, XOR and TEST do.
func (f *flags) setLogic(v uint64, size int) {
	v &= sizeMask(size)
	*f = flags{p: bits.OnesCount8(uint8(v))%2 == 0, z: v == 0, s: signBit(v, size)}
}

func (f *flags) addNumbers(a, b uint64, size int) uint64 {
	sum := (a + b) & sizeMask(size)
	f.setLogic(sum, size)
	f.c = sum < a&sizeMask(size)
	f.o = signBit(^(a^b)&(a^sum), size)
	return sum
}

func (f *flags) subtractNumbers(a, b uint64, size int) uint64 {
	difference := (a - b) & sizeMask(size)
	f.setLogic(difference, size)
	f.c = a&sizeMask(size) < b&sizeMask(size)
	f.o = signBit((a^b)&(a^difference), size)
	return difference
}

// holdsCondition evaluates a condition (SDM volume 1, appendix B).
func (f flags) holdsCondition(condition string) bool {
	switch condition {
	case "o":
		return f.o
	case "no":
		return !f.o
	case "b":
		return f.c
	case "ae":
		return !f.c
	case "e":
		return f.z
	case "ne":
		return !f.z
	case "be":
		return f.c || f.z
	case "a":
		return !f.c && !f.z
	case "s":
		return f.s
	case "ns":
		return !f.s
	case "p":
		return f.p
	case "np":
		return !f.p
	case "l":
		return f.s != f.o
	case "ge":
		return f.s == f.o
	case "le":
		return f.z || f.s != f.o
	case "g":
		return !f.z && f.s == f.o
	}
	panic("bug: no condition " + condition)
}

// computeResult is the result of an instruction that combines two values, or changes
// one, with the flags it sets.
func (f *flags) computeResult(op string, a, b uint64, size int) uint64 {
	carry := f.c
	switch op {
	case "add", "xadd":
		return f.addNumbers(a, b, size)
	case "sub", "cmp", "cmpxchg":
		return f.subtractNumbers(a, b, size)
	case "and", "test":
		f.setLogic(a&b, size)
		return a & b
	case "or":
		f.setLogic(a|b, size)
		return a | b
	case "xor":
		f.setLogic(a^b, size)
		return a ^ b
	case "inc", "dec":
		v := uint64(0)
		if op == "inc" {
			v = f.addNumbers(a, 1, size)
		} else {
			v = f.subtractNumbers(a, 1, size)
		}
		f.c = carry
		return v
	case "neg":
		return f.subtractNumbers(0, a, size)
	case "not":
		return ^a
	}
	panic("bug: no operation " + op)
}
