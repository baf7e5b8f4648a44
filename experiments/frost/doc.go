// Package frost runs a program under Frost: epoch by epoch as three replicas, one
// thread-parallel and two under complementary schedules, whose outcomes reveal data
// races and how to continue in spite of them. (K. Veeraraghavan and others,
// Detecting and surviving data races using complementary schedules, SOSP 2011.)
//
// It executes replicas with epoch.Runner and decides by the verdict of package
// analyses/complementary on their outcomes. The main types are Options and
// Report.
//
// Invariants:
//
//  1. Output goes out when its epoch is committed, once and in order: nothing of a
//     replica that is not committed is ever seen.
//  2. The run continues from the state of a replica that is committed, and from no
//     other. An epoch that is rolled back leaves no trace but its line in
//     the report.
//  3. A report depends on the program, its files, the configuration and the
//     options alone, but for HostSeconds of the result.
package frost
