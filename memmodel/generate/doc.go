// Package generate makes litmus tests from cycles of relations, as diy does
// (Alglave, Maranget, Sarkar, Sewell, "Fences in weak memory models", CAV 2010;
// the names of relations are those of diy7).
//
// A cycle goes through events, each a read or a write of some location by some
// thread. An Edge leads from one event to the next: along the program of a
// thread (Pod: to another location, Pos: to the same, with or without a fence),
// or from thread to thread by communication (Rfe: a read of a write of another
// thread, Fre: from a read to a write that comes later, Wse: from a write to a
// later one). A model forbids the execution that a cycle describes unless it
// relaxes one of the edges, so the test that asks for this execution distinguishes
// the models.
//
// Cycles enumerates cycles, each once whatever its starting point. Cycle.Test
// makes the text of a test, under a Variant: the instructions and sizes that its
// accesses have.
//
// Invariants:
//
//  1. Both are functions of their arguments: the same tests in the same order
//     each time.
//  2. Each location appears in one stretch of the cycle, so the order of its
//     writes in the cycle is a coherence order, which gives the values that the
//     condition asks for.
package generate
