// Package export writes the contents of a trace in the formats of other tools: Perfetto,
// for the UI at ui.perfetto.dev, in the Chrome Trace Event Format, and CSV, one
// table for each kind of event.
//
// Invariants:
//
//  1. Memory does not grow with the trace, but with its threads, cores and
//     objects.
//  2. Slices of one track are properly nested, and each arrow goes from a slice
//     to a later one.
package export
