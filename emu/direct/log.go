package direct

/*
#include "engine.h"

#cgo noescape direct_log_start
#cgo nocallback direct_log_start
#cgo noescape direct_log_end
#cgo nocallback direct_log_end
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// The tags are those of C. A difference does not compile.
const (
	_ = -(uint(emu.TagTNT) ^ uint(C.WORD_TNT))
	_ = -(uint(emu.TagTIP) ^ uint(C.WORD_TIP))
	_ = -(uint(emu.TagCall) ^ uint(C.WORD_CALL))
	_ = -(uint(emu.TagRet) ^ uint(C.WORD_RET))
	_ = -(uint(emu.TagTime) ^ uint(C.WORD_TIME))
	_ = -(emu.TagShift ^ uint(C.WORD_TAG_SHIFT))
)

var errStarted = errors.New("there is no memory for the log")

// LogBranches implements emu.CPU.
func (c *CPU) LogBranches(timed bool) error {
	what := C.uint32_t(C.LOG_BRANCHES)
	if timed {
		what |= C.LOG_TIMED
	}
	if C.direct_log_start(c.c, what) != 0 {
		return fmt.Errorf("log branches: %w", errStarted)
	}
	return nil
}

// CompressReturns implements emu.CPU.
func (c *CPU) CompressReturns() bool {
	const need, not = C.LOG_BRANCHES, C.LOG_TIMED
	return c.c.log.what&(need|not) == need && C.direct_log_start(c.c, C.LOG_RETURNS) == 0
}

// Branches implements emu.CPU.
func (c *CPU) Branches() []emu.BranchWord {
	log := &c.c.log
	return unsafe.Slice((*emu.BranchWord)(unsafe.Pointer(log.words)), int(log.nwords))
}

// Code implements emu.CPU.
func (c *CPU) Code(yield func(emu.CodeBlock) bool) {
	log := &c.c.log
	for _, e := range unsafe.Slice(log.code, int(log.ncode)) {
		from := unsafe.Add(unsafe.Pointer(log.bytes), uintptr(e.offset))
		b := emu.CodeBlock{PC: arch.Addr(e.pc), Bytes: unsafe.Slice((*byte)(from), int(e.size)), At: uint64(e.at)}
		if !yield(b) {
			return
		}
	}
}

// Drained implements emu.CPU.
func (c *CPU) Drained() {
	l := &c.c.log
	l.nwords, l.ncode, l.nbytes = 0, 0, 0
}

// EndLogs implements emu.CPU.
func (c *CPU) EndLogs() { C.direct_log_end(c.c) }

// CountBranches implements emu.CPU.
func (c *CPU) CountBranches() error {
	if C.direct_log_start(c.c, C.LOG_COUNT) != 0 {
		return fmt.Errorf("count branches: %w", errStarted)
	}
	return nil
}

// CountedBranches implements emu.CPU.
func (c *CPU) CountedBranches() uint64 { return uint64(c.c.log.branches) }

// LogInstructions implements emu.CPU.
func (c *CPU) LogInstructions() error {
	if C.direct_log_start(c.c, C.LOG_INSTRUCTIONS) != 0 {
		return fmt.Errorf("log instructions: %w", errStarted)
	}
	return nil
}

// TakeInstructions implements emu.CPU.
func (c *CPU) TakeInstructions(completed uint64) ([]uint64, error) {
	log := &c.c.log
	pcs := unsafe.Slice((*uint64)(unsafe.Pointer(log.instructions)), int(log.ninstructions))
	log.ninstructions = 0
	if uint64(len(pcs)) != completed {
		return pcs, fmt.Errorf("the log has %d instructions, %d have completed", len(pcs), completed)
	}
	return pcs, nil
}
