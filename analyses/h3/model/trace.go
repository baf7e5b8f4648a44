package model

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// MemoryModel is a memory model.
type MemoryModel uint8

// The memory models (H3 section 3.3).
const (
	// SC executes all events of a thread in program order.
	SC MemoryModel = iota
	// TSO lets reads be executed before earlier writes have reached memory.
	TSO
	// PSO also lets writes to different places reach memory in any order.
	PSO
)

func (m MemoryModel) String() string { return [...]string{"SC", "TSO", "PSO"}[m] }

// Kind is the kind of an event.
type Kind uint8

// Kinds of events.
const (
	Read Kind = iota
	Write
	// Update reads and writes as one: a locked instruction.
	Update
	// Fence orders all earlier accesses before all later ones, StoreFence writes alone.
	Fence
	StoreFence
	// Begin and End are the first and the last event of a thread that another one
	// forks or joins.
	Begin
	End
	// Fork starts a thread, Join waits for its End: Event.Peer.
	Fork
	Join
	// Lock and Unlock are about a mutex or, with Event.Shared for readers, about a
	// lock for reading and writing. TryFailed is an attempt that found it taken.
	Lock
	Unlock
	TryFailed
	// Sleep begins to wait on a condition variable, before the Unlock of its mutex, as glibc does;
	// Wake is where the wait is over, before the Lock. A thread that never continued has no Wake.
	Sleep
	Wake
	Signal
	Broadcast
	// Arrive is the arrival at a barrier for Event.Count threads; Leave, which is the thread's next
	// event, is where it continues.
	Arrive
	Leave
	// Post and Take are about a semaphore.
	Post
	Take
)

var kinds = [...]string{
	"read", "write", "update", "fence", "store fence", "begin", "end", "fork", "join", "lock", "unlock", "try failed",
	"sleep", "wake", "signal", "broadcast", "arrive", "leave", "post", "take",
}

func (k Kind) String() string { return kinds[k] }

// Reads and Writes report whether an event is an access that reads or writes.
func (k Kind) Reads() bool { return k == Read || k == Update }

// Writes is Reads' counterpart.
func (k Kind) Writes() bool { return k == Write || k == Update }

// DrainsWrites reports whether an event waits for all earlier writes of its thread.
func (k Kind) DrainsWrites() bool { return k != Read && k != Write && k != StoreFence }

// ID is the number of an event in Trace.Events.
type ID int32

// None is no event.
const None ID = -1

// Event is something that a thread did.
type Event struct {
	Kind Kind
	// Thread is its number in Trace.Threads, and At the event's in the thread.
	Thread, Number int
	// Core is where it was executed, and Place how many instructions the core had
	// executed before: the order of the events of a core (H3 section 3.4).
	Core             arch.CoreID
	CoreInstructions uint64
	// Addr and Size, in bytes, are those of an access. Index is the number of the
	// element if the access is to the array at Addr, otherwise nil.
	Addr  uint64
	Size  int
	Index *symbolic.Expr
	// Symbol is the value that a Read or Update reads, a symbol of its own; Value the one that a
	// Write or Update writes. They have 8*Size bits, the lowest at the lowest address.
	Symbol, Value *symbolic.Expr
	// Object is the object of a synchronization operation.
	Object event.ObjectID
	Shared bool
	// Count is, of an Arrive, how many threads the barrier is for.
	Count int
	// Peer is the other thread of Fork and Join.
	Peer int
	// TimedOut: a Wake was not due to a signal.
	TimedOut bool
	// PC is the instruction.
	PC arch.Addr
}

// Thread is a thread of the run.
type Thread struct {
	// Name identifies it in every run ("1.2").
	Name   string
	Events []ID
	// CreationOrder is its place among the threads in the order in which the recorded run made
	// them, from 1; 0 if that is not known.
	CreationOrder int
}

// Array is memory whose elements are accessed by numbers that are expressions.
// Accesses to it have its element's size and an Index, a number of 64 bits.
type Array struct {
	Addr  uint64
	Elem  int
	Count int
}

// End is the first address after the array.
func (a *Array) End() uint64 { return a.Addr + uint64(a.Elem)*uint64(a.Count) }

// Condition is something that has to hold, an expression of one bit.
type Condition struct {
	Expr *symbolic.Expr
	// Thread is whose path it is of, and Where its branch; -1 if it is of none.
	Thread int
	PC     arch.Addr
	// Assumed: the thread does not take its path because of it; it was followed under this
	// condition only. That there is no schedule with it says nothing about other values.
	Assumed bool
}

// Trace is all that the constraints are made of.
type Trace struct {
	// Pool has all expressions.
	Pool    *symbolic.Pool
	Threads []Thread
	Events  []Event
	Arrays  []Array
	// Path are the branches that the threads took, Bug the failure. A deadlock needs no condition:
	// its paths end with the operations that they wait in.
	Path, Bug []Condition
	// Deadlocked: threads that sleep to the end were never woken.
	Deadlocked bool
	// FIFOSignals: a signal wakes the thread that has waited longest, as in glibc and the kernel;
	// otherwise any that waits.
	FIFOSignals bool
	// Initial is the initial content of memory, by address; missing bytes are zero.
	Initial map[uint64]byte
	// Semaphores are the initial values, by object; missing ones are zero.
	Semaphores map[event.ObjectID]int
}

// New makes an empty trace.
func New(pool *symbolic.Pool) *Trace {
	return &Trace{Pool: pool, Initial: map[uint64]byte{}, Semaphores: map[event.ObjectID]int{}}
}

// AddThread makes a thread without events and returns its number.
func (t *Trace) AddThread(name string) int {
	t.Threads = append(t.Threads, Thread{Name: name})
	return len(t.Threads) - 1
}

// Add appends an event to its thread.
func (t *Trace) Add(e Event) ID {
	id := ID(len(t.Events))
	thread := &t.Threads[e.Thread]
	e.Number = len(thread.Events)
	thread.Events = append(thread.Events, id)
	t.Events = append(t.Events, e)
	return id
}

// SymbolOf makes the symbol of the value that thread's next event reads.
func (t *Trace) SymbolOf(thread, size int) *symbolic.Expr {
	return t.Pool.Symbol(fmt.Sprintf("r%d.%d", thread, len(t.Threads[thread].Events)), 8*size)
}

// WakeOf is the end of the wait that a Sleep begins, or None.
func (t *Trace) WakeOf(sleep ID) ID {
	e := &t.Events[sleep]
	for _, id := range t.Threads[e.Thread].Events[e.Number+1:] {
		if x := &t.Events[id]; x.Kind == Wake && x.Object == e.Object {
			return id
		}
	}
	return None
}

// Before reports whether a comes before b in their common thread's program order.
func (t *Trace) Before(a, b ID) bool {
	x, y := &t.Events[a], &t.Events[b]
	return x.Thread == y.Thread && x.Number < y.Number
}

// EventName is an event for people: thread, number, kind.
func (t *Trace) EventName(id ID) string {
	e := &t.Events[id]
	return fmt.Sprintf("%s#%d %v", t.Threads[e.Thread].Name, e.Number, e.Kind)
}

// arrayOf returns the array that an access with an index is to.
func (t *Trace) arrayOf(e *Event) *Array {
	for i := range t.Arrays {
		if t.Arrays[i].Addr == e.Addr {
			return &t.Arrays[i]
		}
	}
	return nil
}
