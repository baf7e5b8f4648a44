// Package partialorder records and replays the partial order of an epoch's synchronization
// operations, system calls and signals, with vector clocks (Frost, SOSP 2011, section 3.1).
//
// A Recorder is the sched.Controller of a thread-parallel replica: it lets threads run in any order
// and records the partial order as an Order. A Replayer is the sched.Controller of an
// epoch-parallel replica: it makes threads follow an Order. An epoch begins with the ThreadStates
// in which the epoch before has left the threads. The states of a thread within an epoch, and the
// transitions between them, are in states.go.
//
// The package knows nothing of memory: package machine compares the states of replicas.
//
// Invariants:
//
//  1. In an Order, a step's Clock names every step that the step depends on: the earlier steps of
//     its thread, and the last steps on each entity that it acts on.
//  2. A Replayer begins no step before the steps that its Clock names are complete, unless a thread
//     has diverged.
//  3. The same epoch, replayed in any order of threads that an Order allows, has the same steps
//     with the same results, if the program's other accesses do not race.
package partialorder
