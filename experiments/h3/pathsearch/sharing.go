package pathsearch

import (
	"github.com/heddle-dmt/heddle/analyses/sharing"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
)

// sharedCells finds the memory that several threads access, one of them to write, at times at which another order
// is possible (package sharing).
type sharedCells struct {
	cells  map[uint64]*cell
	births *sharing.Births
	// at are the instructions that access shared memory, and the system calls.
	at map[arch.Addr]bool
}

// cell is the use of a cell by each thread that accessed it, and the instructions that did.
type cell struct {
	uses   sharing.Uses
	shared bool
	by     map[arch.Addr]bool // nil once shared
}

func newSharedCells() *sharedCells {
	return &sharedCells{cells: map[uint64]*cell{}, births: sharing.NewBirths(), at: map[arch.Addr]bool{}}
}

// note notes an access. It reports whether the cell is shared.
func (s *sharedCells) note(thread arch.ThreadID, n uint64, pc arch.Addr, store bool) bool {
	c := s.cells[n]
	if c == nil {
		c = &cell{by: map[arch.Addr]bool{}}
		s.cells[n] = c
	}
	if c.shared {
		s.at[pc] = true
		return true
	}
	c.by[pc] = true
	c.uses.Note(sharing.Agent{Thread: thread}, s.births, store)
	if !c.uses.AreShared(s.births) {
		return false
	}
	for pc := range c.by {
		s.at[pc] = true
	}
	c.shared, c.by, c.uses = true, nil, nil
	return true
}

// cellsOf are the first and the last cell of an access.
func cellsOf(e *memlog.Entry) (first, last uint64) {
	return uint64(e.Addr) / sharing.CellSize, (uint64(e.Addr) + uint64(max(1, e.Size)) - 1) / sharing.CellSize
}
