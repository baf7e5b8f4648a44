package vex

import "math/bits"

// stringCompare is PCMPESTRM, PCMPESTRI, PCMPISTRM and PCMPISTRI (SDM volume 1, section
// 5.12.1, and volume 2, section 4.1). First and second are the operands in written order.
type stringCompare struct {
	control       uint64 // the immediate
	first, second Value
	// The number of valid elements of each.
	lengthFirst, lengthSecond int
}

func (c *stringCompare) elementBits() int { return 8 << (c.control & 1) }

func (c *stringCompare) numElements() int { return 128 / c.elementBits() }

// implicitLength is the number of elements before the first that is zero.
func (c *stringCompare) implicitLength(v Value) int {
	for i := range c.numElements() {
		if v.laneOf(i, c.elementBits()) == 0 {
			return i
		}
	}
	return c.numElements()
}

// explicitLength is the absolute value of a register, limited.
func (c *stringCompare) explicitLength(register uint64) int {
	n := int64(int32(register))
	return int(min(max(n, -n), int64(c.numElements())))
}

// elementValue is an element as a number, signed if the comparison is.
func (c *stringCompare) elementValue(v Value, i int) int64 {
	x := v.laneOf(i, c.elementBits())
	if c.control&2 != 0 {
		return signedBits(x, c.elementBits())
	}
	return int64(x)
}

// elementMatches reports the result of the aggregation for an element of the second
// operand.
func (c *stringCompare) elementMatches(j int) bool {
	valid := j < c.lengthSecond
	switch c.control >> 2 & 3 {
	case 0: // equal any
		for i := range c.lengthFirst {
			if valid && c.elementValue(c.first, i) == c.elementValue(c.second, j) {
				return true
			}
		}
		return false
	case 1: // ranges
		for i := 0; i+1 < c.lengthFirst; i += 2 {
			x := c.elementValue(c.second, j)
			if valid && c.elementValue(c.first, i) <= x && x <= c.elementValue(c.first, i+1) {
				return true
			}
		}
		return false
	case 2: // equal each
		if !valid || j >= c.lengthFirst {
			return !valid && j >= c.lengthFirst
		}
		return c.elementValue(c.first, j) == c.elementValue(c.second, j)
	default: // equal ordered
		for i := 0; i < c.lengthFirst && i+j < c.numElements(); i++ {
			if i+j >= c.lengthSecond || c.elementValue(c.first, i) != c.elementValue(c.second, i+j) {
				return false
			}
		}
		return true
	}
}

// resultMask is a bit for each element, with the polarity.
func (c *stringCompare) resultMask() uint64 {
	var m uint64
	for j := range c.numElements() {
		if c.elementMatches(j) {
			m |= 1 << j
		}
	}
	switch c.control >> 4 & 3 {
	case 1:
		m ^= 1<<c.numElements() - 1
	case 3:
		m ^= 1<<c.lengthSecond - 1
	}
	return m
}

func (c *stringCompare) resultFlags(m uint64) uint64 {
	return flagIf(m != 0, flagC) | flagIf(c.lengthSecond < c.numElements(), flagZ) |
		flagIf(c.lengthFirst < c.numElements(), flagS) | flagIf(m&1 != 0, flagO)
}

// resultIndex is the index of the least or the most significant bit of a mask.
func (c *stringCompare) resultIndex(m uint64) uint64 {
	switch {
	case m == 0:
		return uint64(c.numElements())
	case c.control&0x40 != 0:
		return uint64(bits.Len64(m) - 1)
	default:
		return uint64(bits.TrailingZeros64(m))
	}
}

// expandMask is the mask as a vector: bits, or whole elements.
func (c *stringCompare) expandMask(m uint64) Value {
	if c.control&0x40 == 0 {
		return wordValue(m)
	}
	var v Value
	for i := range c.numElements() {
		v.setLane(i, c.elementBits(), -(m >> i & 1))
	}
	return v
}

// compareStrings is libVEX's helper of the four instructions: the arguments are the state,
// the last byte of the opcode above the immediate, the offsets of the second and the first
// operand in the state, EDX and EAX. The result is the flags and, above 16 bits, the index
// if there is one.
func (m *Machine) compareStrings(args []Expr) Value {
	var a [6]uint64
	for i, e := range args[1:] {
		a[i] = m.evaluate(e).Lo
	}
	opcode := a[0] >> 8
	c := &stringCompare{control: a[0] & 0xff, second: m.State.readTyped(int(a[1]), V128), first: m.State.readTyped(int(a[2]), V128)}
	if implicit := opcode&2 != 0; implicit {
		c.lengthFirst, c.lengthSecond = c.implicitLength(c.first), c.implicitLength(c.second)
	} else {
		c.lengthFirst, c.lengthSecond = c.explicitLength(a[4]), c.explicitLength(a[3])
	}
	mask := c.resultMask()
	result := c.resultFlags(mask)
	if index := opcode&1 != 0; index {
		return wordValue(result | c.resultIndex(mask)<<16)
	}
	m.State.writeTyped(OffsetXMM, V128, c.expandMask(mask))
	return wordValue(result)
}
