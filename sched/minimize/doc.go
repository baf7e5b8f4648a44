// Package minimize reduces the schedule of a failing run: it searches for a schedule with as few
// context switches and as few delayed stores as possible that shows the same failure.
//
// A Schedule is a list of Steps. A step runs one thread on one core up to a place in the thread's
// own execution (its progress), and lists the waiting stores that stay in their buffers meanwhile.
// A Tracker watches a run and writes down its schedule in this form. A Follower is a scheduling
// policy that carries out a schedule, even one that cannot be followed exactly; its rules are in
// follower.go. Minimize drops parts of a schedule and keeps a result that still fails (delta
// debugging; A. Zeller and R. Hildebrandt, Simplifying and isolating failure-inducing input, 2002,
// for schedules after N. Jalbert and K. Sen, A trace simplification technique for effective
// debugging of concurrent programs, FSE 2010).
//
// It runs no program and knows no failure: Minimize is given a function that carries out a schedule
// and reports whether the run failed in the same way, and the schedule that the run really had.
//
// Invariants, which the tests cite by number:
//
//  1. The result of Minimize has been run and has failed; its cost is not greater than that of the
//     first schedule.
//  2. If neither time nor the budget ended the search, no schedule that Neighbours lists for the
//     result fails at a smaller cost.
//  3. The decisions of a Follower depend on its schedule, on the waiting that the Tracker has
//     observed and on the calls made so far. It ends for every schedule if the program does under
//     some order of its threads, each of which gives way where it waits.
//  4. A run whose threads do not wait and that follows the schedule of its Tracker has that
//     schedule.
package minimize
