package uc

/*
#include "cpu.h"

#cgo noescape heddle_cpu_end_logs
#cgo nocallback heddle_cpu_end_logs
#cgo noescape heddle_cpu_log
#cgo nocallback heddle_cpu_log
*/
import "C"

import (
	"fmt"
	"unsafe"

	uc "github.com/unicorn-engine/unicorn/bindings/go/unicorn"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// The tags are those of C. A difference does not compile.
const (
	_ = -(uint(emu.TagTNT) ^ uint(C.HEDDLE_LOG_TNT))
	_ = -(uint(emu.TagTIP) ^ uint(C.HEDDLE_LOG_TIP))
	_ = -(uint(emu.TagCall) ^ uint(C.HEDDLE_LOG_CALL))
	_ = -(uint(emu.TagRet) ^ uint(C.HEDDLE_LOG_RET))
	_ = -(uint(emu.TagTime) ^ uint(C.HEDDLE_LOG_TIME))
	_ = -(emu.TagShift ^ uint(C.HEDDLE_LOG_TAG_SHIFT))
)

// LogBranches implements emu.CPU.
func (c *CPU) LogBranches(timed bool) error {
	if code := C.heddle_cpu_log(c.c, C.bool(timed)); code != 0 {
		return fmt.Errorf("log branches: %w", uc.UcError(code))
	}
	return nil
}

// EndLogs implements emu.CPU. The hooks stay, so that later runs are hardly faster.
func (c *CPU) EndLogs() { C.heddle_cpu_end_logs(c.c) }

// CompressReturns implements emu.CPU: this engine does not.
func (c *CPU) CompressReturns() bool { return false }

// Branches implements emu.CPU.
func (c *CPU) Branches() []emu.BranchWord {
	log := &c.c.logs.flow
	return unsafe.Slice((*emu.BranchWord)(unsafe.Pointer(log.words)), int(log.nwords))
}

// Code implements emu.CPU.
func (c *CPU) Code(yield func(emu.CodeBlock) bool) {
	log := &c.c.logs.flow
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
	l := &c.c.logs.flow
	l.nwords, l.ncode, l.nbytes = 0, 0, 0
}
