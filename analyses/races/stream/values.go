package stream

import (
	"encoding/binary"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// memoryContent is the content of memory, by page. A nil one follows nothing.
type memoryContent struct {
	pages map[uint64]*[pageSize]byte
	last  *[pageSize]byte
	which uint64 // page of last
}

func newMemoryContent() *memoryContent { return &memoryContent{pages: map[uint64]*[pageSize]byte{}} }

// pageAt is the content of a page, nil if it is not known.
func (v *memoryContent) pageAt(n uint64) *[pageSize]byte {
	if v.last == nil || v.which != n {
		p := v.pages[n]
		if p == nil {
			return nil
		}
		v.last, v.which = p, n
	}
	return v.last
}

// setPage sets a page, to zeros if data is nil.
func (v *memoryContent) setPage(n uint64, data []byte) {
	if v == nil {
		return
	}
	p := v.pageAt(n)
	if p == nil {
		p = new([pageSize]byte)
		v.pages[n] = p
	}
	clear(p[copy(p[:], data):])
}

func (v *memoryContent) copyPage(to, from uint64) {
	if v == nil {
		return
	}
	var data []byte
	if p := v.pageAt(from); p != nil {
		data = append(data, p[:]...)
	}
	v.setPage(to, data)
}

// putBytes sets the bytes that the kernel wrote, or that a buffer shows.
func (v *memoryContent) putBytes(m *event.Memory) {
	if v == nil {
		return
	}
	if p := v.pageAt(m.Page); p != nil {
		copy(p[uint64(m.Addr)%pageSize:], m.Data)
	}
}

// applyStore applies a store, and sets the value that it replaces in a.
func (v *memoryContent) applyStore(m *event.Memory, a *races.Access) {
	offset, size := uint64(m.Addr)%pageSize, uint64(m.Size)
	p := v.pageAt(m.Page)
	if p == nil {
		return
	}
	if size == 8 && offset+8 <= pageSize {
		b := p[offset : offset+8]
		a.Valued, a.Value, a.Old = true, m.Value[0], binary.LittleEndian.Uint64(b)
		binary.LittleEndian.PutUint64(b, m.Value[0])
		return
	}
	v.storeBytes(m, a, p, offset, size)
}

// storeBytes is store for other sizes, and for two pages. Of values of more than
// eight bytes a gets whether they are equal.
func (v *memoryContent) storeBytes(m *event.Memory, a *races.Access, p *[pageSize]byte, offset, size uint64) {
	var value [16]byte
	binary.LittleEndian.PutUint64(value[:], m.Value[0])
	binary.LittleEndian.PutUint64(value[8:], m.Value[1])
	var old [16]byte
	n := uint64(copy(old[:size], p[offset:]))
	copy(p[offset:], value[:n])
	a.Valued = true
	if n < size {
		q := v.pageAt(m.Next)
		if a.Valued = q != nil; q != nil {
			copy(old[n:size], q[:])
			copy(q[:], value[n:size])
		}
	}
	clear(value[size:])
	a.Value, a.Old = binary.LittleEndian.Uint64(value[:]), binary.LittleEndian.Uint64(old[:])
	if size > 8 && value != old {
		a.Value, a.Old = 0, 1
	}
}
