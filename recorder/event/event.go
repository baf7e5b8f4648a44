// Package event is the vocabulary that all layers share: the distinct number
// types for threads, cores, addresses and virtual time, and what a run consists
// of for those who record or analyse it: Switch, Syscall, Sync, Input, Signal,
// Start, Exit, each with a Stamp, and Decision. It is a leaf of plain data: it
// imports nothing of heddle, and every other package may import it.
package event

// Addr is a guest virtual address.
type Addr uint64

// ThreadID is a guest thread's id as the guest sees it (gettid). Ids are positive
// and are never reused within a run.
type ThreadID int32

// CoreID numbers the cores of the machine from 0.
type CoreID int32

// NoCore stands for a thread that is on no core.
const NoCore CoreID = -1

// NoThread stands for a core that has no thread.
const NoThread ThreadID = -1

// Cycles is virtual time: cycles of one core's clock since the start of the
// run. It is a model (emu.Costs), repeatable to the cycle, and says nothing
// about host time.
type Cycles uint64
