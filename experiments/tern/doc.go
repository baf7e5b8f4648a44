// Package tern makes schedules that other inputs may follow, with the preconditions for
// following them: the work of TERN's memoizer and of PEREGRINE's recorder and analyzer.
//
// Record records a run with its operations one at a time. Make computes a portable schedule
// from the recording: it repeats the run with symbols for its arguments, variables,
// standard input and the files that arguments name, and simplifies the constraints that
// slicing keeps. Admits decides whether another run may follow a schedule, and Enforce
// configures it to do so. Package cache stores such schedules.
//
// Invariants:
//
//  1. A schedule is made only if the recorded input satisfies its preconditions and the
//     repeated run followed it to its end.
//  2. Data that are not known to be an expression of the input must be as in the recorded
//     run, or the input is not admitted: the program, the libraries and every file that no
//     argument names are compared by their SHA-256.
package tern
