// Package preconditions says which inputs may reuse a schedule: a conjunction over
// what a program gets from outside, simplified, printed, written to text, and
// checked without a solver (PEREGRINE section 4, TERN sections 5.2 and 7.3).
//
// It decides nothing about which constraints of a run matter: it is given them. The
// main types are Set, the conjunction, Checker, which decides an input, and Input,
// what is decided about. Simplify leaves out what follows from the rest.
//
// Invariants:
//
//  1. Simplify's result holds for exactly those inputs for which all of what it was
//     given holds, and none of it follows from the rest as far as Z3 can tell within
//     its limit. The same terms in the same order give the same result.
//  2. An input that lacks what a term speaks of (an argument that is too short, a
//     file that is not there) does not satisfy the term.
//  3. A Set that was written and read again decides every input as before.
package preconditions
