// Package points has scheduling policies that decide only at points: places of a run at which
// threads can notice each other. Which places these are is the caller's knowledge; it has a machine
// stop there and asks Policy.AtPoint. Between two points a thread runs at full speed.
//
// Policy is the sched.Policy. It keeps the run going (timers, cores, fairness) and leaves the choice
// of the thread at each point to a Strategy: see New for the strategies, with the papers that they
// are from.
//
// Invariants:
//
//  1. The decisions of a Policy depend on the seed, the Estimate and the calls that it gets, and on
//     nothing else.
//  2. A Strategy is asked only where two or more threads can run, and each question is one of the
//     points that it counts.
//  3. No thread that can run waits for ever: see Bounds.
package points
