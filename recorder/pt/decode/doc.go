// Package decode follows the packets of a core's branch trace through the code
// that ran: from the bytes of the stream and of the program to each instruction
// in order. It is the counterpart of package recorder/pt, written apart from it
// after the same manual (Intel SDM, volume 3, "Intel Processor Trace"), and
// Intel's libipt is the judge of both in the tests.
//
// A Decoder reads a stream and gives Steps, straight runs of instructions, and
// between them Events: tracing is turned on or off, the address space changes. The
// code comes from an Image. Threads cuts a core's events by the context-switch
// sideband.
//
// It does not decode all that Intel PT can hold. Streams of other
// tracers with overflows, transactions, PTWRITE, power events that bind to an
// address, or code of 16 and 32 bits end with an error that says so.
//
// Invariants:
//
//  1. An instruction is given when the stream shows that it has been executed:
//     up to the last branch whose outcome is known, or to the address at which
//     tracing was turned off. The steps before an error are right, if the
//     bytes before it are.
//  2. An error carries the offset of the packet that it was found at, and Sync
//     continues at the next PSB after it.
//  3. Memory does not grow with the stream, only with the code.
package decode
