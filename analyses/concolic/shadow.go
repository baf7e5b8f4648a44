package concolic

import (
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// cell says which byte of which term a byte of memory or state is. From the lowest bits it
// holds the term, the number of the byte and the term's size in bytes. The zero cell is a
// byte that depends on no input.
type cell uint64

func cellOf(t Term, at, size int) cell {
	return cell(uint32(t)) | cell(uint8(at))<<32 | cell(uint8(size))<<40
}

func (c cell) term() Term     { return Term(uint32(c)) }
func (c cell) byteIndex() int { return int(uint8(c >> 32)) }
func (c cell) size() int      { return int(uint8(c >> 40)) }

// advance is the cell of the byte n bytes later in the term.
func (c cell) advance(n int) cell { return c + cell(n)<<32 }

// runLength is the number of bytes from the first that depend on no input, or that are
// consecutive bytes of one term.
func runLength(cells []cell) int {
	c, n := cells[0], 1
	if c == 0 {
		for n < len(cells) && cells[n] == 0 {
			n++
		}
		return n
	}
	for n < len(cells) && cells[n] == c.advance(n) {
		n++
	}
	return n
}

// gatherTerm returns the term of bytes, the lowest first, with the recorded value value; 0
// if none depends on inputs.
func (t *termStore) gatherTerm(cells []cell, value symbolic.Value) Term {
	c, n := cells[0], runLength(cells)
	switch {
	case n < len(cells):
		return t.joinParts(cells, value)
	case c == 0 || c.byteIndex() == 0 && c.size() == n:
		return c.term()
	}
	return max(t.extractBytes(c.term(), c.byteIndex(), n), 0) // a constant depends on no input
}

// joinParts concatenates bytes of several terms.
func (t *termStore) joinParts(cells []cell, value symbolic.Value) Term {
	all := Term(0)
	for i := 0; i < len(cells); {
		n := runLength(cells[i:])
		part := t.partTerm(cells[i], i, n, value)
		if all == 0 {
			all = part
		} else {
			all = t.concatTerms(part, all)
		}
		i += n
	}
	return all
}

// partTerm is n bytes from number i, of one term or of none.
func (t *termStore) partTerm(c cell, i, n int, value symbolic.Value) Term {
	if c != 0 {
		return t.extractBytes(c.term(), c.byteIndex(), n)
	}
	return t.constantTerm(valueBytes(value, i, n), 8*n)
}

// valueBytes are n bytes of a value, from one on.
func valueBytes(v symbolic.Value, from, n int) symbolic.Value {
	by := 8 * from
	switch {
	case by >= 64:
		v = symbolic.Value{Lo: v.Hi >> (by - 64)}
	case by > 0:
		v = symbolic.Value{Lo: v.Lo>>by | v.Hi<<(64-by), Hi: v.Hi >> by}
	}
	switch {
	case n < 8:
		return symbolic.Value{Lo: v.Lo & (1<<(8*n) - 1)}
	case n == 8:
		return symbolic.Value{Lo: v.Lo}
	case n < 16:
		v.Hi &= 1<<(8*n-64) - 1
	}
	return v
}

// registerShadow says which bytes of a thread's state depend on inputs. A bit of words
// stands for 8 bytes: if it is 0 none of them does.
type registerShadow struct {
	cells [stateWords * 8]cell
	words [2]uint64
}

const stateWords = 128

// setTerm sets bytes to a term, 0 for none.
func (r *registerShadow) setTerm(s vex.Span, t Term) {
	if t == 0 && !r.anyMayDepend(wordMask(s)) {
		return
	}
	scatterTerm(r.cells[s.From:s.To], t, 0, s.Size())
	for w := s.From / 8; w*8 < s.To; w++ {
		bit := uint64(1) << (w % 64)
		if t != 0 || r.wordDepends(w) {
			r.words[w/64] |= bit
		} else {
			r.words[w/64] &^= bit
		}
	}
}

// restoreWord sets the bytes of a word to cells.
func (r *registerShadow) restoreWord(s vex.Span, cells []cell) {
	r.setTerm(s, 0)
	copy(r.cells[s.From:s.To], cells)
	if w := s.From / 8; r.wordDepends(w) {
		r.words[w/64] |= 1 << (w % 64)
	}
}

func (r *registerShadow) wordDepends(w int) bool {
	for _, c := range r.cells[8*w : 8*w+8] {
		if c != 0 {
			return true
		}
	}
	return false
}

// wordMayDepend reports whether a byte is in a word that may depend on inputs.
func (r *registerShadow) wordMayDepend(at int) bool { return r.words[at>>9]>>(at>>3&63)&1 != 0 }

// anyMayDepend reports whether a word of a mask may depend on inputs.
func (r *registerShadow) anyMayDepend(mask [2]uint64) bool {
	return r.words[0]&mask[0]|r.words[1]&mask[1] != 0
}

// noneDepends reports whether no byte depends on inputs.
func (r *registerShadow) noneDepends() bool { return r.words == [2]uint64{} }

// wordMask is the words that contain bytes.
func wordMask(s vex.Span) (mask [2]uint64) {
	for w := s.From / 8; w*8 < s.To; w++ {
		mask[w/64] |= 1 << (w % 64)
	}
	return mask
}

// scatterTerm sets cells to the bytes of a term of size bytes from byte first on, 0 for
// none.
func scatterTerm(cells []cell, t Term, first, size int) {
	if t == 0 {
		clear(cells)
		return
	}
	c := cellOf(t, first, size)
	for i := range cells {
		cells[i] = c.advance(i)
	}
}

const pageSize = 4096

// shadowPage is a page of memory in which some bytes depend on inputs.
type shadowPage struct {
	cells [pageSize]cell
	count int
}

type location struct {
	space  uint64
	number uint64
}

// memoryShadow says which bytes of memory depend on inputs.
type memoryShadow struct {
	pages map[location]*shadowPage
	// latest are some of the pages looked up last.
	latest [1 << 8]struct {
		location
		found *shadowPage
	}
	// spare are unused pages: none of their bytes depends on inputs.
	spare []*shadowPage
}

func newMemoryShadow() memoryShadow {
	m := memoryShadow{pages: map[location]*shadowPage{}}
	for i := range m.latest {
		m.latest[i].location = noLocation
	}
	return m
}

// noLocation is the location of no page.
var noLocation = location{space: ^uint64(0)}

func cacheSlot(k location) uint64 { return (k.number ^ k.number>>8) % (1 << 8) }

// lookupPage returns a page, or nil if none of its bytes depends on inputs.
func (m *memoryShadow) lookupPage(k location) *shadowPage {
	slot := &m.latest[cacheSlot(k)]
	if slot.location != k {
		slot.location, slot.found = k, m.pages[k]
	}
	return slot.found
}

// setPage sets the page at a location; nil removes it.
func (m *memoryShadow) setPage(k location, pg *shadowPage) {
	m.latest[cacheSlot(k)].location = noLocation
	if pg == nil {
		delete(m.pages, k)
	} else {
		m.pages[k] = pg
	}
}

// newPage is a page none of whose bytes depends on inputs.
func (m *memoryShadow) newPage() *shadowPage {
	if n := len(m.spare); n > 0 {
		pg := m.spare[n-1]
		m.spare = m.spare[:n-1]
		return pg
	}
	return &shadowPage{}
}

// cellsWithin returns the cells of n bytes if they lie in one page that has bytes which
// depend on inputs; otherwise nil.
func (m *memoryShadow) cellsWithin(space, addr uint64, n int) []cell {
	from := int(addr % pageSize)
	if from+n > pageSize {
		return nil
	}
	pg := m.lookupPage(location{space, addr / pageSize})
	if pg == nil {
		return nil
	}
	return pg.cells[from : from+n]
}

// dependsOnInput reports whether any of n bytes depends on inputs.
func (m *memoryShadow) dependsOnInput(space, addr uint64, n int) bool {
	if len(m.pages) == 0 {
		return false
	}
	for at := addr; at < addr+uint64(n); {
		from := int(at % pageSize)
		part := min(int(addr+uint64(n)-at), pageSize-from)
		if pg := m.lookupPage(location{space, at / pageSize}); pg != nil {
			for _, c := range pg.cells[from : from+part] {
				if c != 0 {
					return true
				}
			}
		}
		at += uint64(part)
	}
	return false
}

// loadCells copies cells out.
func (m *memoryShadow) loadCells(space, addr uint64, to []cell) {
	for done := 0; done < len(to); {
		at := addr + uint64(done)
		from := int(at % pageSize)
		part := min(len(to)-done, pageSize-from)
		if pg := m.lookupPage(location{space, at / pageSize}); pg != nil {
			copy(to[done:done+part], pg.cells[from:])
		} else {
			clear(to[done : done+part])
		}
		done += part
	}
}

// storeTerm sets n bytes to a term, 0 for none.
func (m *memoryShadow) storeTerm(space, addr uint64, n int, t Term) {
	if t == 0 && len(m.pages) == 0 {
		return
	}
	for done := 0; done < n; {
		at := addr + uint64(done)
		from := int(at % pageSize)
		part := min(n-done, pageSize-from)
		k := location{space, at / pageSize}
		pg := m.lookupPage(k)
		if pg == nil && t != 0 {
			pg = m.newPage()
			m.setPage(k, pg)
		}
		if pg != nil {
			m.changeCells(k, pg, from, part, termPart{t, done, n})
		}
		done += part
	}
}

// termPart is bytes of a term of size bytes, from the first on.
type termPart struct {
	term        Term
	first, size int
}

// changeCells sets bytes of a page.
func (m *memoryShadow) changeCells(k location, pg *shadowPage, from, n int, p termPart) {
	cells := pg.cells[from : from+n]
	for _, c := range cells {
		if c != 0 {
			pg.count--
		}
	}
	scatterTerm(cells, p.term, p.first, p.size)
	if p.term != 0 {
		pg.count += n
	}
	if pg.count == 0 {
		m.setPage(k, nil)
		m.spare = append(m.spare, pg)
	}
}
