// Package trace is the container of recordings: one file with any number of
// streams, written while the program runs and read in pieces. docs/traces.md
// has the format byte by byte.
//
// A stream has a kind and a number, and is a sequence of records or of plain
// bytes. It is cut into chunks, each compressed, checksummed and readable by
// itself. Writer and Stream write, Reader reads; Read decodes the records of
// the kinds whose events package event defines; Dump and Load are the text
// twin.
//
// The meaning of records of other kinds is their owners' business, as is when
// anything is recorded.
//
// Invariants, which the tests cite by number:
//
//  1. The bytes of a trace depend only on the appended records.
//  2. A trace that is cut or damaged anywhere gives an error that says where,
//     and every chunk that is whole.
//  3. Writer and Reader hold a bounded number of chunks in memory, however long
//     the trace; a Reader also holds the index entry of each.
//  4. The chunks after a return to a Mark are a timeline of its own: a Reader
//     shows the last one, as if the abandoned part had not been.
//  5. Loading the output of Dump writes the same bytes again.
package trace
