// Package gdbserver speaks the remote serial protocol of GDB (the appendix "GDB
// Remote Serial Protocol" of its manual) for a run that can be taken forwards and
// backwards. It encodes and decodes; the run is a Target.
//
// It is not a debugger of processes: registers and memory cannot be written,
// because a changed run would not be the one to be debugged.
//
// Main types: Target is the run that is debugged, Session one connection of GDB to it.
//
// Invariants:
//
//  1. The target is used by one goroutine at a time, and never while it answers.
//  2. A connection that breaks or sends nonsense ends the session with an error;
//     no packet is trusted to be short, well-formed or complete.
package gdbserver
