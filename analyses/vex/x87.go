package vex

import "math"

// initX87 is FNINIT.
func (m *Machine) initX87() {
	m.State.writeTyped(OffsetFTop, I32, wordValue(0))
	clear(m.State[OffsetFPTag : OffsetFPTag+8])
	clear(m.State[OffsetFPReg : OffsetFPReg+64])
	m.State.SetWord(OffsetFPRound, 0)
	m.State.SetWord(OffsetFC3210, 0)
}

// The beginning of FXSAVE's image (SDM volume 1, table 10-2): control, status and tag word,
// and the registers from the top of the stack on, 16 bytes each.
const (
	imageControl = 0
	imageStatus  = 2
	imageTags    = 4
	imageMXCSR   = 24
	imageStack   = 32
)

// maskMXCSR are the bits that MXCSR has.
const maskMXCSR = 0xffff

// mxcsrValue is MXCSR; its rounding mode is in the state.
func (m *Machine) mxcsrValue() uint32 {
	return m.MXCSR&^0x6000 | uint32(m.State.Word(OffsetRound)&3<<13)
}

// saveX87 stores the x87's part of an FXSAVE image, as far as the state has it. The
// processor also stores the last instruction's address, here 0, and its opcode, which is
// left out here as in the engine.
func (m *Machine) saveX87(addr uint64) {
	top := int(m.State.readTyped(OffsetFTop, I32).Lo & 7)
	m.storeMemory(addr+imageControl, wordValue(0x37f|m.State.Word(OffsetFPRound)&3<<10), 2)
	m.storeMemory(addr+imageStatus, wordValue(m.State.Word(OffsetFC3210)&0x4700|uint64(top)<<11), 2)
	tags := uint64(0)
	for i := range 8 {
		tags |= flagIf(m.State[OffsetFPTag+i] != 0, 1<<i)
	}
	m.storeMemory(addr+imageTags, wordValue(tags), 2)
	m.storeMemory(addr+8, Value{}, 16)
	for i := range 8 {
		m.storeExtended(addr+imageStack+uint64(16*i), m.State.Word(OffsetFPReg+8*((top+i)&7)))
	}
}

// restoreX87 loads the x87's part of an FXSAVE image.
func (m *Machine) restoreX87(addr uint64) {
	m.State.SetWord(OffsetFPRound, m.loadMemory(addr+imageControl, 2).Lo>>10&3)
	status := m.loadMemory(addr+imageStatus, 2).Lo
	m.State.SetWord(OffsetFC3210, status&0x4700)
	top := int(status >> 11 & 7)
	m.State.writeTyped(OffsetFTop, I32, wordValue(uint64(top)))
	tags := m.loadMemory(addr+imageTags, 1).Lo
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
	mantissa := m.loadMemory(addr, 8).Lo
	return RoundExtended(mantissa, uint16(m.loadMemory(addr+8, 2).Lo))
}

// RoundExtended rounds an 80-bit number, given as its mantissa and its sign with the
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

// roundMantissa rounds 64 bits to the mantissa of a 64-bit number with the exponent, to the
// nearest or even one.
func roundMantissa(mantissa uint64, exponent int) uint64 {
	keep := 53
	if exponent < -1022 {
		keep = max(0, 53+exponent+1022)
	}
	drop := 64 - keep
	if drop >= 64 {
		return math.Float64bits(chooseFloat(mantissa > 1<<63, math.Ldexp(1, 64), 0))
	}
	half := uint64(1) << (drop - 1)
	rest, kept := lowBits(mantissa, drop), mantissa>>drop
	if rest > half || rest == half && kept&1 != 0 {
		kept++
	}
	return math.Float64bits(math.Ldexp(float64(kept), drop))
}

func chooseFloat(c bool, x, y float64) float64 {
	if c {
		return x
	}
	return y
}

// storeExtended stores a 64-bit number as one of 80 bits, which is exact.
func (m *Machine) storeExtended(addr, x uint64) {
	head := x >> 63 << 15
	mantissa := x << 11
	switch f := float64Of(x); {
	case f == 0:
	case math.IsInf(f, 0) || math.IsNaN(f):
		head |= 0x7fff
		mantissa |= integerBit
	default:
		fraction, exponent := math.Frexp(math.Abs(f))
		head |= uint64(exponent - 1 + extendedBias)
		mantissa = uint64(math.Ldexp(fraction, 53)) << 11
	}
	m.storeMemory(addr, wordValue(mantissa), 8)
	m.storeMemory(addr+8, wordValue(head), 2)
}
