// Package cache keeps schedules with their preconditions: TERN's schedule cache
// (sections 5.2, 5.3 and 6). A Cache is a file of SQLite's; a Tree is what is in it for
// one program, as the decision tree that inputs are led through.
//
// A schedule is found by the program's SHA-256, the version of the schedules' format,
// and the input. Of several that admit an input the one comes first that was followed
// most often of the times that it was tried. Those that are not followed are thrown
// away. What a schedule is made of is not known here: package memo makes them.
//
// Invariants:
//
//  1. A process that is killed at any time leaves the entries that were there, and
//     those that it had added: each change is a transaction, synced to the disk.
//  2. An entry whose checksum is not that of its text is dropped, and said so.
//  3. An entry of another program, of another build of it, or of another version of
//     the format is never found.
//  4. No two entries of a program have the same schedule and the same preconditions,
//     and none is kept whose preconditions another one's follow from.
package cache
