// Package hybrid computes hybrid schedules: the total order of a run's
// synchronization operations, and order constraints on the few pairs of memory
// accesses that race with respect to it (PEREGRINE section 3.1).
//
// The package works on data alone; races finds the pairs, and the scheduler
// enforces the result.
//
// Invariants:
//
//  1. Constraints that are left out follow from those that are kept together
//     with the order of synchronization operations and of each thread's own
//     instructions.
//  2. The Reducer leaves out every constraint that the Subsumer leaves out, and no
//     constraint that it keeps follows from the rest.
package hybrid
