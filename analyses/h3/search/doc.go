// Package search looks for a schedule that reproduces a failure by executing the
// trace: threads take turns along their recorded paths, and a turn after which a
// condition does not hold is taken back.
//
// It is the other half of solving besides constraints: where nothing but the order
// of events is unknown, every value is a number as soon as it is read, and a wrong
// order shows at the first branch that goes another way. A state is not examined
// twice, and events that no other thread can observe are not interleaved: accesses to
// memory that one thread alone uses, or that is used under one lock alone (Lipton,
// CACM 1975).
//
// Invariants:
//
//  1. Found is a schedule that package schedule runs; None means that no schedule exists.
//  2. The result is a function of the trace, the model and the options.
package search
