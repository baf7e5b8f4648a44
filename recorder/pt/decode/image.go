package decode

import "math"

// pageSize is that of the code's bookkeeping; the guest's pages do not matter.
const pageSize = 4096

type pageKey struct{ space, number uint64 }

// page is the code of one page at one time.
type page struct {
	bytes   [pageSize]byte
	present [pageSize / 64]uint64
}

func (p *page) has(at uint64) bool { return p.present[at/64]>>(at%64)&1 != 0 }

func (p *page) set(at uint64, b byte) {
	p.bytes[at] = b
	p.present[at/64] |= 1 << (at % 64)
}

// change is code that takes the place of other code.
type change struct {
	at, space, addr uint64
	code            []byte
}

// Image is the code that one core ran, with the changes of it and their times. A
// Decoder moves it forward in time as it decodes; it cannot go back.
type Image struct {
	now     map[pageKey]*page
	latest  map[pageKey]*page // the pages that changes are to come for, after them
	changes []change          // that are not in now yet
}

// NewImage returns an image without code.
func NewImage() *Image {
	return &Image{now: map[pageKey]*page{}, latest: map[pageKey]*page{}}
}

// Add says that from at on, an instruction count of the core, there is code at
// an address of an address space, numbered as in the encoder's PIP. Pieces come
// in the order of at. Bytes where none were known are taken to have been there
// always.
func (m *Image) Add(space, at, addr uint64, code []byte) {
	first, last := len(code), -1
	for from := 0; from < len(code); {
		place := (addr + uint64(from)) % pageSize
		to := min(len(code), from+int(pageSize-place))
		k := pageKey{space, (addr + uint64(from)) / pageSize}
		for _, i := range m.merge(k, place, code[from:to]) {
			first, last = min(first, from+i), max(last, from+i)
		}
		from = to
	}
	if last < 0 {
		return
	}
	c := change{at: at, space: space, addr: addr + uint64(first), code: append([]byte(nil), code[first:last+1]...)}
	m.changes = append(m.changes, c)
	for i, b := range c.code {
		a := c.addr + uint64(i)
		m.future(pageKey{space, a / pageSize}).set(a%pageSize, b)
	}
}

// merge adds the bytes of a page that were not known, and returns the first and
// the last that were others, if any.
func (m *Image) merge(k pageKey, place uint64, code []byte) (other []int) {
	known := m.newest(k)
	if known == nil {
		known = &page{}
		m.now[k] = known
	}
	for i, b := range code {
		switch a := place + uint64(i); {
		case !known.has(a):
			m.fill(k, a, b)
		case known.bytes[a] != b && len(other) < 2:
			other = append(other, i)
		case known.bytes[a] != b:
			other[1] = i
		}
	}
	return other
}

func (m *Image) newest(k pageKey) *page {
	if p := m.latest[k]; p != nil {
		return p
	}
	return m.now[k]
}

// fill adds a byte that was there always.
func (m *Image) fill(k pageKey, at uint64, b byte) {
	p := m.now[k]
	if p == nil {
		p = &page{}
		m.now[k] = p
	}
	if !p.has(at) {
		p.set(at, b)
	}
	if l := m.latest[k]; l != nil {
		l.set(at, b)
	}
}

// future is the page as it will be after all changes.
func (m *Image) future(k pageKey) *page {
	p := m.latest[k]
	if p == nil {
		p = &page{}
		if now := m.now[k]; now != nil {
			*p = *now
		}
		m.latest[k] = p
	}
	return p
}

// nextChange is the count of instructions after which the next change is due.
func (m *Image) nextChange() uint64 {
	if len(m.changes) == 0 {
		return math.MaxUint64
	}
	return m.changes[0].at
}

// advance makes the next change and returns it.
func (m *Image) advance() change {
	c := m.changes[0]
	m.changes = m.changes[1:]
	for i, b := range c.code {
		a := c.addr + uint64(i)
		k := pageKey{c.space, a / pageSize}
		p := m.now[k]
		if p == nil {
			p = &page{}
			m.now[k] = p
		}
		p.set(a%pageSize, b)
	}
	if len(m.changes) == 0 {
		clear(m.latest)
	}
	return c
}

// read appends the code from an address on to b, up to a length or to where
// none is known.
func (m *Image) read(b []byte, space, addr uint64, max int) []byte {
	for max > 0 {
		p := m.now[pageKey{space, addr / pageSize}]
		if p == nil {
			return b
		}
		n := uint64(0)
		at := addr % pageSize
		for n < uint64(max) && at+n < pageSize && p.has(at+n) {
			n++
		}
		b = append(b, p.bytes[at:at+n]...)
		if at+n < pageSize {
			return b
		}
		addr += n
		max -= int(n)
	}
	return b
}
