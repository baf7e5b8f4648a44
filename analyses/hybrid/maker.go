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

// Prunes lists the names of the ways to prune.
func Prunes() []string { return pruneNames[:] }

// Counts are what was found in a run.
type Counts struct {
	// Races are the pairs of accesses that the order of operations leaves
	// unordered. Unpruned are those of them that are constraints at all;
	// Subsumed and Reduced are how many are left by the two ways to prune.
	Races    uint64 `json:"races"`
	Unpruned uint64 `json:"unpruned"`
	Subsumed uint64 `json:"subsumed"`
	Reduced  uint64 `json:"reduced"`
}

// Maker finds the constraints of a schedule: it goes through the run's accesses
// in their order, with the marks of its operations.
//
// What is accessed within an operation or a system call counts as done by that as
// a whole: enforced, they happen one at a time.
type Maker struct {
	s        *event.Schedule
	marks    []Mark
	prune    Prune
	detector *races.Detector
	subsumer *Subsumer
	reducer  Reducer
	threads  []*made
	own      [][]int // positions, by thread
	at       uint64
	found    []Constraint
	counts   Counts
	kept     []Constraint
	all      bool
	heap     []Allocation
	allocate allocations
	racing   map[int]bool // calls of allocators that race, or nil
	audit    *audit       // of a run that followed a schedule, or nil
}

// made is what is known of a thread.
type made struct {
	done    int
	process int
	last    int // position of its last operation
	inside  bool
	base    uint64
	within  map[uint64]uint8 // words accessed in the operation: 1 read, 2 written
	order   []uint64
	calls   []call // of allocators
}

// Accesses within operations, by word.
const (
	pageShift   = 12
	pageSize    = 1 << pageShift
	wordBytes   = 8
	wordRead    = 1
	wordWritten = 2
)

// NewMaker makes a Maker for the operations of a run and their marks, of which process
// tells what process a thread belongs to. With every set it takes all accesses that conflict, not those only that the order of
// operations leaves unordered: the result is a mem-schedule.
func NewMaker(s *event.Schedule, marks []Mark, process func(thread int) int, prune Prune, every bool) *Maker {
	m := &Maker{
		s: s, marks: marks, prune: prune, subsumer: NewSubsumer(), own: make([][]int, len(s.Threads)),
		threads: make([]*made, len(s.Threads)), all: every,
	}
	order := races.ScheduleRelative
	if every {
		order = races.HappensBefore
	}
	m.detector = races.New(order, m.race)
	for i := range m.threads {
		m.threads[i] = &made{last: -1, process: process(i), within: map[uint64]uint8{}}
		m.detector.Begin(i, process(i))
	}
	for p := range s.Operations {
		n := s.Operations[p].Thread
		m.own[n] = append(m.own[n], p)
	}
	return m
}

// race takes a race that the detector reports.
func (m *Maker) race(r *races.Race) {
	m.counts.Races++
	m.found = append(m.found, Constraint{r.First, r.Second})
}

// Upto goes on to the event of a number.
func (m *Maker) Upto(seq uint64) {
	for len(m.heap) > 0 && m.heap[0].Seq <= seq {
		m.allocated(&m.heap[0])
		m.heap = m.heap[1:]
	}
	for len(m.marks) > 0 && m.marks[0].Seq <= seq {
		m.take(&m.marks[0])
		m.marks = m.marks[1:]
	}
}

func (m *Maker) take(k *Mark) {
	t := m.threads[k.Thread]
	if k.Position >= 0 {
		m.at++
		m.detector.Sync(k.Thread, 0)
		m.reducer.Sync(k.Thread, m.at)
		t.done++
		t.last = k.Position
		t.base = k.Branches
		m.audit.operation(k.Thread, t.done)
	}
	if k.Over {
		m.detector.End(t.process)
	}
	if k.Open {
		t.inside = true
	}
	if k.Close {
		t.inside = false
		t.base = k.Branches
		m.flush(k.Thread, t)
		m.audit.over(k.Thread, t.done)
	}
}

// flush takes what was accessed within the thread's last operation.
func (m *Maker) flush(n int, t *made) {
	if len(t.order) == 0 || t.done == 0 {
		return
	}
	m.at++
	for _, word := range t.order {
		a := races.Access{
			Thread: n, Addr: word * wordBytes, Size: wordBytes, Write: t.within[word]&wordWritten != 0, At: m.at,
		}
		m.detector.Access(&a)
	}
	m.settle()
	t.order = t.order[:0]
	clear(t.within)
}

// Memory takes what happens next to memory, by thread n, behind the event that its
// stamp names.
func (m *Maker) Memory(n int, e *event.Memory) {
	m.Upto(e.Seq)
	switch e.Kind {
	case event.Load, event.Store:
		m.access(n, e)
	case event.KernelStore:
		if e.Data != nil {
			m.note(m.threads[n], address(e), e.Length, true)
		}
	case event.KernelLoad:
		m.note(m.threads[n], address(e), e.Length, false)
	case event.Content:
		m.detector.Forget(e.Page<<pageShift, (e.Page+1)<<pageShift)
	case event.Copy:
		m.detector.Copy(e.Page, e.From, m.threads[n].process)
	}
}

// address is where memory is accessed: pages have one number, however many processes
// they are shared by, at whatever addresses.
func address(e *event.Memory) uint64 { return e.Page<<pageShift | uint64(e.Addr)&(pageSize-1) }

// access takes a load or store.
func (m *Maker) access(n int, e *event.Memory) {
	t := m.threads[n]
	m.allocate.seen(t.process, e)
	a := races.Access{
		Thread: n, Addr: address(e), Size: int(e.Size), Write: e.Kind == event.Store, PC: e.PC, Branches: e.Branches - t.base,
		Part: e.Part, Parts: e.Parts,
	}
	if first := int(pageSize - a.Addr%pageSize); first < a.Size {
		a.First, a.Rest = first, e.Next<<pageShift
	}
	if t.inside {
		first := uint64(a.Size)
		if a.First > 0 {
			first = uint64(a.First)
			m.note(t, a.Rest, uint64(a.Size)-first, a.Write)
		}
		m.note(t, a.Addr, first, a.Write)
		return
	}
	if m.allocate.within(n) {
		return
	}
	m.at++
	a.At = m.at
	if m.audit == nil {
		m.detector.Access(&a)
	} else {
		here := m.audit.come(&a, t.done)
		m.audit.begin(here)
		m.detector.Access(&a)
		m.audit.end(here)
	}
	m.settle()
}

// note keeps an access within an operation.
func (m *Maker) note(t *made, addr, size uint64, write bool) {
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

// settle prunes what one access has brought.
func (m *Maker) settle() {
	slices.SortFunc(m.found, func(a, b Constraint) int { return cmp.Compare(b.First.At, a.First.At) })
	for _, c := range m.found {
		if !m.needed(c) {
			continue
		}
		m.races(&c.First)
		m.races(&c.Second)
		m.counts.Unpruned++
		subsumed, reduced := m.subsumer.Keep(c), m.reducer.Keep(c)
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
	m.found = m.found[:0]
}

// needed tells whether a race is to be ordered: operations are ordered already,
// and one that has its position comes before all behind a later one.
func (m *Maker) needed(c Constraint) bool {
	switch {
	case c.Second.PC == 0 && c.First.PC == 0:
		return false
	case c.Second.PC == 0:
		// What comes behind the operation's place comes after all of it.
		return m.threads[c.First.Thread].last < m.own[c.Second.Thread][c.Second.Syncs-1]
	case c.First.PC != 0:
		return true
	}
	return m.own[c.First.Thread][c.First.Syncs-1] > m.threads[c.Second.Thread].last
}

// Finish gives the constraints that are kept, without counts of instructions, and
// what was found.
func (m *Maker) Finish() ([]event.Constraint, Counts) {
	out := make([]event.Constraint, len(m.kept))
	for i, c := range m.kept {
		out[i] = event.Constraint{First: point(c.First), Second: point(c.Second)}
		if last := c.First.Part + 1; last < c.First.Parts {
			out[i].First.Accesses = last
		}
		out[i].Second.Accesses = c.Second.Part
	}
	return out, m.counts
}

func point(i races.Instance) event.Point {
	if i.PC == 0 {
		return event.Point{Thread: i.Thread, Done: int(i.Syncs) - 1}
	}
	return event.Point{Thread: i.Thread, Done: int(i.Syncs), PC: i.PC, Branches: i.Branches, Span: 1}
}

// Base is what a thread had gone through behind an operation.
type Base struct{ Branches, Instructions uint64 }

// Bases returns, for each thread, what it had gone through behind so many of its
// operations.
func Bases(s *event.Schedule, marks []Mark) [][]Base {
	bases := make([][]Base, len(s.Threads))
	for n := range bases {
		bases[n] = []Base{{}}
	}
	for i := range marks {
		m := &marks[i]
		list := &bases[m.Thread]
		if m.Position >= 0 {
			*list = append(*list, Base{m.Branches, m.Instructions})
		} else if m.Close {
			(*list)[len(*list)-1] = Base{m.Branches, m.Instructions}
		}
	}
	return bases
}
