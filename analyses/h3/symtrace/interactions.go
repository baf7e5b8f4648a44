package symtrace

import (
	"maps"
	"slices"
)

// direction is one direction of a connection: the bytes that one side sends.
type direction struct{ connection, side uint64 }

// streamContent are the bytes sent in a direction, with the end of each piece, and whether the
// direction is closed.
type streamContent struct {
	bytes  []byte
	ends   []uint64
	closed bool
}

// sentPiece is a piece that a thread sends, or the end.
type sentPiece struct {
	direction
	at    uint64
	bytes []byte
	ends  bool
}

// streamContents are all that is sent.
type streamContents map[direction]*streamContent

// addPiece adds a piece.
func (f streamContents) addPiece(s *sentPiece) {
	x := f[s.direction]
	if x == nil {
		x = &streamContent{}
		f[s.direction] = x
	}
	if s.ends {
		x.closed = true
		return
	}
	end := s.at + uint64(len(s.bytes))
	if missing := int(end) - len(x.bytes); missing > 0 {
		x.bytes = append(x.bytes, make([]byte, missing)...)
	}
	copy(x.bytes[s.at:], s.bytes)
	if i, known := slices.BinarySearch(x.ends, end); !known {
		x.ends = slices.Insert(x.ends, i, end)
	}
}

func (f streamContents) clone() streamContents {
	c := streamContents{}
	for d, x := range f {
		c[d] = &streamContent{slices.Clone(x.bytes), slices.Clone(x.ends), x.closed}
	}
	return c
}

func (f streamContents) equal(g streamContents) bool {
	return maps.EqualFunc(f, g, func(a, b *streamContent) bool {
		return a.closed == b.closed && slices.Equal(a.bytes, b.bytes) && slices.Equal(a.ends, b.ends)
	})
}

// interactions are the effects that threads have on each other through system calls: those of the
// preceding pass, and of this one so far.
type interactions struct {
	flows       streamContents
	signals     map[uint64]bool // that were sent to the process
	descriptors map[uint64]descriptor
	lengths     map[uint64]uint64 // of files that are written
}

func newInteractions() interactions {
	return interactions{streamContents{}, map[uint64]bool{}, map[uint64]descriptor{}, map[uint64]uint64{}}
}

func (o interactions) clone() interactions {
	return interactions{o.flows.clone(), maps.Clone(o.signals), maps.Clone(o.descriptors), maps.Clone(o.lengths)}
}

func (o interactions) equal(x interactions) bool {
	return o.flows.equal(x.flows) && maps.Equal(o.signals, x.signals) && maps.Equal(o.descriptors, x.descriptors) && maps.Equal(o.lengths, x.lengths)
}

// collectInteractions collects the interactions of all threads, except undone ones.
func (b *pass) collectInteractions() interactions {
	all := newInteractions()
	all.descriptors = b.descriptors
	for _, w := range b.threads {
		for i := range w.sentPieces {
			all.flows.addPiece(&w.sentPieces[i])
		}
		for _, s := range w.raisedSignals {
			all.signals[s] = true
		}
		for _, l := range w.fileLengths {
			all.lengths[l.file] = max(all.lengths[l.file], l.to)
		}
	}
	return all
}

// fileLength is how long a file is made.
type fileLength struct{ file, to uint64 }
