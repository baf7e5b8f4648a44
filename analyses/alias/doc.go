// Package alias says which memory an instruction may access, in every run that
// follows a schedule: value-set analysis (Balakrishnan and Reps, "Analyzing memory
// accesses in x86 executables", CC 2004) over the clones of functions that
// analyses/simplify makes.
//
// A Value is what a register or a word may be: numbers and, in Regions, offsets, both
// as strided intervals. Regions are a frame of the stack of each context, memory by
// where it was allocated and by which context, variables by symbol, and what belongs to
// libraries. Registers are followed from block to block; a word of memory has one
// value for the whole run.
//
// Analyze does it; its Result has the accesses of each block of a context, and says
// whether two of them may be to one place.
//
// It relies on what C says and machine code does not: an access through a pointer to an
// object stays within the object; what is added to a pointer is a number; functions
// keep the registers that the ABI says they keep.
//
// Invariants:
//
//  1. Every address that an instruction accesses in a run that follows the schedule is
//     in the set that is given for it, or that is Unknown.
//  2. Results are a function of the program, the run and the models.
package alias
