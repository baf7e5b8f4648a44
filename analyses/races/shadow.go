package races

import (
	"math/bits"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
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
	flagSilent = 1 << 55 // wrote the value that was there already
	flagOther  = 1 << 56 // no instruction's access: see Side
	partShift  = 57      // 3 bits
	partMask   = 7
	partsShift = 60 // 4 bits

	threadBits = 20
	threadMask = 1<<threadBits - 1
)

// MaxThreads is how many threads a Detector can distinguish.
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

func (m *mark) isUsed() bool         { return m.what&flagUsed != 0 }
func (m *mark) isAtomic() bool       { return m.what&flagAtomic != 0 }
func (m *mark) isSilent() bool       { return m.what&flagSilent != 0 }
func (m *mark) threadNumber() uint32 { return uint32(m.when & threadMask) }

func (m *mark) toInstance() Instance {
	return Instance{
		PC: arch.Addr(m.what & pcMask), Thread: int(m.threadNumber()), Syncs: uint64(m.syncs), Branches: uint64(m.branches),
		Part: uint8(m.what >> partShift & partMask), Parts: uint8(m.what >> partsShift), At: m.when >> threadBits,
	}
}

func (m *mark) toSide() Side {
	return Side{
		Size: int(m.what >> sizeShift & sizeMask), Atomic: m.isAtomic(), Other: m.what&flagOther != 0, Stack: m.stack,
	}
}

// state is the last write of some bytes and, of one thread, the last read since.
type state struct{ write, read mark }

// page is the states of 512 words. The bytes of a word that were always accessed together are a
// part of it and have one state; parts are adjacent bytes. Bit n of starts is set if a part begins
// at byte n, of known if byte n is in one. The first part's state is in states, those of others in
// more.
type page struct {
	more   [pageWords]*parts
	starts [pageWords]uint8
	known  [pageWords]uint8
	states [pageWords]state
}

// parts has the states of a word's further parts in their order, and of each part, if several
// threads read it, the last reads of further threads.
type parts struct {
	states []state
	reads  *[wordSize][]mark
}

// shadowMemory is the pages of all words in use.
type shadowMemory struct {
	pages map[uint64]*page
	near  [nearPages]struct {
		number uint64
		page   *page
	}
}

// nearPages is how many pages are found without the map.
const nearPages = 256

func newShadow() *shadowMemory { return &shadowMemory{pages: map[uint64]*page{}} }

// pageAt returns a page by its number.
func (s *shadowMemory) pageAt(number uint64) *page {
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

// dropPage forgets a whole page.
func (s *shadowMemory) dropPage(number uint64) {
	delete(s.pages, number)
	if n := &s.near[number%nearPages]; n.number == number {
		n.page = nil
	}
}

// forgetRange clears the bytes in [from, to).
func (s *shadowMemory) forgetRange(from, to uint64) {
	for from < to {
		number := from / pageBytes
		p, end := s.pages[number], (number+1)*pageBytes
		switch {
		case p == nil:
		case from%pageBytes == 0 && end <= to:
			s.dropPage(number)
		default:
			p.forgetRange(from, min(to, end))
		}
		from = end
	}
}

func (p *page) forgetRange(from, to uint64) {
	for from < to {
		word := from / wordSize
		end := min(to, (word+1)*wordSize)
		p.clearBytes(word%pageWords, maskOf(from, end))
		from = end
	}
}

// maskOf names the bytes [from, to) of the word that from is in.
func maskOf(from, to uint64) uint8 {
	return uint8(0xff) << (from % wordSize) & (0xff >> (wordSize - 1 - (to-1)%wordSize))
}

// partNumber is the number of the part that begins at a byte.
func partNumber(starts uint8, lo uint64) int { return bits.OnesCount8(starts & (1<<lo - 1)) }

// partState is that of a part, by the part's number.
func (p *page) partState(word uint64, part int) *state {
	if part == 0 {
		return &p.states[word]
	}
	return &p.more[word].states[part-1]
}

// furtherReads is the list of further reads of a part, nil if the word has none.
func (p *page) furtherReads(word uint64, part int) *[]mark {
	m := p.more[word]
	if m == nil || m.reads == nil {
		return nil
	}
	return &m.reads[part]
}

// startPart makes a part begin at a byte: a part that contains it becomes two of the same state,
// and a byte in no part begins an empty one, which extends to the byte hi or the next part.
func (p *page) startPart(word, lo, hi uint64) {
	bit := uint8(1) << lo
	starts, known := p.starts[word], p.known[word]
	if starts&bit != 0 {
		return
	}
	n := partNumber(starts, lo)
	var s state
	var reads []mark
	if known&bit != 0 {
		s = *p.partState(word, n-1)
		if list := p.furtherReads(word, n-1); list != nil {
			reads = append(reads, *list...)
		}
	} else {
		end := lo + 1
		for end < hi && known>>end&1 == 0 {
			end++
		}
		p.known[word] |= maskOf(lo, end)
	}
	p.insertPart(word, n, s, reads)
	p.starts[word] |= bit
}

// insertPart makes room for a part before the one with number n.
func (p *page) insertPart(word uint64, n int, s state, reads []mark) {
	if p.starts[word] == 0 {
		p.states[word] = s
		return
	}
	m := p.more[word]
	if m == nil {
		m = &parts{}
		p.more[word] = m
	}
	if n == 0 {
		m.states = slices.Insert(m.states, 0, p.states[word])
		p.states[word] = s
	} else {
		m.states = slices.Insert(m.states, n-1, s)
	}
	if m.reads != nil || len(reads) > 0 {
		m.allocateReads()
		copy(m.reads[n+1:], m.reads[n:])
		m.reads[n] = reads
	}
}

// removePart forgets a part.
func (p *page) removePart(word, lo uint64) {
	n := partNumber(p.starts[word], lo)
	p.starts[word] &^= 1 << lo
	m := p.more[word]
	switch {
	case m == nil:
		p.states[word] = state{}
		return
	case n > 0:
		m.states = slices.Delete(m.states, n-1, n)
	case len(m.states) > 0:
		p.states[word] = m.states[0]
		m.states = slices.Delete(m.states, 0, 1)
	default:
		p.states[word] = state{}
	}
	if m.reads != nil {
		copy(m.reads[n:], m.reads[n+1:])
		m.reads[wordSize-1] = nil
	}
}

// divideParts makes parts such that some cover the bytes [lo, hi) and no others.
func (p *page) divideParts(word, lo, hi uint64) {
	if hi < wordSize && p.known[word]>>hi&1 != 0 {
		p.startPart(word, hi, wordSize)
	}
	for at := lo; at < hi; at++ {
		if at == lo || p.known[word]>>at&1 == 0 {
			p.startPart(word, at, hi)
		}
	}
}

// clearBytes forgets the bytes of a word that a mask names, which are adjacent.
func (p *page) clearBytes(word uint64, mask uint8) {
	if p.known[word]&mask == 0 {
		return
	}
	lo := lowestByte(mask)
	p.divideParts(word, lo, lo+uint64(bits.OnesCount8(mask)))
	for at := lo; at < wordSize; at++ {
		if mask&p.starts[word]>>at&1 != 0 {
			p.removePart(word, at)
		}
	}
	p.known[word] &^= mask
	if p.known[word] == 0 {
		p.more[word] = nil
	}
}

// allocateReads makes room for further reads.
func (m *parts) allocateReads() {
	if m.reads == nil {
		m.reads = new([wordSize][]mark)
	}
}

// addReader remembers the read of a thread that is not that of the state's.
func (p *page) addReader(word uint64, part int, now *mark) {
	m := p.more[word]
	if m == nil {
		m = &parts{}
		p.more[word] = m
	}
	m.allocateReads()
	list := m.reads[part]
	for i := range list {
		if list[i].threadNumber() == now.threadNumber() {
			list[i] = *now
			return
		}
	}
	m.reads[part] = append(list, *now)
}

// lowestByte is the number of the first byte that a mask names.
func lowestByte(mask uint8) uint64 { return uint64(bits.TrailingZeros8(mask)) }
