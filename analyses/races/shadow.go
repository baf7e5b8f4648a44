package races

import (
	"math/bits"

	"github.com/heddle-dmt/heddle/recorder/event"
)

const (
	wordSize  = 8
	pageWords = 512
	pageBytes = pageWords * wordSize
)

// The fields of a mark that share a number.
const (
	pcBits     = 48
	pcMask     = 1<<pcBits - 1
	sizeShift  = pcBits // 5 bits: 0 stands for more than 31
	sizeMask   = 31
	flagUsed   = 1 << 53
	flagAtomic = 1 << 54
	flagSilent = 1 << 55 // wrote what was there already
	flagOther  = 1 << 56 // no instruction's access: see Side

	threadBits = 20
	threadMask = 1<<threadBits - 1
)

// MaxThreads is how many threads a Detector tells apart.
const MaxThreads = 1 << threadBits

// mark is an access that is remembered. Marks are most of the memory that a
// Detector takes, so their fields are packed.
type mark struct {
	what            uint64 // pc, size and flags
	when            uint64 // thread, and above it the place in the trace
	segment         uint32
	syncs, branches uint32
	stack           uint32
}

func (m *mark) used() bool     { return m.what&flagUsed != 0 }
func (m *mark) atomic() bool   { return m.what&flagAtomic != 0 }
func (m *mark) silent() bool   { return m.what&flagSilent != 0 }
func (m *mark) thread() uint32 { return uint32(m.when & threadMask) }

func (m *mark) instance() Instance {
	return Instance{
		PC: event.Addr(m.what & pcMask), Thread: int(m.thread()), Syncs: uint64(m.syncs), Branches: uint64(m.branches),
		At: m.when >> threadBits,
	}
}

func (m *mark) side() Side {
	return Side{
		Size: int(m.what >> sizeShift & sizeMask), Atomic: m.atomic(), Other: m.what&flagOther != 0, Stack: m.stack,
	}
}

// state is the last write of some bytes and, of one thread, the last read since.
type state struct{ write, read mark }

// part is the state of the bytes of a word that a mask names, which were always
// accessed together.
type part struct {
	state
	// reads are the last reads of further threads.
	reads []mark
	mask  uint8
}

// page is the states of 512 words. A word whose bytes are all in one state, with
// at most one reader, has it in states and the bytes in masks; other words have
// their parts in more.
type page struct {
	more   [pageWords][]part
	masks  [pageWords]uint8
	states [pageWords]state
}

// shadow is the pages of all words in use.
type shadow struct {
	pages map[uint64]*page
	near  [nearPages]struct {
		number uint64
		page   *page
	}
}

// nearPages is how many pages are found without the map.
const nearPages = 256

func newShadow() *shadow { return &shadow{pages: map[uint64]*page{}} }

// page returns a page by its number.
func (s *shadow) page(number uint64) *page {
	n := &s.near[number%nearPages]
	if n.page != nil && n.number == number {
		return n.page
	}
	p := s.pages[number]
	if p == nil {
		p = new(page)
		s.pages[number] = p
	}
	n.number, n.page = number, p
	return p
}

// drop forgets a whole page.
func (s *shadow) drop(number uint64) {
	delete(s.pages, number)
	if n := &s.near[number%nearPages]; n.number == number {
		n.page = nil
	}
}

// forget clears the bytes in [from, to).
func (s *shadow) forget(from, to uint64) {
	for from < to {
		number := from / pageBytes
		p, end := s.pages[number], (number+1)*pageBytes
		switch {
		case p == nil:
		case from%pageBytes == 0 && end <= to:
			s.drop(number)
		default:
			p.forget(from, min(to, end))
		}
		from = end
	}
}

func (p *page) forget(from, to uint64) {
	for from < to {
		word := from / wordSize
		end := min(to, (word+1)*wordSize)
		p.clear(word%pageWords, maskOf(from, end))
		from = end
	}
}

// maskOf names the bytes [from, to) of the word that from is in.
func maskOf(from, to uint64) uint8 {
	return uint8(0xff) << (from % wordSize) & (0xff >> (wordSize - 1 - (to-1)%wordSize))
}

// clear forgets the bytes of a word that a mask names.
func (p *page) clear(word uint64, mask uint8) {
	p.masks[word] &^= mask
	if p.masks[word] == 0 {
		p.states[word] = state{}
	}
	kept := p.more[word][:0]
	for _, q := range p.more[word] {
		if q.mask &^= mask; q.mask != 0 {
			kept = append(kept, q)
		}
	}
	clear(p.more[word][len(kept):])
	p.more[word] = kept
	if len(kept) == 0 {
		p.more[word] = nil
	}
}

// split moves the state of a word, if it has only one, to its parts.
func (p *page) split(word uint64) {
	if p.masks[word] == 0 {
		return
	}
	p.more[word] = append(p.more[word], part{state: p.states[word], mask: p.masks[word]})
	p.masks[word], p.states[word] = 0, state{}
}

// divide makes parts such that each is within the mask or outside of it, and
// that those within cover it.
func (p *page) divide(word uint64, mask uint8) {
	list := p.more[word]
	missing := mask
	for i := range list {
		q := &list[i]
		missing &^= q.mask
		if q.mask&mask != 0 && q.mask&^mask != 0 {
			rest := *q
			rest.reads = append([]mark(nil), q.reads...)
			rest.mask &^= mask
			q.mask &= mask
			list = append(list, rest)
		}
	}
	if missing != 0 {
		list = append(list, part{mask: missing})
	}
	p.more[word] = list
}

// merge makes one state of the parts of a word, if they are one part without
// further readers.
func (p *page) merge(word uint64) {
	list := p.more[word]
	if len(list) != 1 || len(list[0].reads) > 0 {
		return
	}
	p.states[word], p.masks[word] = list[0].state, list[0].mask
	p.more[word] = nil
}

// addRead remembers a read in the place of an earlier one of the thread.
func (q *part) addRead(m *mark) {
	if !q.read.used() || q.read.thread() == m.thread() {
		q.read = *m
		return
	}
	for i := range q.reads {
		if q.reads[i].thread() == m.thread() {
			q.reads[i] = *m
			return
		}
	}
	q.reads = append(q.reads, *m)
}

// lowest is the number of the first byte that a mask names.
func lowest(mask uint8) uint64 { return uint64(bits.TrailingZeros8(mask)) }
