// Package explore finds every outcome of a litmus test by running it: all
// interleavings of the instructions of its threads and of the commits from
// their store buffers.
//
// A Machine is an emulated processor (emu) with a page for the locations of
// tests. Explore walks through the states of a test (registers of the threads,
// shared memory, store buffers) and takes from each every step that can make a
// difference: one instruction of a thread, one load of an instruction with several,
// or one commit. Walk takes steps at
// random instead, for tests with too many states.
//
// Invariants:
//
//  1. The effect of an instruction comes from the engine. It is run once for each
//     thread state and each content of the memory it reads, and remembered: an
//     instruction's effect is a function of these alone, since the engine has
//     no other input (emu, invariant 1), and which addresses it reads depends
//     on the registers alone.
//  2. An instruction that reads and writes memory without LOCK is two steps,
//     its load and its store, under every model, as the architecture has it; an
//     access that lies in two cache lines is two, the lower half first. The steps
//     of an instruction are its loads in order, the last of which executes it,
//     then its stores: under TSO and PSO these wait as separate entries of the
//     buffer, under SC they are made in order before the thread's next step.
//     An instruction with LOCK, and XCHG with memory, is one step.
//  3. The steps left out cannot change an outcome: see reduce.go.
//  4. The outcomes do not depend on the names or order of threads, registers
//     and locations.
package explore
