// Package clap records a run that was recorded with branch traces once more, as CLAP's
// software does: by Ball and Larus's paths (package analyses/clap). It takes the
// instructions of the threads from the branch traces, and the code from the files that
// were in memory.
//
// It returns that recording and its cost by the timing model, and the cost of the branch
// traces: H3's table 3 compares the two.
//
// Invariants:
//
//  1. The run is the recorded one: that the instrumentation would have taken time
//     changes nothing of it.
package clap
