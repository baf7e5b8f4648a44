// Package uc executes instructions on Unicorn: the portable engine and the reference for others. A
// CPU runs one thread at a time, in the memory of package mem.
//
// A CPU has one Unicorn instance. A guest thread is a Context, which is saved and restored around
// its runs; a core is only a number that the guest can read.
//
// Invariant, besides those of package emu: C never calls Go.
package uc

/*
#cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -Werror -I${SRCDIR}/../mem -I${SRCDIR}/../memlog -I${SRCDIR}/../insn -I${SRCDIR}/../stores -I${SRCDIR}/../floats
#cgo amd64 LDFLAGS: -Wl,--as-needed
#cgo pkg-config: unicorn
#cgo LDFLAGS: -lZydis
#include <stdlib.h>
#include "cpu.h"

#cgo noescape heddle_cpu_run_other
#cgo nocallback heddle_cpu_run_other
#cgo noescape heddle_cpu_resume
#cgo nocallback heddle_cpu_resume
#cgo noescape heddle_cpu_get_regs
#cgo nocallback heddle_cpu_get_regs
#cgo noescape heddle_cpu_pc
#cgo nocallback heddle_cpu_pc
#cgo noescape heddle_cpu_set_regs
#cgo nocallback heddle_cpu_set_regs
#cgo noescape heddle_cpu_get_fp
#cgo nocallback heddle_cpu_get_fp
#cgo noescape heddle_cpu_set_fp
#cgo nocallback heddle_cpu_set_fp
#cgo noescape heddle_cpu_cpuid
#cgo nocallback heddle_cpu_cpuid
#cgo noescape uc_context_save
#cgo nocallback uc_context_save
#cgo noescape uc_context_restore
#cgo nocallback uc_context_restore
#cgo noescape uc_context_alloc
#cgo nocallback uc_context_alloc
#cgo noescape uc_version
#cgo nocallback uc_version
*/
import "C"

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	uc "github.com/unicorn-engine/unicorn/bindings/go/unicorn"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	_ "github.com/heddle-dmt/heddle/emu/floats" // the C functions of special.c
	_ "github.com/heddle-dmt/heddle/emu/insn"   // C code
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
	_ "github.com/heddle-dmt/heddle/internal/dynlib" // the functions of Unicorn
)

// CPU runs threads, one at a time, for one goroutine at a time. Its owner calls Close.
type CPU struct {
	engine   uc.Unicorn
	c        *C.struct_heddle_cpu
	ram      *mem.RAM
	current  *Context       // of the loaded thread, or nil
	inEngine *Context       // whose registers the engine has, or nil: see applySwitch
	pc       programCounter // of the loaded thread
	// breakpoints has those of the run's observers, then those of a debugger.
	breakpoints [2][]arch.Addr
}

var _ emu.CPU = (*CPU)(nil)

// BoundInSnapshot marks that copies of the machine's state share the engine, and that another
// machine has another.
func (c *CPU) BoundInSnapshot() {}

// MinVersion is the oldest usable version of Unicorn: major, minor, patch.
var MinVersion = [3]int{2, 1, 1}

// Version returns the version of the Unicorn library.
func Version() [3]int {
	v := uint32(C.uc_version(nil, nil))
	return [3]int{int(v >> 24), int(v >> 16 & 0xff), int(v >> 8 & 0xff)}
}

// NewCPU makes an engine for the given memory. Cores is the number of cores that the guest sees in
// CPUID.
func NewCPU(ram *mem.RAM, cores int, costs arch.Costs) (*CPU, error) {
	if v := Version(); slices.Compare(v[:], MinVersion[:]) < 0 {
		return nil, fmt.Errorf("unicorn %d.%d.%d is too old: 2.1.1 or newer is needed", v[0], v[1], v[2])
	}
	engine, err := uc.NewUnicorn(uc.ARCH_X86, uc.MODE_64)
	if err != nil {
		return nil, fmt.Errorf("start the engine: %w", err)
	}
	c := &CPU{engine: engine, ram: ram, c: (*C.struct_heddle_cpu)(C.calloc(1, C.sizeof_struct_heddle_cpu))}
	if err := c.initEngine(cores, costs); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *CPU) initEngine(cores int, costs arch.Costs) error {
	// Nehalem is the best model without AVX: SSE4.2, POPCNT, CMPXCHG16B.
	if err := c.engine.SetCPUModel(uc.CPU_X86_NEHALEM); err != nil {
		return fmt.Errorf("select the processor model: %w", err)
	}
	handle := (*C.uc_engine)(unsafe.Pointer(c.engine.Handle()))
	if code := C.heddle_cpu_reserve(handle); code != 0 {
		return fmt.Errorf("set the size of the buffer of translated code: %w", uc.UcError(code))
	}
	base := unsafe.Pointer(ramInC(c.ram).base)
	if err := c.engine.MemMapPtr(0, uint64(ramInC(c.ram).pages)*arch.PageSize, uc.PROT_ALL, base); err != nil {
		return fmt.Errorf("map the guest's memory: %w", err)
	}
	c.c.costs = C.struct_heddle_costs{
		instruction: C.uint32_t(costs.Instruction), memory: C.uint32_t(costs.Memory), divide: C.uint32_t(costs.Divide),
		atomic: C.uint32_t(costs.Atomic), fence: C.uint32_t(costs.Fence), sqrt: C.uint32_t(costs.Sqrt),
		transcendental: C.uint32_t(costs.Transcendental),
	}
	if code := C.heddle_cpu_init(c.c, handle, ramInC(c.ram), C.uint32_t(cores)); code != 0 {
		return fmt.Errorf("set up the engine: %w", uc.UcError(code))
	}
	return nil
}

// CheckCalls implements emu.CPU.
func (c *CPU) CheckCalls(cycles uint32) { c.c.costs.check = C.uint32_t(cycles) }

// Close frees the engine, but not the RAM.
func (c *CPU) Close() {
	C.heddle_cpu_close(c.c)
	C.free(unsafe.Pointer(c.c))
	c.c = nil
	// The only possible error is an invalid handle.
	_ = c.engine.Close()
}

// Context has the registers of one thread, except while that thread is loaded: then they are in the
// engine. Release frees it.
type Context struct {
	cpu *CPU
	c   *C.uc_context
	pc  programCounter // when it was unloaded
}

// programCounter is a thread's program counter, if it is known without asking the engine.
type programCounter struct {
	at    arch.Addr
	known bool
}

// CopyForSnapshot copies the registers; a copy for another machine belongs to that machine's
// engine, and then x must not be loaded.
func (x *Context) CopyForSnapshot(c *deepcopy.Copier) any {
	if cpu := deepcopy.Copy(c, x.cpu); cpu != x.cpu {
		return cpu.copyContext(x.c)
	}
	return x.cpu.CloneContext(x)
}

// NewContext implements emu.CPU.
func (c *CPU) NewContext() arch.Context { return c.copyContext(c.c.engine.initial) }

func (c *CPU) engineHandle() *C.uc_engine { return c.c.engine.uc }

func (c *CPU) allocContext() *Context {
	x := &Context{cpu: c}
	if code := C.uc_context_alloc(c.engineHandle(), &x.c); code != 0 {
		panic(fmt.Sprintf("bug: no memory for a context: %v", uc.UcError(code)))
	}
	return x
}

// CloneContext implements emu.CPU.
func (c *CPU) CloneContext(from arch.Context) arch.Context {
	x := from.(*Context)
	if c.inEngine == x {
		C.uc_context_save(c.engineHandle(), x.c)
	}
	return c.copyContext(x.c)
}

// copyContext makes a context like from, by loading it: the engine cannot copy one context to
// another.
func (c *CPU) copyContext(from *C.uc_context) *Context {
	loaded := c.current
	c.Unload()
	x := c.allocContext()
	C.uc_context_restore(c.engineHandle(), from)
	C.uc_context_save(c.engineHandle(), x.c)
	if loaded != nil {
		c.current, c.pc = loaded, loaded.pc
	}
	return x
}

// Release frees x.
func (x *Context) Release() {
	if x.cpu.current == x {
		x.cpu.current, x.cpu.pc = nil, programCounter{}
	}
	if x.cpu.inEngine == x {
		x.cpu.inEngine = nil
	}
	C.uc_context_free(x.c)
	x.c = nil
}

// SetCore implements emu.CPU.
func (c *CPU) SetCore(core arch.CoreID, clock arch.Cycles) {
	c.c.core = C.uint32_t(core)
	c.c.clock = C.uint64_t(clock)
}

// CountInstructions implements emu.CPU.
func (c *CPU) CountInstructions() { c.c.tsc_instructions = true }

func unlimitedIfZero(n uint64) C.uint64_t {
	if n == 0 {
		return math.MaxUint64
	}
	return C.uint64_t(n)
}

// Run implements emu.CPU.
func (c *CPU) Run(l arch.Limit) arch.Stop {
	flags := C.uint32_t(0)
	if l.Exact {
		flags |= C.HEDDLE_RUN_EXACT
	}
	if l.AtPause {
		flags |= C.HEDDLE_RUN_PAUSE
	}
	if l.AtSync {
		flags |= C.HEDDLE_RUN_SYNC
	}
	if l.Pass {
		flags |= C.HEDDLE_RUN_PASS
	}
	c.c.stops.pauses.stops_from = C.uint64_t(l.PauseAfter)
	c.insides().Prepare(&l)
	instructions := unlimitedIfZero(l.Instructions)
	if l.Immediately {
		instructions = 0
	}
	from, to := c.takeSwitch()
	return c.finishRun(C.heddle_cpu_run_other(
		C.uintptr_t(uintptr(unsafe.Pointer(c.c))), C.uintptr_t(uintptr(unsafe.Pointer(from))), C.uintptr_t(uintptr(unsafe.Pointer(to))),
		instructions, unlimitedIfZero(l.Most), unlimitedIfZero(uint64(l.Cycles)), flags))
}

// SetPollInterval implements emu.CPU.
func (c *CPU) SetPollInterval(instructions uint64) {
	c.c.stops.poll_interval = C.uint64_t(instructions)
}

// Resume implements emu.CPU.
func (c *CPU) Resume() arch.Stop {
	c.applySwitch()
	return c.finishRun(C.heddle_cpu_resume(c.c))
}

// StepAhead implements emu.CPU.
func (c *CPU) StepAhead() {
	c.applySwitch()
	C.heddle_cpu_step_ahead(c.c)
}

func (c *CPU) finishRun(why uint32) arch.Stop {
	c.pc = programCounter{arch.Addr(c.c.run.end_pc), true}
	s := arch.Stop{
		Reason: arch.StopReason(why), Vector: uint8(c.c.run.vector), Access: arch.Access(c.c.run.fault_access), Kind: arch.FaultKind(c.c.run.fault_kind),
		Page: arch.Addr(c.c.run.fault_page), Ahead: bool(c.c.run.fault_ahead), Instructions: uint64(c.c.run.instructions), Cycles: arch.Cycles(c.c.run.cycles),
		Repeated: uint64(c.c.logs.flow.repeated),
	}
	if s.Reason == arch.StopBudget {
		s.Inside = c.insides().Done()
	}
	if s.Reason == arch.StopEngine {
		s.Err = fmt.Errorf("the engine failed: %w", uc.UcError(c.c.run.error))
	}
	return s
}

// FaultAddr implements emu.CPU.
func (c *CPU) FaultAddr() arch.Addr {
	c.applySwitch()
	return arch.Addr(C.heddle_cpu_fault_address(c.c))
}

// Regs implements emu.CPU.
func (c *CPU) Regs(r *arch.Regs) {
	c.applySwitch()
	C.heddle_cpu_get_regs(c.c, (*C.struct_heddle_regs)(unsafe.Pointer(r)))
}

// PC implements emu.CPU.
func (c *CPU) PC() arch.Addr {
	if !c.pc.known {
		c.applySwitch()
		c.pc = programCounter{arch.Addr(C.heddle_cpu_pc(c.c)), true}
	}
	return c.pc.at
}

// SetRegs implements emu.CPU.
func (c *CPU) SetRegs(r *arch.Regs) {
	c.applySwitch()
	C.heddle_cpu_set_regs(c.c, (*C.struct_heddle_regs)(unsafe.Pointer(r)))
	c.pc = programCounter{arch.Addr(r.RIP), true}
}

// FP implements emu.CPU.
func (c *CPU) FP(image *[arch.FPSize]byte) {
	c.applySwitch()
	C.heddle_cpu_get_fp(c.c, unsafe.Pointer(image))
}

// SetFP implements emu.CPU.
func (c *CPU) SetFP(image *[arch.FPSize]byte) {
	c.applySwitch()
	C.heddle_cpu_set_fp(c.c, unsafe.Pointer(image))
}

// YMMHigh implements emu.CPU: Unicorn's processor has no AVX.
func (c *CPU) YMMHigh(halves *[arch.YMMHighSize]byte) { clear(halves[:]) }

// SetYMMHigh implements emu.CPU.
func (c *CPU) SetYMMHigh(*[arch.YMMHighSize]byte) {}

// SetBreakpoints implements emu.CPU.
func (c *CPU) SetBreakpoints(addrs []arch.Addr) { c.setBreakpoints(0, addrs) }

// SetDebugBreakpoints implements emu.CPU.
func (c *CPU) SetDebugBreakpoints(addrs []arch.Addr) { c.setBreakpoints(1, addrs) }

func (c *CPU) setBreakpoints(owner int, addrs []arch.Addr) {
	c.breakpoints[owner] = slices.Clone(addrs)
	sorted := slices.Concat(c.breakpoints[0], c.breakpoints[1])
	slices.Sort(sorted)
	sorted = append(slices.Compact(sorted), 0)
	if C.heddle_cpu_breakpoints(c.c, (*C.uint64_t)(unsafe.Pointer(&sorted[0])), C.size_t(len(sorted)-1)) != 0 {
		panic("bug: no memory for breakpoints")
	}
}

// SetPoints implements emu.CPU. A point has a hook, which makes each execution of its instruction a
// little slower.
func (c *CPU) SetPoints(addrs []arch.Addr) error {
	sorted := slices.Clone(addrs)
	slices.Sort(sorted)
	if sorted = slices.Compact(sorted); len(sorted) == 0 {
		return nil
	}
	if code := C.heddle_cpu_points(c.c, (*C.uint64_t)(unsafe.Pointer(&sorted[0])), C.size_t(len(sorted))); code != 0 {
		return fmt.Errorf("set points: %w", uc.UcError(code))
	}
	return nil
}

// HaltAt implements emu.CPU.
func (c *CPU) HaltAt(instructions uint64) { c.c.stops.halt_at = C.uint64_t(instructions) }

// CPUID implements emu.CPU.
func (c *CPU) CPUID(leaf, subleaf uint32) [4]uint32 {
	var out [4]uint32
	C.heddle_cpu_cpuid(c.c, C.uint32_t(leaf), C.uint32_t(subleaf), (*C.uint32_t)(unsafe.Pointer(&out[0])))
	return out
}

// The numbers are those of C. A difference does not compile.
const (
	_ = -(uint(arch.Read|arch.Write|arch.Exec) ^ uint(C.HEDDLE_PTE_PERM))
	_ = -(uint(arch.AccessFetch) ^ uint(C.HEDDLE_FETCH))
	_ = -(uint(arch.NoMemory) ^ uint(C.HEDDLE_WALK_NO_MEMORY))
)
