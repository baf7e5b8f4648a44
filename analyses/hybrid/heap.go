package hybrid

import "github.com/heddle-dmt/heddle/recorder/event"

// Allocation is the call of an allocator, malloc and its kin, or its return.
type Allocation struct {
	// Seq is the event's number, and Thread the schedule's number of its thread.
	Seq    uint64
	Thread int
	Begins bool
	// Addr is the block that a call returned, and Size how long it is.
	Addr event.Addr
	Size uint64
}

// Allocations tells of the calls of allocators, in the order of the run: what they do to
// memory of their own then counts for nothing, since they order that themselves and
// where memory is allocated matters to nobody (PEREGRINE section 2.3), and a block
// that is handed out has no past.
func (m *Maker) Allocations(calls []Allocation) {
	m.heap = calls
	m.allocate = allocations{calling: map[int]bool{}, pages: map[virtualPage]uint64{}, active: len(calls) > 0}
}

// allocations are what is known of allocators.
type allocations struct {
	active  bool
	calling map[int]bool // threads that are in one
	// pages are the numbers of pages by their addresses, of those that were accessed;
	// last is the latest one.
	pages map[virtualPage]uint64
	last  virtualPage
	page  uint64
}

type virtualPage struct {
	process int
	number  uint64
}

// within tells whether a thread is in an allocator.
func (a *allocations) within(thread int) bool { return a.active && a.calling[thread] }

// seen notes which page is at an address.
func (a *allocations) seen(process int, e *event.Memory) {
	if !a.active {
		return
	}
	if k := (virtualPage{process, uint64(e.Addr) >> pageShift}); k != a.last || e.Page != a.page {
		a.last, a.page = k, e.Page
		a.pages[k] = e.Page
	}
}

// allocated takes a call of an allocator, or its return.
func (m *Maker) allocated(h *Allocation) {
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
