// Package balllarus is CLAP's recorder: it records the paths of threads in software,
// by the algorithm of T. Ball and J. R. Larus, Efficient path profiling (MICRO 1996),
// as H3's section 2.1 says of CLAP. It is what H3 is measured against.
//
// A Program is the code with its instrumentation. Each function that a run executes is
// a graph of Blocks; without the edges that go back it has finitely many paths, which
// are numbered. A register adds up the numbers of edges; they stand at the edges that
// are not of a maximum spanning tree, so that few are passed. Where a path ends, at a
// return, a jump to another function or an edge that goes back, the register is
// written. Numbers are the program's, not the function's: they say which function it
// is, and nothing has to be written where a function begins.
//
// A Recorder is told what threads execute and writes what that code would write; it
// counts the instructions that this takes. Log.Decode rebuilds from what was written,
// and from the code, what each thread executed.
//
// What the paper's algorithm does not have, a thread that ends within a path, a signal,
// a jump over frames, begins and ends pieces of paths, which are written with the
// blocks where they begin and end.
//
// The package knows no recording: it is not told where its steps come from.
//
// Invariants:
//
//  1. The numbers of the paths of a function are different, and are 0 to their count
//     less one above the function's first number.
//  2. What Log.Decode gives is what the Recorder was told of instrumented code.
//  3. Logs are a function of code, Known and steps.
package balllarus
