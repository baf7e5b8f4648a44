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

// BranchWord is an entry of the branch log, with the information of a processor trace about the
// flow of control. Between two entries the flow follows from the code: straight on, by direct jumps
// and direct calls.
type BranchWord uint64

// BranchTag is the kind of a BranchWord.
type BranchTag uint8

const (
	// TagTNT has outcomes of conditional branches: Outcomes.
	TagTNT BranchTag = C.HEDDLE_LOG_TNT
	// TagTIP has the target of an indirect jump or call: Value.
	TagTIP BranchTag = C.HEDDLE_LOG_TIP
	// TagCall has the return address of a near call, direct or indirect: Value. That of an indirect
	// call precedes its TagTIP. A direct call of the next instruction has none, as in processor
	// traces.
	TagCall BranchTag = C.HEDDLE_LOG_CALL
	// TagRet has the target of a near return: Value.
	TagRet BranchTag = C.HEDDLE_LOG_RET
	// TagTime has the cycles of the run at the time of the next entry: Value.
	TagTime BranchTag = C.HEDDLE_LOG_TIME
)

// Tag returns the kind of w.
func (w BranchWord) Tag() BranchTag { return BranchTag(w >> C.HEDDLE_LOG_TAG_SHIFT) }

// Value returns the address or the number of cycles in w.
func (w BranchWord) Value() uint64 { return uint64(w) & (1<<C.HEDDLE_LOG_TAG_SHIFT - 1) }

// Outcomes returns the outcomes of n conditional branches, 1 to 47. The first is bit n-1; 1 means
// taken.
func (w BranchWord) Outcomes() (bits uint64, n int) {
	return uint64(w) & (1<<48 - 1), int(w >> 48 & 0x3f)
}

// CodeBlock is code that is about to run in the loaded address space, not necessarily for the first
// time.
type CodeBlock struct {
	PC    arch.Addr
	Bytes []byte
	// At is the number of instructions of the run before it. A repeated string instruction counts
	// once, however often it iterates.
	At uint64
}

// LogBranches starts to log branches and code, for the rest of the CPU's life. It comes before the
// first run; later it is an error. If timed is set, each entry of the branch log is preceded by its
// time, and an entry has at most six outcomes. The log does not change the effect of a run.
func (c *CPU) LogBranches(timed bool) error {
	if code := C.heddle_cpu_log(c.c, C.bool(timed)); code != 0 {
		return fmt.Errorf("log branches: %w", uc.UcError(code))
	}
	return nil
}

// Branches returns the branch log since the last Drained, up to the PC of the last Stop, valid
// until the next run.
func (c *CPU) Branches() []BranchWord {
	log := &c.c.logs.flow
	return unsafe.Slice((*BranchWord)(unsafe.Pointer(log.words)), int(log.nwords))
}

// Code iterates over the code log since the last Drained. The bytes are valid until the next run.
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

// Drained empties the logs of branches and code.
func (c *CPU) Drained() {
	l := &c.c.logs.flow
	l.nwords, l.ncode, l.nbytes = 0, 0, 0
}
