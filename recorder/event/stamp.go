package event

import "github.com/heddle-dmt/heddle/emu/arch"

// Stamp says when and where in a run something happened. Machine events
// (switches, system calls, sync operations, inputs, signals, starts and exits
// of threads) share one numbering, in the order in which they happened.
type Stamp struct {
	// Seq is the event's place among all machine events, from 1.
	Seq uint64 `json:"seq"`
	// Sync counts the sync operations of all threads before the event.
	Sync   uint64        `json:"sync"`
	Thread arch.ThreadID `json:"thread"`
	Core   arch.CoreID   `json:"core"`
	// Time is the core's clock.
	Time arch.Cycles `json:"time"`
	// Instructions is the number that the thread had retired, as arch.Stop counts.
	Instructions uint64 `json:"instructions"`
	// Branches counts the thread's conditional branches, indirect jumps and
	// calls, and returns so far. It is 0 in a run whose branches are not
	// recorded.
	Branches uint64 `json:"branches"`
}

// Phase distinguishes the begin of something that takes time from its end.
type Phase uint8

// Phases of system calls and sync operations.
const (
	// Whole is something that begins and ends at once.
	Whole Phase = iota
	// Enter is the begin: the call of the function, the issue of the system
	// call.
	Enter
	// Return is the end of the operation that the thread's last Enter of the same
	// kind began.
	Return
	// Unwound is the end of an Enter that does not return: a longjmp, an
	// exception or a cancellation left it. It is noticed, and its place in the
	// order is, when the thread next does something that is recorded.
	Unwound
)

func (p Phase) String() string {
	switch p {
	case Enter:
		return "enter"
	case Return:
		return "return"
	case Unwound:
		return "unwound"
	default:
		return "whole"
	}
}
