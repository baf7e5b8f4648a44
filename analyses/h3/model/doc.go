// Package model has the symbolic trace of a failing run in the form that a constraint
// solver needs: the events of each thread in program order, with symbols for values
// that were read and expressions for values that were written, and the conditions
// under which the threads take the recorded paths and the failure happens (H3
// section 3; CLAP section 2.1).
//
// A Trace has Threads with Events. Cells cuts memory into pieces which each access
// touches as a whole or not at all; ProgramOrder, CoreOrder and ForkJoin are the
// orders that events have in every schedule.
//
// It knows nothing of encodings, solvers or machines.
//
// Time: an event of a schedule has one place in a total order. That of a write is
// where it reaches the memory that all threads see; under TSO and PSO that may be
// after later reads of its thread, which see it nevertheless. That of any other
// event is where it is executed.
//
// Invariants:
//
//  1. An access is indivisible, whatever its size; the common bytes of
//     overlapping accesses of different sizes are compared byte by byte.
//  2. Synchronization operations and atomic updates wait until all earlier writes
//     of their thread have reached memory, under every model, as the locked
//     instructions in them do.
//  3. Everything is a function of the trace: nothing depends on the order of maps.
package model
