// Package explore executes a program under every order of its threads, up to equivalence, and so verifies
// that none of them fails, or finds one that does.
//
// The program runs to the creation of its second thread, where a snapshot is taken, from which each
// execution starts. Package sched/dpor chooses the executions. Their events are accesses to memory that
// several threads use, system calls that others can notice, and under weak memory models commits of stores;
// the machine stops before each. Which accesses these are is found by a log of the memory of every
// execution: when an execution shows memory to be shared of which some access was not stopped at, the
// exploration begins again with the instructions known until then.
//
// Invariants:
//
//  1. In every execution of an exploration that is complete, each access that conflicts with one of another
//     thread, other than by the creation of threads, was an event.
//  2. The report depends on the configuration, the files and the options, not on the host, unless the
//     exploration is cut short; interrupted and continued, it is the same.
//  3. A failure is reported when its recording, replayed, has failed in the same way.
package explore
