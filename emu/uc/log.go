package uc

/*
#include "cpu.h"

#cgo noescape heddle_cpu_log
#cgo nocallback heddle_cpu_log
*/
import "C"

import (
	"fmt"
	"unsafe"

	uc "github.com/unicorn-engine/unicorn/bindings/go/unicorn"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// BranchWord is an entry of the branch log: what a processor trace has to tell
// of the flow of control. Between the entries the flow follows from the code:
// straight on, by direct jumps and direct calls.
type BranchWord uint64

// BranchTag says what a BranchWord is.
type BranchTag uint8

const (
	// TagTNT is outcomes of conditional branches: Outcomes.
	TagTNT BranchTag = C.HEDDLE_LOG_TNT
	// TagTIP is the target of an indirect jump or call: Value.
	TagTIP BranchTag = C.HEDDLE_LOG_TIP
	// TagCall is the return address of a near call, direct or indirect: Value.
	// That of an indirect one comes before its TagTIP. A direct call to the next
	// instruction has none, as in processor traces.
	TagCall BranchTag = C.HEDDLE_LOG_CALL
	// TagRet is the target of a near return: Value.
	TagRet BranchTag = C.HEDDLE_LOG_RET
	// TagTime is how many cycles of the run have passed when the next entry was
	// made: Value.
	TagTime BranchTag = C.HEDDLE_LOG_TIME
)

// Tag says what w is.
func (w BranchWord) Tag() BranchTag { return BranchTag(w >> C.HEDDLE_LOG_TAG_SHIFT) }

// Value is the address or the number of cycles of w.
func (w BranchWord) Value() uint64 { return uint64(w) & (1<<C.HEDDLE_LOG_TAG_SHIFT - 1) }

// Outcomes is the outcomes of n conditional branches, 1 to 47, the first one in
// bit n-1; 1 is taken.
func (w BranchWord) Outcomes() (bits uint64, n int) {
	return uint64(w) & (1<<48 - 1), int(w >> 48 & 0x3f)
}

// CodeBlock is code that is about to run in the loaded address space, perhaps
// not for the first time; whoever keeps it has to tell what is new.
type CodeBlock struct {
	PC    arch.Addr
	Bytes []byte
	// At is the number of instructions of the run before it, a repeated string
	// instruction counted once however often it iterates.
	At uint64
}

// LogBranches begins to log branches and code, for the rest of the CPU's life.
// It comes before the first run; later it is an error. With timed each entry of the branch log is preceded
// by its time, and outcomes come six to an entry. What a run does is the same
// as without.
func (c *CPU) LogBranches(timed bool) error {
	if code := C.heddle_cpu_log(c.c, C.bool(timed)); code != 0 {
		return fmt.Errorf("log branches: %w", uc.UcError(code))
	}
	return nil
}

// Branches is the branch log since the last Drained, up to the PC of the last
// Stop. It is valid until the next run.
func (c *CPU) Branches() []BranchWord {
	log := &c.c.logs.flow
	return unsafe.Slice((*BranchWord)(unsafe.Pointer(log.words)), int(log.nwords))
}

// Code is the code log since the last Drained. It is valid until the next run.
func (c *CPU) Code(yield func(CodeBlock) bool) {
	log := &c.c.logs.flow
	for _, e := range unsafe.Slice(log.code, int(log.ncode)) {
		from := unsafe.Add(unsafe.Pointer(log.bytes), uintptr(e.offset))
		b := CodeBlock{PC: arch.Addr(e.pc), Bytes: unsafe.Slice((*byte)(from), int(e.size)), At: uint64(e.at)}
		if !yield(b) {
			return
		}
	}
}

// Drained empties the logs.
func (c *CPU) Drained() {
	l := &c.c.logs.flow
	l.nwords, l.ncode, l.nbytes = 0, 0, 0
}
