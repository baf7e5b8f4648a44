// Package vex has the intermediate representation that the analyses use: x86 code lifted by
// libVEX, valgrind's translator, into plain Go data.
//
// A Block is straight-line code: statements that compute temporaries, each assigned once,
// and read and write the guest's registers (a byte array, State) and memory; side exits;
// and the successor at its end. The semantics are libVEX's, as libvex_ir.h describes them;
// names follow it, too.
//
// Some instructions that libVEX does not know, or treats differently from the processor,
// become blocks that this package makes.
//
// Machine interprets blocks and so defines the operations. It is not meant for running code
// fast. As in libVEX, the x87 computes with 64 bits, not with 80.
//
// Invariants:
//
//  1. Lift is a function of the bytes and the address. Blocks are shared and never changed.
//  2. libVEX is not safe for threads; only this package calls it.
package vex
