// Package explore has small programs of threads and all their executions under SC,
// TSO and PSO: the independent check of the constraints.
//
// Random makes a Program; Record runs it once, on cores that change between
// threads, and gives the trace; Possible looks through every interleaving and
// every order of commits for one that takes the same paths and reads what a Goal
// demands.
//
// It is written apart from packages constraints and schedule: they share the trace
// alone.
//
// Invariants:
//
//  1. Possible finds every execution that Record made.
//  2. An update, and every synchronization operation, waits for an empty buffer.
package explore
