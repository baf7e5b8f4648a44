// Package direct is the engine that lets the host's processor execute. It translates x86-64 code
// to x86-64 code in which each access to memory goes through heddle's page tables, counts
// instructions and cycles exactly, and stops at any instruction.
//
// An instruction has two forms. A unit is one instruction on its own: the host executes it with
// the operand in memory replaced by the page that the page tables name, or C does, where the guest is to
// see something else than the host has (CPUID, the clock, flags of the system, segments) or
// where an access needs more care. Units are exact in everything, and slow.
//
// A block is a run of up to 48 instructions as one piece of translated code, through direct jumps and
// calls and branches that are not taken. Blocks jump to each other without C: direct branches when
// they are linked, indirect ones by a table of targets. A block ends before an instruction
// for C, an atomic one, and a breakpoint. It is begun only if the run cannot end within it; and
// where one of its instructions needs C (a page that the tables do not have, an operand in two pages, an
// exception, a store to code) it is left with the exact state of that instruction, of which a
// unit is made. docs/engine-direct.md has the design and measurements.
//
// Invariants, besides those of package emu:
//
//  1. Flags that the manuals leave undefined are 0, approximations are rounded quotients, and the
//     addresses of the last x87 instruction are 0.
//  2. The guest accesses host memory through the tables of pages alone. They have nothing that the
//     page tables of its address space do not allow.
//  3. While the guest's floating-point state is in the host's registers, only C runs that uses
//     general registers alone (general.h).
//  4. C never calls Go.
package direct
