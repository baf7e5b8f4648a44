package slice

import (
	"github.com/heddle-dmt/heddle/analyses/path"
	"github.com/heddle-dmt/heddle/analyses/symbolic/exec"
)

// Reason says why a constraint is kept.
type Reason uint8

// Reasons. The first ones are of branches of the program's own code, in the order in
// which they are asked about.
const (
	// None: it is not kept.
	None Reason = iota
	// Between: something in the slice is between the branch and its post-dominator.
	Between
	// Event: what may be executed instead comes to an event.
	Event
	// Lost: it may not come back, or goes where nobody knows.
	Lost
	// Registers: it may write registers that the slice reads.
	Registers
	// Memory: it may write memory that the slice reads.
	Memory
	// Race: it may race with what another thread does meanwhile.
	Race
	// Library: a function of a library decides so whose result or effect is in the
	// slice.
	Library
	// Computed: what is computed there is in the slice.
	Computed
	// Placed: what is accessed there has to be where it was.
	Placed
	// Divides: a division must not trap.
	Divides
	// Called: a system call is asked for the same.
	Called
	reasonCount
)

var reasonNames = [...]string{
	"none", "between", "event", "lost", "registers", "memory", "race", "library", "computed", "placed", "divides", "called",
}

func (r Reason) String() string { return reasonNames[r] }

// Counts are how many constraints are kept for each reason.
type Counts [reasonCount]uint64

// because is the reason for which a constraint is kept in the code that a walker is at.
func (t *walker) because(c *path.Constraint) Reason {
	switch {
	case c.Kind == exec.Call:
		return Called
	case t.frame != nil && t.frame.Context == nil:
		return Library
	case isBranch(c.Kind) && t.reason != None:
		return t.reason
	case c.Kind == exec.Address:
		return Placed
	case c.Kind == exec.Division:
		return Divides
	}
	return Computed
}
