// Package zydis finds the instructions in x86-64 code and where straight-line code ends: the part
// of a disassembler that following a branch trace requires, and the text and properties of single
// instructions for reports. The disassembler is Zydis.
//
// It does not decode operands, and it does not cache: that is for its users.
package zydis

/*
#cgo LDFLAGS: -lZydis
#cgo CFLAGS: -std=c11 -Wall -Wextra -Werror
#include "walk.h"
#cgo noescape heddle_walk
#cgo nocallback heddle_walk
#cgo noescape heddle_instruction
#cgo nocallback heddle_instruction
*/
import "C"

// Kind is the kind of the last instruction of a run, or the reason why there is no next.
type Kind uint8

// The first kinds are the "change of flow instructions" of Intel (SDM volume 3, "Intel Processor
// Trace", "Change of Flow Instruction Tracing").
const (
	// Straight is no branch: the run has the requested length.
	Straight Kind = iota
	// Jump is a direct jump.
	Jump
	// Call is a direct near call.
	Call
	// Conditional is Jcc, JrCXZ or LOOP.
	Conditional
	// IndirectJump is a near jump through a register or memory.
	IndirectJump
	// IndirectCall is a near call through a register or memory.
	IndirectCall
	// Return is a near return.
	Return
	// Far leaves the code segment: SYSCALL, INT and similar instructions, IRET, far branches.
	Far
	// Short means that the bytes of the next instruction are incomplete.
	Short
	// Invalid means that the next bytes are not an instruction.
	Invalid
)

// Run is a run of straight-line code.
type Run struct {
	// Count is the number of instructions and Bytes their total length. An instruction that is
	// Short or Invalid does not count.
	Count, Bytes int
	Kind         Kind
	// Relative is the target of a direct branch, relative to the end of the run.
	Relative int64
}

// Walk decodes code from its start to the first instruction that is not Straight, but at most
// len(lengths) instructions, and puts their lengths in bytes there.
func Walk(code, lengths []byte) Run {
	if len(lengths) == 0 {
		return Run{}
	}
	if len(code) == 0 {
		return Run{Kind: Short}
	}
	var out C.struct_heddle_walk
	C.heddle_walk((*C.uint8_t)(&code[0]), C.size_t(len(code)), (*C.uint8_t)(&lengths[0]), C.size_t(len(lengths)), &out)
	return Run{Count: int(out.count), Bytes: int(out.bytes), Kind: Kind(out.kind), Relative: int64(out.relative)}
}

// Instruction is one instruction.
type Instruction struct {
	Length int
	// Written has the bits of RFLAGS that it defines, Undefined those that it leaves undefined
	// (Intel SDM volume 1, appendix A).
	Written, Undefined uint64
	// Text is the instruction in Intel syntax.
	Text string
	// Extension is the part of the instruction set, as Zydis names it: "BASE", "SSE2", "AVX",
	// "AVX512EVEX".
	Extension string
}

// Decode decodes the instruction at the start of code, which lies at an address. It returns false
// if the bytes are not an instruction.
func Decode(code []byte, addr uint64) (Instruction, bool) {
	if len(code) == 0 {
		return Instruction{}, false
	}
	var out C.struct_heddle_instruction
	n := C.heddle_instruction((*C.uint8_t)(&code[0]), C.size_t(len(code)), C.uint64_t(addr), &out)
	return Instruction{
		Length: int(n), Written: uint64(out.written), Undefined: uint64(out.undefined), Text: C.GoString(&out.text[0]),
		Extension: C.GoString(&out.extension[0]),
	}, n > 0
}
