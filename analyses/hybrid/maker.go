package hybrid

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Prune says which constraints are left out because others imply them.
type Prune uint8

// Ways to prune.
const (
	PruneReduce  Prune = iota // transitive reduction
	PruneSubsume              // PEREGRINE's, figure 7
	PruneNone
)

var pruneNames = [...]string{"reduce", "subsume", "none"}

// PruneNames lists the names of the ways to prune.
func PruneNames() []string { return pruneNames[:] }

// Counts counts races and constraints of a run.
type Counts struct {
	// Races are the pairs of accesses that the order of operations leaves
	// unordered, without those of further iterations of a wait in a spin loop. Unpruned are those of them that are constraints at all;
	// Subsumed and Reduced are how many are left by the two ways to prune.
	Races    uint64 `json:"races"`
	Unpruned uint64 `json:"unpruned"`
	Subsumed uint64 `json:"subsumed"`
	Reduced  uint64 `json:"reduced"`
}

// ConstraintFinder finds the constraints of a schedule: it goes through the run's accesses in their
// order, with the marks of its operations.
//
// All accesses within an operation or a system call count as one: when the schedule is enforced,
// operations happen one at a time.
type ConstraintFinder struct {
	s            *event.Schedule
	marks        []Mark
	prune        Prune
	detector     *races.Detector
	untouched    untouchedPages
	subsumer     *Subsumer
	reducer      Reducer
	threads      []*finderThread
	positions    [][]int // positions, by thread
	place        uint64
	pendingRaces []Constraint
	counts       Counts
	kept         []Constraint
	all          bool
	heap         []Allocation
	allocate     allocations
	racing       map[int]bool // calls of allocators that race, or nil
	audit        *audit       // of a run that followed a schedule, or nil
	latest       int          // the thread of the latest access
	deferred     bool         // the detector does not have its latest repetitions yet
}

// finderThread is the state of a thread.
type finderThread struct {
	done    int
	process int
	last    int // position of its last operation
	inside  bool
	base    uint64
	within  map[uint64]uint8 // words accessed in the operation: 1 read, 2 written
	order   []uint64
	calls   []allocationCall // of allocators
	spins   spinFinder
	atomic  event.Memory // the load of its last atomic instruction
}

// Accesses within operations, by word.
const (
	pageShift   = 12
	pageSize    = 1 << pageShift
	wordBytes   = 8
	wordRead    = 1
	wordWritten = 2
)

// NewConstraintFinder makes a ConstraintFinder for the operations of a run and their marks; process
// returns the process of a thread. With every set it takes all conflicting accesses, not only those
// that the order of operations leaves unordered: the result is a mem-schedule.
func NewConstraintFinder(s *event.Schedule, marks []Mark, process func(thread int) int, prune Prune, every bool) *ConstraintFinder {
	m := &ConstraintFinder{
		s: s, marks: marks, prune: prune, subsumer: NewSubsumer(), positions: make([][]int, len(s.Threads)),
		threads: make([]*finderThread, len(s.Threads)), all: every, untouched: newUntouchedPages(),
	}
	order := races.ScheduleRelative
	if every {
		order = races.HappensBefore
	}
	m.detector = races.New(order, m.addRace)
	for i := range m.threads {
		m.threads[i] = &finderThread{last: -1, process: process(i), within: map[uint64]uint8{}}
		m.detector.SetProcess(i, process(i))
	}
	for p := range s.Operations {
		n := s.Operations[p].Thread
		m.positions[n] = append(m.positions[n], p)
	}
	return m
}

// addRace takes a race that the detector reports.
func (m *ConstraintFinder) addRace(r *races.Race) {
	m.counts.Races++
	m.pendingRaces = append(m.pendingRaces, Constraint{r.First, r.Second})
}

// AdvanceTo continues to the event of a number.
func (m *ConstraintFinder) AdvanceTo(seq uint64) {
	if len(m.heap) > 0 && m.heap[0].Seq <= seq || len(m.marks) > 0 && m.marks[0].Seq <= seq {
		m.addRepetitions()
		if m.latest < len(m.threads) {
			m.threads[m.latest].spins.acted = 0
		}
	}
	for len(m.heap) > 0 && m.heap[0].Seq <= seq {
		m.applyAllocation(&m.heap[0])
		m.heap = m.heap[1:]
	}
	for len(m.marks) > 0 && m.marks[0].Seq <= seq {
		m.applyMark(&m.marks[0])
		m.marks = m.marks[1:]
	}
}

func (m *ConstraintFinder) applyMark(k *Mark) {
	t := m.threads[k.Thread]
	if k.Position >= 0 {
		m.place++
		m.detector.Sync(k.Thread, 0)
		m.reducer.Sync(k.Thread, m.place)
		t.done++
		t.spins.reset()
		t.last = k.Position
		t.base = k.Branches
		m.audit.beginOperation(k.Thread, t.done)
	}
	if k.Over {
		m.detector.EndProcess(t.process)
	}
	if k.Open {
		t.inside = true
	}
	if k.Close {
		t.inside = false
		t.base = k.Branches
		m.flushOperation(k.Thread, t)
		m.audit.endOperation(k.Thread, t.done)
	}
}

// flushOperation adds the accesses within the thread's last operation.
func (m *ConstraintFinder) flushOperation(n int, t *finderThread) {
	if len(t.order) == 0 || t.done == 0 {
		return
	}
	m.place++
	for _, word := range t.order {
		a := races.Access{
			Thread: n, Addr: word * wordBytes, Size: wordBytes, Write: t.within[word]&wordWritten != 0, At: m.place,
		}
		m.detector.Access(&a)
	}
	m.prunePending()
	t.order = t.order[:0]
	clear(t.within)
}

// AddMemory adds the next access or change of memory, by thread n, after the event that its stamp
// names.
func (m *ConstraintFinder) AddMemory(n int, e *event.Memory) {
	m.AdvanceTo(e.Seq)
	if n != m.latest || e.Kind != event.Load && e.Kind != event.Store {
		m.addRepetitions()
		m.latest = n
		m.threads[n].spins.acted = 0
	}
	switch e.Kind {
	case event.Load, event.Store:
		m.addAccess(n, e)
	case event.KernelStore:
		if e.Data != nil {
			m.noteInside(m.threads[n], m.physicalAddress(n, e), e.Length, true)
		}
	case event.KernelLoad:
		m.noteInside(m.threads[n], m.physicalAddress(n, e), e.Length, false)
	case event.Content:
		m.untouched.appear(e.Page)
		m.detector.Forget(e.Page<<pageShift, (e.Page+1)<<pageShift)
	case event.Copy:
		m.detector.CopyPage(e.Page, e.From, m.threads[n].process)
	}
}

// addAccess takes a load or store.
func (m *ConstraintFinder) addAccess(n int, e *event.Memory) {
	t := m.threads[n]
	if t.isSilent(e) {
		return
	}
	m.allocate.notePage(t.process, e)
	a := races.Access{
		Thread: n, Addr: m.physicalAddress(n, e), Size: int(e.Size), Write: e.Kind == event.Store, PC: e.PC, Branches: e.Branches - t.base,
		Part: e.Part, Parts: e.Parts,
	}
	if first := int(pageSize - a.Addr%pageSize); first < a.Size {
		a.First, a.Rest = first, m.untouched.physical(m.detector, t.process, uint64(e.Addr)+uint64(first), e.Next)
	}
	if t.inside {
		first := uint64(a.Size)
		if a.First > 0 {
			first = uint64(a.First)
			m.noteInside(t, a.Rest, uint64(a.Size)-first, a.Write)
		}
		m.noteInside(t, a.Addr, first, a.Write)
		return
	}
	if m.allocate.isAllocating(n) {
		return
	}
	m.place++
	a.At = m.place
	repeats := t.spins.add(e, a.At, uint64(t.done), a.Branches)
	if repeats && m.audit == nil {
		t.spins.defers(&a)
		m.deferred = true
		return
	}
	m.addRepetitions()
	if m.audit == nil {
		m.detector.Access(&a)
	} else {
		here := m.audit.reachInstruction(&a, t.done)
		m.audit.acquireAt(here)
		m.detector.Access(&a)
		m.audit.releaseAt(here)
	}
	m.prunePending()
}

// isSilent reports whether an access is the store of an atomic instruction that stores the value that it has
// read, as one does that fails to take a lock. Only its load has an order with other accesses.
func (t *finderThread) isSilent(e *event.Memory) bool {
	if !e.Atomic || e.Parts > 0 {
		return false
	}
	if e.Kind == event.Load {
		t.atomic = *e
		return false
	}
	l := &t.atomic
	return l.PC == e.PC && l.Addr == e.Addr && l.Size == e.Size && l.Value == e.Value && l.Branches == e.Branches
}

// noteInside keeps an access within an operation.
func (m *ConstraintFinder) noteInside(t *finderThread, addr, size uint64, write bool) {
	for word := addr / wordBytes; word <= (addr+max(size, 1)-1)/wordBytes; word++ {
		have, known := t.within[word]
		if !known {
			t.order = append(t.order, word)
		}
		if write {
			have |= wordWritten
		}
		t.within[word] = have | wordRead
	}
}

// prunePending prunes the constraints that one access has added.
func (m *ConstraintFinder) prunePending() {
	slices.SortFunc(m.pendingRaces, func(a, b Constraint) int { return cmp.Compare(b.First.At, a.First.At) })
	for _, c := range m.pendingRaces {
		if !m.isNeeded(c) {
			continue
		}
		m.noteRacingCall(&c.First)
		m.noteRacingCall(&c.Second)
		m.counts.Unpruned++
		subsumed, reduced := m.subsumer.Add(c), m.reducer.Add(c)
		if subsumed {
			m.counts.Subsumed++
		}
		if reduced {
			m.counts.Reduced++
		}
		if m.prune == PruneNone || m.prune == PruneSubsume && subsumed || m.prune == PruneReduce && reduced {
			m.kept = append(m.kept, c)
		}
	}
	m.pendingRaces = m.pendingRaces[:0]
}

// isNeeded reports whether a race has to be ordered: operations are ordered already, and an
// operation that has its position precedes everything after a later one.
func (m *ConstraintFinder) isNeeded(c Constraint) bool {
	switch {
	case c.Second.PC == 0 && c.First.PC == 0:
		return false
	case c.Second.PC == 0:
		// Accesses after the operation's position come after all of it.
		return m.threads[c.First.Thread].last < m.positions[c.Second.Thread][c.Second.Syncs-1]
	case c.First.PC != 0:
		return true
	}
	return m.positions[c.First.Thread][c.First.Syncs-1] > m.threads[c.Second.Thread].last
}

// Finish returns the constraints that are kept, without counts of instructions, and the counts.
func (m *ConstraintFinder) Finish() ([]event.Constraint, Counts) {
	m.addRepetitions()
	out := make([]event.Constraint, len(m.kept))
	for i, c := range m.kept {
		out[i] = event.Constraint{First: pointOf(c.First), Second: pointOf(c.Second)}
		if last := c.First.Part + 1; last < c.First.Parts {
			out[i].First.Accesses = last
		}
		out[i].Second.Accesses = c.Second.Part
		out[i].First.Spins, out[i].Second.Spins = m.spinsAt(&m.kept[i].First), m.spinsAt(&m.kept[i].Second)
	}
	return out, m.counts
}

func pointOf(i races.Instance) event.Point {
	if i.PC == 0 {
		return event.Point{Thread: i.Thread, Done: int(i.Syncs) - 1}
	}
	return event.Point{Thread: i.Thread, Done: int(i.Syncs), PC: i.PC, Branches: i.Branches, Span: 1}
}

// Counted are the branches and instructions of a thread up to the end of an operation.
type Counted struct{ Branches, Instructions uint64 }

// CountsAfterOperations returns, for each thread, its counts after each number of its operations.
func CountsAfterOperations(s *event.Schedule, marks []Mark) [][]Counted {
	bases := make([][]Counted, len(s.Threads))
	for n := range bases {
		bases[n] = []Counted{{}}
	}
	for i := range marks {
		m := &marks[i]
		list := &bases[m.Thread]
		if m.Position >= 0 {
			*list = append(*list, Counted{m.Branches, m.Instructions})
		} else if m.Close {
			(*list)[len(*list)-1] = Counted{m.Branches, m.Instructions}
		}
	}
	return bases
}
