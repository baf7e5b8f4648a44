// Package prediction finds races that a recorded run did not have but another order of its events
// has, and confirms them: it runs the program under a schedule that leads to the two accesses, a
// witness, and keeps the races that the detector of package races finds in that run.
//
// Package analyses/predict proposes the pairs. A witness is a hybrid schedule of the operations that
// precede the two accesses, after which the run continues freely; heddle races --enforce FILE --free
// follows it, too.
//
// Invariants:
//
//  1. Each race that is reported happened, in a run that the same witness leads to again.
//  2. The result depends on the trace and the options.
package prediction
