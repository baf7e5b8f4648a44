package event

import (
	"fmt"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Schedule is the part of a run's order that is enforced on other runs: the total order of its
// synchronization operations and system calls, and constraints on single
// instructions (a hybrid schedule: PEREGRINE, section 3).
type Schedule struct {
	// Threads are the run-independent names of the threads, by number.
	Threads []string
	// Operations are in their order: the place of one is its position.
	Operations []Operation
	// Constraints are in the order of their second points in the recorded run.
	Constraints []Constraint
	// Objects are the names of the objects that operations have.
	Objects map[ObjectID]string
	// Portable reports that the schedule is for other inputs than the recorded one, too:
	// points are where their instruction is reached for the Occurrence-th time, calls
	// that move data may move another amount, and calls that change only the address space,
	// or move data by a descriptor that is in Free, have no position.
	Portable bool
	Free     []int64
	// Stuck reports that the recorded run ended because all threads waited.
	Stuck bool
	// Allocators reports that system calls in malloc and its kin have no position: which
	// thread makes them depends on the order of the threads. Unless the schedule is portable some
	// of the calls of malloc and its kin are operations as wholes: OpAllocate, whose
	// Result is the number of the call since the thread's operation before, from 1.
	Allocators bool
}

// SharedInSnapshot marks that a schedule does not change.
func (*Schedule) SharedInSnapshot() {}

// Describe names the operation at a position, for a sentence.
func (s *Schedule) Describe(position int) string {
	o := &s.Operations[position]
	switch o.Part {
	case SystemCall:
		return fmt.Sprintf("system call %d", o.Number)
	case StartPart:
		return "the thread's start"
	case SignalPart:
		return fmt.Sprintf("signal %d", o.Number)
	case ResumePart:
		return "the next wait in " + o.Op.String()
	}
	name := o.Op.String()
	if o.Part == EndPart {
		name = "the end of " + name
	}
	if object := s.Objects[o.Object]; object != "" {
		name += " " + object
	}
	return name
}

// Awaited are, by thread, the positions of the operations that waited for threads'
// ends: pthread_join and its like. For a thread that no one waited for it is the number
// of operations.
func (s *Schedule) Awaited() []int {
	threads := map[string]int{}
	awaited := make([]int, len(s.Threads))
	for n, name := range s.Threads {
		threads["thread:"+name], awaited[n] = n, len(s.Operations)
	}
	for i := range s.Operations {
		o := &s.Operations[i]
		switch o.Op {
		case OpJoin, OpTryJoin, OpTimedJoin, OpClockJoin, OpC11ThrdJoin:
		default:
			continue
		}
		n, known := threads[s.Objects[o.Object]]
		if known && awaited[n] == len(s.Operations) && o.Result == 0 && o.Part == WholePart {
			awaited[n] = i
		}
	}
	return awaited
}

// Alone is the position from which on a thread is alone, since all others have been
// waited for: it needs no order. If there is no such position, it is the number of operations.
func (s *Schedule) Alone() int {
	last := -1
	others := 0
	for _, at := range s.Awaited() {
		if at == len(s.Operations) {
			others++
		} else {
			last = max(last, at)
		}
	}
	if others != 1 || last < 0 {
		return len(s.Operations)
	}
	for i := last + 1; i < len(s.Operations); i++ {
		if s.Operations[i].Thread != s.Operations[last].Thread {
			return len(s.Operations)
		}
	}
	return last + 1
}

// Part is the part of an operation that has a position.
type Part uint8

// Parts of operations.
const (
	// WholePart is an operation from its call to its return, SystemCall a system
	// call outside of one.
	WholePart Part = iota
	SystemCall
	// BeginPart is an operation's part from its call until it waits, EndPart the
	// rest: of waits on conditions and barriers and of once routines.
	BeginPart
	EndPart
	// StartPart is before a new thread's first instruction.
	StartPart
	// SignalPart is the delivery of a signal.
	SignalPart
	// ResumePart is the part of an operation on a condition from the end of a wait in the kernel to the next
	// one: it waits for the mutex, say. Its Result is that of the futex call that ended.
	ResumePart
)

var partNames = [...]string{"whole", "call", "begin", "end", "start", "signal", "resume"}

// Parts lists the parts' names, in the order of their numbers.
func Parts() []string { return partNames[:] }

func (p Part) String() string { return partNames[p] }

// EndsWait reports whether a part begins with the end of a wait in the kernel.
func (p Part) EndsWait() bool { return p == EndPart || p == ResumePart }

// Operation is an operation, or a part of one, that has a position of its own.
type Operation struct {
	// Thread is the number of the thread.
	Thread int
	Part   Part
	// Op and Object are those of an operation, Number that of a system call or
	// signal.
	Op     SyncOp
	Object ObjectID
	Number uint64
	// Result is the value that a WholePart, EndPart or SystemCall returned. Of a SignalPart it
	// is how many instructions the thread had retired since its operation before, or
	// Interrupted.
	Result int64
	// At is when it was done, and Time how long a system call took.
	At, Time arch.Cycles
	// Writes are a system call's stores of the time or of random numbers. Of a
	// SignalPart it is one: the instruction that the thread would have executed next,
	// and the siginfo_t.
	Writes []Write
}

// Interrupted is the Result of a signal that comes while its thread is in a system
// call, or waits in an operation.
const Interrupted = -1

// Write is bytes at a place in memory.
type Write struct {
	Addr arch.Addr
	Data []byte
}

// Point is a dynamic instruction of a run, as PEREGRINE's <sid, tid, nbr> names it
// (section 3.1), or an operation as a whole.
type Point struct {
	// Thread is the number of the thread, and Done how many of its operations
	// come before.
	Thread int
	Done   int
	// PC is the instruction; 0: the operation that comes next, as a whole.
	PC arch.Addr
	// Branches is how many branches the thread has gone through since the last
	// of its operations, and Instructions how many instructions it has retired.
	Branches, Instructions uint64
	// Occurrence is how often the thread has reached PC since the last of its
	// operations, this time included; 0: not known.
	Occurrence uint64
	// Spins is how many of these times were further iterations of loops in which the thread waited for
	// another's store: such a wait counts as one.
	Spins uint64
	// Span is how many instructions the instruction counts as: more than one if
	// it repeats.
	Span uint64
	// Accesses, unless 0, is how many of the instruction's accesses are done where the point
	// is: the first point of a constraint is after them, the second one before the next.
	Accesses uint8
	// Ends reports that the thread did not pass the instruction: it was not
	// executed when the run ended.
	Ends bool
}

// Constraint orders two points of different threads: First is executed before
// Second.
type Constraint struct{ First, Second Point }
