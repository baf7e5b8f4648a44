// Package clap is CLAP's recorder: it records the paths of threads in software,
// by the algorithm of T. Ball and J. R. Larus, Efficient path profiling (MICRO 1996),
// as H3's section 2.1 describes CLAP. H3 is measured against it.
//
// A Program is the code with its instrumentation. Each function that a run executes is
// a graph of Blocks; without the edges that go back it has finitely many paths, which
// are numbered. A register adds up the numbers of edges; they stand at the edges that
// are not of a maximum spanning tree, so that few are passed. Where a path ends, at a
// return, a jump to another function or an edge that goes back, the register is
// written. Numbers are the program's, not the function's: they say which function it
// is, and nothing has to be written where a function begins.
//
// A Recorder gets the steps of threads and writes the records of that code; it counts
// the instructions that this takes. Log.Decode rebuilds each thread's instructions from
// the records and the code.
//
// Three cases are not in the paper's algorithm: a thread that ends within a path, a
// signal, and a jump over frames. They begin and end pieces of paths, which are written
// with the blocks where they begin and end.
//
// The package is independent of where its steps come from.
//
// Invariants:
//
//  1. The numbers of the paths of a function are different, and are 0 to their count
//     less one above the function's first number.
//  2. Log.Decode returns the instructions of instrumented code that the Recorder got.
//  3. Logs are a function of code, CompilerFacts and steps.
package clap
