package sched

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// What the enforcement of a schedule for other inputs does otherwise
// (event.Schedule.Portable). Threads come to the instructions of constraints after
// other numbers of instructions than the recorded ones; which time they are there
// is counted.

// Arriver is a Controller that is asked about threads wherever they come to certain
// instructions: AtAddress.
type Arriver interface {
	// Addresses are those of the instructions; none: it is not asked.
	Addresses() []event.Addr
}

// Addresses implements Arriver.
func (e *Enforcer) Addresses() []event.Addr {
	if !e.plan.s.Portable {
		return nil
	}
	var all []event.Addr
	for _, list := range e.plan.actions {
		for i := range list {
			if pc, _ := e.plan.instruction(&list[i]); pc != 0 {
				all = append(all, pc)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// arrivals is what is known of a thread's arrivals since its last operation.
type arrivals struct {
	counts map[event.Addr]uint64
	// last is where it came to last, after so many instructions.
	last  event.Addr
	after uint64
	// crossing tells that it executes the instruction there, which is the first of a
	// constraint.
	crossing bool
}

// arrived handles a thread that is at an instruction of constraints.
func (e *Enforcer) arrived(g *Gate, n int, v *Visit) bool {
	t := &e.threads[n]
	at := &t.arrivals
	if at.crossing {
		return true // AtInstruction tells when it is behind
	}
	switch again := at.last == v.PC && at.after > 0; {
	case again && at.after == v.Instructions+1:
		// It was held here, or its slice ended here.
	case again && at.after == v.Instructions:
		at.after++ // a repeated instruction goes on
	default:
		if at.counts == nil {
			at.counts = map[event.Addr]uint64{}
		}
		at.counts[v.PC]++
		at.last, at.after = v.PC, v.Instructions+1
	}
	return e.act(g, n, v)
}

// act carries out the actions that a thread has where it is.
func (e *Enforcer) act(g *Gate, n int, v *Visit) bool {
	t := &e.threads[n]
	for {
		a := e.plan.action(n, t.actions)
		if a == nil || int(a.done) != t.done || !e.isAt(a, v.PC, t) {
			return true
		}
		if a.kind == post {
			t.arrivals.crossing = true
			g.Cut()
			return true
		}
		if !e.await(g, n, a) {
			return false
		}
		if next := e.plan.action(n, t.actions); next != nil && int(next.done) == t.done {
			if pc, _ := e.plan.instruction(next); pc == 0 {
				g.Cut() // so that the slice ends where that is
			}
		}
	}
}

// isAt tells whether an action of a thread is where it has come to, this time.
func (e *Enforcer) isAt(a *action, pc event.Addr, t *follower) bool {
	of, occurrence := e.plan.instruction(a)
	return of == pc && occurrence == t.arrivals.counts[pc]
}

// crossed handles a thread that has executed an instruction of a constraint, or a
// round of it.
func (e *Enforcer) crossed(g *Gate, n int, v *Visit) {
	t := &e.threads[n]
	if v.PC == t.arrivals.last {
		t.arrivals.after++
		return
	}
	t.arrivals.crossing = false
	for {
		a := e.plan.action(n, t.actions)
		if a == nil || a.kind != post || int(a.done) != t.done || !e.isAt(a, t.arrivals.last, t) {
			return
		}
		e.charge(g, n)
		t.actions++
		e.post(g, int(a.of))
	}
}

// leftOther is Left for a schedule for other inputs: instructions of constraints are
// found by AtAddress, and where a thread ended by its number of instructions.
func (e *Enforcer) leftOther(n int, done uint64) uint64 {
	t := &e.threads[n]
	if t.arrivals.crossing {
		return t.arrivals.after - min(t.arrivals.after, done)
	}
	a := e.plan.action(n, t.actions)
	if a == nil || int(a.done) != t.done {
		return anyNumber
	}
	if pc, _ := e.plan.instruction(a); pc != 0 {
		return anyNumber
	}
	return t.base + a.at - min(t.base+a.at, done)
}

// Moves tells which system calls only move data, or ask how much there is, by the
// descriptor that is their first argument.
func Moves(number uint64) bool {
	switch number {
	case unix.SYS_READ, unix.SYS_WRITE, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_READV, unix.SYS_WRITEV,
		unix.SYS_PREADV, unix.SYS_PWRITEV, unix.SYS_PREADV2, unix.SYS_PWRITEV2, unix.SYS_LSEEK, unix.SYS_FSTAT, unix.SYS_FADVISE64:
		return true
	}
	return false
}

// free tells whether a system call that has a position in other schedules has none
// in this one.
func (p *Plan) free(c *event.Syscall) bool {
	return p.s.Portable && Moves(c.Number) && slices.Contains(p.s.Free, int64(int32(c.Args[0])))
}

// CountsHeap implements HeapController: portable schedules that leave out what allocators do have
// to know of it.
func (e *Enforcer) CountsHeap() bool { return e.plan.s.Portable && e.plan.s.Allocators }

// Allocates implements HeapController.
func (e *Enforcer) Allocates(id event.ThreadID, _ uint64, inside bool) {
	if n, ok := e.find(id); ok && e.CountsHeap() {
		e.threads[n].heap = inside
	}
}

// buffers is the argument that says where a system call writes that tells the time or
// random numbers.
var buffers = map[uint64]int{
	unix.SYS_READ: 1, unix.SYS_CLOCK_GETTIME: 1, unix.SYS_GETTIMEOFDAY: 0, unix.SYS_TIME: 0, unix.SYS_TIMES: 0, unix.SYS_GETRANDOM: 0,
}

// moved is what an answered call writes, at the place that it names in this run.
func (e *Enforcer) moved(o *event.Operation, to []uint64) []event.Write {
	argument, known := buffers[o.Number]
	if !e.plan.s.Portable || !known || len(o.Writes) == 0 || len(to) <= argument {
		return o.Writes
	}
	writes := slices.Clone(o.Writes)
	for i := range writes {
		writes[i].Addr += event.Addr(to[argument]) - o.Writes[0].Addr
	}
	return writes
}
