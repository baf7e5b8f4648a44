// Package memtrace is the coding of the trace of memory: one stream of all
// threads' loads and stores in the order in which they happened, and of all other
// changes of the values that loads see (event.Memory).
//
// A record of the stream is a block: up to 8 million accesses that are decoded
// independently. Encoder makes blocks from the engine's log, Decoder decodes
// one, Read decodes a trace, Writer appends the Encoder's blocks to a trace. ReadRun has the accesses of a
// run that takes place meanwhile, without a trace.
// The analysis of the accesses is for other packages.
//
// Within a block accesses are parts of forms: those of a block that the engine has translated, which are
// executed together, or one alone. Addresses and values are predicted from the last two executions of
// the form, and only those that are not as predicted are written. docs/memory-trace.md has the format.
//
// Invariants:
//
//  1. A block is a function of the log alone: neither of how it came in
//     buffers, nor of time, nor of addresses of the host.
//  2. Decoding gives the encoded accesses, in order, and an error for anything else
//     than a block.
package memtrace
