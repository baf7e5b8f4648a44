package vex

/*
#include <valgrind/libvex_basictypes.h>
#include <valgrind/libvex_guest_amd64.h>
*/
import "C"

import (
	"encoding/binary"
	"unsafe"
)

// StateSize is the size of the guest state.
const StateSize = unsafe.Sizeof(C.VexGuestAMD64State{})

// Offsets in the guest state.
const (
	OffsetRAX     = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_RAX)) // up to R15, as encoded, 8 bytes each
	OffsetCCOp    = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_CC_OP))
	OffsetCCDep1  = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_CC_DEP1))
	OffsetCCDep2  = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_CC_DEP2))
	OffsetCCNDep  = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_CC_NDEP))
	OffsetDFlag   = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_DFLAG)) // 1, or -1 if D is set
	OffsetRIP     = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_RIP))
	OffsetACFlag  = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_ACFLAG))
	OffsetIDFlag  = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_IDFLAG))
	OffsetFS      = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_FS_CONST))
	OffsetGS      = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_GS_CONST))
	OffsetXMM     = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_YMM0)) // up to the last vector, 32 bytes each
	OffsetRound   = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_SSEROUND))
	OffsetFTop    = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_FTOP))
	OffsetFPReg   = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_FPREG)) // eight doubles
	OffsetFPTag   = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_FPTAG)) // eight bytes, 0 for empty
	OffsetFPRound = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_FPROUND))
	OffsetFC3210  = int(unsafe.Offsetof(C.VexGuestAMD64State{}.guest_FC3210))
)

// State is the guest state: the registers, in libVEX's layout.
type State [StateSize]byte

// Word reads 8 bytes of the state.
func (s *State) Word(offset int) uint64 { return binary.LittleEndian.Uint64(s[offset:]) }

// SetWord writes 8 bytes of the state.
func (s *State) SetWord(offset int, x uint64) { binary.LittleEndian.PutUint64(s[offset:], x) }

// Bits of RFLAGS besides the arithmetic ones.
const (
	flagD  = 1 << 10
	flagAC = 1 << 18
	flagID = 1 << 21
	// alwaysSetFlags are the flags that are always set in a program: the reserved one and
	// the interrupt flag.
	alwaysSetFlags = 0x202
)

// RFLAGS returns the flags.
func (s *State) RFLAGS() uint64 {
	f, _ := thunkFlags(s.Word(OffsetCCOp), s.Word(OffsetCCDep1), s.Word(OffsetCCDep2), s.Word(OffsetCCNDep))
	return f | alwaysSetFlags | s.Word(OffsetDFlag)&flagD | flagIf(s.Word(OffsetACFlag)&1 != 0, flagAC) |
		flagIf(s.Word(OffsetIDFlag)&1 != 0, flagID)
}

// SetRFLAGS sets the flags.
func (s *State) SetRFLAGS(f uint64) {
	s.SetWord(OffsetCCOp, ccCopy)
	s.SetWord(OffsetCCDep1, f&(flagC|flagP|flagA|flagZ|flagS|flagO))
	s.SetWord(OffsetCCDep2, 0)
	s.SetWord(OffsetCCNDep, 0)
	s.SetWord(OffsetDFlag, chooseWord(f&flagD != 0, ^uint64(0), 1))
	s.SetWord(OffsetACFlag, f/flagAC&1)
	s.SetWord(OffsetIDFlag, f/flagID&1)
}

// readTyped reads a value of a type.
func (s *State) readTyped(offset int, t Type) Value {
	return s.readBytes(int32(offset), uint8(t.Bytes()))
}

func (s *State) writeTyped(offset int, t Type, v Value) {
	s.writeBytes(int32(offset), uint8(t.Bytes()), v)
}

// readBytes reads bytes of the state.
func (s *State) readBytes(offset int32, size uint8) Value {
	switch size {
	case 1:
		return Value{Lo: uint64(s[offset])}
	case 2:
		return Value{Lo: uint64(binary.LittleEndian.Uint16(s[offset:]))}
	case 4:
		return Value{Lo: uint64(binary.LittleEndian.Uint32(s[offset:]))}
	case 8:
		return Value{Lo: binary.LittleEndian.Uint64(s[offset:])}
	}
	return Value{binary.LittleEndian.Uint64(s[offset:]), binary.LittleEndian.Uint64(s[offset+8:])}
}

// writeBytes writes bytes of the state.
func (s *State) writeBytes(offset int32, size uint8, v Value) {
	switch size {
	case 1:
		s[offset] = byte(v.Lo)
	case 2:
		binary.LittleEndian.PutUint16(s[offset:], uint16(v.Lo))
	case 4:
		binary.LittleEndian.PutUint32(s[offset:], uint32(v.Lo))
	case 8:
		binary.LittleEndian.PutUint64(s[offset:], v.Lo)
	default:
		binary.LittleEndian.PutUint64(s[offset:], v.Lo)
		binary.LittleEndian.PutUint64(s[offset+8:], v.Hi)
	}
}
