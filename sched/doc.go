// Package sched decides which core of the machine steps next, which thread it
// runs and for how long. It has the virtual cores with their clocks, the run
// queues that put M threads on N cores, and the policies.
//
// It knows nothing of processors, of Linux or of what is recorded: a driver
// loop asks a Cluster for the next Slice, runs it on whatever it has, and
// reports with Ran, Block, Ready, Yield and Exit what became of it.
package sched
