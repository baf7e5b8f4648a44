// Package sched decides which core of the machine steps next, which thread it
// runs and for how long. It has the virtual cores with their clocks, the
// placement of M threads on N cores, and the policies timed, rr, random and
// pct.
//
// It knows nothing of processors, of Linux or of what is recorded. A driver
// loop asks a Cluster for the next Slice, runs it on whatever it has, accounts
// for it with Ran, and then tells with Charge, Ready, Block, Yield and Exit
// what the slice's end brought:
//
//	for {
//		slice, verdict := cluster.Next(timer, hasTimer)
//		switch verdict {
//		case sched.Idle: // the end, or a deadlock
//			return
//		case sched.FireTimer:
//			cluster.PassTo(timer) // then wake whom the timer wakes
//		case sched.Run:
//			instructions, cycles := run(slice)
//			cluster.Ran(slice, instructions, cycles)
//			// system call, fault, PAUSE: Charge, Ready, Block, Yield, Exit
//		}
//	}
//
// A Policy is one way to decide. It is told of every thread that becomes
// runnable or stops being so, and answers what to run; the Cluster keeps the
// clocks and knows which thread is on which core. NewWithPolicy takes policies
// from outside the package. NewReplay makes a cluster that takes the decisions of
// a recorded run instead of its own.
//
// Invariants, which the tests cite by number:
//
//  1. What Next returns depends on the number of cores, the options, the seed
//     and the calls made so far, and on nothing else.
//  2. All state is plain data: a deep copy of a Cluster goes on as the
//     original does.
//  3. A core's clock never goes back, nor does time as one thread sees it when
//     it moves between cores.
//  4. A thread is on at most one core, a core has at most one thread, and only
//     runnable threads have cores, each one that its affinity allows.
//  5. A runnable thread runs after a bounded number of instructions of others
//     (the policies give their bounds; SetRealtimeShare bounds what threads of
//     real-time classes take from others).
//  6. Next and Ran allocate nothing.
package sched
