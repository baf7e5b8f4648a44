// Package clap records a run that was recorded with branch traces once more, as CLAP's
// software does: by Ball and Larus's paths (package analyses/reproduce/balllarus). It
// takes what the threads executed from the branch traces, and the code from the files
// that were in memory.
//
// It gives what that recording consists of and what it costs by the timing model, and
// the same of the branch traces: what H3's table 3 compares.
//
// Invariants:
//
//  1. The run is the recorded one: that the instrumentation would have taken time
//     changes nothing of it.
package clap
