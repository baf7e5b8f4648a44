// Package h3 carries out `heddle reproduce`: from the branch traces and context
// switches of a recorded run that failed it computes a schedule under which the
// program fails again, and runs the program under it (H3, figure 1).
//
// LoadPaths reads the part of a recording that H3 has; everything else in the trace but the
// manifest, which names the program and its inputs, and how the run ended is not
// used. Reproduce does the rest and returns an Outcome; its Schedule is kept in a file
// by WriteFile and ReadFile.
//
// Invariants:
//
//  1. Of a recording it uses the branch traces, the code, the context switches, the
//     manifest and how the run ended: no values, no order of synchronization, no
//     accesses to memory, no decisions of the scheduler but those before a checkpoint
//     from which the trace is solved.
//  2. A Schedule that is Verified has been run, and failed in the same class.
package h3
