package races

import "github.com/heddle-dmt/heddle/recorder/event"

const (
	wordSize  = 8
	pageWords = 512
)

// mark is an access that is remembered.
type mark struct {
	pc              event.Addr
	at              uint64
	segment, thread uint32
	syncs, branches uint32
	used, atomic    bool
	// silent: wrote what was there already.
	silent bool
}

func (m *mark) instance() Instance {
	return Instance{PC: m.pc, Thread: int(m.thread), Syncs: uint64(m.syncs), Branches: uint64(m.branches), At: m.at}
}

// byteCell is the last write of a byte and, of each thread, the last read since.
type byteCell struct {
	write mark
	read  mark
	// reads are the reads of further threads.
	reads []mark
}

// addRead remembers a read in the place of an earlier one of the thread.
func (b *byteCell) addRead(m *mark) {
	if !b.read.used || b.read.thread == m.thread {
		b.read = *m
		return
	}
	for i := range b.reads {
		if b.reads[i].thread == m.thread {
			b.reads[i] = *m
			return
		}
	}
	b.reads = append(b.reads, *m)
}

// cell is a word of eight bytes. As long as all accesses are of the same bytes
// of it, mask, it has one state; then one for each byte.
type cell struct {
	byteCell
	mask  uint8
	bytes *[wordSize]byteCell
}

func (c *cell) split() {
	c.bytes = new([wordSize]byteCell)
	for i := range c.bytes {
		if c.mask>>i&1 != 0 {
			b := c.byteCell
			b.reads = append([]mark(nil), b.reads...)
			c.bytes[i] = b
		}
	}
	c.byteCell = byteCell{}
}

// shadow is the cells of all words in use.
type shadow struct {
	pages  map[uint64]*[pageWords]cell
	last   *[pageWords]cell
	number uint64 // of last
}

func newShadow() shadow { return shadow{pages: map[uint64]*[pageWords]cell{}} }

// cell returns the cell of a word, by the word's number.
func (s *shadow) cell(word uint64) *cell {
	number := word / pageWords
	if s.last == nil || s.number != number {
		page := s.pages[number]
		if page == nil {
			page = new([pageWords]cell)
			s.pages[number] = page
		}
		s.last, s.number = page, number
	}
	return &s.last[word%pageWords]
}

// forget clears the words that lie in [from, to) wholly, and of the others the
// bytes.
func (s *shadow) forget(from, to uint64) {
	const pageSize = pageWords * wordSize
	for from < to {
		number := from / pageSize
		page, end := s.pages[number], (number+1)*pageSize
		switch {
		case page == nil:
		case from%pageSize == 0 && end <= to:
			delete(s.pages, number)
			s.last = nil
		default:
			for at := from; at < min(to, end); at++ {
				page[at/wordSize%pageWords].forget(int(at % wordSize))
			}
		}
		from = end
	}
}

// forget clears one byte.
func (c *cell) forget(i int) {
	if c.bytes == nil {
		if c.mask>>i&1 == 0 {
			return
		}
		c.split()
	}
	c.bytes[i] = byteCell{}
}
