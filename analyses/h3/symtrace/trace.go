package symtrace

import (
	"github.com/heddle-dmt/heddle/emu/arch"
)

// Ending is where a thread's path ends.
type Ending uint8

// Endings.
const (
	// Cut: in the middle, when the process ended.
	Cut Ending = iota
	// Returned: the thread ended by itself, or the program by main's thread.
	Returned
	// InCall: in a call that is not over, ThreadTrace.Last.
	InCall
	// Failed: an assertion failed.
	Failed
	// Faulted: its next instruction is the one that a signal came from.
	Faulted
)

// Call is a call of a function that is not followed, or anything else that a thread does before it
// reaches code that is followed.
type Call struct {
	// After is how many instructions of the thread are between the call before and
	// this one.
	After uint64
	// Entry is the function's first instruction, and Return the one after the call.
	Entry, Return uint64
	Name          string
}

// Coordinate is where in its thread an event is.
type Coordinate struct {
	// Calls is how many calls are over, and Since how many instructions the thread
	// has executed since.
	Calls     int
	SinceCall uint64
	// Accesses, unless 0, is how many accesses of its instruction are done after the event,
	// which others follow.
	Accesses uint8
	// InNextCall: the event happens in the next call, at its begin or at its end.
	InNextCall bool
	// Named: the program does nothing there; a large expression gets a name.
	Named bool
	block int // of the path
}

// ThreadTrace describes how far a thread was followed.
type ThreadTrace struct {
	ID     arch.ThreadID
	Ending Ending
	Calls  []Call
	// Last is the function of a call that is not over where the path ends, or nil, and LastCall that
	// call. Under another schedule it may return before the process ends.
	Last     *Function
	LastCall Call
	// Message is the text of an assertion that failed.
	Message string
	// Instructions is how many were followed.
	Instructions uint64
}
