// Package pipe is the guest's pipes and FIFOs, pipe(7) and fifo(7). A Pipe is a
// ring of page-sized slots as in Linux, so that the capacity, the result of a short
// write merges with and when poll says writable are the same as there. An End
// is the file of an open description.
//
// Nothing blocks: an operation that Linux would wait in fails with EAGAIN, and
// the queue of the End is woken when it may succeed.
//
// Invariants:
//
//  1. A slot holds between 1 and PageSize bytes, and at most as many slots are in
//     use as SetCapacity allows.
//  2. A write of at most PIPE_BUF bytes is stored whole or not at all.
//  3. Pages charged to the Account are given back when the last End closes.
package pipe
