package vex

import "math"

// initX87 is FNINIT.
func (m *Machine) initX87() {
	m.State.put(OffsetFTop, I32, value(0))
	clear(m.State[OffsetFPTag : OffsetFPTag+8])
	clear(m.State[OffsetFPReg : OffsetFPReg+64])
	m.State.SetWord(OffsetFPRound, 0)
	m.State.SetWord(OffsetFC3210, 0)
}

// The beginning of FXSAVE's image (SDM volume 1, table 10-2): control, status and
// tag word, and the registers from the top of the stack on, 16 bytes each.
const (
	imageControl = 0
	imageStatus  = 2
	imageTags    = 4
	imageMXCSR   = 24
	imageStack   = 32
)

// maskMXCSR are the bits that MXCSR has.
const maskMXCSR = 0xffff

// mxcsr is MXCSR, the rounding mode of which is in the state.
func (m *Machine) mxcsr() uint32 {
	return m.MXCSR&^0x6000 | uint32(m.State.Word(OffsetRound)&3<<13)
}

// saveX87 stores the x87's part of an FXSAVE image: what the state has of it. The
// processor also tells the last instruction's address, here 0, and opcode, which
// like the engine's is not stored.
func (m *Machine) saveX87(addr uint64) {
	top := int(m.State.get(OffsetFTop, I32).Lo & 7)
	m.store(addr+imageControl, value(0x37f|m.State.Word(OffsetFPRound)&3<<10), 2)
	m.store(addr+imageStatus, value(m.State.Word(OffsetFC3210)&0x4700|uint64(top)<<11), 2)
	tags := uint64(0)
	for i := range 8 {
		tags |= when(m.State[OffsetFPTag+i] != 0, 1<<i)
	}
	m.store(addr+imageTags, value(tags), 2)
	m.store(addr+8, Value{}, 16)
	for i := range 8 {
		m.storeExtended(addr+imageStack+uint64(16*i), m.State.Word(OffsetFPReg+8*((top+i)&7)))
	}
}

// restoreX87 is the counterpart.
func (m *Machine) restoreX87(addr uint64) {
	m.State.SetWord(OffsetFPRound, m.load(addr+imageControl, 2).Lo>>10&3)
	status := m.load(addr+imageStatus, 2).Lo
	m.State.SetWord(OffsetFC3210, status&0x4700)
	top := int(status >> 11 & 7)
	m.State.put(OffsetFTop, I32, value(uint64(top)))
	tags := m.load(addr+imageTags, 1).Lo
	for i := range 8 {
		m.State[OffsetFPTag+i] = byte(tags >> i & 1)
		m.State.SetWord(OffsetFPReg+8*((top+i)&7), m.loadExtended(addr+imageStack+uint64(16*i)))
	}
}

const (
	extendedBias = 16383
	integerBit   = 1 << 63
)

// loadExtended loads an 80-bit number, rounded to 64 bits.
func (m *Machine) loadExtended(addr uint64) uint64 {
	mantissa := m.load(addr, 8).Lo
	return RoundExtended(mantissa, uint16(m.load(addr+8, 2).Lo))
}

// RoundExtended rounds an 80-bit number, its mantissa and its sign with the
// exponent, to 64 bits.
func RoundExtended(mantissa uint64, signExponent uint16) uint64 {
	head := uint64(signExponent)
	sign, exponent := head>>15<<63, int(head&0x7fff)
	switch {
	case exponent == 0x7fff && mantissa<<1 == 0:
		return sign | 0x7ff<<52
	case exponent == 0x7fff:
		return sign | 0x7ff<<52 | quietBit64 | mantissa<<1>>12
	case mantissa == 0:
		return sign
	}
	// In two steps: the mantissa first, exactly, then the exponent.
	x := math.Ldexp(math.Float64frombits(roundMantissa(mantissa, exponent-extendedBias)), exponent-extendedBias-63)
	return sign | math.Float64bits(x)
}

// roundMantissa rounds 64 bits to the bits that a number with the exponent has
// in 64-bit form, to the nearest or even one.
func roundMantissa(mantissa uint64, exponent int) uint64 {
	keep := 53
	if exponent < -1022 {
		keep = max(0, 53+exponent+1022)
	}
	drop := 64 - keep
	if drop >= 64 {
		return math.Float64bits(choosef(mantissa > 1<<63, math.Ldexp(1, 64), 0))
	}
	half := uint64(1) << (drop - 1)
	rest, kept := low(mantissa, drop), mantissa>>drop
	if rest > half || rest == half && kept&1 != 0 {
		kept++
	}
	return math.Float64bits(math.Ldexp(float64(kept), drop))
}

func choosef(c bool, x, y float64) float64 {
	if c {
		return x
	}
	return y
}

// storeExtended stores a 64-bit number as one of 80 bits, which is exact.
func (m *Machine) storeExtended(addr, x uint64) {
	head := x >> 63 << 15
	mantissa := x << 11
	switch f := f64(x); {
	case f == 0:
	case math.IsInf(f, 0) || math.IsNaN(f):
		head |= 0x7fff
		mantissa |= integerBit
	default:
		fraction, exponent := math.Frexp(math.Abs(f))
		head |= uint64(exponent - 1 + extendedBias)
		mantissa = uint64(math.Ldexp(fraction, 53)) << 11
	}
	m.store(addr, value(mantissa), 8)
	m.store(addr+8, value(head), 2)
}
