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

func (p *page) hasByte(at uint64) bool { return p.present[at/64]>>(at%64)&1 != 0 }

func (p *page) setByte(at uint64, b byte) {
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
		for _, i := range m.mergePage(k, place, code[from:to]) {
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
		m.futurePage(pageKey{space, a / pageSize}).setByte(a%pageSize, b)
	}
}

// mergePage adds the bytes of a page that were not known, and returns the first and
// the last that were others, if any.
func (m *Image) mergePage(k pageKey, place uint64, code []byte) (other []int) {
	known := m.newestPage(k)
	if known == nil {
		known = &page{}
		m.now[k] = known
	}
	for i, b := range code {
		switch a := place + uint64(i); {
		case !known.hasByte(a):
			m.fillByte(k, a, b)
		case known.bytes[a] != b && len(other) < 2:
			other = append(other, i)
		case known.bytes[a] != b:
			other[1] = i
		}
	}
	return other
}

func (m *Image) newestPage(k pageKey) *page {
	if p := m.latest[k]; p != nil {
		return p
	}
	return m.now[k]
}

// fillByte adds a byte that was there always.
func (m *Image) fillByte(k pageKey, at uint64, b byte) {
	p := m.now[k]
	if p == nil {
		p = &page{}
		m.now[k] = p
	}
	if !p.hasByte(at) {
		p.setByte(at, b)
	}
	if l := m.latest[k]; l != nil {
		l.setByte(at, b)
	}
}

// futurePage is the page as it will be after all changes.
func (m *Image) futurePage(k pageKey) *page {
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

// applyChange makes the next change and returns it.
func (m *Image) applyChange() change {
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
		p.setByte(a%pageSize, b)
	}
	if len(m.changes) == 0 {
		clear(m.latest)
	}
	return c
}

// readCode appends the code from an address on to b, up to a length or to where
// none is known.
func (m *Image) readCode(b []byte, space, addr uint64, max int) []byte {
	for max > 0 {
		p := m.now[pageKey{space, addr / pageSize}]
		if p == nil {
			return b
		}
		n := uint64(0)
		at := addr % pageSize
		for n < uint64(max) && at+n < pageSize && p.hasByte(at+n) {
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
