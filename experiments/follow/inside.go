package follow

import (
	"encoding/binary"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic/exec"
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// An instruction that others act inside, between two of its accesses, is executed as a whole:
// where its last access is, or where its first store is if it has several. Loads have the
// recorded values. Where another thread changes meanwhile where a value comes from, the run is
// not followed.

var errSplit = errs.Define("follow-split-instruction",
	"cannot follow thread {thread}: while it was inside the instruction at {address}, thread {other} accessed the same memory",
	"Inputs are followed through instructions as a whole. In this run a data race has another thread act between two accesses of one instruction.",
	"Record another run, by heddle record with another --seed, or mend the race (heddle races shows it).")

// accesses are those of a thread that are not executed yet.
type accesses struct {
	done []exec.Access
	// begun are those of the instruction that the thread is inside. It may begin anew, and
	// then loads again.
	begun []exec.Access
	// ahead is 1 if that instruction was executed already: begun are its stores to come.
	ahead uint64
	// split is the first other thread that has written what was loaded.
	split event.ThreadID
}

// accessesOf are those of a thread.
func (r *Recording) accessesOf(t event.ThreadID) *accesses {
	of := r.accesses[t]
	if of == nil {
		of = &accesses{}
		r.accesses[t] = of
	}
	return of
}

// Leave takes what was logged on behalf of a thread before another one acts.
func (r *Recording) Leave(on *recorder.Recorder) {
	if t := on.Kernel().Task(on.At().Thread); t != nil && r.err == nil && r.begun {
		r.task = t
		r.drain(on.CPU())
	}
}

// access takes an access of a thread, one of an instruction's parts if others acted between
// these.
func (r *Recording) access(id event.ThreadID, a exec.Access, part, parts int) {
	of := r.accessesOf(id)
	if len(r.inside) > 0 {
		r.meets(id, a)
	}
	switch {
	case parts > 0 && of.ahead > 0:
		if part == parts-1 {
			r.leaves(id)
		}
	case parts == 0:
		r.leaves(id)
		of.done = append(of.done, a)
	default:
		if part == 0 {
			r.leaves(id)
			r.inside = append(r.inside, id)
		}
		// The thread's next piece begins with the instruction.
		a.Branches = 0
		if of.begun = append(of.begun, a); part == parts-1 {
			if of.split != 0 && r.err == nil {
				r.err = errSplit.New(id, event.Addr(a.PC), of.split)
			}
			of.done = append(of.done, of.begun...)
			r.leaves(id)
		}
	}
}

// leaves notes that a thread is inside no instruction.
func (r *Recording) leaves(id event.ThreadID) {
	if i := slices.Index(r.inside, id); i >= 0 {
		r.inside = slices.Delete(r.inside, i, i+1)
		of := r.accessesOf(id)
		of.begun, of.split = of.begun[:0], 0
	}
}

// meets compares an access with those of instructions that other threads are inside.
func (r *Recording) meets(id event.ThreadID, a exec.Access) {
	for _, other := range r.inside {
		of := r.accessesOf(other)
		for _, b := range of.begun {
			if other == id || !a.Store && !b.Store || a.Addr >= b.Addr+uint64(b.Size) || b.Addr >= a.Addr+uint64(a.Size) {
				continue
			}
			if of.split = id; of.ahead > 0 && r.err == nil {
				r.err = errSplit.New(other, event.Addr(b.PC), id)
			}
		}
	}
}

// complete adds the stores to come of the instruction that a thread is inside.
func (l *accesses) complete(in *emu.Interrupted) {
	l.done = append(l.done, l.begun...)
	l.begun, l.ahead = l.begun[:0], 1
	for addr, value := range in.Stores() {
		a := exec.Access{PC: uint64(in.PC), Addr: uint64(addr), Size: len(value), Store: true}
		var b [16]byte
		copy(b[:], value)
		a.Value = [2]uint64{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])}
		l.done, l.begun = append(l.done, a), append(l.begun, a)
	}
}
