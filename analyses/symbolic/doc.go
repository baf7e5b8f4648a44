// Package symbolic has expressions over unknown inputs: the computations of a recorded run
// with symbols in place of its inputs (King, CACM 1976; PEREGRINE section 2.1).
//
// Expr is an expression over bit vectors. A Pool makes and simplifies expressions and holds
// each of them once; Evaluator computes the value of an expression. Floating point is IEEE
// 754 by x86's rules. Solving is in package smt.
//
// Invariants:
//
//  1. Equal expressions of a pool are the same pointer. Simplification keeps the value
//     under every assignment.
//  2. A pool is a function of the calls that built it.
package symbolic
