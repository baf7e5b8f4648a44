// Package memo makes schedules that other inputs may follow, with the preconditions
// under which they may: what TERN's memoizer and PEREGRINE's recorder and analyzer do.
//
// A run is recorded with its operations one at a time (Record). Of the recording a
// portable schedule is made, the run is repeated once more with symbols in place of
// its arguments, variables, standard input and the files that arguments name, and the
// constraints that come up are simplified (Make). Admits decides whether another run
// may follow a schedule, Enforce has it do so. Package cache keeps such schedules.
//
// Invariants:
//
//  1. A schedule is made only if the recorded input satisfies its preconditions and
//     the run, repeated, followed it to its end.
//  2. What is not known to be an expression of the input is as in the recorded run, or
//     the input is not admitted: the program, the libraries and every file that no
//     argument names are compared by their SHA-256.
package memo
