package find

import (
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/sched/points"
)

// decisionPoints are the instructions before which threads can notice each other.
type decisionPoints struct {
	at    map[arch.Addr]accessKind
	stops []arch.Addr // the addresses of at, in ascending order
	// lines are the shared memory in units of lineSize, by address, and focuses one of the lines for
	// each set of instructions that access a line, in the order of addresses; ownFocuses are those of
	// them that instructions of the program's own file access.
	lines               map[uint64]*line
	focuses, ownFocuses []*line
	// operations are the numbers of accesses of each thread to all lines, and creators the threads by which
	// threads are created.
	operations map[arch.ThreadID]uint64
	creators   map[arch.ThreadID]arch.ThreadID
}

// line is shared memory: the instructions that access it, and how often each thread does.
type line struct {
	number     uint64
	at         map[arch.Addr]accessKind
	operations map[arch.ThreadID]uint64
	total      uint64
	weight     uint64 // in draws among lines
}

// lineOf returns the number of the line of a cell, whose number has the process in its upper bits.
func lineOf(cell uint64) uint64 { return cell / (lineSize / points.CellSize) }

// lineSize is the size, in bytes, of a line of a processor's cache: variables of one object are
// often in one.
const lineSize = 64

// accessKind says which accesses an instruction makes to memory that threads share.
type accessKind uint8

const (
	loads accessKind = 1 << iota
	stores
	locked
	calls // the instruction is a system call
)

// hasParts reports whether other threads can act between the accesses of the instruction.
func (k accessKind) hasParts() bool { return k == loads|stores }

// add adds the points of another run.
func (d *decisionPoints) add(more *decisionPoints) {
	addAccesses(d.at, more.at)
	for n, l := range more.lines {
		known := d.lines[n]
		if known == nil {
			known = &line{number: n, at: map[arch.Addr]accessKind{}}
			d.lines[n] = known
		}
		addAccesses(known.at, l.at)
		if known.total < l.total {
			known.operations, known.total = l.operations, l.total
		}
	}
	d.stops = slices.Sorted(maps.Keys(d.at))
	maps.Copy(d.creators, more.creators)
	d.operations = map[arch.ThreadID]uint64{}
	for _, l := range d.lines {
		for t, n := range l.operations {
			d.operations[t] += n
		}
	}
}

func addAccesses(to, more map[arch.Addr]accessKind) {
	for pc, kind := range more {
		to[pc] |= kind
	}
}

// chooseFocuses chooses the lines at which schedules decide alone, with weights: the number of threads besides one,
// four times as much if the program's own file makes all accesses, twice if it makes stores. isOwn
// reports whether an instruction is of this file.
func (d *decisionPoints) chooseFocuses(isOwn func(arch.Addr) bool) {
	d.focuses, d.ownFocuses = nil, nil
	seen := map[string]bool{}
	for _, n := range slices.Sorted(maps.Keys(d.lines)) {
		l := d.lines[n]
		if set := fmt.Sprint(slices.Sorted(maps.Keys(l.at))); !seen[set] {
			seen[set] = true
			own := 0
			for pc, kind := range l.at {
				if isOwn(pc) {
					own |= 1
					if kind&stores != 0 {
						own |= 2
					}
				} else {
					own |= 4
				}
			}
			l.weight = uint64(max(1, len(l.operations)-1))
			d.focuses = append(d.focuses, l)
			switch own {
			case 3: // all accesses are by the program's own file
				l.weight *= 4
			case 7:
				l.weight *= 2
			case 4:
				continue
			}
			d.ownFocuses = append(d.ownFocuses, l)
		}
	}
}

// sharing finds the memory that several threads access, one of them to write, and the instructions
// that access it: in a first execution of a schedule the pages, in a second one the cells of these
// pages.
//
// Two accesses count only if the thread of each existed at the time of the other: a thread that fills
// memory and then creates a thread that reads it has no other order.
// Threads of different processes share no memory here.
type sharing struct {
	births []birth
	ages   map[arch.ThreadID]uint32 // births of the list, for look-up only
	pages  map[uint64]*usedMemory
	cells  map[uint64]*usedCell // nil in the first execution
	calls  map[arch.Addr]bool
	// creators has, for each thread, the one that ran when it was first seen.
	creators map[arch.ThreadID]arch.ThreadID
	process  uint64 // of the thread that runs, in the bits above those of addresses
	thread   arch.ThreadID
	recent   [1 << 12]recentUse
	known    [1 << 10]knownPage
}

// knownPage is an answer of isInShared: one more than the number of a page, and whether it is shared.
type knownPage struct {
	page   uint64
	shared bool
}

type birth = arch.ThreadID

// recentUse is an access that has been noted, so that its repetitions need not be.
type recentUse struct {
	pc, part uint64
	thread   arch.ThreadID
	age      uint32
	store    bool
}

// usedMemory is the use of a page or cell by each thread that accessed it.
type usedMemory struct{ uses []use }

// use is the use of memory by a thread: one more than the number of threads that there had been at
// its last load and at its last store, 0 if there was none, and the number of accesses.
type use struct {
	thread              arch.ThreadID
	lastLoad, lastStore uint32
	accesses            uint64
}

// usedCell is a cell with the instructions that access it.
type usedCell struct {
	usedMemory
	by map[arch.Addr]accessKind
}

func newSharing() *sharing {
	return &sharing{ages: map[arch.ThreadID]uint32{}, pages: map[uint64]*usedMemory{}, calls: map[arch.Addr]bool{}, creators: map[arch.ThreadID]arch.ThreadID{}}
}

// beginSecond begins the second execution.
func (s *sharing) beginSecond() {
	maps.DeleteFunc(s.pages, func(_ uint64, m *usedMemory) bool { return !s.isShared(m) })
	s.cells = map[uint64]*usedCell{}
	s.births, s.ages = nil, map[arch.ThreadID]uint32{}
	s.recent = [len(s.recent)]recentUse{}
}

// noteThread notes a thread that exists.
func (s *sharing) noteThread(t arch.ThreadID) {
	if _, known := s.ages[t]; !known {
		s.births = append(s.births, t)
		s.ages[t] = uint32(len(s.births))
		if s.thread != 0 {
			s.creators[t] = s.thread
		}
	}
}

// isShared reports whether several threads use memory at times at which another order is possible.
func (s *sharing) isShared(m *usedMemory) bool {
	for i := range m.uses {
		for j := range m.uses {
			a, b := &m.uses[i], &m.uses[j]
			if i != j && a.lastStore > s.ages[b.thread] && max(b.lastLoad, b.lastStore) > s.ages[a.thread] {
				return true
			}
		}
	}
	return false
}

// note notes an access by the thread that runs, when a number of threads had been born.
func (m *usedMemory) note(t arch.ThreadID, age uint32, store bool) *use {
	i := slices.IndexFunc(m.uses, func(u use) bool { return u.thread == t })
	if i < 0 {
		i = len(m.uses)
		m.uses = append(m.uses, use{thread: t})
	}
	u := &m.uses[i]
	if store {
		u.lastStore = age + 1
	} else {
		u.lastLoad = age + 1
	}
	return u
}

// beginThread is called before the accesses of a thread are.
func (s *sharing) beginThread(t *kernel.Task) {
	s.thread, s.process = t.ID(), uint64(t.Process().PID())<<48
}

// take takes the log of the thread that runs.
func (s *sharing) take(entries []memlog.Entry) {
	for i := range entries {
		e := &entries[i]
		if e.Kind != memlog.Load && e.Kind != memlog.Store {
			continue
		}
		last := uint64(e.Addr) + uint64(max(1, e.Size)) - 1
		if s.cells == nil {
			for n := uint64(e.Addr) / arch.PageSize; n <= last/arch.PageSize; n++ {
				s.notePage(s.process|n, e.Kind == memlog.Store)
			}
			continue
		}
		for n := uint64(e.Addr) / points.CellSize; n <= last/points.CellSize; n++ {
			if s.isInShared(s.process | n/(arch.PageSize/points.CellSize)) {
				s.noteCell(s.process|n, e)
			}
		}
	}
}

// isInShared reports whether a page is shared.
func (s *sharing) isInShared(page uint64) bool {
	known := &s.known[page%uint64(len(s.known))]
	if known.page != page+1 {
		*known = knownPage{page + 1, s.pages[page] != nil}
	}
	return known.shared
}

func (s *sharing) notePage(n uint64, store bool) {
	age := uint32(len(s.births))
	recent := &s.recent[n%uint64(len(s.recent))]
	now := recentUse{part: n, thread: s.thread, age: age, store: store}
	if *recent == now {
		return
	}
	*recent = now
	m := s.pages[n]
	if m == nil {
		m = &usedMemory{}
		s.pages[n] = m
	}
	m.note(s.thread, age, store)
}

func (s *sharing) noteCell(n uint64, e *memlog.Entry) {
	m := s.cells[n]
	if m == nil {
		m = &usedCell{by: map[arch.Addr]accessKind{}}
		s.cells[n] = m
	}
	u := m.note(s.thread, uint32(len(s.births)), e.Kind == memlog.Store)
	kind := kindOf(e)
	if kind != loads|locked { // the store of the instruction follows
		u.accesses++
	}
	recent := &s.recent[(e.PC^n)%uint64(len(s.recent))]
	if now := (recentUse{pc: e.PC, part: n, store: kind&stores != 0}); *recent != now {
		*recent = now
		m.by[arch.Addr(e.PC)] |= kind
	}
}

// kindOf is the kind of an access.
func kindOf(e *memlog.Entry) accessKind {
	kind := loads
	if e.Kind == memlog.Store {
		kind = stores
	}
	if e.Flags&memlog.FlagAtomic != 0 {
		kind |= locked
	}
	return kind
}

// noteCall notes a system call that other threads may notice.
func (s *sharing) noteCall(at arch.Addr) { s.calls[at] = true }

// result returns the points after the second execution.
func (s *sharing) result() *decisionPoints {
	d := &decisionPoints{at: map[arch.Addr]accessKind{}, lines: map[uint64]*line{}, creators: s.creators}
	for n, m := range s.cells {
		if !s.isShared(&m.usedMemory) {
			continue
		}
		n = lineOf(n)
		l := d.lines[n]
		if l == nil {
			l = &line{number: n, at: map[arch.Addr]accessKind{}, operations: map[arch.ThreadID]uint64{}}
			d.lines[n] = l
		}
		addAccesses(l.at, m.by)
		addAccesses(d.at, m.by)
		for _, u := range m.uses {
			l.operations[u.thread] += u.accesses
			l.total += u.accesses
		}
	}
	for pc := range s.calls {
		d.at[pc] |= calls
	}
	return d
}
