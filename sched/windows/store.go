package windows

import (
	"iter"
	"slices"
)

// Store is the orders of windows that were recorded, by the keys of their windows.
type Store struct {
	// Seed and Cores are those that the guest saw in the first run that was recorded.
	Seed  uint64
	Cores int

	orders [][]Point
	keys   []uint64         // of the orders
	byKey  map[uint64][]int // in the order in which they were recorded
}

// NewStore makes an empty store.
func NewStore() *Store { return &Store{byKey: map[uint64][]int{}} }

// Len is the number of orders.
func (s *Store) Len() int { return len(s.orders) }

// Keys is the number of keys.
func (s *Store) Keys() int { return len(s.byKey) }

func (s *Store) find(key uint64) []int { return s.byKey[key] }

// All are the orders with their keys, in the order in which they were recorded.
func (s *Store) All() iter.Seq2[uint64, []Point] {
	return func(yield func(uint64, []Point) bool) {
		for i, o := range s.orders {
			if !yield(s.keys[i], o) {
				return
			}
		}
	}
}

// Add stores an order, and returns its number and whether the key had it already.
func (s *Store) Add(key uint64, order []Point) (number int, known bool) {
	for _, i := range s.byKey[key] {
		if slices.Equal(s.orders[i], order) {
			return i, true
		}
	}
	s.orders = append(s.orders, slices.Clone(order))
	s.keys = append(s.keys, key)
	s.byKey[key] = append(s.byKey[key], len(s.orders)-1)
	return len(s.orders) - 1, false
}
