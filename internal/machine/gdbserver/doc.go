// Package gdbserver speaks the remote serial protocol of GDB (the appendix "GDB
// Remote Serial Protocol" of its manual) for a run that can be taken forwards and
// backwards. It encodes and decodes; the run is behind the Target interface.
//
// It is not a debugger of processes: registers and memory cannot be written,
// because a run that was interfered with would not be the one to be looked at.
//
// Main types: Target is what is debugged, Session one connection of GDB to it.
//
// Invariants:
//
//  1. The target is used by one goroutine at a time, and never while it answers.
//  2. A connection that breaks or sends nonsense ends the session with an error;
//     what arrives is never trusted to be short, well-formed or complete.
package gdbserver
