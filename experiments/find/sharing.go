package find

import (
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/sharing"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/guest/kernel"
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
	agents     int    // threads, or goroutines, that use it
	weight     uint64 // in draws among lines
}

// lineOf returns the number of the line of a cell, whose number has the process in its upper bits.
func lineOf(cell uint64) uint64 { return cell / (lineSize / sharing.CellSize) }

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
		known.agents = max(known.agents, l.agents)
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

// chooseFocuses chooses the lines at which schedules decide alone, with weights: the number of threads or goroutines besides one,
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
			l.weight = uint64(max(1, l.agents-1))
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

// profile finds the memory that several threads access, one of them to write, and the instructions
// that access it: in a first execution of a schedule the pages, in a second one the cells of these
// pages. Which uses of memory are shared package sharing says; threads of different processes share no memory
// here, and goroutines are fibers of the threads that carry them.
type profile struct {
	births *sharing.Births
	pages  map[uint64]*sharing.Uses
	cells  map[uint64]*usedCell // nil in the first execution
	calls  map[arch.Addr]bool
	// ignored cells are no points.
	ignored map[uint64]bool
	// creators has, for each thread, the one that ran when it was first seen.
	creators map[arch.ThreadID]arch.ThreadID
	process  uint64 // of the thread that runs, in the bits above those of addresses
	thread   arch.ThreadID
	fiber    uint32                  // that the thread carries, or 0
	handler  bool                    // the thread is in a handler of a signal
	ofFiber  func(pc arch.Addr) bool // reports whether an instruction acts for the fiber, and not for the thread
	recent   [1 << 12]recentUse
	known    [1 << 10]knownPage
}

// knownPage is an answer of isInShared: one more than the number of a page, and whether it is shared.
type knownPage struct {
	page   uint64
	shared bool
}

// recentUse is an access that has been noted, so that its repetitions need not be.
type recentUse struct {
	pc, part uint64
	agent    sharing.Agent
	age      uint32
	store    bool
}

// usedCell is a cell with the instructions that access it.
type usedCell struct {
	sharing.Uses
	by map[arch.Addr]accessKind
}

func newProfile(ofFiber func(arch.Addr) bool) *profile {
	return &profile{
		births: sharing.NewBirths(), pages: map[uint64]*sharing.Uses{}, calls: map[arch.Addr]bool{}, creators: map[arch.ThreadID]arch.ThreadID{},
		ofFiber: ofFiber, ignored: map[uint64]bool{},
	}
}

// beginSecond begins the second execution.
func (s *profile) beginSecond() {
	maps.DeleteFunc(s.pages, func(_ uint64, m *sharing.Uses) bool { return !m.AreShared(s.births) })
	s.cells = map[uint64]*usedCell{}
	s.births = sharing.NewBirths()
	s.recent = [len(s.recent)]recentUse{}
}

// noteThread notes a thread that exists.
func (s *profile) noteThread(t arch.ThreadID) {
	if s.births.NoteThread(t) && s.thread != 0 {
		s.creators[t] = s.thread
	}
}

// agent is what an instruction of the thread that runs acts for.
func (s *profile) agent(pc uint64) sharing.Agent {
	a := sharing.Agent{Thread: s.thread, Handler: s.handler}
	if s.fiber != 0 && s.ofFiber(arch.Addr(pc)) {
		a.Fiber = s.fiber
	}
	return a
}

// beginThread is called before the accesses of a thread are.
func (s *profile) beginThread(t *kernel.Task) {
	s.thread, s.process = t.ID(), uint64(t.Process().PID())<<48
}

// take takes the log of the thread that runs.
func (s *profile) take(entries []memlog.Entry) {
	for i := range entries {
		e := &entries[i]
		if e.Kind != memlog.Load && e.Kind != memlog.Store {
			continue
		}
		last := uint64(e.Addr) + uint64(max(1, e.Size)) - 1
		if s.cells == nil {
			for n := uint64(e.Addr) / arch.PageSize; n <= last/arch.PageSize; n++ {
				s.notePage(s.process|n, e)
			}
			continue
		}
		for n := uint64(e.Addr) / sharing.CellSize; n <= last/sharing.CellSize; n++ {
			if s.isInShared(s.process | n/(arch.PageSize/sharing.CellSize)) {
				s.noteCell(s.process|n, e)
			}
		}
	}
}

// isInShared reports whether a page is shared.
func (s *profile) isInShared(page uint64) bool {
	known := &s.known[page%uint64(len(s.known))]
	if known.page != page+1 {
		*known = knownPage{page + 1, s.pages[page] != nil}
	}
	return known.shared
}

func (s *profile) notePage(n uint64, e *memlog.Entry) {
	recent := &s.recent[n%uint64(len(s.recent))]
	now := recentUse{part: n, agent: s.agent(e.PC), age: s.births.Count(), store: e.Kind == memlog.Store}
	if *recent == now {
		return
	}
	*recent = now
	m := s.pages[n]
	if m == nil {
		m = &sharing.Uses{}
		s.pages[n] = m
	}
	m.Note(now.agent, s.births, now.store)
}

func (s *profile) noteCell(n uint64, e *memlog.Entry) {
	m := s.cells[n]
	if m == nil {
		m = &usedCell{by: map[arch.Addr]accessKind{}}
		s.cells[n] = m
	}
	u := m.Note(s.agent(e.PC), s.births, e.Kind == memlog.Store)
	kind := kindOf(e)
	if kind != loads|locked { // the store of the instruction follows
		u.Accesses++
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
func (s *profile) noteCall(at arch.Addr) { s.calls[at] = true }

// result returns the points after the second execution.
func (s *profile) result() *decisionPoints {
	d := &decisionPoints{at: map[arch.Addr]accessKind{}, lines: map[uint64]*line{}, creators: s.creators}
	agents := map[uint64]map[sharing.Agent]bool{}
	for n, m := range s.cells {
		if s.ignored[n] || !m.AreShared(s.births) {
			continue
		}
		n = lineOf(n)
		l := d.lines[n]
		if l == nil {
			l = &line{number: n, at: map[arch.Addr]accessKind{}, operations: map[arch.ThreadID]uint64{}}
			d.lines[n] = l
			agents[n] = map[sharing.Agent]bool{}
		}
		addAccesses(l.at, m.by)
		addAccesses(d.at, m.by)
		for _, u := range m.Uses {
			l.operations[u.Thread] += u.Accesses
			l.total += u.Accesses
			agents[n][u.Agent.Identity()] = true
		}
		l.agents = len(agents[n])
	}
	for pc := range s.calls {
		d.at[pc] |= calls
	}
	return d
}
