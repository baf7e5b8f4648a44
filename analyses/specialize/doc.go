// Package specialize specializes a program for a schedule (PEREGRINE section 5): a function
// is cloned for each thread and each chain of calls, loops with events of the schedule are
// unrolled, results of operations are the recorded ones, and branches that contradict the
// schedule are dropped.
//
// NewEvents finds the events of a schedule in the trace of the threads. TraceCalls then
// walks the trace once and finds the calls: a CallTrace has for each thread its Frames, and
// the Contexts, the clones of functions, that the frames belong to. Library code is not
// analysed: a call into a library is one frame.
//
// The package answers no questions about memory.
//
// Invariants:
//
//  1. At every step a thread is in one frame, and the innermost frame of the program's own
//     code has the context of its chain of calls.
//  2. Two steps of one context belong to one thread, unless Options.Merge is set or
//     Options.MaxContexts is reached.
//  3. Results are a function of the trace, the schedule and the options.
package specialize
