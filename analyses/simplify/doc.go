// Package simplify makes of a program what a schedule leaves of it
// (PEREGRINE section 5): a function is cloned for each thread and each way that it was
// called, loops with events of the schedule are unrolled, results of operations are
// the recorded ones, and branches that contradict the schedule are dropped.
//
// NewEvents finds a schedule's events in what threads executed. Follow goes through
// that once and finds the calls: a Run has for each thread its Frames, and the clones
// of functions, Contexts, that they are of. Code of libraries is not looked into: what
// the program calls of them is one frame.
//
// The package answers nothing about memory.
//
// Invariants:
//
//  1. At every step a thread is in one frame, and the innermost frame of the
//     program's own code has the context that its chain of calls has.
//  2. Two steps of one context are of one thread, as long as clones are made at all.
//  3. Results are a function of the trace, the schedule and the options.
package simplify
