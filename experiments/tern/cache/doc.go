// Package cache stores schedules with their preconditions: TERN's schedule cache (sections
// 5.2, 5.3 and 6). A Cache is an SQLite file; a Tree holds the entries of one program, as a
// decision tree over inputs.
//
// A schedule is found by the program's SHA-256, the version of the schedule format, and the
// input. Of several entries that admit an input, the one with the highest reuse rate comes
// first. Entries that runs do not follow are removed. Package tern makes the schedules.
//
// Invariants:
//
//  1. A process that is killed at any time leaves the earlier entries and the ones it had
//     added: each change is a transaction, synced to the disk.
//  2. An entry whose checksum is not that of its text is dropped and reported.
//  3. An entry of another program, of another build of it, or of another version of the
//     format is never found.
//  4. No two entries of a program have the same schedule and the same preconditions, and no
//     entry has preconditions that another one's imply.
package cache
