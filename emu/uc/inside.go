package uc

/*
#include "cpu.h"

#cgo noescape heddle_inside_commit
#cgo nocallback heddle_inside_commit
*/
import "C"

import (
	"unsafe"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// The layout of Interrupted and the number of its pieces are those of C. A difference does not
// compile.
const (
	_ = -(arch.LineSize ^ uint(C.HEDDLE_LINE_SIZE))
	_ = -(arch.MaxPieces ^ uint(C.HEDDLE_PIECES))
	_ = -(uint(arch.InsideExactly) ^ uint(C.HEDDLE_INSIDE_EXACTLY))
	_ = -(unsafe.Sizeof(arch.Interrupted{}) ^ C.sizeof_struct_heddle_inside)
	_ = -(unsafe.Offsetof(arch.Interrupted{}.Performed) ^ unsafe.Offsetof(C.struct_heddle_inside{}.done))
	_ = -(unsafe.Offsetof(arch.Interrupted{}.Executed) ^ unsafe.Offsetof(C.struct_heddle_inside{}.executed))
	_ = -(unsafe.Offsetof(arch.Interrupted{}.Branches) ^ unsafe.Offsetof(C.struct_heddle_inside{}.branches))
	_ = -(unsafe.Offsetof(arch.Interrupted{}.Saved) ^ unsafe.Offsetof(C.struct_heddle_inside{}.before))
	_ = -(unsafe.Offsetof(arch.Interrupted{}.Pieces) ^ unsafe.Offsetof(C.struct_heddle_inside{}.pieces))
	_ = -(unsafe.Sizeof(arch.Piece{}) ^ C.sizeof_struct_heddle_piece)
)

// Interrupted implements emu.CPU.
func (c *CPU) Interrupted() (arch.Interrupted, bool) {
	in := *(*arch.Interrupted)(unsafe.Pointer(&c.c.run.interrupted))
	return in, in.IsInside()
}

// Commit implements emu.CPU.
func (c *CPU) Commit(in *arch.Interrupted, s *mem.Space) {
	C.heddle_inside_commit(c.c, spaceInC(s), (*C.struct_heddle_inside)(unsafe.Pointer(in)), C.uint32_t(in.Total))
}
