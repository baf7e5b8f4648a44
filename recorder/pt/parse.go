package pt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
)

// Packet is one packet of a stream.
type Packet struct {
	Kind Kind
	// Size is its length in bytes.
	Size int
	// Value is the payload: of a TNT the outcomes, the oldest highest; of an IP
	// packet the bytes of the address as they stand in the stream (Resolve makes
	// an address of them); of a PIP the page-table root; of a MODE the payload
	// byte; of TSC, CYC and MTC the count; of a CBR the ratio; of a TMA the
	// crystal clock's count. Other packets' payloads are not kept.
	Value uint64
	// Aux is the number of a TNT's outcomes, the IPBytes of an IP packet, a TMA's
	// fast counter, and 1 for a PTW or EXSTOP that a FUP follows and for a PIP in
	// VMX non-root operation.
	Aux uint16
}

// Errors of Parse.
var (
	// ErrShort: the bytes end within a packet.
	ErrShort = errors.New("the stream ends within a packet")
	// ErrOpcode: no packet begins with this byte or these bytes.
	ErrOpcode = errors.New("no packet begins like this")
	// ErrPayload: the packet's kind is known, its payload is reserved.
	ErrPayload = errors.New("reserved payload")
)

// Parse reads the packet at the beginning of b, as the SDM's section "Packet
// Definitions" lays it out. It allocates nothing. On an error the Packet has
// its Kind if the opcode was read.
func Parse(b []byte) (Packet, error) {
	if len(b) == 0 {
		return Packet{}, ErrShort
	}
	op := b[0]
	switch {
	case op == 0:
		return Packet{Kind: PAD, Size: 1}, nil
	case op == opExtension:
		return parseExtended(b)
	case op&1 == 0:
		n := bits.Len8(op) - 2 // without bit 0 and the stop bit
		return Packet{Kind: TNT, Size: 1, Value: uint64(op>>1) &^ (1 << n), Aux: uint16(n)}, nil
	case op&3 == opCYC:
		return parseCYC(b)
	case op == opMODE:
		return parseMODE(b)
	case op == opTSC:
		if len(b) < sizeTSC {
			return Packet{Kind: TSC}, ErrShort
		}
		return Packet{Kind: TSC, Size: sizeTSC, Value: binary.LittleEndian.Uint64(b) >> 8}, nil
	case op == opMTC:
		if len(b) < 2 {
			return Packet{Kind: MTC}, ErrShort
		}
		return Packet{Kind: MTC, Size: 2, Value: uint64(b[1])}, nil
	}
	return parseIP(b)
}

// parseIP reads a TIP, TIP.PGE, TIP.PGD or FUP.
func parseIP(b []byte) (Packet, error) {
	var p Packet
	switch b[0] & 0x1f {
	case opTIP:
		p.Kind = TIP
	case opTIPPGE:
		p.Kind = TIPPGE
	case opTIPPGD:
		p.Kind = TIPPGD
	case opFUP:
		p.Kind = FUP
	default:
		return p, ErrOpcode
	}
	p.Aux = uint16(b[0] >> 5)
	n := ipSizes[p.Aux]
	if n < 0 {
		return p, ErrPayload
	}
	if len(b) < 1+n {
		return p, ErrShort
	}
	p.Size = 1 + n
	p.Value = littleEndian(b[1:p.Size])
	return p, nil
}

// littleEndian reads up to eight bytes, the lowest first.
func littleEndian(b []byte) uint64 {
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}

// Resolve returns the address of an IP packet after one that stood for last,
// and whether it has one (SDM, table "FUP/TIP IP Reconstruction").
func (p Packet) Resolve(last uint64) (ip uint64, ok bool) {
	switch IPBytes(p.Aux) {
	case IPLow16:
		return last&^0xffff | p.Value, true
	case IPLow32:
		return last&^0xffffffff | p.Value, true
	case IPSign48:
		return uint64(int64(p.Value) << 16 >> 16), true
	case IPLow48:
		return last&^(1<<48-1) | p.Value, true
	case IPFull:
		return p.Value, true
	}
	return last, false
}

func parseMODE(b []byte) (Packet, error) {
	if len(b) < 2 {
		return Packet{Kind: MODE}, ErrShort
	}
	if leaf := b[1] >> 5; leaf > 1 {
		return Packet{Kind: MODE}, ErrPayload
	}
	return Packet{Kind: MODE, Size: 2, Value: uint64(b[1])}, nil
}

func parseCYC(b []byte) (Packet, error) {
	p := Packet{Kind: CYC, Value: uint64(b[0] >> 3), Size: 1}
	more := b[0]&4 != 0
	for shift := 5; more; shift += 7 {
		if p.Size == len(b) {
			return p, ErrShort
		}
		if shift > 64-7 {
			return p, ErrPayload
		}
		p.Value |= uint64(b[p.Size]>>1) << shift
		more = b[p.Size]&1 != 0
		p.Size++
	}
	return p, nil
}

// extended are the packets after the extension byte that have a fixed length.
var extended = [256]struct {
	kind Kind
	size int
}{
	extPSB:           {PSB, sizePSB},
	extPSBEND:        {PSBEND, 2},
	extTNT:           {TNT, sizeLongTNT},
	extPIP:           {PIP, sizePIP},
	extCBR:           {CBR, sizeCBR},
	extTMA:           {TMA, sizeTMA},
	extOVF:           {OVF, 2},
	extTraceStop:     {TraceStop, 2},
	extVMCS:          {VMCS, 7},
	extMNT:           {MNT, 11},
	extEXSTOP:        {EXSTOP, 2},
	extEXSTOP | 0x80: {EXSTOP, 2},
	extMWAIT:         {MWAIT, 10},
	extPWRE:          {PWRE, 4},
	extPWRX:          {PWRX, 7},
}

func parseExtended(b []byte) (Packet, error) {
	if len(b) < 2 {
		return Packet{}, ErrShort
	}
	ext := b[1]
	if ext&0x1f == extPTW {
		return parsePTW(b)
	}
	p := Packet{Kind: extended[ext].kind, Size: extended[ext].size}
	if p.Size == 0 {
		return p, ErrOpcode
	}
	if p.Kind == MNT && len(b) > 2 && b[2] != ext2MNT {
		return p, ErrOpcode
	}
	if len(b) < p.Size {
		return p, ErrShort
	}
	switch p.Kind {
	case PSB:
		if !bytes.Equal(b[:sizePSB], psb[:]) {
			return p, ErrPayload
		}
	case TNT:
		return parseLongTNT(b)
	case PIP:
		p.Value, p.Aux = binary.LittleEndian.Uint64(b)>>17<<5, uint16(b[2]&1)
	case CBR:
		p.Value = uint64(b[2])
		if p.Value == 0 { // a core that runs has a clock
			return p, ErrPayload
		}
	case TMA:
		p.Value, p.Aux = uint64(b[2])|uint64(b[3])<<8, uint16(b[5])|uint16(b[6])<<8
		if p.Aux>>9 != 0 || b[4] != 0 {
			return p, ErrPayload
		}
	case EXSTOP:
		p.Aux = uint16(ext >> 7)
	}
	return p, nil
}

func parseLongTNT(b []byte) (Packet, error) {
	payload := binary.LittleEndian.Uint64(b) >> 16
	n := bits.Len64(payload) - 1
	if n < 1 {
		return Packet{Kind: TNT}, ErrPayload
	}
	return Packet{Kind: TNT, Size: sizeLongTNT, Value: payload &^ (1 << n), Aux: uint16(n)}, nil
}

func parsePTW(b []byte) (Packet, error) {
	p := Packet{Kind: PTW, Aux: uint16(b[1] >> 7)}
	switch b[1] >> 5 & 3 {
	case 0:
		p.Size = 6
	case 1:
		p.Size = 10
	default:
		return p, ErrPayload
	}
	if len(b) < p.Size {
		return p, ErrShort
	}
	return p, nil
}

// FindPSB returns the offset of the first PSB in b, or -1.
func FindPSB(b []byte) int { return bytes.Index(b, psb[:]) }
