// Package pt writes and reads the packets of Intel Processor Trace: a genuine
// stream for one core, as a processor would write it that traces user mode
// alone (IA32_RTIT_CTL with User=1, OS=0, BranchEn=1). The source of every
// layout and rule is Intel's Software Developer's Manual, volume 3, chapter
// "Intel Processor Trace" (SDM below).
//
// An Encoder turns a core's branch log into packets; Parse turns bytes back
// into one Packet. It knows neither instructions nor threads.
// Package recorder/pt/decode follows the packets through the code.
//
// Invariants:
//
//  1. The stream is a function of the calls and the Config. Splitting a log
//     into several calls changes no byte.
//  2. Whatever the calls, the stream is legal: every packet that needs tracing
//     on lies between a TIP.PGE and the next TIP.PGD, every PSB is followed by
//     its header and PSBEND, and no OVF is ever written.
//  3. A reader can begin at any PSB: last IP, call stack and pending TNT bits
//     do not reach across it.
//  4. Nothing is allocated per word.
package pt
