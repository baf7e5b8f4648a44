// Package tty is the guest's pseudo-terminals, pty(7), with the line discipline
// that termios(3) describes: canonical input with editing and echo, signals from
// keys, flow control, processing of output, packet mode, time-outs of reads.
//
// A Terminal is one end of a pair: programs take the slave for a terminal, and a
// terminal emulator reads and writes the master. Bytes that one end writes
// are input of the other. Both ends have a line discipline, as in Linux; that of the
// master does nothing to its input.
//
// Sessions, process groups and who may use a terminal belong to the kernel, which
// is asked to send signals (Host). Nothing blocks.
//
// Invariants:
//
//  1. A terminal's input is at most bufferSize bytes that wait to be read, and at
//     most backlogSize that the line discipline has not taken.
//  2. The line discipline takes as much as it can at once; the backlog is empty unless
//     the buffer is full.
//  3. A description that was open when its terminal was hung up never works again.
package tty
