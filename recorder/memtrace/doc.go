// Package memtrace is the coding of the trace of memory: one stream of all
// threads' loads and stores in the order in which they happened, and of all other
// changes of the values that loads see (event.Memory).
//
// A record of the stream is a block: up to a million accesses that are decoded
// independently. Encoder makes blocks from the engine's log, Block decodes
// one, Read decodes a trace, Writer is the Encoder in a goroutine of its own.
// The analysis of the accesses is for other packages.
//
// Within a block each access is predicted from those before it: the instruction
// from the one before, the address from the instruction's last two, the value
// from the last one at that address or of that instruction. One byte an access
// says which predictions hold, and the values that were not predicted are written out, each kind
// of thing by itself. The container's compressor does the rest.
//
// Invariants:
//
//  1. A block is a function of the entries alone: neither of how they came in
//     buffers, nor of time.
//  2. Decoding gives the encoded accesses, in order, and an error for anything else
//     than a block.
package memtrace
