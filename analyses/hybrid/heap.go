package hybrid

import (
	"math"
	"sort"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Allocation is the call of an allocator, malloc and its kin, or its return.
type Allocation struct {
	// Seq is the event's number, and Thread the schedule's number of its thread.
	Seq    uint64
	Thread int
	Begins bool
	// Number is which call of the run it is, from 1.
	Number int
	// Addr is the block that a call returned, and Size how long it is.
	Addr arch.Addr
	Size uint64
}

// IgnoreAllocations takes the calls of allocators, in the order of the run. Their accesses to their
// own memory are then ignored, since allocators order those themselves and the addresses of blocks
// matter to no one (PEREGRINE section 2.3), and a block that is handed out has no earlier accesses.
func (m *ConstraintFinder) IgnoreAllocations(calls []Allocation) {
	m.heap = calls
	m.allocate = allocations{calling: map[int]bool{}, pages: map[virtualPage]uint64{}, active: len(calls) > 0}
}

// WatchAllocations takes the calls of allocators, in the order of the run: RacingAllocations has
// those of them that are to become operations.
func (m *ConstraintFinder) WatchAllocations(calls []Allocation) {
	m.heap, m.racing = calls, map[int]bool{}
}

// RacingAllocations are the calls of allocators, by their numbers, in which there are accesses that
// the order of operations leaves unordered.
func (m *ConstraintFinder) RacingAllocations() map[int]bool { return m.racing }

// allocationCall is when a thread was in an allocator, by Maker.at.
type allocationCall struct {
	number      int
	first, last uint64
}

// noteAllocationCall takes a call of an allocator, or its return.
func (m *ConstraintFinder) noteAllocationCall(h *Allocation) {
	if h.Thread < 0 {
		return
	}
	t := m.threads[h.Thread]
	if n := len(t.calls); n > 0 && !h.Begins {
		t.calls[n-1].last = m.place
	} else if h.Begins {
		t.calls = append(t.calls, allocationCall{h.Number, m.place + 1, math.MaxUint64})
	}
}

// noteRacingCall notes the call of an allocator that a race is in.
func (m *ConstraintFinder) noteRacingCall(i *races.Instance) {
	if m.racing == nil || i.PC == 0 {
		return
	}
	calls := m.threads[i.Thread].calls
	n := sort.Search(len(calls), func(n int) bool { return calls[n].first > i.At }) - 1
	if n >= 0 && i.At <= calls[n].last {
		m.racing[calls[n].number] = true
	}
}

// allocations are facts about allocators.
type allocations struct {
	active  bool
	calling map[int]bool // threads that are in one
	// pages are the numbers of the accessed pages by their addresses; last is the latest one.
	pages map[virtualPage]uint64
	last  virtualPage
	page  uint64
}

type virtualPage struct {
	process int
	number  uint64
}

// isAllocating reports whether a thread is in an allocator.
func (a *allocations) isAllocating(thread int) bool { return a.active && a.calling[thread] }

// notePage notes which page is at an address.
func (a *allocations) notePage(process int, e *event.Memory) {
	if !a.active {
		return
	}
	if k := (virtualPage{process, uint64(e.Addr) >> pageShift}); k != a.last || e.Page != a.page {
		a.last, a.page = k, e.Page
		a.pages[k] = e.Page
	}
}

// applyAllocation takes a call of an allocator, or its return.
func (m *ConstraintFinder) applyAllocation(h *Allocation) {
	if m.racing != nil {
		m.noteAllocationCall(h)
		return
	}
	if h.Thread < 0 {
		return
	}
	m.allocate.calling[h.Thread] = h.Begins
	if h.Begins || h.Addr == 0 {
		return
	}
	process := m.threads[h.Thread].process
	for at, end := uint64(h.Addr), uint64(h.Addr)+h.Size; at < end; {
		next := min(end, at&^(pageSize-1)+pageSize)
		if page, known := m.allocate.pages[virtualPage{process, at >> pageShift}]; known {
			m.detector.Forget(page<<pageShift|at%pageSize, page<<pageShift|at%pageSize+next-at)
		}
		at = next
	}
}
