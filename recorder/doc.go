// Package recorder observes a run and writes it to a trace. The machine reports
// each event to a Recorder, which gives it its position in the run and passes
// it to its Recordings, each of one kind of thing: context switches and
// system calls, inputs, decisions, branches, sync operations, memory accesses.
//
// Package trace defines the file, package event the events.
//
// Invariants:
//
//  1. Recording changes nothing: no Recording changes memory, registers, the
//     kernel or the end of a quantum, so that the digests of a run are the same
//     with and without it.
//  2. The recorded data depends on the run alone.
//  3. A Recorder and its Recordings are plain data but for the trace and the
//     engine: a snapshot of the machine copies them, and a return to it begins a
//     new timeline of the trace.
package recorder
