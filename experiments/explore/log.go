package explore

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/sched/dpor"
)

// dropLog empties the log before the second thread exists.
func (r *runner) dropLog() {
	if r.log != nil {
		r.m.CPU().SwapMemory(r.log)
		r.takeAtomics()
	}
}

// takeLog takes the accesses that a thread has made, and the kernel for it: those of the event that is being
// executed, and others that must not conflict with other threads.
func (r *runner) takeLog(t *thread) {
	if r.log == nil {
		return
	}
	r.takeAtomics()
	if r.m.CPU().LoggedMemory() == 0 {
		return
	}
	r.m.CPU().SwapMemory(r.log)
	entries := r.log.Entries()
	for i := range entries {
		e := &entries[i]
		switch e.Kind {
		case memlog.Load, memlog.Store:
			r.takeAccess(t, e)
			t.noteEffect(r, entries, i)
			r.polls.add(e)
		case memlog.Kernel, memlog.Read:
			if e.Flags&memlog.FlagBuffered == 0 {
				r.takeKernelAccess(t, e)
			}
		}
	}
}

// takeAccess takes an access of an instruction.
func (r *runner) takeAccess(t *thread, e *memlog.Entry) {
	kind := loads
	if e.Kind == memlog.Store {
		kind = stores
	}
	if e.Flags&memlog.FlagAtomic != 0 {
		kind |= locked
	}
	pc, at, size := arch.Addr(e.PC), uint64(e.Addr), int(e.Size)
	r.sharing.note(t.id, pc, at, size, kind)
	if !r.sharing.hasShared(at, size) {
		return
	}
	if kind == stores && r.isWeak() {
		if r.acting == t && !slices.Contains(r.event.Accesses, drainAccess(false)) {
			r.event.Accesses = append(r.event.Accesses, drainAccess(false))
		}
		return
	}
	if r.acting != t || pc != r.eventPC || t.call {
		if _, isPoint := r.sharing.points[pc]; isPoint && !r.sharing.grown {
			kind |= always
		}
		r.sharing.addPoint(pc, kind)
		return
	}
	r.addAccess(at, size, kind&stores != 0)
}

// takeKernelAccess takes an access of the kernel for a system call.
func (r *runner) takeKernelAccess(t *thread, e *memlog.Entry) {
	t.forget()
	if t.faulted && r.m.Kernel().Done() {
		return // a signal has ended the program
	}
	at, size := uint64(e.Addr), int(e.Branches)
	kind := loads
	if e.Kind == memlog.Kernel {
		kind = stores
	}
	if t.faulted {
		r.sharing.note(t.id, t.faultPC, at, size, kind|always)
	} else {
		r.sharing.note(t.id, r.eventPC, at, size, kind|call|always)
	}
	if !r.sharing.hasShared(at, size) {
		return
	}
	r.addAccess(at, size, kind == stores)
	if kind == stores && size <= futexWord {
		r.event.Accesses = append(r.event.Accesses, futexAccess(at)) // the end of a thread wakes the threads that wait for it
	}
}

// addAccess adds an access to the event that is being executed.
func (r *runner) addAccess(at uint64, size int, write bool) {
	a := dpor.Access{Start: at, End: at + uint64(size), Write: write}
	list := r.event.Accesses
	if n := len(list); n > 0 {
		last := &list[n-1]
		switch {
		case last.Start == a.Start && last.End == a.End:
			last.Write = last.Write || write
			return
		case last.Write == write && last.End == a.Start:
			last.End = a.End
			return
		}
	}
	r.event.Accesses = append(list, a)
}

// takeAtomics makes the instructions that wait for the thread's stores points.
func (r *runner) takeAtomics() {
	if !r.isWeak() {
		return
	}
	var a emu.Atomic
	for r.m.CPU().TakeAtomic(&a) {
		if r.running && r.m.CPU().OrderAt(a.PC)&(emu.OrderLocked|emu.OrderFull) != 0 {
			r.sharing.addPoint(a.PC, fence)
		}
	}
}
