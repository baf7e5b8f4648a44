// Package axiomatic derives the outcomes of litmus tests from the axioms of
// the memory models, without a machine: it knows neither the engine nor store
// buffers, so that agreement with package explore says something about both.
//
// Check runs each thread alone, on every value that its reads could return
// (threads.go, with its own interpreter of the instructions, cpu.go), puts the
// runs together to candidate executions, with a write for each read (rf) and
// an order of the writes to each place (co), and keeps the candidates that satisfy the
// model (axioms.go). Places are cells: the largest pieces of memory that no
// access cuts, so that accesses of mixed sizes are exact to the byte.
//
// The axioms are those of Alglave, Maranget, Tautschnig ("Herding cats",
// TOPLAS 36(2), 2014): coherence within each place, and no cycle among the
// order that the model preserves, communication between threads (rfe, co, fr)
// and fences. For SC the preserved order is the program's; for TSO it lacks
// pairs of a write and a later read (Owens, Sarkar, Sewell, TPHOLs 2009); for
// PSO also pairs of writes (SPARC V8 manual, appendix K). A locked instruction
// is one event that reads and writes, and a full fence.
//
// Invariants:
//
//  1. Only forward jumps: Check refuses tests with loops.
//  2. An execution's events have indivisible effects whatever their size, as
//     in herd's x86tso-mixed.cat. An access that lies in two cache lines is two
//     events, the lower half first, unless the instruction is atomic.
package axiomatic
