// Package emu is the interface between the machine and the engine that executes instructions. There
// are two: emu/uc translates with Unicorn and runs on every host; emu/direct translates for an
// x86-64 host's own processor. Package emu/engines makes the one that a configuration names.
//
// An engine runs one thread at a time, in the memory of package mem. It knows no operating system:
// a system call, a fault or an exception ends a run and is reported as an arch.Stop.
//
// Invariants that every engine keeps:
//
//  1. The effect of a run is a function of the context, the memory and the limit. No clock, random
//     number or CPUID of the host is visible.
//  2. A Stop's PC is exact, and the instructions counted are those retired before it: SYSCALL,
//     INT n and INT3 count when they stop a run, an instruction that faults does not, and a
//     repeated string instruction counts once for each iteration and once for leaving.
package emu

import (
	"fmt"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/emu/memlog"
)

// CPU is an engine with its memory. It runs threads, one at a time, for one goroutine at a time.
// Its owner calls Close.
type CPU interface {
	Close()

	// NewContext makes the context of a thread whose registers are all zero, with the
	// floating-point state of a new Linux process (FNINIT, MXCSR 0x1f80).
	NewContext() arch.Context
	// CloneContext copies the registers of a context of this engine.
	CloneContext(arch.Context) arch.Context
	// Load loads the thread of a context of this engine, in an address space: Run, Regs and similar
	// methods act on it. Unload puts its registers into its context.
	Load(arch.Context, *mem.Space)
	Unload()
	// SetCore sets the core on which the loaded thread runs, and that core's clock at the start of the next
	// run. RDTSC adds to it the run's cycles, or, after CountInstructions, its instructions.
	SetCore(core arch.CoreID, clock arch.Cycles)
	CountInstructions()

	// Run runs the loaded thread until it reaches the limit or something else stops it.
	Run(arch.Limit) arch.Stop
	// Resume continues the run that ended with a StopFault, after the page was supplied, with a
	// StopBreakpoint, or with a StopLog, after the logs were drained, as if there had been no stop.
	// The limit is still that of Run, and the counts of the Stop are those of the whole run.
	Resume() arch.Stop
	// StepAhead makes Resume execute the instructions before a missing page one by one, after a
	// StopFault that was Ahead and for which no page can be supplied. The next fault there is the
	// thread's own.
	StepAhead()
	// HaltAt makes the current or next run stop with StopBreakpoint after this number of
	// instructions since its start; 0: it does not. Unlike a limit it does not change where the run
	// ends: Resume continues, after HaltAt was given another number. The setting stays until the
	// next call.
	HaltAt(instructions uint64)
	// SetPollInterval makes runs also end with StopLog, at the start of a block, each time that
	// they have executed this number of instructions since they started or were resumed, so that
	// the caller can decide whether to resume. 0 means never.
	SetPollInterval(instructions uint64)

	// Regs reads the loaded thread's integer registers, and SetRegs writes them.
	Regs(*arch.Regs)
	SetRegs(*arch.Regs)
	// PC returns the loaded thread's program counter.
	PC() arch.Addr
	// FP reads the loaded thread's floating-point and SSE state, an FXSAVE image in 64-bit mode
	// (Intel SDM volume 1, section 10.5), and SetFP writes it.
	FP(*[arch.FPSize]byte)
	// The bits of MXCSR that are reserved must be 0.
	SetFP(*[arch.FPSize]byte)
	// YMMHigh reads the upper halves of the loaded thread's YMM registers, which are 0 on a processor
	// without AVX, and SetYMMHigh writes them, with no effect on such a processor.
	YMMHigh(*[arch.YMMHighSize]byte)
	SetYMMHigh(*[arch.YMMHighSize]byte)
	// FaultAddr returns the exact address of the fault that has just stopped the loaded thread.
	FaultAddr() arch.Addr
	// Operands returns the memory that the next instruction of the loaded thread accesses, as far
	// as its operands name it: not the accesses of XSAVE, for example. Those of gathering loads and of
	// masked moves are elements. A repeated instruction is about to execute one iteration.
	Operands() []arch.Operand
	// RepetitionIsOver reports whether the next instruction of the loaded thread is a repeated
	// string instruction without iterations left. After its last iteration, it counts once more for
	// leaving.
	RepetitionIsOver() bool
	// OrderAt returns the Order of the instruction at an address in the loaded thread's space.
	OrderAt(arch.Addr) Order
	// CPUID returns EAX, EBX, ECX and EDX of a leaf as the guest sees them (Intel SDM volume 2,
	// CPUID).
	CPUID(leaf, subleaf uint32) [4]uint32

	// SetBreakpoints replaces the addresses before which runs stop with StopBreakpoint, in every
	// space. SetDebugBreakpoints replaces those of a debugger, which are in addition.
	SetBreakpoints([]arch.Addr)
	SetDebugBreakpoints([]arch.Addr)
	// SetPoints names instructions before which runs are likely to end exactly, which makes such
	// ends cheaper. It has no other effect, and comes before the first run; later it is an error.
	SetPoints([]arch.Addr) error
	// CheckCalls adds cycles to the cost of each call and each return. It comes before the first
	// run.
	CheckCalls(cycles uint32)

	// Interrupted returns the instruction that the loaded thread is inside since the last run, and
	// whether there is one.
	Interrupted() (arch.Interrupted, bool)
	// Commit performs the remaining stores of the instruction in the thread's space, which need not
	// be loaded. The next run of the thread counts the instruction.
	Commit(*arch.Interrupted, *mem.Space)

	// LogBranches starts to log branches and code, until EndLogs. It comes before the first run, or while
	// no run executes: after a run, or before it is resumed. If timed is set, each entry of the branch log is preceded
	// by its time, and an entry has at most six outcomes. The log does not change the effect of a
	// run.
	LogBranches(timed bool) error
	// CompressReturns has the branch log have compressed returns, if the engine does that, and reports
	// whether it does. It comes after LogBranches without times, and before the next run. A return to the
	// place after the newest call of the run is an outcome of 1 then, and takes that call away; another
	// one forgets the calls before it. Of the calls, of which there are 64 at most, the log has none.
	CompressReturns() bool
	// Branches returns the branch log since the last Drained, up to the PC of the last Stop, valid
	// until the next run. Code iterates over the code log since the last Drained; the bytes are
	// valid until the next run. Drained empties both logs.
	Branches() []BranchWord
	Code(yield func(CodeBlock) bool)
	Drained()
	// CountBranches starts to count branches (CountedBranches) without logging them. It comes before
	// the first run. LogBranches and LogMemory, which count as well, may follow later.
	CountBranches() error
	// CountedBranches returns the number of branches in all runs since LogMemory, LogBranches or
	// CountBranches, of the kinds that event.Stamp counts.
	CountedBranches() uint64

	// LogInstructions starts to log every instruction, so that tests can compare it with branch
	// traces. It comes before the first run and has no effect on it.
	LogInstructions() error
	// TakeInstructions returns the addresses of the instructions completed since the last call, a
	// repeated string instruction once, and empties the log. Completed is their number by the
	// counts of the stops (Stop.Instructions without Stop.Repeated, which requires LogBranches); it
	// is an error if the log has another number. The addresses are valid until the next run.
	TakeInstructions(completed uint64) ([]uint64, error)

	// LogMemory starts to log the guest's loads and stores, and the other changes of memory that
	// its loads can read, until EndLogs; see package memlog. It comes before the first run, or while no
	// run executes, as LogBranches. It does not change the effect of a run.
	LogMemory(memlog.Filter) error
	// EndLogs ends the logs of branches and memory while no run executes, so that later runs cost less. The entries since the last stop are lost, and branches are not counted any more.
	EndLogs()
	// MuteMemory leaves the accesses of the next runs out of the log, or logs them again.
	MuteMemory(mute bool)
	// SwapMemory moves the entries since the last call into a buffer. The log continues in the
	// previous memory of that buffer.
	SwapMemory(*memlog.Buffer)
	// LoggedMemory returns the number of entries in the memory log.
	LoggedMemory() int
	// ForgetMemory empties the memory log because the machine has returned to an earlier state.
	ForgetMemory()

	// LogAccesses starts to log memory accesses by physical address.
	LogAccesses() (AccessLog, error)

	// LogAtomics starts to log atomic instructions and fences, for the rest of the CPU's life. The
	// effect of a run does not change. A run ends with StopLog when the log must be read.
	LogAtomics() error
	// MuteAtomics leaves atomic instructions out of the log from now on, at no cost, or logs them
	// again.
	MuteAtomics(on bool)
	// TakeAtomic removes the first entry of the log, in the order of execution, and returns whether
	// there was one. The caller takes all entries after each stop of a run whose atomic
	// instructions are logged.
	TakeAtomic(*Atomic) bool
	// GateAtomics makes runs also stop, with StopBreakpoint, before each logged atomic instruction
	// that is not admitted, where AtAtomic is true, and after it. LogAtomics comes first.
	GateAtomics()
	// AdmitAtomic sets whether the next atomic instruction is executed without a stop before it.
	AdmitAtomic(on bool)
	// AtAtomic reports whether the last run stopped before an atomic instruction that was not
	// admitted.
	AtAtomic() bool
	// NextAtomic returns the operand's address of the atomic instruction that the last run stopped
	// before, and whether it is a CMPXCHG or an OR.
	NextAtomic() (at arch.Addr, compares, sets bool)

	// BufferStores starts to buffer the stores of all later runs. It comes before the first run;
	// later it is an error. A full buffer commits its oldest store for each new one; with capacity
	// 0, none is ever full.
	BufferStores(capacity int) (Buffers, error)
	// UsePrivatePages gives cores private pages, for the rest of the CPU's life. It is an error
	// after the first run, and together with BufferStores or LogMemory.
	UsePrivatePages() (PrivatePages, error)
}

// Buffers keeps the stores of the running core apart from the memory that all cores see, by the
// method of docs/memory-models.md: while a core runs, guest memory has the values that this core
// sees, and the bytes that its stores hide are saved.
type Buffers interface {
	// Apply writes the stores of a core, oldest first, over memory, in the space of the loaded
	// thread, which is about to run on the core. It returns false if it left some out because there
	// is no longer a page at their address.
	Apply([]Store) bool
	// Withdraw removes the stores of the core that has run from memory, and appends them to to,
	// oldest first.
	Withdraw(to []Store) []Store
}

// PrivatePages gives each core copies of its own of the pages that it has stored to since its
// buffer was drained, by the method of docs/memory-models.md. Draining a core's buffer makes all of
// its copies visible to the other cores at once.
type PrivatePages interface {
	// Begin makes the loaded thread see what a core sees. The core's buffer must be drained before
	// another thread runs on the core, and before its thread runs on another core.
	Begin(arch.CoreID, arch.ThreadID)
	// End makes the shared pages visible again. It reports whether the run since Begin executed an
	// instruction that drains the buffer of its core: then the caller must drain that buffer before
	// anything else.
	End() (drains bool)
	// Drain makes the stores in a core's buffer visible to all cores.
	Drain(arch.CoreID)
	// Waiting returns the number of pages in a core's buffer, and the core's clock at the start of
	// the run that made the first of them.
	Waiting(arch.CoreID) (pages int, made arch.Cycles)
	// UseViews makes cores but 0 views of threads for the rest of the run, of which there may be any
	// number, in place of what the methods above say. Memory does not change for a view's thread but
	// by its own stores, which no other thread sees. Drain writes the bytes that have changed to
	// shared memory and ends the view. A thread without a view runs on core 0, where memory is the
	// shared one.
	UseViews()
	// View begins the view of a thread, whose address space is given, on a core that is none.
	View(arch.CoreID, arch.ThreadID, *mem.Space)
	// Discard ends the view of a thread that was killed, whose stores no thread sees.
	Discard(arch.CoreID)
	// ViewCounts returns what views have done so far.
	ViewCounts() ViewCounts
	// Save keeps the stores in all buffers, and which threads have accessed each page. No thread may
	// be running.
	Save() SavedPages
}

// ViewCounts is the work of views: the first stores of views to pages, and the changed pages that
// were written to shared memory. Overflowed says that there was no room for a page, so that views
// are not what they should be.
type ViewCounts struct {
	Faults, Published uint64
	Overflowed        bool
}

// SavedPages is the state of PrivatePages at some time. Its owner calls Release.
type SavedPages interface {
	// Load restores the private pages to the saved state. Space returns the address space of a
	// thread, which must be that of the same time.
	Load(space func(arch.ThreadID) *mem.Space)
	Release()
}

// AccessLog logs the memory accesses of all runs of a CPU. Its owner calls Close before closing the
// CPU.
type AccessLog interface {
	Close()
	// Take appends the accesses since the last call to to, in their order. It returns false if
	// there were too many to keep.
	Take(to []MemoryAccess) (all []MemoryAccess, ok bool)
}

// MemoryAccess is a load or store as the engine makes it: by physical address, possibly one of
// several parts of an access.
type MemoryAccess struct {
	Physical uint64
	Size     int
	Write    bool
}

// Order is the effect of an instruction on the order of memory accesses (Intel SDM volume 3,
// section 8.2).
type Order uint8

// Effects on the order. Locked instructions (LOCK prefix, XCHG with memory) read and write
// atomically and are full fences; Full are MFENCE and CPUID, which serializes; Stores is SFENCE;
// Weak are non-temporal stores, which other stores may overtake.
const (
	OrderLocked Order = 1 << iota
	OrderFull
	OrderStores
	OrderWeak
)

// Atomic is an atomic instruction (LOCK prefix, or XCHG with memory) or a fence (MFENCE, SFENCE,
// LFENCE) that a run has executed.
type Atomic struct {
	PC arch.Addr
	// Addr and Size are the accessed memory; Size is 0 for a fence.
	Addr arch.Addr
	Size uint32
	// Before and Cycles are the instructions and cycles of the run from just before it to the run's
	// end.
	Before uint64
	Cycles arch.Cycles
}

// Store is a store in a core's buffer, which other cores cannot see yet. A Store of size 0 is a
// fence: the stores after it wait for those before it. It has the layout of C's structure.
//
// A store that the engine makes in several parts is several stores: 16 bytes of an SSE register are
// two. So is a store into two cache lines.
type Store struct {
	Addr arch.Addr
	Data [8]byte
	// Made is the core's clock at the start of the run that made the store, since the time within
	// the run depends on how the engine executes it.
	Made arch.Cycles
	Size uint32
	// Weak is 1 for a non-temporal store.
	Weak uint32
}

// String shows the address and the bytes.
func (s Store) String() string { return fmt.Sprintf("%#x=%x", uint64(s.Addr), s.Data[:s.Size]) }
