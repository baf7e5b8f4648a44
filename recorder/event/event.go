// Package event defines the vocabulary that all layers share: the events of a run
// for the packages that record or analyse it: Switch, Syscall, Sync, Input, Signal,
// Start, Exit, each with a Stamp, and Decision. It is plain data, imports
// only emu/arch, and every package above may import it.
package event
