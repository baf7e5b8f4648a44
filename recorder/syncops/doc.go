// Package syncops recognises synchronization operations in unmodified programs
// while they run: calls of the functions of POSIX threads, C11 threads and
// semaphores by the symbols of the program and its libraries, functions that a
// configuration file names, futex calls and atomic instructions outside of
// them, and the starts and ends of threads.
//
// It changes nothing: it has breakpoints set, reads registers and memory where
// they stop, and makes events. It does not decide when threads run, and does not
// store the operations: it passes them to a Sink.
//
// The main type is Recognizer. Whoever drives the machine reports the events
// of threads to it and asks nothing back. docs/sync.md says which operations are recorded, and how.
//
// Invariants:
//
//  1. Calls between an operation's Enter and its Return that serve it are not
//     recorded: an operation counts once, whichever way it is implemented. The program's
//     own code that it calls back (a once routine, a key's destructor), and
//     a signal handler that interrupts it, are recorded.
//  2. Every Enter is followed, in its thread, by a Return or Unwound of the same
//     operation, properly nested, unless the thread is in it when the run ends
//     or another program is executed.
//  3. Names of threads and objects depend on no address that the interleaving
//     chooses, and on no order between threads but where docs/sync.md says so.
//  4. All state is plain data that internal/deepcopy copies; nothing becomes
//     resident in guest memory by being looked at.
package syncops
