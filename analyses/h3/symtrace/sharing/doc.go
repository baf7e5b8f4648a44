// Package sharing finds the memory that threads share: memory that two of them access
// at the same time, one of them writing.
//
// A Tracker notes accesses in granules of eight bytes. The run of a thread consists of
// Stretches, from one fork or join to the next; two accesses are at the same time if
// neither stretch ends before the other begins.
//
// Invariants:
//
//  1. An access of one thread, or an access that a fork or a join orders after
//     another, is no conflict with it.
//  2. Results do not depend on the order in which accesses are noted.
package sharing
