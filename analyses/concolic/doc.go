// Package concolic executes the threads of a recorded run once more, along the paths that
// they took, with symbols in place of inputs (concolic execution): values computed from
// inputs become expressions, and the conditions that determined the path become constraints
// (PEREGRINE sections 2.1 and 6.5).
//
// An Executor receives the events of the run in their order: inputs, writes by the kernel,
// and the pieces of threads' executions with their loads and stores. It runs libVEX's code
// on the recorded values and, where code touches values that depend on inputs, a second
// time on Terms. A term records how a value was computed and becomes an expression when it
// is asked for.
//
// A value that cannot be expressed is fixed to the recorded one by a constraint, which is
// counted by its reason. So are addresses: an access through an address that depends on
// inputs is an access to the recorded address.
//
// Inputs may be pinned, which bounds the number of terms: what depends on pinned inputs alone is then as recorded, and
// the invariants hold for inputs with their recorded content.
//
// The package starts no machine and opens no file.
//
// Invariants:
//
//  1. Every expression has, under the recorded inputs, the recorded value; every constraint
//     holds under them.
//  2. Threads that interleave as recorded take the recorded paths on every input that
//     satisfies all constraints, as long as the kernel answers as recorded.
//  3. Results are a function of the calls of the executor.
package concolic
