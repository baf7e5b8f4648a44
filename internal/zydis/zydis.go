// Package zydis tells where the instructions in a piece of x86-64 code begin
// and which of them end a straight run: the little of a disassembler that
// following a branch trace needs, and what reports say of an instruction. The
// disassembler is Zydis.
//
// What it is not: it knows no operands, and it remembers nothing; its user keeps
// what it has found out.
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

// Kind is what the last instruction of a run does, or why there is no next.
type Kind uint8

// The kinds. The first seven are those of Intel's "change of flow
// instructions" (SDM volume 3, "Intel Processor Trace", "Change of Flow
// Instruction Tracing").
const (
	// Straight: nothing; the run is as long as was asked for.
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
	// Far leaves the code segment: SYSCALL, INT and its kin, IRET, far branches.
	Far
	// Short: the next instruction is not whole.
	Short
	// Invalid: the next bytes are no instruction.
	Invalid
)

// Run is a straight run of instructions.
type Run struct {
	// Count is the number of instructions, Bytes their length, of a Short or
	// Invalid run without the one that is not there.
	Count, Bytes int
	Kind         Kind
	// Relative is where a direct branch goes, from the end of the run.
	Relative int64
}

// Walk goes through code from its beginning to the first instruction that is
// not Straight, and at most as many instructions as lengths has room for. It
// puts their lengths there.
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
	// Written are the bits of RFLAGS that it defines, Undefined those that it
	// leaves undefined.
	Written, Undefined uint64
	// Text is the instruction in Intel's syntax.
	Text string
	// Extension is the part of the instruction set that it belongs to, as Zydis
	// names it: "BASE", "SSE2", "AVX", "AVX512EVEX".
	Extension string
}

// Decode decodes the instruction at the begin of code, which is at an address;
// false: there is none.
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
