package slice

import (
	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/analyses/concolic"
)

// Reason is the reason for keeping a constraint.
type Reason uint8

// Reasons. The first ones are of branches of the program's own code, in the order in which
// they are tried.
const (
	// None: it is not kept.
	None Reason = iota
	// Between: something in the slice lies between the branch and its post-dominator.
	Between
	// Event: the other side may reach an event.
	Event
	// Lost: the other side may not return, or its target is unknown.
	Lost
	// Registers: the other side may write registers that the slice reads.
	Registers
	// Memory: the other side may write memory that the slice reads.
	Memory
	// Race: the other side may race with another thread.
	Race
	// Library: it is inside a function of a library whose result or effect is in the slice.
	Library
	// Computed: a value computed there is in the slice.
	Computed
	// Placed: the address of an access must be the recorded one.
	Placed
	// Divides: a division must not trap.
	Divides
	// Called: a system call must have the same arguments.
	Called
	reasonCount
)

var reasonNames = [...]string{
	"none", "between", "event", "lost", "registers", "memory", "race", "library", "computed", "placed", "divides", "called",
}

func (r Reason) String() string { return reasonNames[r] }

// Counts are the numbers of kept constraints by reason.
type Counts [reasonCount]uint64

// reasonFor returns the reason for keeping a constraint at the current code.
func (t *threadSlicer) reasonFor(c *blocktrace.Constraint) Reason {
	switch {
	case c.Kind == concolic.Call:
		return Called
	case t.frame != nil && t.frame.Context == nil:
		return Library
	case isBranch(c.Kind) && t.reason != None:
		return t.reason
	case c.Kind == concolic.Address:
		return Placed
	case c.Kind == concolic.Division:
		return Divides
	}
	return Computed
}
