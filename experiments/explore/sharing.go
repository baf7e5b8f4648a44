package explore

import (
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// accessKind says what an instruction does to memory that threads share.
type accessKind uint8

const (
	loads accessKind = 1 << iota
	stores
	locked
	call   // a system call
	fence  // waits until the thread's stores are committed
	always // an event whatever its operands: they do not name all of its accesses
)

// cellSize is the number of bytes that are shared or not as a whole. Conflicts are by bytes.
const cellSize = 8

// sharing finds the memory that several threads use and the instructions that access it. What it has found
// it keeps from one execution to the next; the order of creations is that of an execution.
type sharing struct {
	// shared are the cells that threads share, points the instructions that access them, or have another
	// effect on other threads.
	shared  map[uint64]bool
	points  map[arch.Addr]accessKind
	version int // of the points
	// changes counts the changes of what is kept.
	changes uint64
	// grown: something was added of which this execution may have missed events.
	grown bool

	pages  map[uint64]*usedPage
	recent [256]recentPage
	cells  map[uint64]*usedCell
	run    uint32 // the number of the execution, or of the executions that continue from one of its states
	// journal are the changes of uses in the execution.
	journal []changedUse
	births  map[arch.ThreadID]birth
	born    map[arch.ThreadID]uint32 // the number of threads that a thread has created
}

// usedPage is a page that one thread has used, or several.
type usedPage struct {
	owner   arch.ThreadID
	several bool
}

// recentPage is an answer of pageAt.
type recentPage struct {
	number uint64
	page   *usedPage
}

// birth is how a thread was created: by which thread, and which of its creations that was, from 1 on.
type birth struct {
	parent arch.ThreadID
	number uint32
}

// usedCell is how threads use a cell.
type usedCell struct {
	run  uint32 // the execution in which uses are
	uses []use
	at   []instruction
}

type instruction struct {
	pc   arch.Addr
	kind accessKind
}

// use is how a thread uses a cell: for its last load and its last store the number of threads that it had
// created before, plus 1; 0: it has made no such access.
type use struct {
	thread      arch.ThreadID
	load, store uint32
}

func newSharing() *sharing {
	return &sharing{
		shared: map[uint64]bool{}, points: map[arch.Addr]accessKind{}, pages: map[uint64]*usedPage{},
		cells: map[uint64]*usedCell{}, births: map[arch.ThreadID]birth{}, born: map[arch.ThreadID]uint32{},
	}
}

// clone copies what is kept.
func (s *sharing) clone() *sharing {
	n := newSharing()
	maps.Copy(n.shared, s.shared)
	maps.Copy(n.points, s.points)
	n.version, n.changes = s.version, s.changes
	for number, p := range s.pages {
		n.pages[number] = &usedPage{p.owner, p.several}
	}
	for number, c := range s.cells {
		n.cells[number] = &usedCell{at: slices.Clone(c.at)}
	}
	return n
}

// begin begins an execution.
func (s *sharing) begin() {
	s.run++
	s.grown, s.journal = false, s.journal[:0]
	clear(s.births)
	clear(s.born)
}

// noteBirth notes that a thread has created another one.
func (s *sharing) noteBirth(parent, child arch.ThreadID) {
	s.born[parent]++
	s.births[child] = birth{parent, s.born[parent]}
}

// createdBy returns the number of the creation by which a thread descends from another one; 0: it does not.
func (s *sharing) createdBy(ancestor, t arch.ThreadID) uint32 {
	for {
		b, known := s.births[t]
		switch {
		case !known:
			return 0
		case b.parent == ancestor:
			return b.number
		}
		t = b.parent
	}
}

// addPoint makes an instruction one before which runs stop.
func (s *sharing) addPoint(pc arch.Addr, kind accessKind) {
	if s.points[pc]|kind != s.points[pc] {
		s.points[pc] |= kind
		s.version++
		s.changes++
		s.grown = true
	}
}

// share makes memory shared, and an instruction that accesses it a point.
func (s *sharing) share(at uint64, size int, pc arch.Addr, kind accessKind) {
	last := at + uint64(max(1, size)) - 1
	for n := at / cellSize; n <= last/cellSize; n++ {
		if !s.shared[n] {
			s.shared[n] = true
			s.changes++
			s.grown = true
		}
		if c := s.cells[n]; c != nil {
			for _, x := range c.at {
				s.addPoint(x.pc, x.kind)
			}
		}
	}
	s.addPoint(pc, kind)
}

// isOwn reports whether a thread alone has used the page of an address.
func (s *sharing) isOwn(t arch.ThreadID, at uint64) bool {
	p := s.pages[at/arch.PageSize]
	return p == nil || !p.several && p.owner == t
}

// note notes an access of size bytes.
func (s *sharing) note(t arch.ThreadID, pc arch.Addr, at uint64, size int, kind accessKind) {
	last := at + uint64(max(1, size)) - 1
	for n := at / cellSize; n <= last/cellSize; n++ {
		if s.isUsedBySeveral(t, n/(arch.PageSize/cellSize)) {
			s.noteCell(n, t, pc, kind)
		}
	}
}

// isUsedBySeveral notes a use of a page and reports whether several threads use it.
func (s *sharing) isUsedBySeveral(t arch.ThreadID, number uint64) bool {
	r := &s.recent[number%uint64(len(s.recent))]
	if r.page == nil || r.number != number {
		p := s.pages[number]
		if p == nil {
			p = &usedPage{owner: t}
			s.pages[number] = p
			s.changes++
		}
		*r = recentPage{number, p}
	}
	if p := r.page; !p.several && p.owner != t {
		p.several = true
		s.changes++
		s.grown = true // the uses so far are not known
	}
	return r.page.several
}

func (s *sharing) noteCell(n uint64, t arch.ThreadID, pc arch.Addr, kind accessKind) {
	c := s.cells[n]
	if c == nil {
		c = &usedCell{}
		s.cells[n] = c
		s.changes++
	}
	if c.run != s.run {
		c.run, c.uses = s.run, c.uses[:0]
	}
	i := slices.IndexFunc(c.at, func(x instruction) bool { return x.pc == pc })
	if i < 0 {
		i = len(c.at)
		c.at = append(c.at, instruction{pc: pc})
	}
	if c.at[i].kind|kind != c.at[i].kind {
		c.at[i].kind |= kind
		s.changes++
	}
	s.noteUse(c, t, s.born[t]+1, kind)
	if !s.shared[n] {
		if !s.isShared(c) {
			return
		}
		s.shared[n] = true
		s.changes++
		s.grown = true
	}
	for _, x := range c.at {
		s.addPoint(x.pc, x.kind)
	}
}

func (s *sharing) noteUse(c *usedCell, t arch.ThreadID, age uint32, kind accessKind) {
	i := slices.IndexFunc(c.uses, func(u use) bool { return u.thread == t })
	none := i < 0
	if none {
		i = len(c.uses)
		c.uses = append(c.uses, use{thread: t})
	}
	now := c.uses[i]
	if kind&loads != 0 {
		now.load = age
	}
	if kind&stores != 0 {
		now.store = age
	}
	if none || now != c.uses[i] {
		s.journal = append(s.journal, changedUse{c, i, c.uses[i], none})
		c.uses[i] = now
	}
}

// isShared reports whether two threads use a cell, one of them to write, in an order that is not that of
// the creation of threads.
func (s *sharing) isShared(c *usedCell) bool {
	for i := range c.uses {
		a := &c.uses[i]
		for j := range c.uses {
			if b := &c.uses[j]; i != j && a.store > 0 && s.isConcurrent(a, a.store, b, max(b.load, b.store)) {
				return true
			}
		}
	}
	return false
}

// isConcurrent reports whether accesses of two threads, when these had created some threads less 1, are
// not ordered by the creation of threads.
func (s *sharing) isConcurrent(a *use, aAge uint32, b *use, bAge uint32) bool {
	if n := s.createdBy(a.thread, b.thread); n > 0 {
		return aAge > n
	}
	if n := s.createdBy(b.thread, a.thread); n > 0 {
		return bAge > n
	}
	return true
}

// hasShared reports whether an access touches memory that threads share.
func (s *sharing) hasShared(at uint64, size int) bool {
	last := at + uint64(max(1, size)) - 1
	for n := at / cellSize; n <= last/cellSize; n++ {
		if s.shared[n] {
			return true
		}
	}
	return false
}

// isUsedByOthers reports whether other threads have used pages of a range.
func (s *sharing) isUsedByOthers(t arch.ThreadID, at, size uint64) bool {
	first, last := at/arch.PageSize, (at+size-1)/arch.PageSize
	if size == 0 || last < first {
		return false
	}
	if last-first > uint64(len(s.pages)) {
		for n, p := range s.pages {
			if n >= first && n <= last && (p.several || p.owner != t) {
				return true
			}
		}
		return false
	}
	for n := first; n <= last; n++ {
		if p := s.pages[n]; p != nil && (p.several || p.owner != t) {
			return true
		}
	}
	return false
}
