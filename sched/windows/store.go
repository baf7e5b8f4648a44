package windows

import (
	"iter"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Store is the schedules of windows that were recorded, by the keys of their windows.
type Store struct {
	// Seed and Cores are those that the guest saw in the first run that was recorded.
	Seed  uint64
	Cores int

	schedules []Schedule
	keys      []uint64         // of the schedules
	byKey     map[uint64][]int // in the order in which they were recorded
}

// NewStore makes an empty store.
func NewStore() *Store { return &Store{byKey: map[uint64][]int{}} }

// Len is the number of schedules.
func (s *Store) Len() int { return len(s.schedules) }

// Keys is the number of keys.
func (s *Store) Keys() int { return len(s.byKey) }

// find lists the schedules that a window may follow: first those for the same input, then those whose preconditions admit
// it, each in the order in which they were recorded.
func (s *Store) find(a *Admission) (list []int, exact int) {
	for _, i := range s.byKey[a.Key] {
		if s.schedules[i].Exact == a.Exact {
			list = append(list, i)
		}
	}
	exact = len(list)
	for _, i := range s.byKey[a.Key] {
		if o := &s.schedules[i]; o.Exact != a.Exact && o.admits(a) {
			list = append(list, i)
		}
	}
	return list, exact
}

// All are the schedules with their keys, in the order in which they were recorded.
func (s *Store) All() iter.Seq2[uint64, Schedule] {
	return func(yield func(uint64, Schedule) bool) {
		for i, o := range s.schedules {
			if !yield(s.keys[i], o) {
				return
			}
		}
	}
}

// Add stores a schedule, and returns its number and whether the key had one for the same input and with the same turns
// already.
func (s *Store) Add(key uint64, o Schedule) (number int, known bool) {
	for _, i := range s.byKey[key] {
		if s.schedules[i].Exact == o.Exact && slices.Equal(s.schedules[i].Turns, o.Turns) {
			return i, true
		}
	}
	o.Turns, o.Constraints = slices.Clone(o.Turns), slices.Clone(o.Constraints)
	s.schedules = append(s.schedules, o)
	s.keys = append(s.keys, key)
	s.byKey[key] = append(s.byKey[key], len(s.schedules)-1)
	return len(s.schedules) - 1, false
}

// Matching returns how many of the stored schedules a window may follow.
func (s *Store) Matching(a *Admission) int {
	list, _ := s.find(a)
	return len(list)
}

// Obstacle is a byte of memory that has refused a window.
type Obstacle struct {
	Process int32
	At      arch.Addr
}

// Obstacles are the bytes of memory that keep a window from following the latest schedule whose other preconditions
// it satisfies; registers says that its registers do, found that there is no such schedule.
func (s *Store) Obstacles(a *Admission) (list []Obstacle, registers, found bool) {
	all := s.byKey[a.Key]
	for n := len(all) - 1; n >= 0; n-- {
		o := &s.schedules[all[n]]
		if o.Patterns == nil || !admits(o.Patterns, a.Bytes) {
			continue
		}
		if o.Registers != a.Registers {
			registers = true
			continue
		}
		moved, at, resolved := o.resolve(a)
		if !resolved {
			list = append(list, at)
		}
		for i := range o.Hidden {
			h := &o.Hidden[i]
			if !resolved && h.By != Fixed {
				continue
			}
			b := make([]byte, len(h.Pattern))
			have := a.Peek(h.Process, h.At+moved.by(h.By), b)
			for at := range h.Pattern {
				if at >= have || !h.Pattern[at].Has(b[at]) {
					list = append(list, Obstacle{h.Process, h.At + arch.Addr(at)})
				}
			}
		}
		if list == nil {
			list = o.Joint.refuses(a, moved)
		}
		return list, false, true
	}
	return nil, registers, false
}

// constrain adds constraints to a schedule, and returns how many it did not have.
func (s *Store) constrain(number int, list []Constraint) (added int) {
	o := &s.schedules[number]
	have := make(map[Constraint]bool, len(o.Constraints))
	for _, c := range o.Constraints {
		have[c] = true
	}
	for _, c := range list {
		if !have[c] {
			o.Constraints = append(o.Constraints, c)
			added++
		}
	}
	return added
}
