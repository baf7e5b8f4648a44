// Package symtrace makes the symbolic trace of a run from the paths of its threads
// (H3 section 3.2): what they read of each other is a symbol, everything else is
// computed.
//
// Build takes an Image, the program where its first thread makes the second one or at a
// checkpoint, and follows each thread from there along its path. Code is what libVEX makes of it; it
// runs on numbers where it meets no symbol, and on expressions otherwise. Functions of
// the C library that lock, allocate or print are not followed: an Image says what they
// are, and they become events, fresh memory, or nothing.
//
// What is shared is found out in rounds. In the first each thread is alone with what
// was written before it began. What two threads access at the same time, one of them
// writing, is shared in the next round, until nothing is found any more. A place that
// one thread alone writes is known to that thread.
//
// An address that depends on symbols is an element of an array if it is based on one
// object, and all accesses to that have one size. Otherwise the symbols get values, one
// after the other those that are ever written where they are read, and those stay under
// which the thread takes its path. What is assumed so is marked in the trace's
// conditions, and Options.Prefer has other values tried first.
//
// The package knows no recording but the paths.
//
// Invariants:
//
//  1. Under every schedule of the trace that the conditions hold under, each thread
//     takes its path, as far as functions that are not followed do what their role
//     says.
//  2. Results are a function of the arguments: nothing depends on the order of maps.
package symtrace
