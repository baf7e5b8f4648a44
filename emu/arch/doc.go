// Package arch has the distinct number types that all of heddle shares (addresses, thread and
// core numbers, cycles of virtual time) and the leaf types of the emulated processor: registers,
// rights and kinds of access, the budget and the end of a run, and the timing model.
// It imports nothing of heddle.
package arch
