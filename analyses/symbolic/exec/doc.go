// Package exec executes the threads of a recorded run once more, along the paths
// that they took, with symbols in place of inputs (concolic execution): what they
// compute of inputs becomes expressions, and what made them go where they went
// becomes constraints (PEREGRINE sections 2.1 and 6.5).
//
// An Executor is told what happened in the order in which it did: inputs, what the
// kernel wrote, and pieces of threads' runs with their loads and stores. It runs
// libVEX's code on the recorded values, and a second time where code touches what
// depends on inputs, on Terms: they say how something was computed, and become
// expressions when they are asked for.
//
// What cannot be expressed is fixed to what it was, by a constraint that says so,
// and counted by its reason. So are addresses: an access through one that depends
// on inputs is one to the recorded address.
//
// The package starts no machine and opens no file.
//
// Invariants:
//
//  1. Every expression has, under the recorded inputs, the recorded value; every
//     constraint holds under them.
//  2. Threads that interleave as recorded take the recorded paths on every input
//     that satisfies all constraints, as far as the kernel answers as it did.
//  3. Results are a function of what the executor is told.
package exec
