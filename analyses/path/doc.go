// Package path has what every thread of a run executed, block by block, with the
// addresses of its loads and stores, where it went, and the constraints that
// symbolic execution found: the trace that slicing goes through backwards (PEREGRINE
// section 4).
//
// A Log is told by an exec.Executor, and by whoever tells that of system calls, and
// gives a Trace. A Trace has Threads; the run is their Pieces in order, between which
// are Events: what the kernel did. A Cursor goes over the Steps of a thread both
// ways. Sites are the loads and stores of a block.
//
// A step has 12 bytes and its addresses 8 each: about 8 bytes an instruction in all.
//
// The package does not say what depends on what.
//
// Invariants:
//
//  1. The steps of a thread are what it executed, in its order; pieces are in the
//     order of the run, one after the other.
//  2. A step has an address for each site of its block up to where the block was
//     left: NoAddr if the access was not made.
//  3. Constraints of a thread are in the order of its steps.
package path
