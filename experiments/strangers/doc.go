// Package strangers runs every analysis of heddle over programs that were not written for it, Debian's,
// and prints a matrix of programs and analyses.
//
// A corpus (configs/strangers/programs.yaml) has the programs, their packages, their commands at two sizes, and
// how their inputs are made. A cell is one analysis of one program: it runs the commands of heddle that a
// user would run, in processes of their own, and compares what the program prints with what it prints on
// the host. A cell has one of four states: it works, with figures; heddle refuses it, with a sentence; it
// exceeds the budget of time or memory; or it shows a defect.
//
// Invariants:
//
//  1. The result of a cell does not depend on the cells that were run before it: each makes its own inputs
//     and measures its own plain run.
//  2. A cell is stored when it is finished, in a file of its own, completely or not at all.
//  3. A process that exceeds the budget of its cell is killed, and its cell says so.
package strangers
