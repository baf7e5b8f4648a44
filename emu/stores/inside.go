package stores

/*
#include "inside.h"

#cgo noescape heddle_inside_commit
#cgo nocallback heddle_inside_commit
*/
import "C"

import (
	"unsafe"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// Insides is the part of an engine that ends runs inside instructions.
type Insides struct{ c *C.struct_heddle_insides }

// NewInsides returns the Insides of an engine, a struct heddle_insides that it keeps.
func NewInsides(ofEngine unsafe.Pointer) Insides {
	return Insides{(*C.struct_heddle_insides)(ofEngine)}
}

// Prepare sets the place inside an instruction where the next run may end, and the instruction that
// the loaded thread is inside.
func (x Insides) Prepare(l *arch.Limit) {
	x.c.choice = C.uint32_t(l.Inside)
	if l.From == nil {
		x.c.interrupted.n = 0
	} else {
		*(*arch.Interrupted)(unsafe.Pointer(&x.c.interrupted)) = *l.From
	}
}

// Done returns the number of accesses done of the instruction that the last run ended inside, or
// 0.
func (x Insides) Done() uint8 {
	if x.c.interrupted.n == 0 {
		return 0
	}
	return uint8(x.c.interrupted.done)
}

// Interrupted returns the instruction that the loaded thread is inside, and whether there is one.
func (x Insides) Interrupted() (arch.Interrupted, bool) {
	in := *(*arch.Interrupted)(unsafe.Pointer(&x.c.interrupted))
	return in, in.IsInside()
}

// Commit performs the remaining stores of an instruction in its thread's space.
func (x Insides) Commit(in *arch.Interrupted, s *mem.Space) {
	C.heddle_inside_commit(x.c, (*C.struct_heddle_space)(s.Handle()), (*C.struct_heddle_inside)(unsafe.Pointer(in)), C.uint32_t(in.Total))
}

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
	_ = -(uint(arch.StopBudget) ^ uint(C.HEDDLE_STOP_BUDGET))
	_ = -(uint(arch.StopLog) ^ uint(C.HEDDLE_STOP_LOG))
)
