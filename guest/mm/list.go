package mm

import (
	"slices"
	"sort"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// mappingList holds the mappings of an address space by address, in short chunks, so
// that one among many thousands is found, inserted and removed in practically constant
// time.
type mappingList struct {
	chunks []chunk
	count  int
}

// chunk is a run of neighbouring mappings, at least one.
type chunk struct {
	start arch.Addr // of the first
	gap   uint64    // largest free range just below one of them
	v     []VMA
}

// chunkMax is the size at which a chunk is split in two.
const chunkMax = 64

// position is an index in a mappingList; the one past the last mapping is valid too.
type position struct{ c, i int }

// at returns the mapping at p, or nil past the end. The pointer is valid until the list
// changes.
func (l *mappingList) at(p position) *VMA {
	if p.c >= len(l.chunks) {
		return nil
	}
	return &l.chunks[p.c].v[p.i]
}

// find returns the position of the first mapping that ends after va.
func (l *mappingList) find(va arch.Addr) position {
	// The chunk before the first that starts after va.
	c := sort.Search(len(l.chunks), func(i int) bool { return l.chunks[i].start > va })
	if c == 0 {
		return position{0, 0}
	}
	c--
	v := l.chunks[c].v
	i := sort.Search(len(v), func(i int) bool { return v[i].End > va })
	if i == len(v) {
		return position{c + 1, 0}
	}
	return position{c, i}
}

func (l *mappingList) next(p position) position {
	if p.i++; p.i == len(l.chunks[p.c].v) {
		return position{p.c + 1, 0}
	}
	return p
}

// prev returns the position before p; ok is false at the first.
func (l *mappingList) prev(p position) (q position, ok bool) {
	if p.i > 0 {
		return position{p.c, p.i - 1}, true
	}
	if p.c == 0 {
		return p, false
	}
	return position{p.c - 1, len(l.chunks[p.c-1].v) - 1}, true
}

// before returns the mapping before p, or nil.
func (l *mappingList) before(p position) *VMA {
	if q, ok := l.prev(p); ok {
		return l.at(q)
	}
	return nil
}

// insert inserts v in order of address. It must not overlap another mapping.
func (l *mappingList) insert(v VMA) {
	l.count++
	if len(l.chunks) == 0 {
		l.chunks = append(l.chunks, chunk{v: []VMA{v}})
		l.updateChunk(0)
		return
	}
	p := l.find(v.Start)
	if p.i == 0 && p.c > 0 {
		p = position{p.c - 1, len(l.chunks[p.c-1].v)} // at the end of a chunk rather than at the start of the next
	}
	c := &l.chunks[p.c]
	c.v = slices.Insert(c.v, p.i, v)
	if len(c.v) > chunkMax {
		half := slices.Clone(c.v[chunkMax/2:])
		clear(c.v[chunkMax/2:])
		c.v = c.v[:chunkMax/2]
		l.chunks = slices.Insert(l.chunks, p.c+1, chunk{v: half})
		l.updateChunk(p.c + 1)
	}
	l.updateChunk(p.c)
}

// remove removes the mapping at p.
func (l *mappingList) remove(p position) {
	l.count--
	c := &l.chunks[p.c]
	c.v = slices.Delete(c.v, p.i, p.i+1)
	if len(c.v) == 0 {
		l.chunks = slices.Delete(l.chunks, p.c, p.c+1)
	}
	l.updateChunk(p.c)
}

// updateChunk recomputes the summary of chunk c after one of its mappings, or the one
// before it, was changed.
func (l *mappingList) updateChunk(c int) {
	for n := min(c+2, len(l.chunks)); c < n; c++ {
		ch := &l.chunks[c]
		ch.start, ch.gap = ch.v[0].Start, 0
		var end arch.Addr
		if c > 0 {
			end = l.chunks[c-1].v[len(l.chunks[c-1].v)-1].End
		}
		for i := range ch.v {
			if f := ch.v[i].lowestReserved(); f > end {
				ch.gap = max(ch.gap, uint64(f-end))
			}
			end = ch.v[i].End
		}
	}
}

// highestGap returns the highest start of a free range of the given length in
// [low, high).
func (l *mappingList) highestGap(length uint64, low, high arch.Addr) (arch.Addr, bool) {
	top := high
	for c := len(l.chunks) - 1; c >= 0; c-- {
		ch := &l.chunks[c]
		last := &ch.v[len(ch.v)-1]
		if start, ok := highestStart(length, max(low, last.End), top); ok {
			return start, true
		}
		if ch.gap >= length {
			for i := len(ch.v) - 1; i > 0; i-- {
				if start, ok := highestStart(length, max(low, ch.v[i-1].End), min(high, ch.v[i].lowestReserved())); ok {
					return start, true
				}
			}
		}
		if ch.v[0].Start <= low {
			return 0, false
		}
		top = min(high, ch.v[0].lowestReserved())
	}
	return highestStart(length, low, top)
}

// highestStart returns the highest start of a range of the given length in [low, high).
func highestStart(length uint64, low, high arch.Addr) (arch.Addr, bool) {
	if high <= low || uint64(high-low) < length {
		return 0, false
	}
	return high - arch.Addr(length), true
}

// lowestGap returns the lowest start of a free range of the given length in
// [low, high).
func (l *mappingList) lowestGap(length uint64, low, high arch.Addr) (arch.Addr, bool) {
	for p := l.find(low); ; p = l.next(p) {
		v := l.at(p)
		if v == nil {
			return low, high > low && uint64(high-low) >= length
		}
		if p.i == 0 && l.chunks[p.c].gap < length && v.Start > low {
			// No gap in this chunk is large enough: continue at its last mapping.
			p.i = len(l.chunks[p.c].v) - 1
			v = l.at(p)
		} else if f := min(high, v.lowestReserved()); f > low && uint64(f-low) >= length {
			return low, true
		}
		if low = max(low, v.End); low >= high {
			return 0, false
		}
	}
}
