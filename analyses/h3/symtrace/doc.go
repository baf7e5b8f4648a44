// Package symtrace makes the symbolic trace of a run from the paths of its threads
// (H3 section 3.2): a value that a thread reads from another is a symbol, everything
// else is computed.
//
// Build takes an Image, the program where its first thread makes the second one or at a
// checkpoint, and follows each thread from there along its path. Code is lifted by
// libVEX; it runs on numbers where it meets no symbol, and on expressions otherwise.
// Functions of the C library that lock, allocate or print are not followed: an Image has
// their roles, and they become events, fresh memory, or nothing.
//
// A pass follows all threads once. The first pass shares nothing: each thread sees the
// memory from before it began. Memory that two threads access at the same time, one of
// them writing, is shared in the next pass, until no pass finds more (package sharing).
// The value of memory that only one thread writes is known to that thread.
//
// A threadExec executes a thread. Its threadState is a value: where the path decides
// later, a choice keeps a clone, takes one of some ways, and restores the clone to take
// the next one if the thread leaves its path.
//
// An address that depends on symbols is an element of an array if it is based on one
// object, and all accesses to that have one size. Otherwise its symbols get values: the
// values that are ever written to their places, one after the other, until the thread
// takes its path. Such an assumption is marked in the trace's conditions, and
// Options.Prefer has other values tried first.
//
// Of a recording the package knows only the paths.
//
// Invariants:
//
//  1. Under every schedule of the trace that the conditions hold under, each thread
//     takes its path, as far as functions that are not followed have the effects of
//     their roles.
//  2. Results are a function of the arguments: nothing depends on the order of maps.
package symtrace
