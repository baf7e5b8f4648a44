// Package replay is the log of decisions that repeats a run. A Tracker notes
// each step of the scheduler and its outcome; a Log reads the steps back for
// sched.NewReplay; Difference says where a replay is not the recorded run.
//
// Together with the manifest (program, configuration, seed, the host files that
// were read) and standard input, the log is all that a run depends on.
//
// It decides nothing and drives nothing: the machine calls it at each step, both
// when it records and when it replays.
//
// Invariants:
//
//  1. A replay takes the decisions of the log, with the clocks that it gives,
//     however the scheduler would decide.
//  2. Every decision of a replay is compared with the log, so that the first
//     that is not the same is known.
package replay
