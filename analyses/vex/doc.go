// Package vex is the intermediate representation that the analyses work on: x86
// code lifted by libVEX, valgrind's translator, into plain Go data.
//
// A Block is straight-line code: statements that compute temporaries, each
// assigned once, and read and write the guest's registers (a byte array, GuestState)
// and memory; side exits; and where it goes at its end. Meanings are libVEX's,
// as its libvex_ir.h says; names follow it, too.
//
// A few instructions that libVEX leaves out, or does otherwise than the
// processor, are blocks that this package makes.
//
// Machine interprets blocks: it says what the operations mean. It is no fast
// way to run code. As in libVEX the x87 computes in 64 bits, not in 80.
//
// Invariants:
//
//  1. Lift is a function of the bytes and the address. Blocks are shared and
//     never changed.
//  2. libVEX is not safe for threads; nothing outside of this package calls it.
package vex
