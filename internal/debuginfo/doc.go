// Package debuginfo reads the symbols and source lines of ELF files (64-bit,
// little-endian): the function or variable at an address, the function that an
// entry of the procedure linkage table (PLT) calls, the source line and the
// inlined functions at an instruction. Names of C++ and Rust are demangled.
//
// The main type is File. Where a process has mapped a file is known to the
// callers; all addresses here are those of the file, without the load bias.
//
// The tables are read here and not by debug/elf, because a hostile file can make
// that package allocate without bound: names that overlap are copied once for
// each symbol. DWARF 2 to 5 is decoded by debug/dwarf.
//
// Invariants:
//
//  1. Missing or damaged tables give fewer answers, never wrong ones or a panic.
//  2. Reading symbols takes memory that is bounded by the size of the file's tables.
//  3. A line table is decoded only for compilation units that are looked up.
package debuginfo
