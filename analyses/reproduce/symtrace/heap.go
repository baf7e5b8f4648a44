package symtrace

import "sort"

// header is what glibc's allocator has before a piece of memory: the size of the piece
// before it, if that is free, and its own with three flags, the lowest bits.
const header = 16

// chunkSize is what the header at an address says.
func (m *Image) chunkSize(at uint64) (size uint64, ok bool) {
	const flags, least, most = 7, 32, 1 << 26
	var b [8]byte
	if m.Peek(at+header/2, b[:]) < len(b) {
		return 0, false
	}
	size = valueOf(b[:]).Lo &^ flags
	return size, size >= least && size <= most && size%header == 0
}

// chunk finds the piece of memory that glibc's allocator gave out in which an address
// is.
func (m *Image) chunk(addr uint64) (Object, bool) {
	i := sort.Search(len(m.Mapped), func(i int) bool { return m.Mapped[i].End > addr })
	if i == len(m.Mapped) || addr < m.Mapped[i].Start {
		return Object{}, false
	}
	all := m.chunks(m.Mapped[i])
	k := sort.Search(len(all), func(k int) bool { return all[k].Addr > addr })
	if k == 0 || addr >= all[k-1].Addr+all[k-1].Size {
		return Object{}, false
	}
	return all[k-1], true
}

// chunks are the pieces of a mapping that is a heap: from one header to the next, up to
// the mapping's end. What is before the first one is not the allocator's.
func (m *Image) chunks(r Range) []Object {
	if all, known := m.heaps[r]; known {
		return all
	}
	if m.heaps == nil {
		m.heaps = map[Range][]Object{}
	}
	const within = 1 << 16
	var all []Object
	for at := r.Start; at < min(r.End, r.Start+within) && len(all) == 0; at += header {
		all = m.chain(at, r.End)
	}
	m.heaps[r] = all
	return all
}

// chain are the pieces from a header on, if they end where they should, and there are
// several.
func (m *Image) chain(at, end uint64) []Object {
	var all []Object
	for at < end {
		size, ok := m.chunkSize(at)
		if !ok {
			return nil
		}
		all = append(all, Object{at + header, size - header/2})
		at += size
	}
	if at != end || len(all) < 2 {
		return nil
	}
	return all
}
