// Package debug lets GDB look at a run of a machine, forwards and backwards.
//
// A debugger is a machine.Hook: it stops the run in the middle of a quantum, by running it as
// a coroutine, and has the machine return to snapshots to go back. A run under GDB is the
// same run: registers and memory cannot be written, and output that is produced again is
// written once.
//
// Invariants:
//
//  1. The digests of a run do not depend on whether, and where, GDB stopped it.
//  2. A place is named by the number of its decision and the number of instructions of the
//     quantum; the run reaches each place in one way, whichever snapshot it came from.
package debug
