package stream

import (
	"encoding/binary"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// values is what memory contains, by page. A nil one follows nothing.
type values struct {
	pages map[uint64]*[pageSize]byte
	last  *[pageSize]byte
	which uint64 // page of last
}

func newValues() *values { return &values{pages: map[uint64]*[pageSize]byte{}} }

// page is the content of a page, nil if it is not known.
func (v *values) page(n uint64) *[pageSize]byte {
	if v.last == nil || v.which != n {
		p := v.pages[n]
		if p == nil {
			return nil
		}
		v.last, v.which = p, n
	}
	return v.last
}

// content sets a page, to zeros if data is nil.
func (v *values) content(n uint64, data []byte) {
	if v == nil {
		return
	}
	p := v.page(n)
	if p == nil {
		p = new([pageSize]byte)
		v.pages[n] = p
	}
	clear(p[copy(p[:], data):])
}

func (v *values) copy(to, from uint64) {
	if v == nil {
		return
	}
	var data []byte
	if p := v.page(from); p != nil {
		data = append(data, p[:]...)
	}
	v.content(to, data)
}

// put sets what the kernel wrote, or a buffer shows.
func (v *values) put(m *event.Memory) {
	if v == nil {
		return
	}
	if p := v.page(m.Page); p != nil {
		copy(p[uint64(m.Addr)%pageSize:], m.Data)
	}
}

// store sets what a store writes, and tells a what it replaces.
func (v *values) store(m *event.Memory, a *races.Access) {
	offset, size := uint64(m.Addr)%pageSize, uint64(m.Size)
	p := v.page(m.Page)
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
func (v *values) storeBytes(m *event.Memory, a *races.Access, p *[pageSize]byte, offset, size uint64) {
	var value [16]byte
	binary.LittleEndian.PutUint64(value[:], m.Value[0])
	binary.LittleEndian.PutUint64(value[8:], m.Value[1])
	var old [16]byte
	n := uint64(copy(old[:size], p[offset:]))
	copy(p[offset:], value[:n])
	a.Valued = true
	if n < size {
		q := v.page(m.Next)
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
