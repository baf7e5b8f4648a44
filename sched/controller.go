package sched

import (
	"math"

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
	// AtInstruction is where the thread stops because of Controller.StopDistance.
	AtInstruction
	// AtAddress is at an instruction of Needs.Addresses. A controller may be asked several times
	// about the same arrival.
	AtAddress
	// AtAtomic is before an atomic instruction outside of operations, in a machine that stops there.
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
	// Inner reports that the system call is a futex call that the C library makes for itself, of a lock of its own: it is made where
	// two threads meet there.
	Inner bool
	// File identifies, AtCall, the regular file that the system call acts on if it acts on nothing else;
	// otherwise it is 0.
	File uint64
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
//	Ask(AtAtomic), AtomicExecuted
//
// with Blocked and Ask(AtWake) in between when the thread waits in the kernel, and finally Exited.
// A controller is asked about a point once; a thread that was held there continues when it is
// released, without another question.
type Controller interface {
	// Needs returns what the controller wants besides. It does not change during a run.
	Needs() Needs
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

	// The methods below are called only as Needs says.

	// Observe is called when an event has happened.
	Observe(g *Gate, e ThreadEvent)
	// MayRun reports whether a thread that is about to run, and has retired the given number of
	// instructions, may. If not, it is held.
	MayRun(t arch.ThreadID, instructions uint64) bool
	// HoldsSignals reports whether signals are withheld from a thread that is about to run, unless
	// the controller delivers them itself (Deliver): those that have a handler or kill, and that no
	// instruction of the thread itself has caused.
	HoldsSignals(t arch.ThreadID) bool
	// StopDistance returns how far a thread that has retired done instructions may run until
	// AtInstruction: soon instructions and to the end of their block, or exactly instructions, and
	// then the given number of memory accesses of the next one. NoStop means no limit.
	StopDistance(t arch.ThreadID, done uint64) (soon, exactly uint64, accesses uint8)
}

// NoStop is the number of instructions that StopDistance returns for no limit.
const NoStop = math.MaxUint64

// Needs is what a Controller wants of the machine besides the calls that every controller gets. The
// zero value is nothing.
type Needs struct {
	// The kinds of events that Observe is called for: see the ThreadEvents of these names. With
	// HandlerReturns the controller is not asked about the system calls that end handlers. Creations
	// also has it asked about a thread that was woken (AtWake) before the thread checks again
	// whether its wait is over.
	Signals, HandlerReturns, Kills, Times, Atomics, Allocations, Creations bool
	// CallWakes has the controller asked about a thread that was woken in a system call outside of
	// operations (AtWake) before the thread checks again whether its wait is over, unless it gets a signal.
	CallWakes bool
	// MayRun, SignalHolds and Stops have the methods MayRun, HoldsSignals and StopDistance called.
	// Stops adds the event QuantumEnded.
	MayRun, SignalHolds, Stops bool
	// SchedulePoints has the controller asked about calls of malloc and its kin (event.OpAllocate)
	// and about returns of the routines that threads were created for (event.OpThreadReturn), as
	// those need that record or enforce schedules.
	SchedulePoints bool
	// Views gives threads views of memory, which the effects BeginView and CommitView begin and end,
	// and asks about all atomic instructions outside of operations (AtAtomic).
	Views bool
	// WholeOperations keeps signals that have a handler or kill, and that no instruction of the
	// thread itself has caused, from threads that are in an operation and do not wait in it.
	WholeOperations bool
	// StopPoints are the addresses of the instructions before which threads are most often stopped
	// exactly (StopDistance). They are read when the machine is built.
	StopPoints []arch.Addr
	// Addresses are those of the instructions at which threads are asked about (AtAddress), in
	// ascending order. They are read when the machine is built.
	Addresses []arch.Addr
}

// EventKind is the kind of a ThreadEvent.
type EventKind uint8

const (
	// SignalDelivered is when a thread gets a signal of any kind, ThreadEvent.Signal (Needs.Signals).
	SignalDelivered EventKind = iota + 1
	// HandlerReturned is when a thread has returned from its signal handler (Needs.HandlerReturns).
	HandlerReturned
	// SignalSent is when a thread sends a signal to another within an operation (Needs.Kills).
	SignalSent
	// TimeAsked is before a system call within an operation whose result depends on the time
	// (linux.TimeDependent); ThreadEvent.Number is the call's. The controller may have the effect
	// Answer (Needs.Times).
	TimeAsked
	// AtomicExecuted is after an atomic instruction that was asked about (AtAtomic);
	// ThreadEvent.Sync is its effect (Needs.Atomics).
	AtomicExecuted
	// AllocatorEntered and AllocatorLeft enclose the functions of an allocator (Needs.Allocations).
	AllocatorEntered
	AllocatorLeft
	// ThreadCreated is when a new thread exists: Ask(AtStart) follows when it has a core
	// (Needs.Creations).
	ThreadCreated
	// QuantumEnded is at the end of a thread's quantum (Needs.Stops).
	QuantumEnded
)

// A ThreadEvent is what Controller.Observe is called for.
type ThreadEvent struct {
	Kind   EventKind
	Thread arch.ThreadID
	// Instructions is the number of instructions that the thread has retired. SignalSent, TimeAsked
	// and ThreadCreated have none.
	Instructions uint64
	Number       uint64
	// Signal, Sync and Heap describe events of some kinds, and are valid during the call only.
	Signal *event.Signal
	Sync   *event.Sync
	// Failed reports, of AtomicExecuted, that the instruction is a CMPXCHG that has stored nothing, as far as that is known.
	Failed bool
	Heap   *event.Heap
}

// Pass is a Controller that lets every thread continue.
type Pass struct{}

// Needs implements Controller, and so do the other methods.
func (Pass) Needs() Needs                                      { return Needs{} }
func (Pass) Ask(*Gate, *SyncPoint) bool                        { return true }
func (Pass) Called(*Gate, arch.ThreadID, uint64)               {}
func (Pass) Blocked(*Gate, arch.ThreadID, bool)                {}
func (Pass) Woken(*Gate, arch.ThreadID)                        {}
func (Pass) Exited(*Gate, arch.ThreadID)                       {}
func (Pass) Stepped(*Gate, arch.ThreadID, uint64, arch.Cycles) {}
func (Pass) Budget(arch.ThreadID) uint64                       { return 0 }
func (Pass) Stuck(*Gate)                                       {}
func (Pass) Observe(*Gate, ThreadEvent)                        {}
func (Pass) MayRun(arch.ThreadID, uint64) bool                 { return true }
func (Pass) HoldsSignals(arch.ThreadID) bool                   { return false }
func (Pass) StopDistance(arch.ThreadID, uint64) (soon, exactly uint64, accesses uint8) {
	return NoStop, NoStop, 0
}
