package concolicrun

import (
	"encoding/binary"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder"
)

// A thread may be interrupted inside an instruction, between two of its accesses, while
// others run. The executor executes such an instruction as a whole: at its last access, or
// at its first store if it has several. Loads have the recorded values. If another thread
// meanwhile changes the memory that was loaded, the concolic execution ends with an error.

var errSplit = errs.Define("follow-split-instruction",
	"cannot follow thread {thread}: while it was inside the instruction at {address}, thread {other} accessed the same memory",
	"Inputs are followed through instructions as a whole. In this run a data race has another thread act between two accesses of one instruction.",
	"Record another run, by heddle record with another --seed, or mend the race (heddle races shows it).")

// pendingAccesses are the accesses of a thread that are not executed yet.
type pendingAccesses struct {
	done []concolic.Access
	// begun are the accesses of the instruction that the thread is inside. It may be
	// restarted, and then loads again.
	begun []concolic.Access
	// ahead is 1 if that instruction was executed already: begun are its remaining stores.
	ahead uint64
	// executed is the address of that instruction until its last access is logged, or 0.
	executed uint64
	// split is the first other thread that wrote to loaded memory.
	split arch.ThreadID
}

// threadAccesses returns the pending accesses of a thread.
func (r *Recording) threadAccesses(t arch.ThreadID) *pendingAccesses {
	of := r.accesses[t]
	if of == nil {
		of = &pendingAccesses{}
		r.accesses[t] = of
	}
	return of
}

// Leave reads the log for a thread before another one acts.
func (r *Recording) Leave(on *recorder.Recorder) {
	if t := on.Kernel().Task(on.At().Thread); t != nil && r.err == nil && r.begun {
		r.task = t
		r.drainLog(on.CPU())
	}
}

// addAccess adds an access of a thread: one part of an instruction if others acted between
// the parts.
func (r *Recording) addAccess(id arch.ThreadID, a concolic.Access, part, parts int) {
	of := r.threadAccesses(id)
	if len(r.inside) > 0 {
		r.checkConflicts(id, a)
	}
	if a.PC != of.executed {
		of.executed = 0
	}
	switch {
	case parts > 0 && of.executed != 0:
		if part == parts-1 {
			of.executed = 0
			r.leaveInstruction(id)
		}
	case parts == 0:
		r.leaveInstruction(id)
		of.done = append(of.done, a)
	default:
		if part == 0 {
			r.leaveInstruction(id)
			r.inside = append(r.inside, id)
		}
		// The thread's next piece begins with the instruction.
		a.Branches = 0
		if of.begun = append(of.begun, a); part == parts-1 {
			if of.split != 0 && r.err == nil {
				r.err = errSplit.New(id, arch.Addr(a.PC), of.split)
			}
			of.done = append(of.done, of.begun...)
			r.leaveInstruction(id)
		}
	}
}

// leaveInstruction records that a thread is inside no instruction.
func (r *Recording) leaveInstruction(id arch.ThreadID) {
	if i := slices.Index(r.inside, id); i >= 0 {
		r.inside = slices.Delete(r.inside, i, i+1)
		of := r.threadAccesses(id)
		of.begun, of.split = of.begun[:0], 0
	}
}

// checkConflicts compares an access with those of instructions that other threads are
// inside.
func (r *Recording) checkConflicts(id arch.ThreadID, a concolic.Access) {
	for _, other := range r.inside {
		of := r.threadAccesses(other)
		for _, b := range of.begun {
			if other == id || !a.Store && !b.Store || a.Addr >= b.Addr+uint64(b.Size) || b.Addr >= a.Addr+uint64(a.Size) {
				continue
			}
			if of.split = id; of.ahead > 0 && r.err == nil {
				r.err = errSplit.New(other, arch.Addr(b.PC), id)
			}
		}
	}
}

// completeStores adds the remaining stores of the instruction that a thread is inside, which has gone through a number
// of branches in its present piece.
func (l *pendingAccesses) completeStores(in *arch.Interrupted, branches uint32) {
	for _, a := range l.begun {
		a.Branches = branches
		l.done = append(l.done, a)
	}
	l.begun, l.ahead, l.executed = l.begun[:0], 1, uint64(in.PC)
	for addr, value := range in.Stores() {
		a := concolic.Access{PC: uint64(in.PC), Addr: uint64(addr), Size: len(value), Store: true, Branches: branches}
		var b [16]byte
		copy(b[:], value)
		a.Value = [2]uint64{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])}
		l.done, l.begun = append(l.done, a), append(l.begun, a)
	}
}
