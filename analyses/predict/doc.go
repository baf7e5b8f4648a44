// Package predict finds the sync-preserving races of a recorded run: pairs of accesses that another
// order of the same events executes next to each other, although this run's order of lock
// acquisitions kept them apart (U. Mathur, A. Pavlogiannis and M. Viswanathan, Optimal prediction of
// synchronization-preserving races, POPL 2021).
//
// A reordering has a prefix of the events of each thread. It is correct if each event comes after
// those on which it depends, each read gets the value of the same write as in the run, and critical
// sections of one lock do not overlap; it preserves the synchronization if the critical sections of
// one lock that it has begin in the order of the run. Two conflicting accesses race if some such
// reordering has all that precedes them in their threads, and not themselves.
//
// A Builder takes the events of a run in their order, Operations translates synchronization operations and
// system calls to such events, and Builder.Search returns the races. The package works on data
// alone: whether the program does race there is found out by running the reordering (package
// experiments/prediction).
//
// Invariants, which the tests cite by number:
//
//  1. Builder.Races reports whether two events are a sync-preserving race, exactly (theorem 3.1 and
//     lemma 4.1 of the paper).
//  2. Search, unless a bound ended it, finds one race of each two instructions that have a
//     sync-preserving race.
//  3. The same events give the same races in the same order.
package predict
