// Package flow reads the instructions that a recorded run executed out of its
// branch traces: for each core the order in which it executed them, and with the
// context-switch sideband for each thread (H3 section 3.1).
//
// Package recorder/pt/decode follows the packets; this package gives it the
// stream and the code of a trace, and assigns each piece of the flow to its
// thread.
//
// Invariants:
//
//  1. A core's flow is given once, in order, each piece under the thread
//     that the sideband had on the core then.
//  2. A thread's instructions come in the order in which it executed them,
//     whatever cores it was on.
//  3. Memory grows with the code and the number of cores, not with the run.
package flow
