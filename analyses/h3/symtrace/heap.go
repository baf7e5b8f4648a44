package symtrace

import (
	"sort"

	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/malloc"
)

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

// heapChunks are the pieces of a mapping that is a heap.
func (m *Image) heapChunks(r Range) []Object {
	if all, known := m.heaps[r]; known {
		return all
	}
	if m.heaps == nil {
		m.heaps = map[Range][]Object{}
	}
	var all []Object
	for _, p := range malloc.Pieces(m.Peek, r.Start, r.End) {
		all = append(all, Object(p))
	}
	m.heaps[r] = all
	return all
}
