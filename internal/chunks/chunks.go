// Package chunks has lists that grow to any length without ever being copied: for
// logs of millions of small things. A List is one; values that are added together are
// adjacent. It is for one goroutine.
package chunks

// List is a list. Its zero value is empty.
type List[T any] struct {
	chunks []*[Size]T
	used   int // places, including skipped ones
}

// Size is how many can be added together.
const Size = 1 << 14

// Len is the number of places: of added values, and of places skipped to keep values
// adjacent.
func (l *List[T]) Len() int { return l.used }

// At is the value at a place.
func (l *List[T]) At(i int) *T { return &l.chunks[i/Size][i%Size] }

// Add adds one, and returns it.
func (l *List[T]) Add() *T {
	if l.used == len(l.chunks)*Size {
		l.chunks = append(l.chunks, new([Size]T))
	}
	l.used++
	return l.At(l.used - 1)
}

// Grow adds n, at most Size, and returns where they are.
func (l *List[T]) Grow(n int) (at int, all []T) {
	if room := len(l.chunks)*Size - l.used; n > room {
		l.used += room
		l.chunks = append(l.chunks, new([Size]T))
	}
	at = l.used
	l.used += n
	return at, l.Slice(at, n)
}

// Slice is n that were added together.
func (l *List[T]) Slice(at, n int) []T {
	if n == 0 {
		return nil
	}
	return l.chunks[at/Size][at%Size:][:n]
}
