// Package storebuffer has the store buffers of a machine's cores, each a
// memmodel.StoreBuffer: None for SC, ByStore, which keeps single stores, and ByPage, which
// keeps copies of pages, for TSO alone.
//
// Each joins two halves. While a thread runs, its core's buffer is in the engine (emu.Buffers,
// emu.PrivatePages), which also drains it within a turn: at locked instructions and fences.
// Between turns Cores and PageCores decide which stores are committed; their state is plain
// data. Commits of ByStore go to memory by virtual address, through a Memory, so that
// copy-on-write and snapshots need no care.
//
// Invariants:
//
//  1. A buffer has the stores of one thread: it is drained before another
//     thread runs on its core, and before its thread runs on another core.
//  2. Which stores are committed depends on options, seed and the calls made so
//     far.
//  3. No store waits for ever: under each policy but lazy, and under lazy after
//     Options.Latency cycles.
//  4. The commits, and their order, follow memmodel.MayCommit.
package storebuffer
