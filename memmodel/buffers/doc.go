// Package buffers keeps the store buffers of a machine's cores between their
// turns and decides when stores are committed.
//
// While a core runs, its buffer is in the engine (emu.Buffers). Around each
// turn the driver calls
//
//	commits := cores.Decide(core, thread, clock) // or Follow, in a replay
//	engine.Lay(cores.Stores(core))
//	... run ...
//	cores.Keep(core, thread, engine.Park(nil))
//
// and Drain where the architecture drains: before the kernel acts for a thread,
// and, for every core, before it changes mappings. Commits go to memory through
// a Memory, by virtual address, so that copy-on-write and snapshots need no
// care.
//
// PageCores decides for the engine that keeps stores by pages (emu.Views), which
// keeps the buffers itself: a decision is to drain one, as a whole.
//
// It does not know what drains inside a turn: locked instructions and fences do
// that in the engine.
//
// Invariants:
//
//  1. A buffer has the stores of one thread: it is drained before another
//     thread runs on its core, and before its thread runs on another core.
//  2. Which stores are committed depends on options, seed and the calls made so
//     far; all state is plain data.
//  3. No store waits for ever: under each policy but lazy, and under lazy after
//     Options.Latency cycles.
//  4. What is committed, and in which order, is what memmodel.MayCommit allows.
package buffers
