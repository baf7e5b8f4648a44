package vex

import (
	"math"
)

// call calls a helper without side effects.
func (m *Machine) call(e *Call) Value {
	var a [6]uint64
	for i, arg := range e.Args {
		a[i] = m.eval(arg).Lo
	}
	switch e.Callee {
	case "amd64g_calculate_condition":
		return boolean(condition(a[0], m.flags(a[1:])))
	case "amd64g_calculate_rflags_all":
		return value(m.flags(a[:]))
	case "amd64g_calculate_rflags_c":
		return value(m.flags(a[:]) & flagC)
	case "amd64g_calculate_RCL":
		return rotateCarry(a, false)
	case "amd64g_calculate_RCR":
		return rotateCarry(a, true)
	case "amd64g_create_mxcsr":
		return value(uint64(m.MXCSR)&^0x6000 | a[0]&3<<13)
	case "amd64g_check_ldmxcsr":
		return value(a[0] >> 13 & 3) // with no warning in the upper half
	case "amd64g_create_fpucw":
		return value(0x037f | a[0]&3<<10)
	case "amd64g_check_fldcw":
		return value(a[0] >> 10 & 3)
	case "amd64g_calculate_FXAM":
		return value(examine(a[0], a[1]))
	case "amd64g_calculate_mmx_psadbw":
		return value(sumOfDifferences(a[0], a[1]))
	case "amd64g_calculate_mmx_pmaddwd":
		return value(multiplyAdd(a[0], a[1]))
	case "amd64g_calc_crc32b":
		return value(crc32c(a[0], a[1], 8))
	case "amd64g_calc_crc32w":
		return value(crc32c(a[0], a[1], 16))
	case "amd64g_calc_crc32l":
		return value(crc32c(a[0], a[1], 32))
	case "amd64g_calc_crc32q":
		return value(crc32c(a[0], a[1], 64))
	case "amd64g_calculate_sse_phminposuw":
		return value(smallestWord(Value{a[0], a[1]}))
	case "amd64g_calculate_pclmul":
		return value(carrylessHalf(a[0], a[1], a[2]))
	default:
		return m.fail("helper %s is not known", e.Callee)
	}
}

func (m *Machine) flags(a []uint64) uint64 {
	f, ok := flags(a[0], a[1], a[2], a[3])
	if !ok {
		m.fail("flags of operation %d are not known", a[0])
	}
	return f
}

// rotateCarry is RCL or RCR: arguments are the number, the count, the flags and
// the size in bytes. A negative size asks for the flags.
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
			x, c = low(x, n)>>1|c<<(n-1), x&1
		} else {
			x, c = low(x<<1, n)|c, x>>(n-1)&1
		}
	}
	if !right {
		over = (x>>(n-1)&1 != 0) != (c != 0)
	}
	if wantFlags {
		return value(f&^(flagC|flagO) | c | when(over, flagO))
	}
	return value(low(x, n))
}

// examine is FXAM's C3, C2, C1, C0, where FSTSW has them; the tag is 0 for an
// empty register.
func examine(tag, x uint64) uint64 {
	const c0, c1, c2, c3 = 1 << 8, 1 << 9, 1 << 10, 1 << 14
	sign := when(x>>63 != 0, c1)
	switch f := f64(x); {
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

func multiplyAdd(x, y uint64) uint64 {
	half := func(at int) uint64 {
		return low(uint64(signed(x>>at, 16)*signed(y>>at, 16)+signed(x>>(at+16), 16)*signed(y>>(at+16), 16)), 32)
	}
	return half(0) | half(32)<<32
}

// carrylessHalf is the low or, if which is not 0, the high half of the product
// without carries.
func carrylessHalf(x, y, which uint64) uint64 {
	var v Value
	for i := range 64 {
		if y>>i&1 != 0 {
			v.Lo ^= x << i
			v.Hi ^= x >> 1 >> (63 - i)
		}
	}
	return choose(which != 0, v.Hi, v.Lo)
}

// crc32c adds n bits to a CRC with the Castagnoli polynomial, reflected.
func crc32c(crc, x uint64, n int) uint64 {
	crc ^= low(x, n)
	for range n {
		crc = crc>>1 ^ when(crc&1 != 0, 0x82f63b78)
	}
	return crc
}

// smallestWord is PHMINPOSUW: the smallest word and where it is.
func smallestWord(v Value) uint64 {
	at := 0
	for i := range 8 {
		if v.lane(i, 16) < v.lane(at, 16) {
			at = i
		}
	}
	return v.lane(at, 16) | uint64(at)<<16
}

// dirty calls a helper with side effects.
func (m *Machine) dirty(s *Dirty) {
	if m.eval(s.Guard).Lo == 0 {
		return
	}
	switch s.Callee {
	case "amd64g_dirtyhelper_CPUID_sse42_and_cx16":
		m.cpuid()
	case "amd64g_dirtyhelper_loadF80le":
		m.temps[s.Temp] = value(m.loadExtended(m.eval(s.Args[0]).Lo))
	case "amd64g_dirtyhelper_storeF80le":
		m.storeExtended(m.eval(s.Args[0]).Lo, m.eval(s.Args[1]).Lo)
	case "amd64g_dirtyhelper_PCMPxSTRx":
		m.temps[s.Temp] = m.compareStrings(s.Args)
	case "amd64g_dirtyhelper_FINIT":
		m.initX87()
	case "amd64g_dirtyhelper_XSAVE_COMPONENT_0":
		m.saveX87(m.eval(s.Args[1]).Lo)
	case "amd64g_dirtyhelper_XRSTOR_COMPONENT_0":
		m.restoreX87(m.eval(s.Args[1]).Lo)
	case "amd64g_dirtyhelper_XSAVE_COMPONENT_1_EXCLUDING_XMMREGS":
		m.store(m.eval(s.Args[1]).Lo+imageMXCSR, value(uint64(m.mxcsr())|maskMXCSR<<32), 8)
	case "amd64g_dirtyhelper_XRSTOR_COMPONENT_1_EXCLUDING_XMMREGS":
		m.MXCSR = uint32(m.load(m.eval(s.Args[1]).Lo+imageMXCSR, 4).Lo)
		m.State.SetWord(OffsetRound, uint64(m.MXCSR>>13&3))
	case "amd64g_dirtyhelper_RDTSC":
		m.temps[s.Temp] = m.timeStamp()
	default:
		m.fail("helper %s is not known", s.Callee)
	}
}

func (m *Machine) cpuid() {
	if m.CPUID == nil {
		m.fail("nobody answers CPUID")
		return
	}
	const rax, rcx, rdx, rbx = OffsetRAX, OffsetRAX + 8, OffsetRAX + 16, OffsetRAX + 24
	r := m.CPUID(uint32(m.State.Word(rax)), uint32(m.State.Word(rcx)))
	for i, offset := range []int{rax, rbx, rcx, rdx} {
		m.State.SetWord(offset, uint64(r[i]))
	}
}

func (m *Machine) timeStamp() Value {
	if m.TSC == nil {
		return m.fail("nobody answers RDTSC")
	}
	return value(m.TSC())
}
