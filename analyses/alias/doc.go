// Package alias computes which memory an instruction may access in any run that follows a
// schedule: value-set analysis (Balakrishnan and Reps, "Analyzing memory accesses in x86
// executables", CC 2004) over the clones of functions that analyses/specialize makes.
//
// A Value is the set of contents that a register or a word may have: numbers, and offsets
// in Regions, both as strided intervals. A Region is a stack frame of a context, the memory
// allocated at one place by one context, a variable, or the memory of libraries. Registers
// are tracked from block to block; a word of memory has one value for the whole run.
//
// Analyze computes a Result, which has the accesses of each block of a context and decides
// whether two of them may overlap.
//
// It assumes the rules of C, which machine code need not obey: an access through a pointer
// to an object stays within the object; a number, not a pointer, is added to a pointer;
// functions preserve the registers that the ABI says they preserve.
//
// Invariants:
//
//  1. Every address that an instruction accesses in a run that follows the schedule is in
//     the instruction's set, or that set is Unknown.
//  2. Results are a function of the program, the run and the models.
package alias
