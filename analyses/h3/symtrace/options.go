package symtrace

import (
	"errors"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Options say how a run is followed.
type Options struct {
	// Fault: the signal came from the next instruction of a thread, where its path ends. Several
	// threads may qualify: Faulting is the number of the one that is taken.
	Fault    bool
	Faulting int
	// Deadlock: the run ended in a deadlock. Hang: it reached its limit, in endless loops.
	Deadlock, Hang bool
	// Shared are addresses that are shared, whatever the paths say.
	Shared []Range
	// OnlyShared: nothing but Shared is shared.
	OnlyShared bool
	// MayShare, if set, reports whether an address may be found to be shared. Memory that the
	// program allocates later may always be.
	MayShare func(addr uint64) bool
	// Output, if set, is the right output of the program: that it prints something else is the
	// failure.
	Output []byte
	// Status, unless 0, is the exit status with which the program failed.
	Status int
	// WeakMemory adds a fence before the accesses of a system call: under SC it would do nothing.
	WeakMemory bool
	// NoGuesses has nothing guessed.
	NoGuesses bool
	// Prefer are values to be tried first where symbols need some, by symbol.
	Prefer map[string]symbolic.Value
	// Facts are the findings of an earlier Build of the same run, or nil.
	Facts *Facts
	// Stop, if set, is asked now and then: Build ends with ErrStopped when it says so.
	Stop func() bool
}

// ErrStopped is returned when Options.Stop ended the work.
var ErrStopped = errors.New("the symbolic execution was stopped")

// pollStop asks now and then whether the work is to end.
func (b *pass) pollStop() bool {
	b.blocksRun++
	return b.options.Stop != nil && b.blocksRun%256 == 1 && b.options.Stop()
}
