// Package stream passes a run to a race detector: the loads and stores of
// threads, and their synchronization operations, in the one order in which all of
// them happened.
//
// A Reader passes on a stored trace, a Live a run that takes place. Besides the
// detector's races they have the facts that a report needs about the moment at which
// one is found: threads, calls, blocks of the heap, and files in memory. Package races
// has the detectors, package report describes races for people.
//
// Some accesses count as a whole, or not at all:
//
//   - Between the call and the return of a synchronization operation a thread's
//     accesses belong to the operation, except those of code that it calls back
//     (routines of pthread_once, destructors of keys, signal handlers). Under
//     HappensBefore the operation as a whole reads its object.
//   - Under HappensBefore the same holds for the calls of allocators. A block
//     that is freed is written as a whole, as far as other threads are concerned;
//     one that is handed out has no earlier accesses.
//   - Under HappensBefore the store of an atomic instruction does not count, only its
//     load does: an atomic load of C or C++ is like any other in machine code, and
//     does not race with atomic instructions (as in DRD and Helgrind). With Options.Words
//     what atomic instructions access is synchronization instead.
//   - A thread's stack has no earlier accesses when the thread begins, nor has a page
//     that the kernel hands out.
//   - A write of the kernel for a thread, such as the result of read, is a write of
//     the thread.
//
// Under HappensBefore signalling a condition orders nothing, the mutex of the
// wait does (as in DRD and ThreadSanitizer); readers of an rwlock make no order
// among themselves; a barrier orders only what comes before it and what comes
// after it in the same round; operations that the C library makes for itself
// order nothing.
//
// Invariants:
//
//  1. The detector gets everything in the order of the trace: an access
//     after the events that its stamp counts, and before the next one.
//  2. Memory grows with the memory that the program uses, the number of threads
//     and of different stacks, of which at most a million are distinguished; not
//     with the length of the trace.
//  3. The same trace gives the same reports in the same order.
package stream
