package vex

import "math/bits"

// stringCompare is PCMPESTRM, PCMPESTRI, PCMPISTRM and PCMPISTRI (SDM volume 1,
// section 5.12.1, and volume 2, section 4.1). First and second are the operands
// as they are written.
type stringCompare struct {
	control       uint64 // the immediate
	first, second Value
	// How many elements of each count.
	lengthFirst, lengthSecond int
}

func (c *stringCompare) elementBits() int { return 8 << (c.control & 1) }

func (c *stringCompare) elements() int { return 128 / c.elementBits() }

// implicitLength is the number of elements before the first that is zero.
func (c *stringCompare) implicitLength(v Value) int {
	for i := range c.elements() {
		if v.lane(i, c.elementBits()) == 0 {
			return i
		}
	}
	return c.elements()
}

// explicitLength is the absolute value of a register, limited.
func (c *stringCompare) explicitLength(register uint64) int {
	n := int64(int32(register))
	return int(min(max(n, -n), int64(c.elements())))
}

// element is one as a number, with a sign if the comparison has.
func (c *stringCompare) element(v Value, i int) int64 {
	x := v.lane(i, c.elementBits())
	if c.control&2 != 0 {
		return signed(x, c.elementBits())
	}
	return int64(x)
}

// matches is what the aggregation says of an element of the second operand.
func (c *stringCompare) matches(j int) bool {
	valid := j < c.lengthSecond
	switch c.control >> 2 & 3 {
	case 0: // equal any
		for i := range c.lengthFirst {
			if valid && c.element(c.first, i) == c.element(c.second, j) {
				return true
			}
		}
		return false
	case 1: // ranges
		for i := 0; i+1 < c.lengthFirst; i += 2 {
			x := c.element(c.second, j)
			if valid && c.element(c.first, i) <= x && x <= c.element(c.first, i+1) {
				return true
			}
		}
		return false
	case 2: // equal each
		if !valid || j >= c.lengthFirst {
			return !valid && j >= c.lengthFirst
		}
		return c.element(c.first, j) == c.element(c.second, j)
	default: // equal ordered
		for i := 0; i < c.lengthFirst && i+j < c.elements(); i++ {
			if i+j >= c.lengthSecond || c.element(c.first, i) != c.element(c.second, i+j) {
				return false
			}
		}
		return true
	}
}

// mask is a bit for each element, with the polarity.
func (c *stringCompare) mask() uint64 {
	var m uint64
	for j := range c.elements() {
		if c.matches(j) {
			m |= 1 << j
		}
	}
	switch c.control >> 4 & 3 {
	case 1:
		m ^= 1<<c.elements() - 1
	case 3:
		m ^= 1<<c.lengthSecond - 1
	}
	return m
}

func (c *stringCompare) flags(m uint64) uint64 {
	return when(m != 0, flagC) | when(c.lengthSecond < c.elements(), flagZ) |
		when(c.lengthFirst < c.elements(), flagS) | when(m&1 != 0, flagO)
}

// index is the least or the most significant bit of a mask.
func (c *stringCompare) index(m uint64) uint64 {
	switch {
	case m == 0:
		return uint64(c.elements())
	case c.control&0x40 != 0:
		return uint64(bits.Len64(m) - 1)
	default:
		return uint64(bits.TrailingZeros64(m))
	}
}

// expanded is the mask as a vector: bits, or whole elements.
func (c *stringCompare) expanded(m uint64) Value {
	if c.control&0x40 == 0 {
		return value(m)
	}
	var v Value
	for i := range c.elements() {
		v.setLane(i, c.elementBits(), -(m >> i & 1))
	}
	return v
}

// compareStrings is libVEX's helper of the four instructions: arguments are the
// state, the last byte of the opcode above the immediate, where in the state the
// second operand and the first are, EDX and EAX. The result is the flags and, above
// 16 bits, the index if it is one.
func (m *Machine) compareStrings(args []Expr) Value {
	var a [6]uint64
	for i, e := range args[1:] {
		a[i] = m.eval(e).Lo
	}
	opcode := a[0] >> 8
	c := &stringCompare{control: a[0] & 0xff, second: m.State.get(int(a[1]), V128), first: m.State.get(int(a[2]), V128)}
	if implicit := opcode&2 != 0; implicit {
		c.lengthFirst, c.lengthSecond = c.implicitLength(c.first), c.implicitLength(c.second)
	} else {
		c.lengthFirst, c.lengthSecond = c.explicitLength(a[4]), c.explicitLength(a[3])
	}
	mask := c.mask()
	result := c.flags(mask)
	if index := opcode&1 != 0; index {
		return value(result | c.index(mask)<<16)
	}
	m.State.put(OffsetXMM, V128, c.expanded(mask))
	return value(result)
}
