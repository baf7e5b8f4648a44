package symtrace

import (
	"maps"
	"slices"
)

// granule is how many bytes are shared or not as a whole.
const granule = 8

// sharing says what is shared, and finds out what is.
type sharing struct {
	known map[uint64]bool // by number of the granule
	pages map[uint64]bool // that have shared granules
	// clocks are the stretches of threads between forks and joins.
	clocks []clock
	log    map[uint64][]touch
	// recent are some of the touches in the log, by the granule's last digits.
	recent [1 << 12]recentTouch
	// writers have the one thread that writes a shared granule, or several.
	writers map[uint64]int
	// past are the stretches that wrote in the round before.
	past map[uint64]pastWrites
	// only is Options.Only, and excluded is what it has left out, in granules.
	only     func(addr uint64) bool
	excluded int
}

// several stands for more threads than one.
const several = -1

// clock is a stretch of a thread, with how much of each thread is before it.
type clock struct {
	thread int
	of     []int
}

// touch is an access in a stretch.
type touch struct {
	clock int32
	write bool
}

type recentTouch struct {
	granule uint64 // 0: none
	touch
}

func newSharing(known map[uint64]bool, writers map[uint64]int, past map[uint64]pastWrites) *sharing {
	s := &sharing{known: known, writers: writers, past: past, pages: map[uint64]bool{}, log: map[uint64][]touch{}}
	for g := range known {
		s.pages[g*granule/pageSize] = true
	}
	return s
}

// shared tells whether any byte of an access is shared.
func (s *sharing) shared(addr uint64, size int) bool {
	last := addr + uint64(size) - 1
	if !s.pages[addr/pageSize] && !s.pages[last/pageSize] {
		return false
	}
	for g := addr / granule; g <= last/granule; g++ {
		if s.known[g] {
			return true
		}
	}
	return false
}

// stretch begins a stretch of a thread.
func (s *sharing) stretch(thread int, of []int) int32 {
	s.clocks = append(s.clocks, clock{thread, slices.Clone(of)})
	return int32(len(s.clocks) - 1)
}

// touched notes an access.
func (s *sharing) touched(clock int32, addr uint64, size int, write bool) {
	for g := addr / granule; g <= (addr+uint64(size)-1)/granule; g++ {
		recent := &s.recent[g%uint64(len(s.recent))]
		if recent.granule == g && recent.clock == clock && (recent.write || !write) {
			continue
		}
		*recent = recentTouch{g, touch{clock, write}}
		all := s.log[g]
		known := false
		for i := len(all) - 1; i >= 0 && i >= len(all)-4; i-- {
			known = known || all[i].clock == clock && (all[i].write || !write)
		}
		if !known {
			s.log[g] = append(all, touch{clock, write})
		}
	}
}

// before tells whether a stretch is over when another begins.
func (s *sharing) before(a, b int32) bool {
	x, y := &s.clocks[a], &s.clocks[b]
	return x.thread < len(y.of) && x.of[x.thread] <= y.of[x.thread]
}

// conflicts finds what is accessed by two threads at the same time, one of which
// writes, and adds it to what is shared, as far as it may be. It returns how much is
// new.
func (s *sharing) conflicts() int {
	found := 0
	for _, g := range slices.Sorted(maps.Keys(s.log)) {
		switch {
		case s.known[g] || !s.conflict(s.log[g]):
		case s.only != nil && g*granule < ownMemory && !s.only(g*granule):
			s.excluded++
		default:
			s.known[g] = true
			found++
		}
	}
	return found
}

func (s *sharing) conflict(all []touch) bool {
	for i, a := range all {
		for _, b := range all[:i] {
			if (a.write || b.write) && s.clocks[a.clock].thread != s.clocks[b.clock].thread &&
				!s.before(a.clock, b.clock) && !s.before(b.clock, a.clock) {
				return true
			}
		}
	}
	return false
}

// own tells that nobody but a thread writes what it reads: it sees what it has
// written itself, in every memory model.
func (s *sharing) own(thread int, addr uint64, size int) bool {
	for g := addr / granule; g <= (addr+uint64(size)-1)/granule; g++ {
		if w, ok := s.writers[g]; s.known[g] && (!ok || w != thread) {
			return false
		}
	}
	return true
}

// pastWrites are the stretches that write a granule, and whether each of them is over
// when the next begins.
type pastWrites struct {
	clocks  []clock
	ordered bool
}

func (p pastWrites) equal(o pastWrites) bool {
	return p.ordered == o.ordered && slices.EqualFunc(p.clocks, o.clocks, func(a, b clock) bool {
		return a.thread == b.thread && slices.Equal(a.of, b.of)
	})
}

// wrote finds the stretches that write what is shared.
func (s *sharing) wrote() map[uint64]pastWrites {
	all := map[uint64]pastWrites{}
	for g := range s.known {
		p := pastWrites{ordered: true}
		for _, t := range s.log[g] {
			if !t.write {
				continue
			}
			c := s.clocks[t.clock]
			for _, other := range p.clocks {
				p.ordered = p.ordered && (other.before(c) || c.before(other))
			}
			p.clocks = append(p.clocks, c)
		}
		all[g] = p
	}
	return all
}

// before tells that a stretch is over when another begins, or is of the same thread.
func (c clock) before(o clock) bool {
	return c.thread == o.thread || c.thread < len(o.of) && c.of[c.thread] <= o.of[c.thread]
}

// quiet tells that all that is ever written to some bytes is written, and known, when
// a stretch begins, or is written by its thread: they have one value there, under every
// schedule.
func (s *sharing) quiet(at int32, addr uint64, size int) bool {
	now := s.clocks[at]
	for g := addr / granule; g <= (addr+uint64(size)-1)/granule; g++ {
		p, ok := s.past[g]
		if !ok || !p.ordered {
			return false
		}
		for _, c := range p.clocks {
			if !c.before(now) && !now.before(c) {
				return false
			}
		}
	}
	return true
}

// writing finds who writes what is shared.
func (s *sharing) writing() map[uint64]int {
	all := map[uint64]int{}
	for g := range s.known {
		for _, t := range s.log[g] {
			if thread := s.clocks[t.clock].thread; t.write {
				if old, ok := all[g]; ok && old != thread {
					thread = several
				}
				all[g] = thread
			}
		}
	}
	return all
}
