// Package complementary is the part of Frost that is about data: orders of
// threads for two complementary schedules, what the outcomes of an epoch's three
// replicas mean and what is to be done about them, how long epochs are, and
// which of them are checked. (K. Veeraraghavan, P. M. Chen, J. Flinn and
// S. Narayanasamy, Detecting and surviving data races using complementary
// schedules, SOSP 2011.)
//
// It runs nothing and compares no memory: whoever runs the replicas tells which
// of them failed and which are alike.
//
// The main types are Order, Constraints, Combination with its Diagnosis, and
// Length.
//
// Invariants:
//
//  1. Two threads that are next to each other in an order are next to each other
//     in its reverse, and any two stand the other way round.
//  2. Every result of three replicas has exactly one Combination, of the 11 of
//     table 1 or one that is the same with the two epoch-parallel replicas
//     exchanged.
//  3. Nothing depends on the order in which constraints were counted.
package complementary
