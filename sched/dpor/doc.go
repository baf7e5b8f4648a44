// Package dpor explores every execution of a concurrent program up to equivalence, by optimal dynamic
// partial-order reduction: Abdulla, Aronis, Jonsson and Sagonas, Source sets: a foundation for optimal
// dynamic partial order reduction (JACM 2017), algorithm 2, with the wakeup trees of section 5.
//
// It knows neither the program nor a machine. Its caller executes the program again and again; the
// Explorer says which process continues, and is told which Event the process has executed. Two
// executions are equivalent if they order the same dependent events in the same way (Mazurkiewicz). A
// process is a thread, or a store buffer, whose events are commits.
//
// Invariants:
//
//  1. Of each class of equivalent executions that reach an end, one is executed to its end.
//  2. The order of executions depends on the program alone.
//  3. Between executions the state of an Explorer is a State, from which another one continues.
package dpor
