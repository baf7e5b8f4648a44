// Package nearmap is a map from small numbers that are assigned consecutively, such as thread ids,
// for programs that look up a few of the keys again and again: those are found without hashing.
//
// For keys that are far apart it is a map like any other. It is not safe for use by several
// goroutines. Map is plain data, which internal/deepcopy can copy if it can copy the values.
//
// Invariant:
//
//  1. The result of Get depends only on calls of Put and Delete, not on earlier lookups.
package nearmap

import "iter"

// Map maps keys to values. The zero value is empty.
type Map[K ~int32, V any] struct {
	all  map[K]V
	near [near]entry[K, V]
}

// near is the number of consecutive keys that are found without hashing.
const near = 16

type entry[K ~int32, V any] struct {
	key   K
	known bool // the key is in all
	value V
}

// Get returns the value of a key, and whether there is one.
func (m *Map[K, V]) Get(key K) (V, bool) {
	e := &m.near[uint32(key)%near]
	if e.known && e.key == key {
		return e.value, true
	}
	return m.searchAll(key, e)
}

// At returns the value of a key, or the zero value if it is absent.
func (m *Map[K, V]) At(key K) V {
	v, _ := m.Get(key)
	return v
}

func (m *Map[K, V]) searchAll(key K, e *entry[K, V]) (V, bool) {
	v, ok := m.all[key]
	if ok {
		*e = entry[K, V]{key, true, v}
	}
	return v, ok
}

// Put sets the value of a key.
func (m *Map[K, V]) Put(key K, value V) {
	if m.all == nil {
		m.all = map[K]V{}
	}
	m.all[key] = value
	m.near[uint32(key)%near] = entry[K, V]{key, true, value}
}

// Delete removes a key, which may be absent.
func (m *Map[K, V]) Delete(key K) {
	delete(m.all, key)
	if e := &m.near[uint32(key)%near]; e.key == key {
		*e = entry[K, V]{}
	}
}

// Len returns the number of keys.
func (m *Map[K, V]) Len() int { return len(m.all) }

// All iterates over the keys and values, in any order.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for k, v := range m.all {
			if !yield(k, v) {
				return
			}
		}
	}
}
