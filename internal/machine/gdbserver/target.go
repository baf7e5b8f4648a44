package gdbserver

import "github.com/heddle-dmt/heddle/emu/arch"

// Registers are those of one thread that the target description names.
type Registers struct {
	// GPR is rax rbx rcx rdx rsi rdi rbp rsp r8-r15, GDB's order.
	GPR            [16]uint64
	RIP, RFLAGS    uint64
	FSBase, GSBase uint64
	// Call is the number of the system call that the thread is in, or all ones.
	Call uint64
	// FP is an FXSAVE image.
	FP [512]byte
	// YMMHigh are the upper halves of the YMM registers, if HasAVX is set.
	YMMHigh [arch.YMMHighSize]byte
	HasAVX  bool
}

// Thread is one thread of the program.
type Thread struct {
	ID   int32
	Name string
}

// PointKind is the kind of a Point.
type PointKind uint8

// Kinds of Point, with the numbers of the Z packets.
const (
	SoftwareBreak PointKind = iota
	HardwareBreak
	WatchWrite
	WatchRead
	WatchAccess
)

// Point is a break- or watchpoint. Len is the number of bytes that are watched.
type Point struct {
	Kind PointKind
	Addr arch.Addr
	Len  uint64
}

// Motion is a request to run.
type Motion struct {
	// Step stops after one instruction of Thread; others may run meanwhile.
	Step   bool
	Thread int32
	// Back runs towards the beginning.
	Back bool
}

// Reason says why a run has stopped.
type Reason uint8

// Reasons of a Stop.
const (
	Stepped     Reason = iota // or interrupted, or just begun
	AtBreak                   // before the instruction at a breakpoint
	AtWatch                   // after an access, or before it when going back
	Signalled                 // an instruction failed: Signal
	Executed                  // the process has begun another program
	AtBeginning               // the run cannot go back any further
	AtEnd                     // the next step ends the program
	Exited                    // Code is the exit status
	Killed                    // Signal ended the program
)

// Stop is why and where a run has stopped.
type Stop struct {
	Reason Reason
	Thread int32
	Signal int
	Code   int
	// Point is the break- or watchpoint.
	Point Point
}

// Target is a run that is being debugged. All methods but Go leave it where it is.
type Target interface {
	// Threads lists the live threads, the first one first.
	Threads() []Thread
	// Registers reads a live thread's registers; false: there is no such thread.
	Registers(thread int32, r *Registers) bool
	// Read copies memory, and returns how much of it there was.
	Read(at arch.Addr, b []byte) int
	// Insert and Remove change the set of points. A point is in it or not.
	Insert(p Point)
	Remove(p Point)
	// Go runs until an event that GDB is interested in. It calls interrupted from time to time,
	// which reports whether the run is to stop.
	Go(m Motion, interrupted func() bool) (Stop, error)
	// Current is the stop that the last Go returned, or the beginning.
	Current() Stop
	// HasAVX reports whether the processor has AVX.
	HasAVX() bool
	// Auxv is the auxiliary vector, and Program the path, of the program.
	Auxv() []byte
	Program() string
}
