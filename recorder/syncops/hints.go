package syncops

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Hint is one of PARROT's hints for performance (Cui and others, SOSP 2013), which a
// function that a list names is taken for: the program need not have been written for PARROT.
type Hint string

// The hints.
const (
	softBarrier  Hint = "soba_wait"
	sectionEnter Hint = "pcs_enter"
	sectionExit  Hint = "pcs_exit"
)

// maxHint bounds the numbers of a hint.
const maxHint = 1 << 20

// UnmarshalText takes soba_wait, pcs_enter or pcs_exit.
func (h *Hint) UnmarshalText(b []byte) error {
	return parseOneOf(h, b, string(softBarrier), string(sectionEnter), string(sectionExit))
}

func (h Hint) operation() event.SyncOp {
	switch h {
	case sectionEnter:
		return event.OpSectionEnter
	case sectionExit:
		return event.OpSectionExit
	}
	return event.OpSoftBarrierWait
}

// isHint reports whether an operation is a hint.
func isHint(op event.SyncOp) bool { return op >= event.OpSoftBarrierInit && op <= event.OpSectionExit }

// hint says where the numbers of a soft barrier are from.
type hint struct {
	// arguments: the barrier's number and, in soba_init, the threads and turns are arguments of the
	// function. Otherwise the function is the barrier.
	arguments    bool
	count, turns int
}

// describe fills in the event of a call.
func (h *hint) describe(e *event.Sync, f *frame) {
	if !h.arguments {
		e.Value = uint64(h.count) | uint64(h.turns)<<32
		return
	}
	e.Addr = arch.Addr(f.args[0])
	if e.Op == event.OpSoftBarrierInit {
		e.Value = uint64(uint32(f.args[1])) | f.args[2]<<32
	}
}
