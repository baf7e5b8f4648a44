// Package races finds data races in a recorded run: pairs of accesses to the
// same byte by different threads, at least one of them a write, that nothing
// orders.
//
// The order is a choice. HappensBefore is the order that the program's
// synchronization makes, whatever the interleaving (vector clocks:
// DJIT+ and FastTrack, Flanagan and Freund, PLDI 2009). ScheduleRelative is
// the total order of all synchronization operations of the recorded run: its
// races are those that are left when a schedule enforces that order (PEREGRINE
// section 3.1).
//
// The package reads a stream of accesses and orders; it starts no machine and
// opens no file. A Detector is given accesses, a Follower entries of an engine's memory
// log. What happens for each access is in C.
//
// Invariants:
//
//  1. A Detector reports a pair if and only if the two are adjacent among the
//     conflicting accesses of a byte (a read and the last write before it; a
//     write and each thread's last read since the last write or, if there is
//     none, that write) and unordered. Every racy byte has such a pair, and
//     ordering those pairs orders all conflicting accesses. With OmitRepeats this
//     holds of the accesses that are left without repeated ones; every racy byte has
//     a pair still, but ordering the pairs need not order the omitted accesses. An
//     access of an instruction is repeated if its thread has accessed each of its bytes
//     before in the same segment, by an instruction that is not atomic and that races with no
//     access before it, with the same effect (read; write what is there; write something else)
//     or a higher one, and no other thread has accessed the byte since, unless both only read.
//     FastTrack calls that the same epoch.
//  2. Memory grows with the addresses in use and the number of threads, not
//     with the length of the trace.
//  3. The same stream gives the same reports in the same order.
package races
