package partialorder

import (
	"fmt"
	"syscall"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/follow"
)

// StepKind is the kind of a Step.
type StepKind uint8

// Kinds of steps.
const (
	// WholeStep is an operation from its call to its return.
	WholeStep StepKind = iota
	// BeginStep is the part of an operation before it waits, and EndStep the rest: of waits on
	// conditions and barriers, and of once routines. An operation in which an epoch ends has an
	// EndStep in the next epoch.
	BeginStep
	EndStep
	// CallStep is a system call, to its end or until the thread waits, and CalledStep the rest, or the part to
	// the next wait.
	CallStep
	CalledStep
	// StartStep is before a new thread's first instruction.
	StartStep
	// AtomicStep is an atomic instruction outside of operations.
	AtomicStep
	// SignalStep is the delivery of a signal that no instruction of the thread itself has caused.
	// HandlerStep has no place in the order: among the open steps of a thread it says that the
	// thread is in a signal handler within an operation.
	SignalStep
	HandlerStep
)

// Step is one step of a thread in the partial order of an epoch.
type Step struct {
	Kind      StepKind
	Op        event.SyncOp
	Object    event.ObjectID
	Second    event.ObjectID // the mutex of a wait
	Addr      arch.Addr      // of the object
	Cancelled arch.ThreadID  // the thread that the operation cancels
	Number    uint64         // of a system call or signal
	Args      [6]uint64      // of a system call
	// Result is the result of the operation or system call. Writes are the memory contents that a
	// system call left which is not carried out again (IsTimeDependent). For a signal the first is
	// its siginfo_t, and the others are the writes of the system call that it has ended.
	Result uint64
	Writes []event.Write
	// Answers are those of the time-dependent system calls within the operation, in their order.
	Answers []Answer
	// Place is, for a signal and for an interrupted system call, the number of instructions of the
	// thread since its previous step. Within reports that a signal arrives while the thread waits
	// in the kernel, Interrupted that a signal has ended the system call, and Split that the
	// operation has a separate begin step because a signal has arrived in its wait.
	Place                      uint64
	Within, Interrupted, Split bool
	// Waits reports that the step ends with a wait in the system call, whose rest is a CalledStep.
	Waits bool
	// Time is the kernel's time, in ns, at the end of the system call or of the last one in the operation:
	// that of the time stamps of files.
	Time int64
	// MeetingStep is, for a cancellation, one more than the index of the step before which
	// MeetingThread must be, which is its signal; 0: there is no such step.
	MeetingStep, MeetingThread int
	// Clock is the vector clock: the number of steps of each thread, by its number, that come
	// before. Missing components are 0.
	Clock    []uint32
	entities []entity
	complete bool
	// pc is the address of an atomic instruction. failed reports that it is a CMPXCHG that has stored nothing, and repeated
	// that the thread's next step is the same instruction again.
	pc               arch.Addr
	failed, repeated bool
	declaresExit     bool // sched.SyncPoint.MayExit
}

// Answer is what a system call that is not carried out again gives: its result, and the memory that it writes.
type Answer struct {
	Number, Result uint64
	Writes         []event.Write
}

// matches reports whether two steps are the same step of the program, as far as that is known
// before they are complete.
func (s *Step) matches(o *Step) bool {
	if s.Kind == AtomicStep {
		return o.Kind == AtomicStep // its address is not known yet
	}
	kind := s.Kind
	if s.Split {
		kind = WholeStep
	}
	return kind == o.Kind && s.Op == o.Op && s.Object == o.Object && s.Number == o.Number && s.Args == o.Args
}

// hasBeginStep reports whether an operation has a separate step before its wait.
func hasBeginStep(op event.SyncOp) bool {
	switch op {
	case event.OpCondWait, event.OpCondTimedWait, event.OpCondClockWait, event.OpC11CndWait, event.OpC11CndTimedWait,
		event.OpBarrierWait:
		return true
	case event.OpCondSignal, event.OpCondBroadcast, event.OpC11CndSignal, event.OpC11CndBroadcast:
		return true // they wait until the threads of the last signals have continued
	case event.OpCancel:
		return true // the signal that it sends may arrive before it returns
	}
	return follow.EnclosesOperations(op)
}

// stepOfOperation returns the first step of an operation.
func (s *Functions) stepOfOperation(e *event.Sync) Step {
	x := Step{Op: e.Op, Object: e.Object, Second: e.Second, Addr: e.Addr, Cancelled: e.Peer, entities: s.entitiesOfOperation(e)}
	if hasBeginStep(e.Op) {
		x.Kind = BeginStep
	}
	return x
}

// stepOfCall returns the step of a system call. Registers beyond the call's arguments are left out.
func stepOfCall(v *sched.SyncPoint) Step {
	e := v.Call
	x := Step{Kind: CallStep, Number: e.Number, entities: entitiesOfCall(e.Number, v.File)}
	copy(x.Args[:linux.Arity(e.Number)], e.Args[:])
	return x
}

// isAnswered reports whether the result of a system call is that of the first replica: it depends on
// the time, or a signal has ended the call.
func (s *Step) isAnswered() bool {
	return IsTimeDependent(s.Number) || s.Interrupted || !s.Waits && s.Result == linux.Failure(syscall.EINTR)
}

// isUnordered reports whether a step has no place in the order.
func (s *Step) isUnordered() bool { return s.Kind == CallStep && IsUnordered(s.Number) }

// createsThread reports whether a step creates a thread or a process.
func (s *Step) createsThread() bool {
	if s.Kind == CallStep {
		return linux.Has(s.Number, linux.Forks)
	}
	return s.Op == event.OpCreate || s.Op == event.OpC11ThrdCreate || s.Op == event.OpFork
}

// endsThread reports whether a step ends its thread.
func (s *Step) endsThread() bool {
	if s.Kind == CallStep {
		return linux.Has(s.Number, linux.EndsThread)
	}
	return s.Op == event.OpPthreadExit || s.Op == event.OpC11ThrdExit
}

// remainder returns the step that completes a step in which an epoch ends.
func (s *Step) remainder() Step {
	r := Step{
		Kind: EndStep, Op: s.Op, Object: s.Object, Second: s.Second, Addr: s.Addr, Cancelled: s.Cancelled, Number: s.Number, Args: s.Args, entities: s.entities,
	}
	switch s.Kind {
	case CallStep, CalledStep:
		r.Kind = CalledStep
	case HandlerStep:
		r.Kind = HandlerStep
	}
	return r
}

// isLock and isUnlock report whether a step may be half of a pair that changes nothing.
func (s *Step) isLock() bool {
	return s.Kind == WholeStep && (s.Op == event.OpMutexLock || s.Op == event.OpC11MtxLock || s.Op == event.OpSpinLock ||
		s.Op == event.OpRWReadLock || s.Op == event.OpRWWriteLock)
}

func (s *Step) isUnlock() bool {
	return s.Kind == WholeStep && (s.Op == event.OpMutexUnlock || s.Op == event.OpC11MtxUnlock ||
		s.Op == event.OpSpinUnlock || s.Op == event.OpRWUnlock)
}

// String returns the name of a step for messages.
func (s *Step) String() string {
	switch s.Kind {
	case CallStep:
		return fmt.Sprintf("system call %d", s.Number)
	case CalledStep:
		return fmt.Sprintf("the end of system call %d", s.Number)
	case StartStep:
		return "its start"
	case EndStep:
		return "the end of " + s.Op.String()
	case SignalStep:
		return fmt.Sprintf("signal %d", s.Number)
	}
	return s.Op.String()
}
