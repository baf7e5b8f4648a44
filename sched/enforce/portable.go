package enforce

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// Schedules for other inputs (event.Schedule.Portable) are enforced differently: threads reach the
// instructions of constraints after other numbers of instructions than the recorded ones, so the
// arrivals at each instruction are counted.

// addresses returns the addresses of the instructions of a portable schedule's constraints.
func (e *Enforcer) addresses() []arch.Addr {
	var all []arch.Addr
	for _, list := range e.plan.actions {
		for i := range list {
			if pc, _ := e.plan.instructionOf(&list[i]); pc != 0 {
				all = append(all, pc)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// arrivals counts a thread's arrivals at instructions of constraints since its last operation.
type arrivals struct {
	counts map[arch.Addr]uint64
	// last is the instruction of the last arrival, and after the thread's instructions then, plus
	// one.
	last  arch.Addr
	after uint64
	// crossing reports that the thread executes the instruction there, which is the first of a
	// constraint.
	crossing bool
}

// countArrival handles a thread that is at an instruction of constraints.
func (e *Enforcer) countArrival(g *sched.Gate, n int, v *sched.SyncPoint) bool {
	t := &e.threads[n]
	at := &t.arrivals
	if at.crossing {
		return true // AtInstruction follows when it has been executed
	}
	switch again := at.last == v.PC && at.after > 0; {
	case again && at.after == v.Instructions+1:
		// It was held here, or its quantum ended here.
	case again && at.after == v.Instructions:
		at.after++ // a repeated instruction continues
	default:
		if at.counts == nil {
			at.counts = map[arch.Addr]uint64{}
		}
		at.counts[v.PC]++
		at.last, at.after = v.PC, v.Instructions+1
	}
	return e.performActions(g, n, v)
}

// performActions carries out the actions that a thread has where it is.
func (e *Enforcer) performActions(g *sched.Gate, n int, v *sched.SyncPoint) bool {
	t := &e.threads[n]
	for {
		a := e.plan.actionOf(n, t.actions)
		if a == nil || int(a.done) != t.done || !e.isAtAction(a, v.PC, t) {
			return true
		}
		if a.kind == post {
			t.arrivals.crossing = true
			g.Cut()
			return true
		}
		if !e.awaitConstraint(g, n, a) {
			return false
		}
		if next := e.plan.actionOf(n, t.actions); next != nil && int(next.done) == t.done {
			if pc, _ := e.plan.instructionOf(next); pc == 0 {
				g.Cut() // so that the quantum ends at that action
			}
		}
	}
}

// isAtAction reports whether this arrival of a thread is the one that an action names.
func (e *Enforcer) isAtAction(a *action, pc arch.Addr, t *threadProgress) bool {
	of, occurrence := e.plan.instructionOf(a)
	return of == pc && occurrence == t.arrivals.counts[pc]
}

// completeCrossing handles a thread that has executed an instruction of a constraint, or a
// round of it.
func (e *Enforcer) completeCrossing(g *sched.Gate, n int, v *sched.SyncPoint) {
	t := &e.threads[n]
	if v.PC == t.arrivals.last {
		t.arrivals.after++
		return
	}
	t.arrivals.crossing = false
	for {
		a := e.plan.actionOf(n, t.actions)
		if a == nil || a.kind != post || int(a.done) != t.done || !e.isAtAction(a, t.arrivals.last, t) {
			return
		}
		e.chargeInstrumentation(g, n)
		t.actions++
		e.postConstraint(g, int(a.of))
	}
}

// remainingPortable is StopDistance for a schedule for other inputs: instructions of constraints are
// found by AtAddress, and where a thread ended by its number of instructions.
func (e *Enforcer) remainingPortable(n int, done uint64) uint64 {
	t := &e.threads[n]
	if t.arrivals.crossing {
		return t.arrivals.after - min(t.arrivals.after, done)
	}
	a := e.plan.actionOf(n, t.actions)
	if a == nil || int(a.done) != t.done {
		return anyNumber
	}
	if pc, _ := e.plan.instructionOf(a); pc != 0 {
		return anyNumber
	}
	return t.base + a.at - min(t.base+a.at, done)
}

// MovesData reports whether a system call only moves data, or asks how much there is, by the
// descriptor that is its first argument.
func MovesData(number uint64) bool { return linux.Has(number, linux.MovesData) }

// hasNoPosition reports whether a system call that has a position in other schedules has no
// position in this one.
func (p *Plan) hasNoPosition(c *event.Syscall) bool {
	return p.s.Portable && MovesData(c.Number) && slices.Contains(p.s.Free, int64(int32(c.Args[0])))
}

// noteAllocator notes that a thread enters a function of an allocator, or leaves it.
func (e *Enforcer) noteAllocator(id arch.ThreadID, inside bool) {
	if n, ok := e.numberOf(id); ok {
		e.threads[n].heap = inside
	}
}

// relocateWrites returns the recorded writes of a system call at the address that the call names in
// this run.
func (e *Enforcer) relocateWrites(o *event.Operation, to []uint64) []event.Write {
	argument := outputArgument(o.Number)
	if !e.plan.s.Portable || argument < 0 || len(o.Writes) == 0 || len(to) <= argument {
		return o.Writes
	}
	writes := slices.Clone(o.Writes)
	for i := range writes {
		writes[i].Addr += arch.Addr(to[argument]) - o.Writes[0].Addr
	}
	return writes
}

// outputArgument is the index of the argument that says where a system call writes; -1: none does.
func outputArgument(number uint64) int {
	if c := linux.Lookup(number); c != nil {
		return c.Output()
	}
	return -1
}
