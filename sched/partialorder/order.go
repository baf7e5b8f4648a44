package partialorder

import (
	"github.com/heddle-dmt/heddle/emu/arch"
)

// ThreadState is the state of a thread between two epochs.
type ThreadState struct {
	ID   arch.ThreadID
	Name string
	// Held reports that the thread is held: before Next or, if Woken, after a wait in the innermost
	// step of Within. Otherwise it waits in the kernel. Within are the steps that are under way,
	// from the outermost to the innermost.
	Held, Woken bool
	Next        Step
	Within      []Step
	// Exits reports that no other thread may detach it any more.
	Exits bool
	// Process identifies its process: threads of one process have the same.
	Process arch.ThreadID
}

// AreOne reports whether there is one thread, which is not at an atomic instruction.
func AreOne(threads []ThreadState) bool {
	return len(threads) == 1 && !(threads[0].Held && threads[0].Next.Kind == AtomicStep)
}

// ThreadLog is the part of an Order that one thread contributes.
type ThreadLog struct {
	ID    arch.ThreadID
	Steps []Step
	// Unordered counts the system calls without a place in the order between the last step and the
	// end of the epoch.
	Unordered int
	// EndsInStep reports that the epoch ends while the thread waits in its last step.
	EndsInStep bool
	// EndsHeld reports that the thread is held at the end of the epoch, before its next step.
	EndsHeld bool
	// Process is that of its ThreadState.
	Process arch.ThreadID
}

// Order is the partial order of the synchronization operations and system calls of an epoch (Frost
// section 3.1). A thread's number is its index in Threads. It does not change.
type Order struct {
	Begin   []ThreadState
	Threads []ThreadLog
	// Constraints are pairs of threads, by number, of which one waited for a step of the other,
	// once for each wait.
	Constraints [][2]int
	// Endless reports that the epoch was ended in an apparent endless loop: of atomic instructions,
	// or of calls without a place in the order, of which any number may follow the last step; or in a deadlock, in
	// which threads wait in such calls.
	Endless bool
}

// SharedInSnapshot marks that copies of the machine's state share it.
func (*Order) SharedInSnapshot() {}

// Length returns the number of steps.
func (o *Order) Length() (n int) {
	for i := range o.Threads {
		n += len(o.Threads[i].Steps)
	}
	return n
}
