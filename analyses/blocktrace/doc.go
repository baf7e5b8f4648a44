// Package blocktrace holds the block trace of a run: for each thread the blocks that it
// executed, with the addresses of their loads and stores, the direction of each branch, and
// the constraints that symbolic execution found. Slicing walks this trace backwards
// (PEREGRINE section 4).
//
// A Log receives the blocks from a concolic.Executor and the effects of system calls from
// its caller, and builds a Trace. A Trace has Threads; the run is their Pieces in order,
// with Events between them: the effects of the kernel. A Cursor walks the Steps of a thread
// in both directions. Sites are the loads and stores of a block.
//
// A step takes 12 bytes and each of its addresses 8: about 8 bytes an instruction in total.
//
// The package computes no dependences.
//
// Invariants:
//
//  1. The steps of a thread are the blocks that it executed, in its order; pieces are in
//     the order of the run and do not overlap.
//  2. A step has an address for each site of its block up to the point where the block was
//     left: NoAddr if the access was not made.
//  3. Constraints of a thread are in the order of its steps.
package blocktrace
