// Package slice finds out which of a run's decisions its schedule depends on: the
// determinism-preserving slicing of PEREGRINE (section 4), on a run's path and a hybrid
// schedule, and, for comparison, the pruning of TERN (section 7.4).
//
// Make goes backwards through what all threads executed. In the slice is what a thread
// needs to come to the events of the schedule, in their order, and what is needed not
// to have races that the schedule does not order. The constraints of what is in the
// slice are a schedule's preconditions; the others may be dropped.
//
// A conditional branch is in the slice if something in the slice is between it and its
// post-dominator, or if what may be executed instead, up to there, comes to an event,
// does not come back, may write what the slice reads later, or may race with what other
// threads do meanwhile.
//
// What the program calls of libraries is one instruction that has the effects which
// cfg.Models say.
//
// Invariants:
//
//  1. A run whose input satisfies the constraints that are kept comes to the same
//     events, under the assumptions that docs/slicing.md lists.
//  2. Results are a function of the trace, the schedule, the image and the models.
package slice
