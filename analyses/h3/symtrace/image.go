package symtrace

import (
	"sort"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Image is the program where its first thread is about to make the second one, which is
// the same in every run, or at a checkpoint.
type Image struct {
	// Peek reads memory and returns how much of it there is.
	Peek func(addr uint64, b []byte) int
	// State are the registers of the first thread, if the image is no checkpoint.
	State vex.State
	// Threads are the threads that are alive at the checkpoint, by number, and LastThread is the
	// greatest number of a thread that was created before it.
	Threads    []CheckpointThread
	LastThread arch.ThreadID
	CPUID      func(leaf, subleaf uint32) [4]uint32
	// File finds the file of a name, as the program would open it.
	File func(name string) (*File, unix.Errno)
	// Clock reads a clock (clock_gettime(2)), in nanoseconds; an unknown one has 0. Without it all
	// have 0.
	Clock func(id int32) int64
	// Affinity is the set of the cores on which the first thread may run, and those that it makes.
	Affinity uint64
	// Functions are the functions that are not followed, by their first address.
	Functions map[uint64]Function
	// Objects are variables in memory, by address.
	Objects []Object
	// Mapped are the mapped ranges of memory, by address.
	Mapped []Range
	// NewThread is the memory of the first thread that the program makes, when it begins.
	NewThread NewThread
	// ChangedByCreate are the variables of the C library that the first creation of a thread
	// changes, with their later content.
	ChangedByCreate []Piece

	heaps map[Range][]Object // by mapping, as far as they were asked for
}

// NewThread is memory that the C library has prepared for a thread. Other threads have the same, at
// other addresses.
type NewThread struct {
	// Pointer is the thread pointer, and Block the memory round it.
	Pointer uint64
	Block   Piece
	// Modules is the vector of the addresses of thread-local variables by module, dtv in glibc.
	Modules Piece
	// Stack is the stack pointer with which the thread begins: that of others has the same place
	// in its page.
	Stack uint64
	// ID is where the thread's number is, relative to the pointer; 0: it is not known.
	ID uint64
}

// Piece is some content of memory.
type Piece struct {
	Addr    uint64
	Content []byte
}

func (p *Piece) has(addr uint64) bool { return addr-p.Addr < uint64(len(p.Content)) }

// Range is addresses from Start to below End.
type Range struct{ Start, End uint64 }

// Object is a variable, or a piece of memory that was allocated.
type Object struct {
	Addr, Size uint64
}

// peekChanged is Peek with the variables of ChangedByCreate in their later content.
func (m *Image) peekChanged(addr uint64, b []byte) int {
	n := m.Peek(addr, b)
	for i := range m.ChangedByCreate {
		c := &m.ChangedByCreate[i]
		if from, to := max(addr, c.Addr), min(addr+uint64(n), c.Addr+uint64(len(c.Content))); from < to {
			copy(b[from-addr:to-addr], c.Content[from-c.Addr:])
		}
	}
	return n
}

// objectAt finds the variable, or the piece of memory, that has an address.
func (m *Image) objectAt(addr uint64) (Object, bool) {
	if o, ok := m.variableAt(addr); ok {
		return o, true
	}
	return m.chunkAt(addr)
}

// variableAt finds the variable that has an address.
func (m *Image) variableAt(addr uint64) (Object, bool) {
	i := sort.Search(len(m.Objects), func(i int) bool { return m.Objects[i].Addr > addr })
	if i > 0 && addr < m.Objects[i-1].Addr+m.Objects[i-1].Size && m.isMapped(addr) {
		return m.Objects[i-1], true
	}
	return Object{}, false
}

// isMapped reports whether there is memory at an address.
func (m *Image) isMapped(addr uint64) bool {
	i := sort.Search(len(m.Mapped), func(i int) bool { return m.Mapped[i].Start > addr })
	return i > 0 && addr < m.Mapped[i-1].End
}

// Role is the effect of a function that is not followed.
type Role uint8

// Roles.
const (
	// Constant returns a number, and changes nothing that the program sees.
	Constant Role = iota
	// Print is Constant, of a function that prints by the format in its argument of
	// number Function.Value.
	Print
	// Argument returns its argument of number Function.Value, from 1.
	Argument
	// Free gives the memory of its argument back.
	Free
	// Allocate returns memory: malloc of one size, Calloc of two; Resize is realloc.
	Allocate
	Calloc
	Resize
	// Duplicate is strdup.
	Duplicate
	// Stop does not return: the process ends, or the thread.
	Stop
	StopThread
	// Fail is where an assertion has failed.
	Fail
	// Synchronize is a synchronization operation, Function.Op.
	Synchronize
	// Register notes the jmp_buf that its argument points to as that of a clean-up, Unregister
	// removes the latest. Unwind continues there, in a thread that is cancelled. Cancel is the
	// handler of the signal for that, which is followed.
	Register
	Unregister
	Unwind
	Cancel
)

// Function is a function that is not followed: its effect is known.
type Function struct {
	Name  string
	Role  Role
	Value uint64
	Op    event.SyncOp
	// Stream is the number of the argument that is a stream of the C library, or 0: the
	// function is not followed if that is a file's. One in memory is data.
	Stream int
}
