// Package symmem has the memory of a thread that is executed symbolically: bytes with
// known values, and bytes that are parts of expressions.
//
// A Memory reads its content at the beginning through a function and keeps the pages
// that were written. Clone copies it: pages are shared until one of the copies writes
// them.
//
// It knows nothing of programs and threads.
//
// Invariants:
//
//  1. A copy does not see later writes to another copy.
//  2. Load returns the value that Store stored, in whatever pieces it is read.
package symmem
