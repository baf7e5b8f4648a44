// Package search looks for a schedule that reproduces a failure by executing the
// trace: threads take turns along their recorded paths, and a turn after which a
// condition does not hold is taken back.
//
// It is the other half of solving besides constraints: where nothing but the order
// of events is unknown, every value is a number as soon as it is read, and a wrong
// order shows at the first branch that goes another way. States that were met before
// are not looked at again, and what no other thread can notice is not interleaved:
// accesses to what one thread alone uses, or to what is used under one lock alone
// (Lipton, CACM 1975).
//
// Invariants:
//
//  1. Found is a schedule that package schedule runs; None means that there is none.
//  2. The result is a function of the trace, the model and the options.
package search
