// Package symbolic has expressions over unknown inputs: what a recorded run
// computed, with symbols in place of what it got from outside (King, CACM 1976;
// PEREGRINE section 2.1).
//
// Expr is an expression over bit vectors, made and simplified by a Pool, which
// has each expression once; Evaluator gives it a value. Floating point is IEEE 754
// by x86's rules. Solving is package smt's.
//
// Invariants:
//
//  1. Equal expressions of a pool are the same pointer. Simplification keeps the
//     value under every assignment.
//  2. A pool depends on the calls that made it alone.
package symbolic
