// Package preconditions states which inputs may reuse a schedule: a conjunction of
// conditions on a program's input, simplified, printed, written to text, and checked
// without a solver (PEREGRINE section 4, TERN sections 5.2 and 7.3).
//
// It is given the constraints of a run that matter and does not choose them. The main types
// are Set, the conjunction, Checker, which decides an input, and Input. Simplify removes
// terms that the others imply.
//
// Invariants:
//
//  1. Simplify's result holds for exactly the inputs for which all the given terms hold,
//     and no term follows from the others as far as Z3 can decide within its limit. The
//     same terms in the same order give the same result.
//  2. An input without the data that a term is about (an argument that is too short, a
//     missing file) does not satisfy the term.
//  3. A Set that was written and read again decides every input as before.
package preconditions
