package pt

import "encoding/binary"

// Kind is the kind of a packet. The names are the SDM's.
type Kind uint8

// The packets of SDM section "Packet Definitions". TNT stands for both the
// short and the long form.
const (
	PAD Kind = iota
	TNT
	TIP
	TIPPGE
	TIPPGD
	FUP
	PSB
	PSBEND
	PIP
	MODE
	TSC
	CBR
	TMA
	MTC
	CYC
	OVF
	TraceStop
	VMCS
	MNT
	PTW
	EXSTOP
	MWAIT
	PWRE
	PWRX
)

var kindNames = [...]string{
	"PAD", "TNT", "TIP", "TIP.PGE", "TIP.PGD", "FUP", "PSB", "PSBEND", "PIP", "MODE", "TSC", "CBR",
	"TMA", "MTC", "CYC", "OVF", "TraceStop", "VMCS", "MNT", "PTW", "EXSTOP", "MWAIT", "PWRE", "PWRX",
}

func (k Kind) String() string { return kindNames[k] }

// IPBytes says how an IP packet holds its address (SDM, table "FUP/TIP IP
// Reconstruction").
type IPBytes uint8

// The compressions of an address against the last one in the stream.
const (
	IPNone   IPBytes = 0 // no address: it is out of context
	IPLow16  IPBytes = 1 // 2 bytes, the rest as in the last IP
	IPLow32  IPBytes = 2 // 4 bytes, the rest as in the last IP
	IPSign48 IPBytes = 3 // 6 bytes, sign-extended
	IPLow48  IPBytes = 4 // 6 bytes, the rest as in the last IP
	IPFull   IPBytes = 6 // 8 bytes
)

// ipSizes is the length of the address by IPBytes, -1 where reserved.
var ipSizes = [8]int{0, 2, 4, 6, 6, -1, 8, -1}

// Opcodes: the first byte, or the second after extension. Those of the IP
// packets are the low five bits.
const (
	opTIP       = 0x0d
	opTIPPGE    = 0x11
	opTIPPGD    = 0x01
	opFUP       = 0x1d
	opMODE      = 0x99
	opTSC       = 0x19
	opMTC       = 0x59
	opCYC       = 0x03
	opExtension = 0x02

	extPSB       = 0x82
	extPSBEND    = 0x23
	extTNT       = 0xa3
	extPIP       = 0x43
	extCBR       = 0x03
	extTMA       = 0x73
	extOVF       = 0xf3
	extTraceStop = 0x83
	extVMCS      = 0xc8
	extMNT       = 0xc3
	ext2MNT      = 0x88
	extPTW       = 0x12 // low five bits
	extEXSTOP    = 0x62 // bit 7: an IP follows in a FUP
	extMWAIT     = 0xc2
	extPWRE      = 0x22
	extPWRX      = 0xa2
)

// Lengths in bytes.
const (
	sizePSB     = 16
	sizeTSC     = 8
	sizePIP     = 8
	sizeCBR     = 4
	sizeTMA     = 7
	sizeLongTNT = 8

	// maxShortTNT and maxLongTNT are the outcomes that fit into a TNT packet.
	maxShortTNT = 6
	maxLongTNT  = 47

	// MaxPacket is the length of the longest packet, a PSB.
	MaxPacket = sizePSB
)

// ModeExec64 is the payload of a MODE.Exec packet for 64-bit mode: leaf 0,
// CS.L set, CS.D clear.
const ModeExec64 = 0x01

// psb is the whole packet; no other sequence of packets contains it.
var psb = [sizePSB]byte{2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82}

// appendShortTNT appends the n lowest bits of bits, 1 to 6, oldest highest.
func appendShortTNT(b []byte, bits uint64, n int) []byte {
	return append(b, byte((1<<n|bits)<<1))
}

// appendLongTNT appends n bits, 1 to 47.
func appendLongTNT(b []byte, bits uint64, n int) []byte {
	return binary.LittleEndian.AppendUint64(b, longTNT(bits, n))
}

func putLongTNT(b []byte, bits uint64, n int) { binary.LittleEndian.PutUint64(b, longTNT(bits, n)) }

// longTNT is the packet in a word, whose lowest byte is the first.
func longTNT(bits uint64, n int) uint64 { return (1<<n|bits)<<16 | extTNT<<8 | opExtension }

const longTNTSize = 8

// appendIP appends an IP packet whose address is compressed against last in
// the way that makes it shortest.
func appendIP(b []byte, op byte, ip, last uint64) []byte {
	changed := ip ^ last
	switch {
	case changed>>16 == 0:
		return append(b, byte(IPLow16)<<5|op, byte(ip), byte(ip>>8))
	case changed>>32 == 0:
		return binary.LittleEndian.AppendUint32(append(b, byte(IPLow32)<<5|op), uint32(ip))
	case uint64(int64(ip)<<16>>16) == ip:
		return append(b, byte(IPSign48)<<5|op, byte(ip), byte(ip>>8), byte(ip>>16), byte(ip>>24), byte(ip>>32), byte(ip>>40))
	default:
		return binary.LittleEndian.AppendUint64(append(b, byte(IPFull)<<5|op), ip)
	}
}

// appendPIP appends a PIP with the page-table root, of which bits 5 to 51 are
// kept, outside of VMX non-root operation.
func appendPIP(b []byte, cr3 uint64) []byte {
	return binary.LittleEndian.AppendUint64(b, cr3>>5<<1<<16|extPIP<<8|opExtension)
}

func appendTSC(b []byte, tsc uint64) []byte {
	return binary.LittleEndian.AppendUint64(b, tsc<<8|opTSC)
}

func appendCBR(b []byte, ratio uint8) []byte {
	return append(b, opExtension, extCBR, ratio, 0)
}

// appendTMA appends the low 16 bits of the crystal clock's count and the TSC
// ticks since it last changed, of which 9 bits are kept.
func appendTMA(b []byte, ctc, fast uint64) []byte {
	return append(b, opExtension, extTMA, byte(ctc), byte(ctc>>8), 0, byte(fast), byte(fast>>8&1))
}

// appendCYC appends a count of core clock cycles in as few bytes as it needs.
func appendCYC(b []byte, cycles uint64) []byte {
	first := byte(cycles<<3) | opCYC
	cycles >>= 5
	if cycles == 0 {
		return append(b, first)
	}
	b = append(b, first|4)
	for ; cycles >= 1<<7; cycles >>= 7 {
		b = append(b, byte(cycles<<1)|1)
	}
	return append(b, byte(cycles<<1))
}
