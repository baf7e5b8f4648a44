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

func mask(size int) uint64 { return ^uint64(0) >> (64 - 8*size) }

func sign(v uint64, size int) bool { return v>>(8*size-1)&1 != 0 }

func extend(v uint64, size int) uint64 {
	shift := 64 - 8*size
	return uint64(int64(v<<shift) >> shift)
}

// get reads a register or a part of it.
func (g *registers) get(o litmus.Operand, size int) uint64 {
	v := g.r[o.Reg]
	if o.High {
		v >>= 8
	}
	return v & mask(size)
}

// set writes a register or a part of it: four bytes clear the upper half, one
// or two leave the rest as it is (SDM volume 1, 3.4.1.1).
func (g *registers) set(o litmus.Operand, size int, v uint64) {
	v &= mask(size)
	old := g.r[o.Reg]
	switch {
	case o.High:
		v = old&^0xff00 | v<<8
	case size < 4:
		v |= old &^ mask(size)
	}
	g.r[o.Reg] = v
}

// address is the address of an operand in memory.
func (g *registers) address(t *litmus.Test, o litmus.Operand) uint64 {
	at := uint64(t.Number(o))
	if o.Reg != litmus.NoReg {
		at += g.r[o.Reg]
	}
	if o.Index != litmus.NoReg {
		at += g.r[o.Index] * uint64(o.Scale)
	}
	return at
}

// logic sets the flags as AND, OR, XOR and TEST do.
func (f *flags) logic(v uint64, size int) {
	v &= mask(size)
	*f = flags{p: bits.OnesCount8(uint8(v))%2 == 0, z: v == 0, s: sign(v, size)}
}

func (f *flags) add(a, b uint64, size int) uint64 {
	sum := (a + b) & mask(size)
	f.logic(sum, size)
	f.c = sum < a&mask(size)
	f.o = sign(^(a^b)&(a^sum), size)
	return sum
}

func (f *flags) sub(a, b uint64, size int) uint64 {
	difference := (a - b) & mask(size)
	f.logic(difference, size)
	f.c = a&mask(size) < b&mask(size)
	f.o = sign((a^b)&(a^difference), size)
	return difference
}

// holds evaluates a condition (SDM volume 1, appendix B).
func (f flags) holds(condition string) bool {
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

// compute is the result of an instruction that combines two values, or changes
// one, with the flags it sets.
func (f *flags) compute(op string, a, b uint64, size int) uint64 {
	carry := f.c
	switch op {
	case "add", "xadd":
		return f.add(a, b, size)
	case "sub", "cmp", "cmpxchg":
		return f.sub(a, b, size)
	case "and", "test":
		f.logic(a&b, size)
		return a & b
	case "or":
		f.logic(a|b, size)
		return a | b
	case "xor":
		f.logic(a^b, size)
		return a ^ b
	case "inc", "dec":
		v := uint64(0)
		if op == "inc" {
			v = f.add(a, 1, size)
		} else {
			v = f.sub(a, 1, size)
		}
		f.c = carry
		return v
	case "neg":
		return f.sub(0, a, size)
	case "not":
		return ^a
	}
	panic("bug: no operation " + op)
}
