// Package cfg has the control flow of a program's own code: its functions, found
// from an ELF file and from what a run executed, their blocks as libVEX lifts them,
// calls, and post-dominators.
//
// An Image is a file as it lies in memory. Build makes a Graph of it from what a
// run was Observed to do: where calls through pointers and tables went. What the
// code calls of other files are imports, known by name; Models, which are YAML, say
// what they do.
//
// The package knows nothing of values. A jump through a table that was not executed
// goes where the table says as long as that is in the function; where it goes if
// there is no table that can be read is Unknown, and said so.
//
// Invariants:
//
//  1. Every block that a run executed of the image is in the graph, from the entries
//     that were observed, with the edges that it took.
//  2. Blocks of a function do not overlap but where code jumps into the middle of an
//     instruction.
//  3. A Graph is a function of the file and of what was observed.
package cfg
