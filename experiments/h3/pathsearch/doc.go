// Package pathsearch looks for a schedule under which the threads of a program take given paths, by
// executing the program on the machine.
//
// The search is depth-first. From the creation of the second thread on, a move lets the thread
// whose turn it is on a core execute the instructions of its path up to the next place at which it
// can notice others: an instruction that accesses memory that several threads use, or a system
// call. A thread whose next instruction is not that of its path ends an attempt: the machine
// returns to the state before an earlier move, and another core moves. The turns of a core come in the
// order of the recorded run. As the program itself is executed, nothing needs a model: not the
// allocator, not files, not sockets, not the libraries.
//
// Which instructions access shared memory is found on the way: the accesses of each move are logged. An
// attempt is carried on to its end although it passes places that were not known. Afterwards the search continues
// with more places, or begins anew if they are many.
//
// Two sequences of moves lead to the same state if each thread has read from the same writes. A
// state from which every continuation was tried is not entered again. After some attempts the search begins
// anew with other preferences among the cores, as depth-first searches with restarts do (Luby,
// Sinclair and Zuckerman, "Optimal speedup of Las Vegas algorithms", 1993).
//
// Invariants:
//
//  1. The result depends on the problem alone, unless the caller ends the search.
//  2. Steps that are returned lead to the failure when package guided carries them out under sequential
//     consistency from the program's start: they are what the machine did.
package pathsearch
