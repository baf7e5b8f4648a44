// Package emu is the emulated processor and its memory: physical pages (RAM),
// address spaces (Space) and the engine that runs the instructions of one
// thread at a time (CPU).
//
// The engine underneath is one Unicorn instance. A guest thread is a Context,
// saved and restored around its runs; a core is nothing here but a number that
// the guest can ask for. The package knows no operating system: a system call,
// a fault or an exception ends a run and is handed up as a Stop.
//
// Invariants:
//
//  1. What a run does is a function of the context, the memory and the budget.
//     No clock, random number or CPUID of the host is visible.
//  2. A Stop's PC is exact, and the instructions counted are those retired
//     before it: SYSCALL, INT n and INT3 count when they stop a run, an
//     instruction that faults does not, and a repeated string instruction
//     counts once for each iteration and once for leaving.
//  3. Nothing here calls Go from C.
package emu

/*
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

	"github.com/heddle-dmt/heddle/internal/deepcopy"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Regs is a thread's integer registers.
type Regs struct {
	// GPR is rax rcx rdx rbx rsp rbp rsi rdi r8-r15, the order of encoding.
	GPR            [16]uint64
	RIP, RFLAGS    uint64
	FSBase, GSBase uint64
}

// Indices of Regs.GPR.
const (
	RAX = iota
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
)

// FPSize is the size of floating-point state: an FXSAVE image.
const FPSize = 512

// StopReason says why a run ended.
type StopReason uint8

// Reasons for a run to end; see Stop.
const (
	StopBudget     StopReason = C.HEDDLE_STOP_BUDGET
	StopSyscall    StopReason = C.HEDDLE_STOP_SYSCALL
	StopFault      StopReason = C.HEDDLE_STOP_FAULT
	StopNoMemory   StopReason = C.HEDDLE_STOP_NO_MEMORY
	StopException  StopReason = C.HEDDLE_STOP_EXCEPTION
	StopInterrupt  StopReason = C.HEDDLE_STOP_INTERRUPT
	StopBreakpoint StopReason = C.HEDDLE_STOP_BREAKPOINT
	StopPause      StopReason = C.HEDDLE_STOP_PAUSE
	StopSync       StopReason = C.HEDDLE_STOP_SYNC
	StopEngine     StopReason = C.HEDDLE_STOP_ENGINE
	StopLog        StopReason = C.HEDDLE_STOP_LOG
)

// Stop is the end of a run.
type Stop struct {
	Reason StopReason
	// Vector is the exception or interrupt number, for StopException (PC at
	// the instruction) and StopInterrupt (PC behind it).
	Vector uint8
	// Access and Kind tell of a StopFault or StopNoMemory; Page is the start of
	// the page that was accessed. FaultAddr gives the exact address.
	Access Access
	Kind   FaultKind
	Page   event.Addr
	// Ahead reports whether a StopFault is of code that follows the PC in another page
	// and that the thread has not reached: see StepAhead.
	Ahead bool
	// Instructions and Cycles count what the run retired.
	Instructions uint64
	Cycles       event.Cycles
	// Inside is how many accesses of the instruction at its end are done, of a StopBudget
	// inside an instruction; 0: it is inside none. See Interrupted.
	Inside uint8
	// Repeated is how many of the instructions were iterations of a repeated
	// string instruction that went on after them; known if branches are logged.
	Repeated uint64
	// Err is the engine's own failure, for StopEngine.
	Err error
}

// Limit is the budget of one run. Zero numbers mean no limit.
type Limit struct {
	Instructions uint64
	Cycles       event.Cycles
	// Exact stops at the first instruction at or after a limit, which for
	// Instructions means exactly there; otherwise the run ends at the first
	// block boundary, which is cheaper.
	Exact bool
	// Inside says where inside an instruction the run may end if a budget does. With
	// Immediately the budget of instructions is 0. From is the instruction that the thread
	// is inside at its begin; nil: none.
	Inside      Inside
	Immediately bool
	From        *Interrupted
	// Most is a limit of instructions that is exact, whatever the others are;
	// the greatest number means none, too.
	Most uint64
	// AtPause and AtSync also stop after a PAUSE, and before atomic
	// instructions and fences.
	AtPause, AtSync bool
	// PauseAfter is how many instructions the run has with the first PAUSE that ends it, at
	// least.
	PauseAfter uint64
	// Pass lets the first instruction run whatever breakpoint is on it and
	// whether or not it is one to stop before.
	Pass bool
}

// CPU runs threads, one at a time. It must be closed, and used by one goroutine
// at a time.
type CPU struct {
	engine  uc.Unicorn
	c       *C.struct_heddle_cpu
	ram     *RAM
	current *Context       // of the loaded thread, or nil
	in      *Context       // whose registers the engine has, or nil: see settle
	pc      programCounter // of the loaded thread
	// breakpoints are those of the run's own observers and of a debugger.
	breakpoints [2][]event.Addr
}

// BoundInSnapshot marks that copies of the machine's state share the engine, and
// that another machine has another.
func (c *CPU) BoundInSnapshot() {}

// MinVersion is the oldest usable version of Unicorn, major, minor and patch.
var MinVersion = [3]int{2, 1, 1}

// Version is the version of the Unicorn library that is linked in.
func Version() [3]int {
	v := uint32(C.uc_version(nil, nil))
	return [3]int{int(v >> 24), int(v >> 16 & 0xff), int(v >> 8 & 0xff)}
}

// NewCPU makes an engine over the given memory. Cores is what the guest is told
// of the number of cores.
func NewCPU(ram *RAM, cores int, costs Costs) (*CPU, error) {
	if v := Version(); slices.Compare(v[:], MinVersion[:]) < 0 {
		return nil, fmt.Errorf("unicorn %d.%d.%d is too old: 2.1.1 or newer is needed", v[0], v[1], v[2])
	}
	engine, err := uc.NewUnicorn(uc.ARCH_X86, uc.MODE_64)
	if err != nil {
		return nil, fmt.Errorf("start the engine: %w", err)
	}
	c := &CPU{engine: engine, ram: ram, c: (*C.struct_heddle_cpu)(C.calloc(1, C.sizeof_struct_heddle_cpu))}
	if err := c.setUp(cores, costs); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *CPU) setUp(cores int, costs Costs) error {
	// Nehalem is the best model without AVX: SSE4.2, POPCNT, CMPXCHG16B.
	if err := c.engine.SetCPUModel(uc.CPU_X86_NEHALEM); err != nil {
		return fmt.Errorf("choose the processor model: %w", err)
	}
	handle := (*C.uc_engine)(unsafe.Pointer(c.engine.Handle()))
	if code := C.heddle_cpu_reserve(handle); code != 0 {
		return fmt.Errorf("choose the size of the buffer of translations: %w", uc.UcError(code))
	}
	base := unsafe.Pointer(c.ram.c.base)
	if err := c.engine.MemMapPtr(0, uint64(c.ram.c.pages)*PageSize, uc.PROT_ALL, base); err != nil {
		return fmt.Errorf("map the guest's memory: %w", err)
	}
	c.c.costs = C.struct_heddle_costs{
		instruction: C.uint32_t(costs.Instruction), memory: C.uint32_t(costs.Memory), divide: C.uint32_t(costs.Divide),
		atomic: C.uint32_t(costs.Atomic), fence: C.uint32_t(costs.Fence), sqrt: C.uint32_t(costs.Sqrt),
		transcendental: C.uint32_t(costs.Transcendental),
	}
	if code := C.heddle_cpu_init(c.c, handle, c.ram.c, C.uint32_t(cores)); code != 0 {
		return fmt.Errorf("set up the engine: %w", uc.UcError(code))
	}
	return nil
}

// CheckCalls has each call and each return take so many cycles more. It comes before
// the first run.
func (c *CPU) CheckCalls(cycles uint32) { c.c.costs.check = C.uint32_t(cycles) }

// Close frees the engine. The RAM stays.
func (c *CPU) Close() {
	C.heddle_cpu_close(c.c)
	C.free(unsafe.Pointer(c.c))
	c.c = nil
	// An error here would mean that the handle is not one.
	_ = c.engine.Close()
}

// Context is one thread's registers. Release frees it.
//
// While it is loaded its registers are in the engine.
type Context struct {
	cpu *CPU
	c   *C.uc_context
	pc  programCounter // when it was unloaded
}

// programCounter is where a thread is, if that is known without asking the engine.
type programCounter struct {
	at    event.Addr
	known bool
}

// CopyForSnapshot copies the registers, for another engine if the copy is one for
// another machine: then x must not be loaded.
func (x *Context) CopyForSnapshot(c *deepcopy.Copier) any {
	if cpu := deepcopy.Copy(c, x.cpu); cpu != x.cpu {
		return cpu.copyContext(x.c)
	}
	return x.cpu.CloneContext(x)
}

// NewContext makes the context of a thread whose registers are all zero, with
// the processor as Linux starts a program (FNINIT, MXCSR 0x1f80).
func (c *CPU) NewContext() *Context { return c.copyContext(c.c.clean) }

func (c *CPU) handle() *C.uc_engine { return c.c.uc }

func (c *CPU) allocContext() *Context {
	x := &Context{cpu: c}
	if code := C.uc_context_alloc(c.handle(), &x.c); code != 0 {
		panic(fmt.Sprintf("bug: no memory for a context: %v", uc.UcError(code)))
	}
	return x
}

// CloneContext copies the registers of x.
func (c *CPU) CloneContext(x *Context) *Context {
	if c.in == x {
		C.uc_context_save(c.handle(), x.c)
	}
	return c.copyContext(x.c)
}

// copyContext makes a context like from. The engine copies contexts only by
// way of its own state.
func (c *CPU) copyContext(from *C.uc_context) *Context {
	loaded := c.current
	c.Unload()
	x := c.allocContext()
	C.uc_context_restore(c.handle(), from)
	C.uc_context_save(c.handle(), x.c)
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
	if x.cpu.in == x {
		x.cpu.in = nil
	}
	C.uc_context_free(x.c)
	x.c = nil
}

// SetCore tells on which core the loaded thread runs, and that core's clock.
func (c *CPU) SetCore(core event.CoreID, clock event.Cycles) {
	c.c.core = C.uint32_t(core)
	c.c.clock = C.uint64_t(clock)
}

func orMax(n uint64) C.uint64_t {
	if n == 0 {
		return math.MaxUint64
	}
	return C.uint64_t(n)
}

// Run runs the loaded thread until the limit is reached or something else
// stops it.
func (c *CPU) Run(l Limit) Stop {
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
	c.c.pauses.stops_from = C.uint64_t(l.PauseAfter)
	c.c.inside_choice = C.uint32_t(l.Inside)
	instructions := orMax(l.Instructions)
	if l.Immediately {
		instructions = 0
	}
	if l.From == nil {
		c.c.within.n = 0
	} else {
		*(*Interrupted)(unsafe.Pointer(&c.c.within)) = *l.From
	}
	from, to := c.pending()
	return c.stopped(C.heddle_cpu_run_other(
		C.uintptr_t(uintptr(unsafe.Pointer(c.c))), C.uintptr_t(uintptr(unsafe.Pointer(from))), C.uintptr_t(uintptr(unsafe.Pointer(to))),
		instructions, orMax(l.Most), orMax(uint64(l.Cycles)), flags))
}

// LookEvery has runs end with StopLog, too, when they have run so many instructions since
// they began or were resumed, at the begin of a block: whoever runs them can see whether
// to resume. 0 means never.
func (c *CPU) LookEvery(instructions uint64) { c.c.look_every = C.uint64_t(instructions) }

// Resume goes on with the run that a StopFault ended, after the page was
// supplied, a StopBreakpoint, or a StopLog, after the logs were drained: as if
// there had been no stop. The limit is still that of Run, and the counts of the
// Stop are those of the whole run.
func (c *CPU) Resume() Stop {
	c.settle()
	return c.stopped(C.heddle_cpu_resume(c.c))
}

// StepAhead has Resume execute the instructions before a page that is not there one by
// one, after a StopFault that was Ahead and for which no page can be supplied. The next
// fault there is the thread's own.
func (c *CPU) StepAhead() {
	c.settle()
	C.heddle_cpu_step_ahead(c.c)
}

func (c *CPU) stopped(why uint32) Stop {
	c.pc = programCounter{event.Addr(c.c.pc), true}
	s := Stop{
		Reason: StopReason(why), Vector: uint8(c.c.vector), Access: Access(c.c.access), Kind: FaultKind(c.c.walk),
		Page: event.Addr(c.c.fault_page), Ahead: bool(c.c.ahead), Instructions: uint64(c.c.instructions), Cycles: event.Cycles(c.c.cycles),
		Repeated: uint64(c.c.log.repeated),
	}
	if s.Reason == StopBudget {
		s.Inside = uint8(c.c.within.done)
		if c.c.within.n == 0 {
			s.Inside = 0
		}
	}
	if s.Reason == StopEngine {
		s.Err = fmt.Errorf("the engine failed: %w", uc.UcError(c.c.error))
	}
	return s
}

// FaultAddr is the exact address of the fault that just stopped the loaded
// thread.
func (c *CPU) FaultAddr() event.Addr {
	c.settle()
	return event.Addr(C.heddle_cpu_fault_address(c.c))
}

// Regs reads the loaded thread's registers.
func (c *CPU) Regs(r *Regs) {
	c.settle()
	C.heddle_cpu_get_regs(c.c, (*C.struct_heddle_regs)(unsafe.Pointer(r)))
}

// PC reads the loaded thread's program counter alone.
func (c *CPU) PC() event.Addr {
	if !c.pc.known {
		c.settle()
		c.pc = programCounter{event.Addr(C.heddle_cpu_pc(c.c)), true}
	}
	return c.pc.at
}

// SetRegs writes the loaded thread's registers.
func (c *CPU) SetRegs(r *Regs) {
	c.settle()
	C.heddle_cpu_set_regs(c.c, (*C.struct_heddle_regs)(unsafe.Pointer(r)))
	c.pc = programCounter{event.Addr(r.RIP), true}
}

// FP reads the loaded thread's floating-point and SSE state.
func (c *CPU) FP(image *[FPSize]byte) {
	c.settle()
	C.heddle_cpu_get_fp(c.c, unsafe.Pointer(image))
}

// SetFP writes the loaded thread's floating-point and SSE state.
func (c *CPU) SetFP(image *[FPSize]byte) {
	c.settle()
	C.heddle_cpu_set_fp(c.c, unsafe.Pointer(image))
}

// SetBreakpoints replaces the addresses at which runs stop, in every space, but
// for those of a debugger.
func (c *CPU) SetBreakpoints(addrs []event.Addr) { c.setBreakpoints(0, addrs) }

// SetDebugBreakpoints replaces the addresses at which runs stop for a debugger.
func (c *CPU) SetDebugBreakpoints(addrs []event.Addr) { c.setBreakpoints(1, addrs) }

func (c *CPU) setBreakpoints(owner int, addrs []event.Addr) {
	c.breakpoints[owner] = slices.Clone(addrs)
	sorted := slices.Concat(c.breakpoints[0], c.breakpoints[1])
	slices.Sort(sorted)
	sorted = append(slices.Compact(sorted), 0)
	if C.heddle_cpu_breakpoints(c.c, (*C.uint64_t)(unsafe.Pointer(&sorted[0])), C.size_t(len(sorted)-1)) != 0 {
		panic("bug: no memory for breakpoints")
	}
}

// SetPoints names instructions before which runs are likely to end exactly: that
// costs less there. It changes nothing else, comes before the first run, and each
// execution of one of them takes a little longer.
func (c *CPU) SetPoints(addrs []event.Addr) error {
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

// HaltAt makes the run, from now on and until it is told otherwise, stop after so
// many instructions counted from its beginning, with StopBreakpoint; 0: nowhere.
// Unlike a limit it does not change where the run ends. Resume goes on; set
// another number first.
func (c *CPU) HaltAt(instructions uint64) { c.c.halt_at = C.uint64_t(instructions) }

// CPUID is what the guest is told for a leaf: eax, ebx, ecx, edx.
func (c *CPU) CPUID(leaf, subleaf uint32) [4]uint32 {
	var out [4]uint32
	C.heddle_cpu_cpuid(c.c, C.uint32_t(leaf), C.uint32_t(subleaf), (*C.uint32_t)(unsafe.Pointer(&out[0])))
	return out
}

// Transcendental tells whether a block with an x87 transcendental instruction
// was run: its result comes from the host's mathematical library.
func (c *CPU) Transcendental() bool { return bool(c.c.transcendental) }
