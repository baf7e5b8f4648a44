// Package schedtest has a machine for tests of schedulers. It runs scripts in place of programs:
// it is the driver loop of the comment of package sched, over threads that are lists of operations.
// It checks the invariants of package sched at every quantum.
//
// Settings draws random machines and scripts for property tests. A DecisionLog records the
// decisions of a run for package sched/replay.
package schedtest
