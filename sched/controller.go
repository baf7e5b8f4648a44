package sched

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// PointKind is the kind of a synchronization point.
type PointKind uint8

const (
	// AtStart is before the first instruction of a new thread.
	AtStart PointKind = iota
	// AtEnter is before the first instruction of a synchronization operation, whose begin is
	// SyncPoint.Sync.
	AtEnter
	// AtWake is where a thread continues after it waited in the kernel, in an operation
	// (SyncPoint.InOperation) or in a system call.
	AtWake
	// AtReturn is after an operation; SyncPoint.Sync is its Return or Unwound.
	AtReturn
	// AtCall is a system call, SyncPoint.Call, that was issued outside of operations and has not
	// been carried out yet.
	AtCall
	// AtBudget is where the thread has run all instructions that Controller.Budget allowed.
	AtBudget
	// AtInstruction is where a Stopper wants the thread to stop.
	AtInstruction
	// AtAddress is at an instruction of an Arriver's list. A controller may be asked several times
	// about the same arrival.
	AtAddress
	// AtAtomic is before an atomic instruction outside of operations, for an AtomicController.
	// SyncPoint.Private reports whether the instruction is the C library's.
	AtAtomic
)

func (p PointKind) String() string {
	return [...]string{"start", "enter", "wake", "return", "call", "budget", "instruction", "address", "atomic"}[p]
}

// A SyncPoint is a thread at a point where a Controller decides whether it may continue.
type SyncPoint struct {
	Thread arch.ThreadID
	// Name is the thread's name, which does not depend on the interleaving ("1.2").
	Name string
	Kind PointKind
	// Sync and Call describe the event at points of some kinds, and are valid during the call only.
	Sync *event.Sync
	Call *event.Syscall
	// Private reports that the system call has no effect that another thread can observe: it is
	// about the thread itself, the clock or memory, or for a futex of the C library's own locks.
	Private bool
	// MayExit reports that the atomic instruction may be the one by which the thread declares that
	// it exits.
	MayExit bool
	// InOperation reports that the thread is in an operation.
	InOperation bool
	// Now is the time of the thread's core, and Instructions the number of instructions that the
	// thread has retired.
	Now          arch.Cycles
	Instructions uint64
	// Accesses is, AtInstruction, the number of memory accesses that the next instruction has done.
	Accesses uint8
	PC       arch.Addr // AtInstruction and AtAddress
}

// A Controller decides when threads pass their synchronization points: a deterministic
// multithreading algorithm, the enforcement of a schedule and the recording of an order are
// controllers. The machine asks it at every point that a thread reaches, and reports the events
// that follow. A thread that may not continue is held: it is off its core until Gate.Release.
//
// A controller's state must be plain data that a deep copy can copy, and its answers must depend
// only on the calls it received. Pass has a default for every method, for embedding.
//
// The calls about one thread come in this order: Ask(AtStart), and then repeatedly one of
//
//	Ask(AtEnter) ... Ask(AtReturn)   operations; those of a once routine are nested
//	Ask(AtCall), Called              system calls outside of operations
//	Ask(AtBudget), Ask(AtInstruction)
//	Ask(AtAtomic), Atomic            for an AtomicController
//
// with Blocked and Ask(AtWake) in between when the thread waits in the kernel, and finally Exited.
// A controller is asked about a point once; a thread that was held there continues when it is
// released, without another question.
type Controller interface {
	// Ask reports whether the thread may continue now.
	Ask(g *Gate, v *SyncPoint) bool
	// Called is called when the system call of the last Ask(AtCall) is done.
	Called(g *Gate, t arch.ThreadID, result uint64)
	// Blocked is called when a thread waits in the kernel; inside reports that it does so in an
	// operation.
	Blocked(g *Gate, t arch.ThreadID, inside bool)
	// Woken is called when the event that a thread waited for may have happened: Ask(AtWake)
	// follows when it has a core.
	Woken(g *Gate, t arch.ThreadID)
	// Exited is called when a thread, held or not, has ended.
	Exited(g *Gate, t arch.ThreadID)
	// Stepped is called at the end of a thread's quantum with the number of instructions that it
	// retired, or when a timer has fired (NoThread, 0). Now is the time of the core, or of the timer.
	Stepped(g *Gate, t arch.ThreadID, instructions uint64, now arch.Cycles)
	// Budget returns the greatest number of instructions that a thread may run from now until
	// AtBudget; 0: any number.
	Budget(t arch.ThreadID) uint64
	// Stuck is called when no thread can run and some are held. If it releases none, the run ends
	// with a deadlock.
	Stuck(g *Gate)
}

// A SignalController is a Controller that decides when threads get signals (Deliver): signals that
// have a handler or kill, and that no instruction of the thread itself has caused.
type SignalController interface {
	// Signalled is called when a thread gets a signal of any kind. The event is valid during the
	// call only.
	Signalled(g *Gate, e *event.Signal)
}

// A SignalKeeper is a Controller of a run in which threads get no such signal in the middle of an
// operation, except while they wait in it.
type SignalKeeper interface{ KeepsSignals() }

// A HandlerController is a Controller that hears of the ends of signal handlers, and is not asked
// about the system call with which they end.
type HandlerController interface {
	// Handled is called when a thread that has retired the given number of instructions has
	// returned from its handler.
	Handled(t arch.ThreadID, instructions uint64)
}

// A KillController is a Controller that hears of signals that a thread sends to another within an
// operation.
type KillController interface{ Kills(t arch.ThreadID) }

// A SignalHolder is a Controller that withholds such signals from some threads, unless it delivers
// them itself (Deliver).
type SignalHolder interface {
	// HoldsSignals reports whether it withholds them from a thread that is about to run.
	HoldsSignals(t arch.ThreadID) bool
}

// An AtomicController is a Controller that is asked before each atomic instruction outside of
// operations (AtAtomic), and hears of its effect.
type AtomicController interface {
	Atomic(g *Gate, e *event.Sync)
}

// A Pauser is a Controller that can keep threads from running at any instruction.
type Pauser interface {
	// May reports whether a thread that is about to run, and has retired the given number of
	// instructions, may. If not, it is held.
	May(t arch.ThreadID, instructions uint64) bool
}

// An Orderer is a Controller that gives threads places in an order as soon as they are created, and
// is asked about a thread that was woken (AtWake) before the thread checks again whether its wait
// is over.
type Orderer interface {
	Controller
	// Made is called when a new thread exists: Ask(AtStart) follows when it has a core.
	Made(g *Gate, t arch.ThreadID)
}

// A ScheduleController is a Controller that records or enforces schedules.
type ScheduleController interface {
	Controller
	// Schedules reports whether it is asked about calls of malloc and its kin (event.OpAllocate)
	// and about returns of the routines that threads were created for (event.OpThreadReturn).
	Schedules() bool
}

// A HeapController is a Controller that hears when threads are in a function of an allocator.
type HeapController interface {
	Controller
	// CountsHeap reports whether Allocates is to be called.
	CountsHeap() bool
	// Allocates is called when a thread that has retired the given number of instructions enters
	// such a function, or has left it.
	Allocates(t arch.ThreadID, instructions uint64, inside bool)
}

// A Stopper is a Controller that stops threads at instructions.
type Stopper interface {
	// Points returns the addresses of the instructions before which threads are most often stopped
	// exactly.
	Points() []arch.Addr
	// Left returns how far a thread that has retired done instructions may run until
	// AtInstruction: soon instructions and to the end of their block, or exactly instructions, and
	// then the given number of memory accesses of the next one. The greatest number means no limit.
	Left(t arch.ThreadID, done uint64) (soon, exactly uint64, accesses uint8)
	// Reached is called at the end of a quantum with the number of instructions that its thread has
	// retired.
	Reached(g *Gate, t arch.ThreadID, done uint64)
}

// An Arriver is a Controller that is asked about threads wherever they reach certain instructions
// (AtAddress).
type Arriver interface {
	// Addresses returns the addresses of the instructions; if it returns none, Arrive is not called.
	Addresses() []arch.Addr
}

// Pass is a Controller that lets every thread continue.
type Pass struct{}

// Ask implements Controller, and so do the other methods.
func (Pass) Ask(*Gate, *SyncPoint) bool                        { return true }
func (Pass) Called(*Gate, arch.ThreadID, uint64)               {}
func (Pass) Blocked(*Gate, arch.ThreadID, bool)                {}
func (Pass) Woken(*Gate, arch.ThreadID)                        {}
func (Pass) Exited(*Gate, arch.ThreadID)                       {}
func (Pass) Stepped(*Gate, arch.ThreadID, uint64, arch.Cycles) {}
func (Pass) Budget(arch.ThreadID) uint64                       { return 0 }
func (Pass) Stuck(*Gate)                                       {}
