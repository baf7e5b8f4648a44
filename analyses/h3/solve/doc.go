// Package solve asks Z3 for a schedule that satisfies a system of constraints, and
// runs every schedule that it gets on the abstract machine before it returns it.
//
// Solve answers satisfiable, with a Schedule; unsatisfiable, where Conflict finds the
// families of constraints that contradict each other; or unknown, when a limit was
// reached. SMTLIB is the formula in SMT-LIB 2, for other solvers.
//
// Invariants:
//
//  1. A schedule that is returned has been executed by package schedule: every
//     thread takes its recorded path, and the bug happens.
//  2. With a limit of steps alone, the result is a function of the system.
package solve
