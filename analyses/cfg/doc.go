// Package cfg builds the control flow graph of a program's own code: its functions, found
// from an ELF file and from the trace of a run, their blocks as libVEX lifts them, calls,
// and post-dominators.
//
// An Image is a file as it lies in memory. Build makes a Graph of it, given the
// Observations of a run: the targets of calls through pointers and of jumps through tables.
// Functions of other files that the code calls are imports, known by name; Models, which
// are YAML, describe their effects.
//
// The package tracks no values. A jump through a table that was not executed has the
// table's entries as targets as long as they are in the function; if no table can be read,
// the block is marked Unknown.
//
// Invariants:
//
//  1. Every block of the image that a run executed is in the graph, reachable from the
//     observed entries, with the edges that it took.
//  2. Blocks of a function do not overlap, except where code jumps into the middle of an
//     instruction.
//  3. A Graph is a function of the file and of the observations.
package cfg
