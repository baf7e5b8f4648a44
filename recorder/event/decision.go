package event

import "github.com/heddle-dmt/heddle/emu/arch"

// DecisionKind is the kind of a Decision.
type DecisionKind uint8

// Kinds of decisions.
const (
	// DecideQuantum runs a thread on a core.
	DecideQuantum DecisionKind = iota
	// DecideTimer lets the earliest timer fire.
	DecideTimer
	// DecideEnd is the end of the run.
	DecideEnd
)

func (k DecisionKind) String() string {
	switch k {
	case DecideQuantum:
		return "quantum"
	case DecideTimer:
		return "timer"
	default:
		return "end"
	}
}

// Decision is one step of the scheduler, with its outcome: all that is
// needed to repeat the step, whatever the scheduler decides by itself.
type Decision struct {
	Kind DecisionKind `json:"kind"`
	// Thread and Core are those of a quantum, NoThread and NoCore otherwise.
	Thread arch.ThreadID `json:"thread"`
	Core   arch.CoreID   `json:"core"`
	// Time is the core's clock at the start of a quantum, or when the timer was
	// set for, or the makespan at the end.
	Time arch.Cycles `json:"time"`
	// Cores are the cores whose thread or clock has changed since the
	// decision before, with their state at the start of this one.
	Cores []CoreState `json:"cores,omitempty"`
	// Commits are the stores that leave their buffers before the quantum, in
	// this order.
	Commits []Commit `json:"commits,omitempty"`
	// Instructions is the number that the quantum retired; at the end it is the number of
	// context switches.
	Instructions uint64 `json:"instructions"`
	// Inside is how many accesses were done of the instruction after these, if the quantum
	// ended inside one.
	Inside uint8 `json:"inside,omitempty"`
	// After is the core's clock after the quantum, before the kernel acts.
	After arch.Cycles `json:"after"`
	// Budget reports whether the quantum's budget ended it. Otherwise it ended by
	// itself, and Stop is the reason: a number that the machine gives.
	Budget bool  `json:"budget"`
	Stop   uint8 `json:"stop"`
	// Check is a checksum of the kernel's events from this decision to the next.
	Check uint16 `json:"check"`
}

// CoreState is the state of a core: its thread, or NoThread, and its clock.
type CoreState struct {
	Core   arch.CoreID   `json:"core"`
	Thread arch.ThreadID `json:"thread"`
	Clock  arch.Cycles   `json:"clock"`
}

// Commit is a store's way from a core's buffer to the memory that all cores
// see. Entry is its place in the buffer, from the oldest, 0. With stores kept by
// pages it is the whole buffer's, and Entry 0.
type Commit struct {
	Core  arch.CoreID `json:"core"`
	Entry uint32      `json:"entry"`
}

// StreamFault is a failure of a standard stream on the host, as the guest saw it: output
// after the first Bytes bytes of descriptor FD fails with an errno.
type StreamFault struct {
	Stamp
	FD    int32  `json:"fd"`
	Bytes uint64 `json:"bytes"`
	Errno uint32 `json:"errno"`
}

// Delay is a store that other threads did not see while they ran: it waited in the
// buffer of its core. The stamp has the thread and the core that made it, and the time
// of its commit; Seq is the number of the last event before.
type Delay struct {
	Stamp
	// Made is the clock of the core at the start of the quantum that made the store.
	Made arch.Cycles `json:"made"`
	Addr arch.Addr   `json:"addr"`
	Size uint32      `json:"size"`
	// Value is the stored value, in its Size low bytes.
	Value uint64 `json:"value"`
	// Decided reports that it was committed by decision; otherwise something drained
	// its buffer.
	Decided bool `json:"decided"`
}
