// Package litmus reads and prints litmus tests: small multithreaded programs
// with a question about their outcomes, in the format of the herd7 and litmus7
// tools (Alglave, Maranget, Tautschnig, "Herding cats", TOPLAS 36(2), 2014) for
// the architectures X86_64 and X86.
//
// Parse gives a Test; Assemble turns the code of many tests into machine code
// with the system's assembler; Observer picks what a test observes out of
// registers and memory, giving States; Result gathers those and prints them as
// herd does. What runs the code, or derives outcomes without running it, is in
// the packages beside this one.
//
// Invariants:
//
//  1. Parse refuses what it does not know, with file, line, what was found and
//     what was expected; it never skips an instruction.
//  2. The tests of TestPrint: printing a parsed test and parsing it again gives
//     the same test.
//  3. Locations lie DataBase and up, each at a multiple of SlotSize, in the
//     order of Test.Vars.
package litmus
