// Package floats computes, with integers alone, the floating-point instructions whose results
// differ between processors or are not exact in an engine: x87 transcendental functions and
// remainders, and approximations of reciprocals. Engines call its C functions, so that a run has the same results on every engine and
// host.
//
// Invariants:
//
//  1. A result is a function of operands and control word. Nothing is computed in the host's
//     floating point or by its mathematical library.
//  2. Transcendental functions are correctly rounded: the result is the real value, of the function with the
//     exact pi, rounded in the direction of the control word to 64 bits.
package floats

/*
#cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -Werror
#include "approximate.h"
#include "transcendental.h"
#include "x87.h"
*/
import "C"

import (
	"encoding/binary"
	"unsafe"
)

// Image is the x87 part of an FXSAVE image (Intel SDM volume 1, table 10-2).
type Image [160]byte

// Number is a number of the x87 format: Head has the sign in bit 15 and the exponent.
type Number struct {
	Mantissa uint64
	Head     uint16
}

// Execute executes the instruction D9 op on an image. It returns false if an exception of an
// earlier instruction is pending.
func Execute(image *Image, op byte) bool {
	return bool(C.heddle_x87_execute((*C.struct_heddle_x87)(unsafe.Pointer(image)), C.uint8_t(op)))
}

// ST returns the register at a place of the stack.
func (i *Image) ST(n int) Number {
	return Number{binary.LittleEndian.Uint64(i[32+16*n:]), binary.LittleEndian.Uint16(i[40+16*n:])}
}

// SetST sets the register at a place of the stack.
func (i *Image) SetST(n int, x Number) {
	binary.LittleEndian.PutUint64(i[32+16*n:], x.Mantissa)
	binary.LittleEndian.PutUint16(i[40+16*n:], x.Head)
}

// Control returns the control word, Status the status word.
func (i *Image) Control() uint16 { return binary.LittleEndian.Uint16(i[0:]) }

// Status returns the status word.
func (i *Image) Status() uint16 { return binary.LittleEndian.Uint16(i[2:]) }

// transcend computes a function of two numbers (enum x87_function) with a number of words, and
// reports whether that decides the result.
func transcend(words, function int, x, y Number, control uint16) (Number, bool) {
	unpack := func(n Number) C.struct_x87_finite {
		return C.x87_unpack(C.struct_x87_number{mantissa: C.uint64_t(n.Mantissa), head: C.uint16_t(n.Head)})
	}
	a, b := unpack(x), unpack(y)
	var out C.struct_x87_rounded
	ok := C.x87_transcend_with(C.uint(words), uint32(function), &a, &b, C.uint16_t(control), &out)
	return Number{uint64(out.value.mantissa), uint16(out.value.head)}, bool(ok)
}

// Reciprocal returns the element of RCPPS for the bits of one of its operand, and ReciprocalRoot
// that of RSQRTPS.
func Reciprocal(x uint32) uint32     { return uint32(C.heddle_reciprocal(C.uint32_t(x))) }
func ReciprocalRoot(x uint32) uint32 { return uint32(C.heddle_reciprocal_root(C.uint32_t(x))) }
