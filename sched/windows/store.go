package windows

import (
	"iter"
	"slices"
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

func (s *Store) find(key uint64) []int { return s.byKey[key] }

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

// Add stores a schedule, and returns its number and whether the key had one with the same turns already.
func (s *Store) Add(key uint64, o Schedule) (number int, known bool) {
	for _, i := range s.byKey[key] {
		if slices.Equal(s.schedules[i].Turns, o.Turns) {
			return i, true
		}
	}
	s.schedules = append(s.schedules, Schedule{slices.Clone(o.Turns), slices.Clone(o.Constraints)})
	s.keys = append(s.keys, key)
	s.byKey[key] = append(s.byKey[key], len(s.schedules)-1)
	return len(s.schedules) - 1, false
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
