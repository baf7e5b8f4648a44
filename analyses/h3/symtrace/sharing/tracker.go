package sharing

import (
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
)

// Tracker knows which memory is shared, and finds more.
type Tracker struct {
	Shared map[uint64]bool // by number of the granule
	pages  map[uint64]bool // that have shared granules
	// stretches are the stretches of threads between forks and joins.
	stretches []Stretch
	log       map[uint64][]access
	// recent are some of the touches in the log, by the granule's last digits.
	recent [1 << 12]recentAccess
	// writers have the one thread that writes a shared granule, or several.
	writers map[uint64]int
	// past are the stretches that wrote in the round before.
	past map[uint64]Writes
	// Only, if set, restricts the addresses that may become shared, and Excluded counts the
	// granules that it left out.
	Only     func(addr uint64) bool
	Excluded int
}

// Several stands for more threads than one.
const Several = -1

// Stretch is a part of a thread between forks and joins. Clock counts, for each thread, the
// stretches that come before it, itself included (a vector clock).
type Stretch struct {
	Thread int
	Clock  []int
}

// access is an access in a stretch.
type access struct {
	stretch int32
	write   bool
}

type recentAccess struct {
	granule uint64 // 0: none
	access
}

func NewTracker(known map[uint64]bool, writers map[uint64]int, past map[uint64]Writes) *Tracker {
	s := &Tracker{Shared: known, writers: writers, past: past, pages: map[uint64]bool{}, log: map[uint64][]access{}}
	for g := range known {
		s.pages[g*symmem.Granule/symmem.PageSize] = true
	}
	return s
}

// IsShared reports whether any byte of an access is shared.
func (s *Tracker) IsShared(addr uint64, size int) bool {
	last := addr + uint64(size) - 1
	if !s.pages[addr/symmem.PageSize] && !s.pages[last/symmem.PageSize] {
		return false
	}
	for g := addr / symmem.Granule; g <= last/symmem.Granule; g++ {
		if s.Shared[g] {
			return true
		}
	}
	return false
}

// StartStretch begins a stretch of a thread.
func (s *Tracker) StartStretch(thread int, of []int) int32 {
	s.stretches = append(s.stretches, Stretch{thread, slices.Clone(of)})
	return int32(len(s.stretches) - 1)
}

// NoteAccess notes an access.
func (s *Tracker) NoteAccess(clock int32, addr uint64, size int, write bool) {
	for g := addr / symmem.Granule; g <= (addr+uint64(size)-1)/symmem.Granule; g++ {
		recent := &s.recent[g%uint64(len(s.recent))]
		if recent.granule == g && recent.stretch == clock && (recent.write || !write) {
			continue
		}
		*recent = recentAccess{g, access{clock, write}}
		all := s.log[g]
		known := false
		for i := len(all) - 1; i >= 0 && i >= len(all)-4; i-- {
			known = known || all[i].stretch == clock && (all[i].write || !write)
		}
		if !known {
			s.log[g] = append(all, access{clock, write})
		}
	}
}

// endsBefore reports whether stretch a ends before stretch b begins.
func (s *Tracker) endsBefore(a, b int32) bool {
	x, y := &s.stretches[a], &s.stretches[b]
	return x.Thread < len(y.Clock) && x.Clock[x.Thread] <= y.Clock[x.Thread]
}

// FindConflicts finds memory that two threads access at the same time, one of them writing, and
// adds it to the shared memory, as far as Only allows it. It returns the number of new granules.
func (s *Tracker) FindConflicts() int {
	found := 0
	for _, g := range slices.Sorted(maps.Keys(s.log)) {
		switch {
		case s.Shared[g] || !s.hasConflict(s.log[g]):
		case s.Only != nil && !s.Only(g*symmem.Granule):
			s.Excluded++
		default:
			s.Shared[g] = true
			found++
		}
	}
	return found
}

func (s *Tracker) hasConflict(all []access) bool {
	for i, a := range all {
		for _, b := range all[:i] {
			if (a.write || b.write) && s.stretches[a.stretch].Thread != s.stretches[b.stretch].Thread &&
				!s.endsBefore(a.stretch, b.stretch) && !s.endsBefore(b.stretch, a.stretch) {
				return true
			}
		}
	}
	return false
}

// OnlyWriter reports whether no other thread writes the bytes that a thread reads: it sees its own
// writes, in every memory model.
func (s *Tracker) OnlyWriter(thread int, addr uint64, size int) bool {
	for g := addr / symmem.Granule; g <= (addr+uint64(size)-1)/symmem.Granule; g++ {
		if w, ok := s.writers[g]; s.Shared[g] && (!ok || w != thread) {
			return false
		}
	}
	return true
}

// Writes are the stretches that write a granule, and whether each of them is over
// when the next begins.
type Writes struct {
	Stretches []Stretch
	Ordered   bool
}

func (p Writes) Equal(o Writes) bool {
	return p.Ordered == o.Ordered && slices.EqualFunc(p.Stretches, o.Stretches, func(a, b Stretch) bool {
		return a.Thread == b.Thread && slices.Equal(a.Clock, b.Clock)
	})
}

// Writes finds the stretches that write shared memory.
func (s *Tracker) Writes() map[uint64]Writes {
	all := map[uint64]Writes{}
	for g := range s.Shared {
		p := Writes{Ordered: true}
		for _, t := range s.log[g] {
			if !t.write {
				continue
			}
			c := s.stretches[t.stretch]
			for _, other := range p.Stretches {
				p.Ordered = p.Ordered && (other.precedes(c) || c.precedes(other))
			}
			p.Stretches = append(p.Stretches, c)
		}
		all[g] = p
	}
	return all
}

// precedes reports whether a stretch ends before another begins, or is of the same thread.
func (c Stretch) precedes(o Stretch) bool {
	return c.Thread == o.Thread || c.Thread < len(o.Clock) && c.Clock[c.Thread] <= o.Clock[c.Thread]
}

// HasOneValue reports whether all writes to some bytes are done and known when a stretch begins, or
// are by its own thread: under every schedule they have one value there.
func (s *Tracker) HasOneValue(at int32, addr uint64, size int) bool {
	now := s.stretches[at]
	for g := addr / symmem.Granule; g <= (addr+uint64(size)-1)/symmem.Granule; g++ {
		p, ok := s.past[g]
		if !ok || !p.Ordered {
			return false
		}
		for _, c := range p.Stretches {
			if !c.precedes(now) && !now.precedes(c) {
				return false
			}
		}
	}
	return true
}

// Writers finds the threads that write shared memory.
func (s *Tracker) Writers() map[uint64]int {
	all := map[uint64]int{}
	for g := range s.Shared {
		for _, t := range s.log[g] {
			if thread := s.stretches[t.stretch].Thread; t.write {
				if old, ok := all[g]; ok && old != thread {
					thread = Several
				}
				all[g] = thread
			}
		}
	}
	return all
}
