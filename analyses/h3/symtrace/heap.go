package symtrace

import (
	"sort"

	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
)

// header is the size of the header of a chunk of glibc's allocator: the size of the preceding
// chunk, if that is free, and its own size with three flags in the lowest bits.
const header = 16

// chunkSize reads the size in the header at an address.
func (m *Image) chunkSize(at uint64) (size uint64, ok bool) {
	const flags, least, most = 7, 32, 1 << 26
	var b [8]byte
	if m.Peek(at+header/2, b[:]) < len(b) {
		return 0, false
	}
	size = symmem.ValueOf(b[:]).Lo &^ flags
	return size, size >= least && size <= most && size%header == 0
}

// chunkAt finds the piece of memory that glibc's allocator gave out in which an address
// is.
func (m *Image) chunkAt(addr uint64) (Object, bool) {
	i := sort.Search(len(m.Mapped), func(i int) bool { return m.Mapped[i].End > addr })
	if i == len(m.Mapped) || addr < m.Mapped[i].Start {
		return Object{}, false
	}
	all := m.heapChunks(m.Mapped[i])
	k := sort.Search(len(all), func(k int) bool { return all[k].Addr > addr })
	if k == 0 || addr >= all[k-1].Addr+all[k-1].Size {
		return Object{}, false
	}
	return all[k-1], true
}

// heapChunks are the chunks of a mapping that is a heap: from one header to the next, up to the
// mapping's end. Memory before the first header does not belong to the allocator.
func (m *Image) heapChunks(r Range) []Object {
	if all, known := m.heaps[r]; known {
		return all
	}
	if m.heaps == nil {
		m.heaps = map[Range][]Object{}
	}
	const within = 1 << 16
	var all []Object
	for at := r.Start; at < min(r.End, r.Start+within) && len(all) == 0; at += header {
		all = m.chunkChain(at, r.End)
	}
	m.heaps[r] = all
	return all
}

// chunkChain are the pieces from a header on, if they end where they should, and there are
// several.
func (m *Image) chunkChain(at, end uint64) []Object {
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
