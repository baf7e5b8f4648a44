// Package find searches for a schedule under which a program fails.
//
// The program is run once undisturbed. Then it is run to the creation of its second thread, where a
// snapshot is taken, from which every schedule starts. Profiles, executions with a log of memory,
// find the memory that several threads access and the instructions that access it: at these
// instructions and at system calls the strategies of package sched/points decide, and everything
// between them runs at full speed. After some schedules the profile is repeated under another one,
// since that may share more.
//
// Invariants:
//
//  1. The report depends on the configuration, the files and the options, and neither on the number
//     of workers nor on the host, unless the search is cut short.
//  2. A failure is reported when its recording, replayed, has failed in the same way.
package find
