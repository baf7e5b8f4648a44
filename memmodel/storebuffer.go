package memmodel

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// StoreBuffer keeps the stores of a machine's cores from when they are made until they are
// committed: written to the memory that all cores see. Package storebuffer has one for SC,
// where no store waits, and two for TSO and PSO.
//
// Around each turn of a thread on a core the machine calls
//
//	Decide or Follow, Switch    before the turn
//	Begin ... End               while the thread runs
//	Drain, DrainAll             where the architecture drains buffers
//
// Its state is plain data but for the engine's part, which Save makes part of it.
type StoreBuffer interface {
	// Decide commits the stores that are due before a turn of core, whose clock is now, and
	// appends its decisions to list.
	Decide(core arch.CoreID, now arch.Cycles, list []event.Commit) []event.Commit
	// Follow makes the commits of a recorded run instead. If one is impossible it returns
	// why; otherwise problem is empty.
	Follow(commits []event.Commit) (problem string)
	// Switch commits the stores that cannot wait any longer because thread t is about to run
	// on core: those of other threads there, and those of t elsewhere.
	Switch(core arch.CoreID, t arch.ThreadID)
	// Begin makes the loaded thread t see memory as core does, and its stores wait.
	Begin(core arch.CoreID, t arch.ThreadID)
	// End takes the stores that wait out of memory after the thread has run.
	End(core arch.CoreID, t arch.ThreadID)
	// Drain commits the stores of a core, DrainAll those of all cores.
	Drain(core arch.CoreID)
	DrainAll()
	// IsEmpty reports whether it is known that no store waits.
	IsEmpty() bool
	// Save makes the stores that the engine keeps part of the state, for a copy of it, and
	// Forget removes them from the state again. Load gives the stores of a copy back to the
	// engine; space is the address space of a thread.
	Save()
	Forget()
	Load(space func(arch.ThreadID) *mem.Space)
}
