package vex

import (
	"math"
)

// callHelper calls a helper without side effects.
func (m *Machine) callHelper(e *Call) Value {
	var a [6]uint64
	for i, arg := range e.Args {
		a[i] = m.evaluate(arg).Lo
	}
	switch e.Callee {
	case "amd64g_calculate_condition":
		return boolValue(conditionHolds(a[0], m.computeFlags(a[1:])))
	case "amd64g_calculate_rflags_all":
		return wordValue(m.computeFlags(a[:]))
	case "amd64g_calculate_rflags_c":
		return wordValue(m.computeFlags(a[:]) & flagC)
	case "amd64g_calculate_RCL":
		return rotateCarry(a, false)
	case "amd64g_calculate_RCR":
		return rotateCarry(a, true)
	case "amd64g_create_mxcsr":
		return wordValue(uint64(m.MXCSR)&^0x6000 | a[0]&3<<13)
	case "amd64g_check_ldmxcsr":
		return wordValue(a[0] >> 13 & 3) // with no warning in the upper half
	case "amd64g_create_fpucw":
		return wordValue(0x037f | a[0]&3<<10)
	case "amd64g_check_fldcw":
		return wordValue(a[0] >> 10 & 3)
	case "amd64g_calculate_FXAM":
		return wordValue(examineX87(a[0], a[1]))
	case "amd64g_calculate_mmx_psadbw":
		return wordValue(sumOfDifferences(a[0], a[1]))
	case "amd64g_calculate_mmx_pmaddwd":
		return wordValue(multiplyAddWords(a[0], a[1]))
	case "amd64g_calc_crc32b":
		return wordValue(crc32Castagnoli(a[0], a[1], 8))
	case "amd64g_calc_crc32w":
		return wordValue(crc32Castagnoli(a[0], a[1], 16))
	case "amd64g_calc_crc32l":
		return wordValue(crc32Castagnoli(a[0], a[1], 32))
	case "amd64g_calc_crc32q":
		return wordValue(crc32Castagnoli(a[0], a[1], 64))
	case "amd64g_calculate_sse_phminposuw":
		return wordValue(smallestWord(Value{a[0], a[1]}))
	case "amd64g_calculate_pclmul":
		return wordValue(carrylessProductHalf(a[0], a[1], a[2]))
	default:
		return m.setError("helper %s is not known", e.Callee)
	}
}

func (m *Machine) computeFlags(a []uint64) uint64 {
	f, ok := thunkFlags(a[0], a[1], a[2], a[3])
	if !ok {
		m.setError("flags of operation %d are not known", a[0])
	}
	return f
}

// rotateCarry is RCL or RCR: the arguments are the number, the count, the flags and the
// size in bytes. A negative size asks for the flags.
func rotateCarry(a [6]uint64, right bool) Value {
	x, f, size := a[0], a[2], int64(a[3])
	wantFlags := size < 0
	n := int(max(size, -size)) * 8
	count := int(a[1] & 31)
	if n == 64 {
		count = int(a[1] & 63)
	}
	count %= n + 1
	c := f & flagC
	var over bool
	if right {
		over = (x>>(n-1)&1 != 0) != (c != 0)
	}
	for range count {
		if right {
			x, c = lowBits(x, n)>>1|c<<(n-1), x&1
		} else {
			x, c = lowBits(x<<1, n)|c, x>>(n-1)&1
		}
	}
	if !right {
		over = (x>>(n-1)&1 != 0) != (c != 0)
	}
	if wantFlags {
		return wordValue(f&^(flagC|flagO) | c | flagIf(over, flagO))
	}
	return wordValue(lowBits(x, n))
}

// examineX87 returns FXAM's C3, C2, C1, C0, where FSTSW has them; the tag is 0 for an empty
// register.
func examineX87(tag, x uint64) uint64 {
	const c0, c1, c2, c3 = 1 << 8, 1 << 9, 1 << 10, 1 << 14
	sign := flagIf(x>>63 != 0, c1)
	switch f := float64Of(x); {
	case tag == 0:
		return c3 | sign | c0
	case f == 0:
		return c3 | sign
	case math.IsNaN(f):
		return sign | c0
	case math.IsInf(f, 0):
		return c2 | sign | c0
	case x<<1>>53 == 0:
		return c3 | c2 | sign
	default:
		return c2 | sign
	}
}

func sumOfDifferences(x, y uint64) uint64 {
	var sum uint64
	for i := 0; i < 64; i += 8 {
		a, b := x>>i&0xff, y>>i&0xff
		sum += max(a, b) - min(a, b)
	}
	return sum
}

func multiplyAddWords(x, y uint64) uint64 {
	half := func(at int) uint64 {
		return lowBits(uint64(signedBits(x>>at, 16)*signedBits(y>>at, 16)+signedBits(x>>(at+16), 16)*signedBits(y>>(at+16), 16)), 32)
	}
	return half(0) | half(32)<<32
}

// carrylessProductHalf is the low or, if which is not 0, the high half of the carry-less
// product.
func carrylessProductHalf(x, y, which uint64) uint64 {
	var v Value
	for i := range 64 {
		if y>>i&1 != 0 {
			v.Lo ^= x << i
			v.Hi ^= x >> 1 >> (63 - i)
		}
	}
	return chooseWord(which != 0, v.Hi, v.Lo)
}

// crc32Castagnoli adds n bits to a CRC with the Castagnoli polynomial, reflected.
func crc32Castagnoli(crc, x uint64, n int) uint64 {
	crc ^= lowBits(x, n)
	for range n {
		crc = crc>>1 ^ flagIf(crc&1 != 0, 0x82f63b78)
	}
	return crc
}

// smallestWord is PHMINPOSUW: the smallest word and its index.
func smallestWord(v Value) uint64 {
	at := 0
	for i := range 8 {
		if v.laneOf(i, 16) < v.laneOf(at, 16) {
			at = i
		}
	}
	return v.laneOf(at, 16) | uint64(at)<<16
}

// callDirtyHelper calls a helper with side effects.
func (m *Machine) callDirtyHelper(s *Dirty) {
	if m.evaluate(s.Guard).Lo == 0 {
		return
	}
	switch s.Callee {
	case "amd64g_dirtyhelper_CPUID_sse42_and_cx16":
		m.setCPUID()
	case "amd64g_dirtyhelper_loadF80le":
		m.temps[s.Temp] = wordValue(m.loadExtended(m.evaluate(s.Args[0]).Lo))
	case "amd64g_dirtyhelper_storeF80le":
		m.storeExtended(m.evaluate(s.Args[0]).Lo, m.evaluate(s.Args[1]).Lo)
	case "amd64g_dirtyhelper_PCMPxSTRx":
		m.temps[s.Temp] = m.compareStrings(s.Args)
	case "amd64g_dirtyhelper_FINIT":
		m.initX87()
	case "amd64g_dirtyhelper_XSAVE_COMPONENT_0":
		m.saveX87(m.evaluate(s.Args[1]).Lo)
	case "amd64g_dirtyhelper_XRSTOR_COMPONENT_0":
		m.restoreX87(m.evaluate(s.Args[1]).Lo)
	case "amd64g_dirtyhelper_XSAVE_COMPONENT_1_EXCLUDING_XMMREGS":
		m.storeMemory(m.evaluate(s.Args[1]).Lo+imageMXCSR, wordValue(uint64(m.mxcsrValue())|maskMXCSR<<32), 8)
	case "amd64g_dirtyhelper_XRSTOR_COMPONENT_1_EXCLUDING_XMMREGS":
		m.MXCSR = uint32(m.loadMemory(m.evaluate(s.Args[1]).Lo+imageMXCSR, 4).Lo)
		m.State.SetWord(OffsetRound, uint64(m.MXCSR>>13&3))
	case "amd64g_dirtyhelper_RDTSC":
		m.temps[s.Temp] = m.readTSC()
	default:
		m.setError("helper %s is not known", s.Callee)
	}
}

func (m *Machine) setCPUID() {
	if m.CPUID == nil {
		m.setError("nobody answers CPUID")
		return
	}
	const rax, rcx, rdx, rbx = OffsetRAX, OffsetRAX + 8, OffsetRAX + 16, OffsetRAX + 24
	r := m.CPUID(uint32(m.State.Word(rax)), uint32(m.State.Word(rcx)))
	for i, offset := range []int{rax, rbx, rcx, rdx} {
		m.State.SetWord(offset, uint64(r[i]))
	}
}

func (m *Machine) readTSC() Value {
	if m.TSC == nil {
		return m.setError("nobody answers RDTSC")
	}
	return wordValue(m.TSC())
}
