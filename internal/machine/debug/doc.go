// Package debug lets GDB debug a run of a machine, forwards and backwards.
//
// A debugger is a machine.Hook: it stops the run in the middle of a quantum, by running it as
// a coroutine, and has the machine return to snapshots to run backwards. A run under GDB is the
// same run: registers and memory cannot be written, and output that is produced again is
// written once.
//
// Invariants:
//
//  1. The digests of a run do not depend on whether, and where, GDB stopped it.
//  2. A position is the number of a decision and the number of instructions of its quantum; the
//     run reaches each position in one way, whichever snapshot it started from.
package debug
