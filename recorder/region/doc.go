// Package region measures a region of interest of a run: the part of a benchmark that is about
// its subject, such as its parallel phase.
//
// A Spec names the region; a Watcher observes when threads enter and leave it (job.WithRegion has a machine call it). It
// has no effect on the run.
//
// Invariants:
//
//  1. The run with a Watcher is the run without it, bit for bit.
//  2. A region is entered when the first thread enters it, and left when no thread is in it any more.
package region
