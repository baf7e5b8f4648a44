// Package recorder observes a run and writes it to a trace. A Recorder is told
// by the machine what happens, gives each event its place in the run, and passes
// it on to its Recordings, each of one kind of thing: context switches and
// system calls, inputs, decisions, branches, sync operations, memory accesses.
//
// The file is package trace's matter; what events are is package event's.
//
// Invariants:
//
//  1. Recording changes nothing: no Recording changes memory, registers, the
//     kernel or the end of a slice, so that the digests of a run are the same
//     with and without it.
//  2. What is written depends on the run alone.
//  3. A Recorder and its Recordings are plain data but for the trace and the
//     engine: a snapshot of the machine copies them, and a return to it begins a
//     new timeline of the trace.
package recorder
