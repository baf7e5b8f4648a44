// Package sharing finds out which memory is shared: used by several threads, one of them to write, at times
// at which another order is possible.
//
// Two uses count only if the thread of each existed at the time of the other: memory that a thread fills before it
// creates the thread that reads it has no other order. A thread may carry fibers, as those of Go's run-time
// system carry goroutines: then fibers take the place of threads.
package sharing

import "github.com/heddle-dmt/heddle/emu/arch"

// CellSize is the number of bytes of a cell: memory is shared cell by cell.
const CellSize = 8

// Agent is what uses memory: a thread, or a fiber that it carries, and each in a handler of a signal or not. Numbers of
// fibers are from 1 on.
type Agent struct {
	Thread  arch.ThreadID
	Fiber   uint32 // 0: the thread itself
	Handler bool
}

// isOther reports whether an agent's operations may have another order than those of an agent: two fibers of a thread
// are different agents, and so are a thread and its handlers; a fiber is the same one on all threads.
func (a Agent) isOther(than Agent) bool {
	if a.Handler != than.Handler {
		return true
	}
	if a.Fiber != 0 && than.Fiber != 0 {
		return a.Fiber != than.Fiber
	}
	return a.Thread != than.Thread
}

// Births is the order in which threads and fibers came to be.
type Births struct {
	ages  map[Agent]uint32 // how many there were with it
	count uint32
}

// NewBirths has no threads.
func NewBirths() *Births { return &Births{ages: map[Agent]uint32{}} }

// NoteThread notes that a thread exists. It reports whether it is new.
func (b *Births) NoteThread(t arch.ThreadID) bool { return b.note(Agent{Thread: t}) }

// NoteFiber notes that a fiber exists.
func (b *Births) NoteFiber(fiber uint32) { b.note(Agent{Fiber: fiber}) }

func (b *Births) note(a Agent) bool {
	if b.ages[a] != 0 {
		return false
	}
	b.count++
	b.ages[a] = b.count
	return true
}

// Count is the number of threads and fibers so far.
func (b *Births) Count() uint32 { return b.count }

// Identity is the agent without the thread that carries it, if it is a fiber.
func (a Agent) Identity() Agent {
	if a.Fiber != 0 {
		a.Thread = 0
	}
	return a
}

// age is how many threads and fibers there were when an agent came to be, itself included.
func (b *Births) age(a Agent) uint32 {
	a.Handler = false
	return b.ages[a.Identity()]
}

// Uses are the uses of a piece of memory, one for each agent.
type Uses []Use

// Use is the use of memory by an agent: one more than the number of births before its last load and its last
// store, or 0. Accesses are counted by the caller.
type Use struct {
	Agent
	lastLoad, lastStore uint32
	Accesses            uint64
}

// Note notes an access. The use that it returns is valid up to the next call.
func (u *Uses) Note(a Agent, b *Births, store bool) *Use {
	var x *Use
	for i := range *u {
		if (*u)[i].Agent == a {
			x = &(*u)[i]
		}
	}
	if x == nil {
		*u = append(*u, Use{Agent: a})
		x = &(*u)[len(*u)-1]
	}
	if store {
		x.lastStore = b.count + 1
	} else {
		x.lastLoad = b.count + 1
	}
	return x
}

// AreShared reports whether the memory is shared.
func (u Uses) AreShared(births *Births) bool {
	for i := range u {
		a := &u[i]
		if a.lastStore == 0 {
			continue
		}
		for j := range u {
			b := &u[j]
			if a.isOther(b.Agent) && a.lastStore > births.age(b.Agent) && max(b.lastLoad, b.lastStore) > births.age(a.Agent) {
				return true
			}
		}
	}
	return false
}
