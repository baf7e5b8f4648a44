package pathsearch

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
)

// cellSize is the number of bytes of a cell: memory is shared cell by cell.
const cellSize = 8

// sharing finds the memory that several threads access, one of them to write, at times at which another order
// is possible: each existed when the other accessed the memory.
type sharing struct {
	cells map[uint64]*cell
	// born is, of each thread by its number in the problem, how many threads there were when it was
	// first seen, itself included; 0: it was not seen yet.
	born    []int
	threads int
	// at are the instructions that access shared memory, and the system calls.
	at map[arch.Addr]bool
}

// cell is the use of a cell by each thread that accessed it, and the instructions that did.
type cell struct {
	uses   []use
	shared bool
	by     map[arch.Addr]bool // nil once shared
}

// use is, of the last load and the last store of a thread, one more than how many threads there were; 0:
// none.
type use struct{ thread, load, store int }

func newSharing(routes int) *sharing {
	return &sharing{cells: map[uint64]*cell{}, born: make([]int, routes), at: map[arch.Addr]bool{}}
}

// see notes that a thread exists.
func (s *sharing) see(thread int) {
	if s.born[thread] == 0 {
		s.threads++
		s.born[thread] = s.threads
	}
}

// note notes an access. It reports whether the cell is shared.
func (s *sharing) note(thread int, n uint64, pc arch.Addr, store bool) bool {
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
	var u *use
	for i := range c.uses {
		if c.uses[i].thread == thread {
			u = &c.uses[i]
		}
	}
	if u == nil {
		c.uses = append(c.uses, use{thread: thread})
		u = &c.uses[len(c.uses)-1]
	}
	if store {
		u.store = s.threads + 1
	} else {
		u.load = s.threads + 1
	}
	if !s.isShared(c) {
		return false
	}
	for pc := range c.by {
		s.at[pc] = true
	}
	c.shared, c.by, c.uses = true, nil, nil
	return true
}

func (s *sharing) isShared(c *cell) bool {
	for i := range c.uses {
		for j := range c.uses {
			a, b := &c.uses[i], &c.uses[j]
			if i != j && a.store > s.born[b.thread] && max(b.load, b.store) > s.born[a.thread] {
				return true
			}
		}
	}
	return false
}

// cellsOf are the first and the last cell of an access.
func cellsOf(e *memlog.Entry) (first, last uint64) {
	return uint64(e.Addr) / cellSize, (uint64(e.Addr) + uint64(max(1, e.Size)) - 1) / cellSize
}
