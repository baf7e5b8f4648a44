// Package memmodel has the memory models of the machine: SC, TSO and PSO, as
// rules on the store buffers of cores.
//
// A store of a core goes into its buffer and reaches the memory that all
// cores share when it is committed. A load sees, byte by byte, the newest
// store in its own core's buffer, or else the shared memory. Which stores of a
// buffer may be committed next is all that the models differ in
// (Model.MayCommit); under SC no store waits. The packages beside this one are
// litmus (tests, their format), explore (every outcome of a test, by running it
// on the machine), axiomatic (the same from the models' axioms, without a
// machine) and generate (tests from cycles of relations).
//
// It is not the buffers of running programs, which are C beside the engine
// (emu.Buffers): their tests compare them with this package.
//
// Invariants:
//
//  1. Stores are indivisible: all bytes of one are committed at once. A store
//     that lies in two cache lines is two, unless its instruction is atomic: that is
//     for the caller to see to.
//  2. Of two stores of a core that share a byte, the older is committed first,
//     under every model.
//  3. Every outcome of one model is one of the next: SC, TSO, PSO.
package memmodel
