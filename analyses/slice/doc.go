// Package slice finds the decisions of a run that its schedule depends on: the
// determinism-preserving slicing of PEREGRINE (section 4), on a block trace and a hybrid
// schedule, and, for comparison, the pruning of TERN (section 7.4).
//
// Make goes backwards through the executions of all threads. The slice contains everything
// that a thread needs to reach the events of the schedule in their order, and to avoid
// races that the schedule does not order. The constraints in the slice are a schedule's
// preconditions; the others may be dropped.
//
// A conditional branch is in the slice if an event, or a write of a value that the slice reads
// later, lies between it and its post-dominator, or if the code on its other side, up to there, may reach an event, may
// not return, may write memory or registers that the slice reads later, or may race with
// other threads.
//
// A call into a library is a single instruction with the effects in cfg.Models. A branch in the
// slice need not be reached: what its other side may do belongs to the other sides of the
// branches before it.
//
// Invariants:
//
//  1. A run whose input satisfies the kept constraints reaches the same events, under the
//     assumptions that docs/slicing.md lists.
//  2. Results are a function of the trace, the schedule, the image and the models.
package slice
