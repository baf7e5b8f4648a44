// Package litmus reads and prints litmus tests: small multithreaded programs
// with a question about their outcomes, in the format of the herd7 and litmus7
// tools (Alglave, Maranget, Tautschnig, "Herding cats", TOPLAS 36(2), 2014) for
// the architectures X86_64 and X86.
//
// Parse gives a Test; Assemble turns the code of many tests into machine code
// with the system's assembler; Observer picks the values that a test observes out of
// registers and memory, giving States; Result gathers those and prints them as
// herd does. The packages that run the code, or derive outcomes without running it, are
// the packages beside this one.
//
// Invariants:
//
//  1. Parse refuses unknown input, with file, line, the text found and
//     the text expected; it never skips an instruction.
//  2. The tests of TestPrint: printing a parsed test and parsing it again gives
//     the same test.
//  3. Locations lie DataBase and up, each at a multiple of SlotSize, in the
//     order of Test.Vars.
package litmus
