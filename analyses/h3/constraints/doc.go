// Package constraints turns a trace into the formula whose solutions are the
// schedules that reproduce a failure (H3 section 3.3):
//
//	Φ = Φpath ∧ Φbug ∧ Φsync ∧ Φmo ∧ Φrw
//
// A System has the five families as Formulas over the order of events, Clocks, and
// over the values that were read. Three Encodings make them:
//
//   - CLAP: every read is matched with every write that it could see, and all other
//     writes are kept from between the two (section 2.1).
//   - Cores: H3's reduction by the order that the branch trace of each core shows
//     (section 3.4, algorithm 2). It cannot be used under PSO.
//   - Pruned: reads that nothing depends on are left out, as are matches that
//     contradict the known order, or a branch; a read has one
//     clock for the write that it sees, so that the other writes are kept away once
//     for each read and not once for each match.
//
// The families are those of all models: H3's rules for TSO and PSO order a read
// after its thread's own earlier write to the same place. Here, as on x86, it may
// be executed before that write reaches memory, and sees it.
//
// Invariants:
//
//  1. A trace has a schedule under a model if and only if its System has a solution;
//     the events in the order of their clocks, ties broken in any way, are one.
//  2. Formulas are a function of the trace, the model and the encoding.
//  3. Clocks are compared by "earlier" and "same" alone, and no formula demands the
//     negation of that.
package constraints
