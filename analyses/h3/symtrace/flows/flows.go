// Package flows has the bytes that threads send to each other by sockets and pipes.
package flows

import (
	"maps"
	"slices"
)

// Direction is one direction of a connection: the bytes that one side sends.
type Direction struct{ Connection, Side uint64 }

// Content is the bytes sent in a direction, with the end of each piece, and whether the
// direction is closed.
type Content struct {
	Bytes  []byte
	Ends   []uint64
	Closed bool
}

// Piece is a piece that a thread sends, or the end.
type Piece struct {
	Direction
	At    uint64
	Bytes []byte
	Ends  bool
}

// Contents are all that is sent.
type Contents map[Direction]*Content

// Add adds a piece.
func (f Contents) Add(s *Piece) {
	x := f[s.Direction]
	if x == nil {
		x = &Content{}
		f[s.Direction] = x
	}
	if s.Ends {
		x.Closed = true
		return
	}
	end := s.At + uint64(len(s.Bytes))
	if missing := int(end) - len(x.Bytes); missing > 0 {
		x.Bytes = append(x.Bytes, make([]byte, missing)...)
	}
	copy(x.Bytes[s.At:], s.Bytes)
	if i, known := slices.BinarySearch(x.Ends, end); !known {
		x.Ends = slices.Insert(x.Ends, i, end)
	}
}

// Clone copies the contents.
func (f Contents) Clone() Contents {
	c := Contents{}
	for d, x := range f {
		c[d] = &Content{slices.Clone(x.Bytes), slices.Clone(x.Ends), x.Closed}
	}
	return c
}

// Equal reports whether both have the same.
func (f Contents) Equal(g Contents) bool {
	return maps.EqualFunc(f, g, func(a, b *Content) bool {
		return a.Closed == b.Closed && slices.Equal(a.Bytes, b.Bytes) && slices.Equal(a.Ends, b.Ends)
	})
}
