// Package report makes of the races of a stored trace something to read: races
// of the same two instructions become one, with both accesses, their source
// lines and calls, and what the address is.
//
// The main types are Options, with which Make goes through a trace, and Report,
// which is written as text or as JSON (docs/races.md). Package stream finds the
// races, package symbols the names.
//
// Invariants:
//
//  1. Each race of the trace counts in one entry, or as pruned, or as the C
//     library's own.
//  2. The same trace and files give the same report.
package report
