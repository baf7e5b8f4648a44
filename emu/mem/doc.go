// Package mem is the memory of the emulated machine: physical pages (RAM) and address spaces
// (Space), trees of page table entries that share pages and nodes, so that fork and snapshots cost
// one increment and each owner copies the pages that it writes.
//
// Engines translate addresses with the walk of this package (memory.h has it for their C code). An
// observer, in C, is called for changes of pages other than the guest's own stores.
//
// Invariants:
//
//  1. A page with several owners is not written in place, unless its entry is shared.
//  2. The version of a space changes whenever a translation that an engine may have kept is
//     outdated, its code number whenever executable entries change. Both are unique among the
//     spaces of one RAM and grow.
//  3. Nothing here calls Go from C.
package mem
