// Package machine is the assembled machine: an emulated multicore computer that
// runs one unmodified x86-64 Linux program deterministically.
//
// Config says which program is run and on which machine; Run runs it and returns a
// Result. Machine gives finer control: single scheduling steps, snapshots and
// returns to them. Two runs with equal configurations on equal files are equal
// in every bit, whatever the host and its load.
//
// The parts are packages of their own: emu (processor and memory), guest
// (Linux), sched (which thread runs when), recorder (traces).
package machine
