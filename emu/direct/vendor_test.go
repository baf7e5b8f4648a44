package direct

import (
	"bytes"
	"encoding/binary"
	"os"
	"sync"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// hostIsIntel reports whether the host's processor is one of Intel's. The guest's processor is one
// of AMD's on every host: where the two vendors' manuals differ, the engine follows AMD's.
var hostIsIntel = sync.OnceValue(func() bool {
	text, err := os.ReadFile("/proc/cpuinfo")
	return err == nil && bytes.Contains(text, []byte("GenuineIntel"))
})

// differsByVendor reports whether an instruction that ended with a trap has another result on
// Intel's processors than on AMD's. The cases are:
//
//   - A prefix of 16 bits before a near branch is ignored by Intel (SDM volume 2, "Jcc": "operand
//     size fixed at 64 bits") and honoured by AMD.
//   - LSS, LFS and LGS with REX.W load an offset of 64 bits on Intel's alone.
//   - POP FS and POP GS read two bytes of the stack on Intel's, eight on AMD's.
//   - A call to an address that is not canonical has written the return address on Intel's when it
//     faults.
//   - On a fault of a gathering load, the masks of the elements after it are as before on AMD's, and
//     ones or zeros on Intel's (SDM volume 2, "VPGATHERDD").
//   - On a fault of a store, Intel's have set the flags of VCVTPS2PH in MXCSR, changed the x87
//     state to that of MMX, written the first page's part of a number of ten bytes, or found an
//     x87 exception before the fault.
func (i Instruction) differsByVendor(c *oracleCase, trap uint64) bool {
	code := c.Code[:i.Length]
	wide := false // REX.W
	for _, b := range code {
		wide = wide || b&0xf8 == 0x48
		if b&0xf0 != 0x40 && !isPrefix(b) {
			break
		}
	}
	const pageFault, protection = 14, 13
	switch {
	case i.branches() && bytes.IndexByte(code[:min(len(code), 5)], 0x66) >= 0:
		return true
	case i.vexMap == 0 && (i.opcode == 0xe8 || i.opcode == 0xff) && trap == protection:
		return true
	case i.vexMap == 0 && i.opcode >= 0xd8 && i.opcode <= 0xdf && trap == pageFault:
		return true
	case i.vexMap == 1 && (i.opcode == 0xb2 || i.opcode == 0xb4 || i.opcode == 0xb5):
		return wide
	case i.vexMap == 1 && (i.opcode == 0xa1 || i.opcode == 0xa9 || i.opcode == 0x7e || i.opcode == 0x7f || i.opcode == 0xe7):
		return trap == pageFault
	case i.vexMap == 2 && i.opcode >= 0x90 && i.opcode <= 0x93:
		return trap == pageFault || trap == protection
	case i.vexMap == 3 && i.opcode == 0x1d:
		return trap == pageFault
	}
	return false
}

// setsMisalignedMask reports whether an instruction loads MXCSR with bit 17 set, and no other that is reserved: the mask of
// misaligned operands, which AMD's processors may have (APM volume 2, section 3.1.6) and the guest's has not, so that
// #GP is raised as on Intel's.
func (i Instruction) setsMisalignedMask(want *oracleResult) bool {
	const misaligned = 1 << 17
	return i.vexMap == 1 && i.opcode == 0xae && binary.LittleEndian.Uint32(want.State.FP[24:])&misaligned != 0
}

// mayNameSecondPage reports whether the processor's fault is at the page after the engine's and the instruction is FXRSTOR:
// where both pages of its operand fault, family 1Ah of AMD's processors names the second, earlier ones the first. No manual
// says which.
func (c *oracleCase) mayNameSecondPage(engine, processor uint64) bool {
	_, operand, found := bytes.Cut(c.Code[:c.NCode], []byte{0x0f, 0xae})
	return found && operand[0]>>3&7 == 1 && processor == engine+arch.PageSize
}

// lacksDescriptor reports whether the host has no descriptor for the selector of Linux's code segment
// for programs of 32 bits, as kernels that run no such programs; the guest's has one.
func (i Instruction) lacksDescriptor(got *oracleResult, want *oracleResult) bool {
	const protection, user32, zf = 13, 0x20, 0x40
	if want.Trap == protection && want.Error == user32 {
		return true
	}
	if i.vexMap != 1 || i.opcode != 2 && i.opcode != 3 { // LAR, LSL
		return false
	}
	return got.State.Regs.RFLAGS&zf != 0 && want.State.Regs.RFLAGS&zf == 0
}

// stringDiffersByVendor reports whether an iteration of a repeated string instruction leaves other
// registers on Intel's processors than on AMD's: with addresses of 32 bits, Intel's clear the upper
// half of RCX also if there is no iteration.
func (i Instruction) stringDiffersByVendor(c *oracleCase) bool {
	return i.Address == 4 && c.State.Regs.GPR[arch.RCX]>>32 != 0
}
