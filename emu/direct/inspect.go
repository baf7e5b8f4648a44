package direct

/*
#include "engine.h"
*/
import "C"

import (
	"unsafe"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// An Instruction is how the engine takes the bytes of an instruction.
type Instruction struct {
	// Length is the number of bytes, 0: they are no instruction that a processor of the level has.
	Length int
	// Native reports whether the host executes it, otherwise C does.
	Native bool
	// Mnemonic numbers the instructions as Zydis does.
	Mnemonic int
	// Loads and Stores report whether it has an operand in memory that it reads or writes, of
	// Size bytes.
	Loads, Stores bool
	Size          int
	// Width is the number of bytes of the operation.
	Width int
	// Address is the number of bytes of addresses.
	Address int
	// Repeated is a string instruction with a prefix that repeats it.
	Repeated bool
	// Undefined are the flags that the manual leaves undefined after it, which are 0.
	Undefined uint64
	// ByCount reports whether flags are undefined, or change at all, by the count in CL.
	ByCount  bool
	class    int
	opcode   byte
	vexMap   byte
	prefixed bool
	// writesStack: it gives the stack pointer a value, other than pushing or popping.
	writesStack bool
	// aligned: its operand in memory must be aligned.
	aligned  bool
	encoding encoding
	operand  operand
}

// encoding is what tells apart encodings of instructions that the translator treats apart, but for constants: registers
// are numbers only as far as it has another use for some of them.
type encoding struct {
	mnemonic, vexMap, opcode, modrm   int
	vex, hasREX, locked, repeated     bool
	w, l, pp, width, address, segment int
	reg, vvvv, base, index            int
}

// operand is an operand in memory by ModRM: base and index are registers or -1. dispAt is where the 4 bytes are that have
// its address, or its distance from the next instruction, if it has neither, otherwise 0.
type operand struct {
	base, index, scale, segment int
	narrow, relative            bool
	disp                        int64
	dispAt                      int
}

// Inspect decodes the first instruction of code, which lies at pc.
func Inspect(level arch.Level, code []byte, pc uint64) Instruction {
	var in C.struct_direct_insn
	var costs C.struct_direct_costs
	if C.direct_decode(uint32(level), &costs, (*C.uint8_t)(unsafe.Pointer(&code[0])), C.size_t(len(code)), C.uint64_t(pc), &in) != C.DECODED {
		return Instruction{}
	}
	i := Instruction{
		Length: int(in.length), Native: in.class == C.CLASS_NATIVE, Mnemonic: int(in.mnemonic), Size: int(in.size), Width: int(in.width), Address: int(in.address),
		Undefined: uint64(in.flags_undefined), class: int(in.class), opcode: byte(in.opcode), vexMap: byte(in.opcode_map),
	}
	if in.what&C.INSN_MEMORY != 0 {
		i.Loads, i.Stores = in.what&C.INSN_LOADS != 0, in.what&C.INSN_STORES != 0
	}
	for _, b := range code[:i.Length] {
		i.prefixed = i.prefixed || b == 0xf2 || b == 0xf3
	}
	stack := in.class == C.CLASS_PUSH || in.class == C.CLASS_POP && in.opcode != 0x5c || in.class == C.CLASS_CALL || in.class == C.CLASS_RETURN || in.class == C.CLASS_CALL_TO
	i.writesStack = in.writes&(1<<C.RSP) != 0 && !stack
	i.ByCount = in.what&C.INSN_FLAGS_BY_COUNT != 0
	i.Repeated = in.what&C.INSN_REPEATED != 0
	i.aligned = in.what&C.INSN_ALIGNED != 0
	i.encoding = encodingOf(&in)
	if in.has_modrm && in.modrm < 0xc0 {
		i.operand = operandOf(&in)
	}
	return i
}

// registerClass puts a register's number into a class: the stack and frame pointers, and the registers that blocks use for
// themselves, are alone.
func registerClass(r C.uint8_t) int {
	switch {
	case r == C.RSP || r == C.RBP || r == C.R10 || r == C.R11 || r == C.R15 || r == C.NO_REGISTER:
		return int(r)
	case r >= 8:
		return 8
	}
	return 0
}

func encodingOf(in *C.struct_direct_insn) encoding {
	e := encoding{
		mnemonic: int(in.mnemonic), vexMap: int(in.opcode_map), opcode: int(in.opcode), modrm: -1,
		vex: bool(in.vex), hasREX: bool(in.has_rex), repeated: in.repeat != 0, locked: in.what&C.INSN_ATOMIC != 0,
		w: int(in.w), l: int(in.l), pp: int(in.pp), width: int(in.width), address: int(in.address),
		base: registerClass(in.memory.base), index: registerClass(in.memory.index), segment: int(in.memory.segment),
	}
	if in.vex {
		e.vvvv = registerClass(in.vvvv)
	}
	if in.has_modrm {
		e.modrm = int(in.modrm >> 6)
		e.reg = registerClass(in.modrm>>3&7 | in.r<<3)
	}
	return e
}

func operandOf(in *C.struct_direct_insn) operand {
	number := func(r C.uint8_t) int {
		if r == C.NO_REGISTER {
			return -1
		}
		return int(r)
	}
	m := &in.memory
	o := operand{
		base: number(m.base), index: number(m.index), scale: int(m.scale), segment: int(m.segment),
		narrow: bool(m.narrow), disp: int64(m.disp), relative: in.modrm&0xc7 == 5,
	}
	if o.base < 0 && o.index < 0 {
		o.dispAt = int(in.length) - int(in.suffix) - 4
	}
	return o
}

// differs reports whether the instruction is meant to have another result than on the host.
func (i Instruction) differs() bool {
	// Processors differ in LOOPE and LOOPNE with a prefix that repeats, and in shifts of an operand
	// of 16 bits by more than that.
	if i.class == C.CLASS_LOOP && i.prefixed || i.class == C.CLASS_EMULATED && (i.Mnemonic == C.ZYDIS_MNEMONIC_SHLD || i.Mnemonic == C.ZYDIS_MNEMONIC_SHRD) {
		return true
	}
	far := i.Mnemonic == C.ZYDIS_MNEMONIC_JMP || i.Mnemonic == C.ZYDIS_MNEMONIC_CALL || i.Mnemonic == C.ZYDIS_MNEMONIC_RET
	if far && i.class == C.CLASS_EMULATED {
		return true
	}
	switch i.class {
	case C.CLASS_SYSCALL, C.CLASS_INTERRUPT, C.CLASS_PRIVILEGED, C.CLASS_STRING:
		return true
	}
	switch i.Mnemonic {
	case C.ZYDIS_MNEMONIC_CPUID, C.ZYDIS_MNEMONIC_RDTSC, C.ZYDIS_MNEMONIC_RDTSCP, C.ZYDIS_MNEMONIC_XGETBV,
		C.ZYDIS_MNEMONIC_PUSHF, C.ZYDIS_MNEMONIC_PUSHFQ, C.ZYDIS_MNEMONIC_POPF, C.ZYDIS_MNEMONIC_POPFQ,
		C.ZYDIS_MNEMONIC_RCPPS, C.ZYDIS_MNEMONIC_RCPSS, C.ZYDIS_MNEMONIC_RSQRTPS, C.ZYDIS_MNEMONIC_RSQRTSS,
		C.ZYDIS_MNEMONIC_VRCPPS, C.ZYDIS_MNEMONIC_VRCPSS, C.ZYDIS_MNEMONIC_VRSQRTPS, C.ZYDIS_MNEMONIC_VRSQRTSS,
		C.ZYDIS_MNEMONIC_F2XM1, C.ZYDIS_MNEMONIC_FYL2X, C.ZYDIS_MNEMONIC_FPTAN, C.ZYDIS_MNEMONIC_FPATAN,
		C.ZYDIS_MNEMONIC_FYL2XP1, C.ZYDIS_MNEMONIC_FSINCOS, C.ZYDIS_MNEMONIC_FSIN, C.ZYDIS_MNEMONIC_FCOS,
		C.ZYDIS_MNEMONIC_FXSAVE, C.ZYDIS_MNEMONIC_FXSAVE64, C.ZYDIS_MNEMONIC_XSAVE, C.ZYDIS_MNEMONIC_XSAVE64,
		C.ZYDIS_MNEMONIC_FNSTENV, C.ZYDIS_MNEMONIC_FNSAVE, C.ZYDIS_MNEMONIC_MASKMOVQ,
		C.ZYDIS_MNEMONIC_MASKMOVDQU, C.ZYDIS_MNEMONIC_VMASKMOVDQU,
		C.ZYDIS_MNEMONIC_SGDT, C.ZYDIS_MNEMONIC_SIDT, C.ZYDIS_MNEMONIC_SLDT, C.ZYDIS_MNEMONIC_SMSW, C.ZYDIS_MNEMONIC_STR,
		C.ZYDIS_MNEMONIC_IRET, C.ZYDIS_MNEMONIC_IRETD, C.ZYDIS_MNEMONIC_IRETQ:
		return true
	}
	return false
}

// shiftsOut reports whether the instruction is a SHL or SHR.
func (i Instruction) shiftsOut() bool {
	return i.Mnemonic == C.ZYDIS_MNEMONIC_SHL || i.Mnemonic == C.ZYDIS_MNEMONIC_SHR
}

// branches reports whether the instruction can go elsewhere than to the next.
func (i Instruction) branches() bool {
	switch i.class {
	case C.CLASS_NATIVE, C.CLASS_NOTHING, C.CLASS_PREFETCH, C.CLASS_PAUSE, C.CLASS_PUSH, C.CLASS_POP, C.CLASS_LEAVE, C.CLASS_EMULATED:
		return false
	}
	return true
}
