// Package sched decides which core of the machine runs next, which thread it runs and for how long.
// It has the virtual cores with their clocks, the placement of M threads on N cores, and the policies
// timed, rr, random and pct; and the interfaces by which controllers decide when threads pass their
// synchronization points.
//
// It knows nothing of processors, of Linux or of recording. A driver loop asks a Cluster for
// the next Quantum, runs it, accounts for it with Ran, and then reports with Charge, Ready, Block,
// Yield and Exit how the threads' states have changed:
//
//	for {
//		quantum, verdict := cluster.Next(timer, hasTimer)
//		switch verdict {
//		case sched.Idle: // the end, or a deadlock
//			return
//		case sched.FireTimer:
//			cluster.PassTo(timer) // then wake the threads that the timer wakes
//		case sched.Run:
//			instructions, cycles := run(quantum)
//			cluster.Ran(quantum, instructions, cycles)
//			// system call, fault, PAUSE: Charge, Ready, Block, Yield, Exit
//		}
//	}
//
// A Policy is one way to decide. It hears of every thread that becomes runnable or stops being so, and
// returns the next decision; the Cluster keeps the clocks and knows which thread is on which core.
// NewWithPolicy takes policies from other packages: sched/dmt has the deterministic multithreading
// systems, sched/replay repeats recorded decisions, sched/guided and sched/minimize carry out computed
// schedules.
//
// A Controller is asked at synchronization points whether a thread may continue; a Gate holds the
// threads that may not. The turns of sched/dmt, the schedules of sched/enforce and the partial orders
// of sched/partialorder are controllers.
//
// Invariants, which the tests cite by number:
//
//  1. The result of Next depends on the number of cores, the options, the seed and the calls made so
//     far, and on nothing else.
//  2. All state is plain data: a deep copy of a Cluster continues like the original.
//  3. A core's clock never runs backwards, nor does time as one thread sees it when it moves between
//     cores.
//  4. A thread is on at most one core, a core has at most one thread, and only runnable threads have
//     cores, each one that its affinity allows.
//  5. A runnable thread runs after a bounded number of instructions of others (the policies give
//     their bounds; SetRealtimeShare bounds the part that threads of real-time classes take from
//     others).
//  6. Next and Ran allocate nothing.
package sched
