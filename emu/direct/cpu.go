package direct

/*
#cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -Werror -I${SRCDIR}/../mem -I${SRCDIR}/../memlog -I${SRCDIR}/../insn -I${SRCDIR}/../stores
#cgo LDFLAGS: -lZydis -lpthread
#include <stdlib.h>
#include "engine.h"

#cgo noescape direct_run
#cgo nocallback direct_run
#cgo noescape direct_resume
#cgo nocallback direct_resume
#cgo noescape direct_new_thread
#cgo nocallback direct_new_thread
#cgo noescape direct_float_set
#cgo nocallback direct_float_set
#cgo noescape direct_cpuid
#cgo nocallback direct_cpuid
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	_ "github.com/heddle-dmt/heddle/emu/insn" // C code
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

var _ emu.CPU = (*CPU)(nil)

// CPU implements emu.CPU.
type CPU struct {
	c   *C.struct_direct_engine
	ram *mem.RAM
	// breakpoints are those of the run's own observers and of a debugger.
	breakpoints [2][]arch.Addr
	current     *Context
}

// BoundInSnapshot marks that copies of the machine's state share the engine, and that another
// machine has another.
func (c *CPU) BoundInSnapshot() {}

// NewCPU makes an engine over the given memory. The guest sees the given number
// of cores.
func NewCPU(ram *mem.RAM, cores int, costs arch.Costs, level arch.Level) (*CPU, error) {
	c := &CPU{ram: ram}
	k := C.struct_direct_costs{
		instruction: C.uint32_t(costs.Instruction), memory: C.uint32_t(costs.Memory), divide: C.uint32_t(costs.Divide),
		atomic: C.uint32_t(costs.Atomic), fence: C.uint32_t(costs.Fence), sqrt: C.uint32_t(costs.Sqrt),
		transcendental: C.uint32_t(costs.Transcendental),
	}
	if C.direct_open(&c.c, (*C.struct_heddle_ram)(ram.Handle()), C.uint32_t(cores), uint32(level), &k) != 0 {
		c.Close()
		return nil, errors.New("the host refuses the engine's memory")
	}
	return c, nil
}

// HostHas reports whether the host's processor has all instructions of a level.
func HostHas(level arch.Level) bool { return bool(C.direct_host_has(uint32(level))) }

// HostExecutes reports whether the host lets this program execute code that it makes, as the engine does.
// Emulators of a single program do not, nor hosts whose policy forbids it.
var HostExecutes = sync.OnceValue(func() bool { return bool(C.direct_host_executes()) })

// Close frees the engine. The RAM stays.
func (c *CPU) Close() {
	C.direct_close(c.c)
	c.c = nil
}

// Context is one thread's registers. Release frees it.
type Context struct {
	cpu *CPU
	c   *C.struct_direct_thread
}

// CopyForSnapshot copies the registers; a copy for another machine belongs to that machine's
// engine.
func (x *Context) CopyForSnapshot(c *deepcopy.Copier) any {
	return &Context{deepcopy.Copy(c, x.cpu), C.direct_new_thread(x.c)}
}

// NewContext implements emu.CPU.
func (c *CPU) NewContext() arch.Context { return &Context{c, C.direct_new_thread(nil)} }

// CloneContext implements emu.CPU.
func (c *CPU) CloneContext(from arch.Context) arch.Context {
	return &Context{c, C.direct_new_thread(from.(*Context).c)}
}

// Release frees x.
func (x *Context) Release() {
	if x.cpu.current == x {
		x.cpu.Unload()
	}
	C.free(unsafe.Pointer(x.c))
	x.c = nil
}

// Load implements emu.CPU.
func (c *CPU) Load(of arch.Context, s *mem.Space) {
	x := of.(*Context)
	c.current = x
	c.c.thread = x.c
	c.c.space = (*C.struct_heddle_space)(s.Handle())
}

// Unload implements emu.CPU.
func (c *CPU) Unload() {
	c.current = nil
	c.c.thread = nil
}

// SetCore implements emu.CPU.
func (c *CPU) SetCore(core arch.CoreID, clock arch.Cycles) {
	c.c.core = C.uint32_t(core)
	c.c.clock = C.uint64_t(clock)
}

// CountInstructions implements emu.CPU.
func (c *CPU) CountInstructions() { c.c.tsc_instructions = true }

func orMax(n uint64) C.uint64_t {
	if n == 0 {
		return math.MaxUint64
	}
	return C.uint64_t(n)
}

// Run implements emu.CPU.
func (c *CPU) Run(l arch.Limit) arch.Stop {
	limit := C.struct_direct_limit{
		instructions: orMax(l.Instructions), most: orMax(l.Most), cycles: orMax(uint64(l.Cycles)),
		pause_from: C.uint64_t(l.PauseAfter),
	}
	if l.Immediately {
		limit.instructions = 0
	}
	if l.Exact {
		limit.flags |= C.RUN_EXACT
	}
	if l.AtPause {
		limit.flags |= C.RUN_PAUSE
	}
	if l.AtSync {
		limit.flags |= C.RUN_SYNC
	}
	if l.Pass {
		limit.flags |= C.RUN_PASS
	}
	c.insides().Prepare(&l)
	return c.stopped(C.direct_run(c.c, &limit))
}

// Resume implements emu.CPU.
func (c *CPU) Resume() arch.Stop { return c.stopped(C.direct_resume(c.c)) }

func (c *CPU) stopped(why uint32) arch.Stop {
	s := arch.Stop{
		Reason:       arch.StopReason(why),
		Instructions: uint64(c.c.instructions), Cycles: arch.Cycles(c.c.cycles), Repeated: uint64(c.c.repeated),
	}
	switch s.Reason {
	case arch.StopBudget:
		s.Inside = c.insides().Done()
	case arch.StopException, arch.StopInterrupt:
		s.Vector = uint8(c.c.vector)
	case arch.StopFault, arch.StopNoMemory:
		s.Access, s.Kind = arch.Access(c.c.access), arch.FaultKind(c.c.walk)
		s.Page = arch.Addr(c.c.fault_address)
	case arch.StopEngine:
		s.Err = fmt.Errorf("the engine failed: error %d", int(c.c.error))
	}
	return s
}

// FaultAddr implements emu.CPU.
func (c *CPU) FaultAddr() arch.Addr { return arch.Addr(c.c.fault_address) }

// Regs implements emu.CPU.
func (c *CPU) Regs(r *arch.Regs) { *r = *(*arch.Regs)(unsafe.Pointer(c.c.thread)) }

// PC implements emu.CPU.
func (c *CPU) PC() arch.Addr { return arch.Addr(c.c.thread.rip) }

// SetRegs implements emu.CPU.
func (c *CPU) SetRegs(r *arch.Regs) { *(*arch.Regs)(unsafe.Pointer(c.c.thread)) = *r }

// The layout is C's. A difference does not compile.
const (
	_ = -(unsafe.Offsetof(arch.Regs{}.GPR) ^ unsafe.Offsetof(C.struct_direct_thread{}.gpr))
	_ = -(unsafe.Offsetof(arch.Regs{}.RIP) ^ unsafe.Offsetof(C.struct_direct_thread{}.rip))
	_ = -(unsafe.Offsetof(arch.Regs{}.RFLAGS) ^ unsafe.Offsetof(C.struct_direct_thread{}.rflags))
	_ = -(unsafe.Offsetof(arch.Regs{}.FSBase) ^ unsafe.Offsetof(C.struct_direct_thread{}.fs_base))
	_ = -(unsafe.Offsetof(arch.Regs{}.GSBase) ^ unsafe.Offsetof(C.struct_direct_thread{}.gs_base))
)

// FP implements emu.CPU.
func (c *CPU) FP(image *[arch.FPSize]byte) {
	*image = *(*[arch.FPSize]byte)(unsafe.Pointer(&c.c.thread.state))
}

// SetFP implements emu.CPU.
func (c *CPU) SetFP(image *[arch.FPSize]byte) {
	C.direct_float_set(c.c.thread, unsafe.Pointer(image))
}

// YMMHigh implements emu.CPU.
func (c *CPU) YMMHigh(halves *[arch.YMMHighSize]byte) {
	*halves = *(*[arch.YMMHighSize]byte)(unsafe.Pointer(&c.c.thread.state[ymmHighAt]))
}

// SetYMMHigh implements emu.CPU.
func (c *CPU) SetYMMHigh(halves *[arch.YMMHighSize]byte) {
	if c.c.level >= C.DIRECT_V3 {
		*(*[arch.YMMHighSize]byte)(unsafe.Pointer(&c.c.thread.state[ymmHighAt])) = *halves
	}
}

// SetBreakpoints implements emu.CPU.
func (c *CPU) SetBreakpoints(addrs []arch.Addr) { c.setBreakpoints(0, addrs) }

// SetDebugBreakpoints implements emu.CPU.
func (c *CPU) SetDebugBreakpoints(addrs []arch.Addr) { c.setBreakpoints(1, addrs) }

func (c *CPU) setBreakpoints(owner int, addrs []arch.Addr) {
	c.breakpoints[owner] = slices.Clone(addrs)
	sorted := slices.Concat(c.breakpoints[0], c.breakpoints[1])
	slices.Sort(sorted)
	sorted = append(slices.Compact(sorted), 0)
	if C.direct_set_breakpoints(c.c, (*C.uint64_t)(unsafe.Pointer(&sorted[0])), C.size_t(len(sorted)-1)) != 0 {
		panic("bug: no memory for breakpoints")
	}
}

// SetPollInterval implements emu.CPU.
func (c *CPU) SetPollInterval(instructions uint64) { c.c.poll_interval = C.uint64_t(instructions) }

// HaltAt implements emu.CPU.
func (c *CPU) HaltAt(instructions uint64) { c.c.halt_at = C.uint64_t(instructions) }

// CPUID implements emu.CPU.
func (c *CPU) CPUID(leaf, subleaf uint32) [4]uint32 {
	var out [4]uint32
	C.direct_cpuid(c.c, C.uint32_t(leaf), C.uint32_t(subleaf), (*C.uint32_t)(unsafe.Pointer(&out[0])))
	return out
}

// CheckCalls implements emu.CPU.
func (c *CPU) CheckCalls(cycles uint32) { c.c.costs.check = C.uint32_t(cycles) }

// StepAhead implements emu.CPU. Code that the thread has not reached never stops a run: a block
// ends before an instruction whose page is missing.
func (c *CPU) StepAhead() {}

// SetPoints implements emu.CPU. Nothing needs to be prepared: runs end exactly anywhere.
func (c *CPU) SetPoints([]arch.Addr) error { return nil }

// ymmHighAt is where the state has the upper halves of the YMM registers.
const ymmHighAt = 576

// stateBytes is the size of the state of x87, SSE and AVX, as XSAVE stores it.
const stateBytes = 832

// state reads the loaded thread's floating-point and vector state.
func (c *CPU) state(image *[stateBytes]byte) {
	*image = *(*[stateBytes]byte)(unsafe.Pointer(&c.c.thread.state))
}

// setState writes it.
func (c *CPU) setState(image *[stateBytes]byte) {
	*(*[stateBytes]byte)(unsafe.Pointer(&c.c.thread.state)) = *image
}

// setStepsOnly has every instruction executed on its own, without blocks.
func (c *CPU) setStepsOnly(on bool) { c.c.steps_only = C.bool(on) }

// setHeat has blocks that are made from now on be replaced by long ones after n executions.
func (c *CPU) setHeat(n uint16) { c.c.heat = C.uint16_t(n) }

// mapCodeOnce has engines that are made from now on execute code where it is written.
func mapCodeOnce() { C.direct_map_once(true) }
