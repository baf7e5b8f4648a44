// Package mm is the guest's memory: address spaces made of mappings (VMA), and the
// memory objects (Object) that hold the bytes of files and of shared memory. It
// implements mmap and its relatives with Linux's rules and errors, resolves page faults
// on demand, and is how the kernel reads and writes user memory. It has no knowledge of
// files, processes or schedules, and does not run code: the machine calls Fault when
// the engine stops at an access that the page tables do not allow.
//
// Everything here is plain data for package deepcopy. A snapshot copies the list of
// mappings of an address space; page tables and pages are shared and copied when they
// are first written.
//
// Invariants:
//
//  1. Each entry of the page tables lies in a mapping and allows no more than
//     the mapping does.
//  2. A page of zeros and an absent page of a mapping without an object mean
//     the same.
//  3. An entry of a shared mapping allows writing only if its page was made
//     writable (Object.WritablePage) after the machine's last snapshot.
//  4. An object has one reference for each mapping of it, and knows in which
//     spaces they are.
//  5. Nothing depends on the numbers of physical pages.
package mm
