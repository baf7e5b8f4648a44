package exec

import (
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// cell is a byte that depends on inputs: one of a term of so many bytes. From the lowest
// bits on it has the term, the number of the byte and the term's size. The zero cell is a
// byte that does not.
type cell uint64

func cellOf(t Term, at, size int) cell {
	return cell(uint32(t)) | cell(uint8(at))<<32 | cell(uint8(size))<<40
}

func (c cell) term() Term { return Term(uint32(c)) }
func (c cell) at() int    { return int(uint8(c >> 32)) }
func (c cell) size() int  { return int(uint8(c >> 40)) }

// next is the cell of the byte so many behind it.
func (c cell) next(n int) cell { return c + cell(n)<<32 }

// run is how many bytes, from the first on, depend on no input, or follow each other in
// one term.
func run(cells []cell) int {
	c, n := cells[0], 1
	if c == 0 {
		for n < len(cells) && cells[n] == 0 {
			n++
		}
		return n
	}
	for n < len(cells) && cells[n] == c.next(n) {
		n++
	}
	return n
}

// gather is the term of bytes, the lowest first, of which the recorded values are
// given; 0 if none depends on inputs.
func (t *terms) gather(cells []cell, value symbolic.Value) Term {
	c, n := cells[0], run(cells)
	switch {
	case n < len(cells):
		return t.join(cells, value)
	case c == 0 || c.at() == 0 && c.size() == n:
		return c.term()
	}
	return t.extract(c.term(), c.at(), n)
}

// join puts together bytes of several terms.
func (t *terms) join(cells []cell, value symbolic.Value) Term {
	all := Term(0)
	for i := 0; i < len(cells); {
		n := run(cells[i:])
		part := t.part(cells[i], i, n, value)
		if all == 0 {
			all = part
		} else {
			all = t.concat(part, all)
		}
		i += n
	}
	return all
}

// part is n bytes from number i on, of one term or of none.
func (t *terms) part(c cell, i, n int, value symbolic.Value) Term {
	if c != 0 {
		return t.extract(c.term(), c.at(), n)
	}
	return t.constant(bytesOf(value, i, n), 8*n)
}

// bytesOf are n bytes of a value from one on.
func bytesOf(v symbolic.Value, from, n int) symbolic.Value {
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

// registers are which bytes of a thread's state depend on inputs. A bit of words
// stands for 8 bytes: where it is 0 none does.
type registers struct {
	cells [stateWords * 8]cell
	words [2]uint64
}

const stateWords = 128

// set sets bytes to those of a term, 0 for none.
func (r *registers) set(s vex.Span, t Term) {
	if t == 0 && !r.any(maskOf(s)) {
		return
	}
	scatter(r.cells[s.From:s.To], t, 0, s.Size())
	for w := s.From / 8; w*8 < s.To; w++ {
		bit := uint64(1) << (w % 64)
		if t != 0 || r.wordDepends(w) {
			r.words[w/64] |= bit
		} else {
			r.words[w/64] &^= bit
		}
	}
}

// restore sets the bytes of a word to cells.
func (r *registers) restore(s vex.Span, cells []cell) {
	r.set(s, 0)
	copy(r.cells[s.From:s.To], cells)
	if w := s.From / 8; r.wordDepends(w) {
		r.words[w/64] |= 1 << (w % 64)
	}
}

func (r *registers) wordDepends(w int) bool {
	for _, c := range r.cells[8*w : 8*w+8] {
		if c != 0 {
			return true
		}
	}
	return false
}

// word tells whether a byte is in a word that may depend on inputs.
func (r *registers) word(at int) bool { return r.words[at>>9]>>(at>>3&63)&1 != 0 }

// any tells whether one of the words of a mask may depend on inputs.
func (r *registers) any(mask [2]uint64) bool { return r.words[0]&mask[0]|r.words[1]&mask[1] != 0 }

// none tells that no byte depends on inputs.
func (r *registers) none() bool { return r.words == [2]uint64{} }

// maskOf are the words that bytes are in.
func maskOf(s vex.Span) (mask [2]uint64) {
	for w := s.From / 8; w*8 < s.To; w++ {
		mask[w/64] |= 1 << (w % 64)
	}
	return mask
}

// scatter sets cells to the bytes of a term of so many bytes from number first on, 0
// for none.
func scatter(cells []cell, t Term, first, size int) {
	if t == 0 {
		clear(cells)
		return
	}
	c := cellOf(t, first, size)
	for i := range cells {
		cells[i] = c.next(i)
	}
}

const pageSize = 4096

// page is a page of memory, some bytes of which depend on inputs.
type page struct {
	cells [pageSize]cell
	count int
}

type place struct {
	space  uint64
	number uint64
}

// memory says which bytes of memory depend on inputs.
type memory struct {
	pages map[place]*page
	// latest are some of the places where pages were looked for last.
	latest [1 << 8]struct {
		place
		found *page
	}
	// spare are pages that are used no more: none of their bytes depends on inputs.
	spare []*page
}

func newMemory() memory {
	m := memory{pages: map[place]*page{}}
	for i := range m.latest {
		m.latest[i].place = nowhere
	}
	return m
}

// nowhere is the place of no page.
var nowhere = place{space: ^uint64(0)}

func slotOf(k place) uint64 { return (k.number ^ k.number>>8) % (1 << 8) }

// page is a page, or nil if none of its bytes depends on inputs.
func (m *memory) page(k place) *page {
	slot := &m.latest[slotOf(k)]
	if slot.place != k {
		slot.place, slot.found = k, m.pages[k]
	}
	return slot.found
}

// put makes a page that of a place, nil: there is none.
func (m *memory) put(k place, pg *page) {
	m.latest[slotOf(k)].place = nowhere
	if pg == nil {
		delete(m.pages, k)
	} else {
		m.pages[k] = pg
	}
}

// fresh is a page none of whose bytes depends on inputs.
func (m *memory) fresh() *page {
	if n := len(m.spare); n > 0 {
		pg := m.spare[n-1]
		m.spare = m.spare[:n-1]
		return pg
	}
	return &page{}
}

// within are n bytes that lie in one page that has some which depend on inputs; nil:
// they do not.
func (m *memory) within(space, addr uint64, n int) []cell {
	from := int(addr % pageSize)
	if from+n > pageSize {
		return nil
	}
	pg := m.page(place{space, addr / pageSize})
	if pg == nil {
		return nil
	}
	return pg.cells[from : from+n]
}

// touched tells whether any of n bytes depends on inputs.
func (m *memory) touched(space, addr uint64, n int) bool {
	if len(m.pages) == 0 {
		return false
	}
	for at := addr; at < addr+uint64(n); {
		from := int(at % pageSize)
		part := min(int(addr+uint64(n)-at), pageSize-from)
		if pg := m.page(place{space, at / pageSize}); pg != nil {
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

// load copies cells out.
func (m *memory) load(space, addr uint64, to []cell) {
	for done := 0; done < len(to); {
		at := addr + uint64(done)
		from := int(at % pageSize)
		part := min(len(to)-done, pageSize-from)
		if pg := m.page(place{space, at / pageSize}); pg != nil {
			copy(to[done:done+part], pg.cells[from:])
		} else {
			clear(to[done : done+part])
		}
		done += part
	}
}

// store sets n bytes to a term, 0 for none.
func (m *memory) store(space, addr uint64, n int, t Term) {
	if t == 0 && len(m.pages) == 0 {
		return
	}
	for done := 0; done < n; {
		at := addr + uint64(done)
		from := int(at % pageSize)
		part := min(n-done, pageSize-from)
		k := place{space, at / pageSize}
		pg := m.page(k)
		if pg == nil && t != 0 {
			pg = m.fresh()
			m.put(k, pg)
		}
		if pg != nil {
			m.change(k, pg, from, part, piece{t, done, n})
		}
		done += part
	}
}

// piece is bytes of a term of so many, from the first on.
type piece struct {
	term        Term
	first, size int
}

// change sets bytes of a page.
func (m *memory) change(k place, pg *page, from, n int, p piece) {
	cells := pg.cells[from : from+n]
	for _, c := range cells {
		if c != 0 {
			pg.count--
		}
	}
	scatter(cells, p.term, p.first, p.size)
	if p.term != 0 {
		pg.count += n
	}
	if pg.count == 0 {
		m.put(k, nil)
		m.spare = append(m.spare, pg)
	}
}
