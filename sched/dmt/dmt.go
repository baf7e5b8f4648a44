// Package dmt has the deterministic multithreading systems: algorithms that give a program one order
// of synchronization, whatever the timing. Three of them are controllers over the policy timed, which
// decide whose turn it is at each operation (NewTurnController): round-robin and first-come
// first-served order as in TERN, and Kendo's order by numbers of instructions. CoreDet's is a policy,
// with rounds of a parallel and a serial phase (New, NewPolicy).
//
// FirstCome is the controller under which schedules are recorded: operations happen one at a time, in
// the order in which threads reach them.
//
// The package knows nothing of Linux: package sched's synchronization points describe the next act
// of a thread.
// thread is about to do.
//
// Invariants:
//
//  1. Under the controllers at most one thread is in an operation or an observable system call at a
//     time.
//  2. The order of turns under rr-sync and kendo, and of all quanta under coredet, depends on the
//     program, its input and the options alone, unless timers take part.
package dmt

import "github.com/heddle-dmt/heddle/sched"

// New makes a cluster like sched.New, for all policies: those of this package too.
func New(cores int, seed uint64, o sched.Options) (*sched.Cluster, error) {
	if o.Policy != sched.CoreDet && !Isolates(o.Policy) {
		return sched.New(cores, seed, o)
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return sched.NewWithPolicy(cores, NewPolicy(cores, seed, o))
}

// NewPolicy makes the policy of valid options for a cluster with the given number of cores. For
// those that order operations it is timed; NewTurnController makes their controllers.
func NewPolicy(cores int, seed uint64, o sched.Options) sched.Policy {
	o = o.WithDefaults()
	if o.Policy == sched.CoreDet {
		return newCoredet(seed, o)
	}
	return sched.NewPolicy(cores, seed, o)
}
