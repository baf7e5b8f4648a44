// Package schedule has schedules of abstract traces as data: in which order events
// are executed and writes reach memory.
//
// FromClocks makes one of a solver's clocks, Run executes one by the rules of the
// memory model and reports whether every thread takes its recorded path and the bug
// happens, Shorten moves steps of a thread together.
//
// Run is independent of constraints: an error in them shows as a schedule that does
// not run.
//
// Invariants:
//
//  1. A schedule that Run accepts is an execution that the model allows.
//  2. Shorten changes no value that is read, and adds no switch.
package schedule
