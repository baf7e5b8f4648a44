package predict

// Access is an access to memory.
type Access struct {
	Addr, Size uint64
	PC         uint64
	// Write and Atomic are as in event.Memory.
	Write, Atomic bool
	// Other reports that it is no access of an instruction: it takes part in no race, but values
	// are read and written.
	Other bool
}

const (
	pageShift = 12
	pageBytes = 1 << pageShift
	wordShift = 3
	wordBytes = 1 << wordShift
	pageWords = pageBytes / wordBytes
)

// page has the last accesses to the bytes of a page.
type page struct {
	writers [pageBytes]EventID // the last write of each byte, plus 1
	vars    [pageWords]int32   // the variable that each word is, plus 1
}

// reference is an access to a word that may take part in a race.
type reference struct {
	variable int32
	code     int32
	event    EventID
	from, to uint8 // the bytes of the word
	write    bool
	atomic   bool
}

func (b *Builder) pageAt(addr uint64) *page {
	p := b.memory[addr>>pageShift]
	if p == nil {
		p = &page{}
		b.memory[addr>>pageShift] = p
	}
	return p
}

// Access adds an access to an event, the last one of its thread. A read depends on the writes whose values
// it gets.
func (b *Builder) Access(e EventID, a *Access) {
	p := b.pageAt(a.Addr)
	for addr, end := a.Addr, a.Addr+a.Size; addr < end; {
		if addr&(pageBytes-1) == 0 {
			p = b.pageAt(addr)
		}
		next := min(end, (addr|(wordBytes-1))+1)
		if a.Write {
			b.write(p, e, addr, next)
		} else {
			b.read(p, e, addr, next)
		}
		// Of an atomic instruction only the load races, as in package races.
		if !a.Other && !(a.Atomic && a.Write) {
			b.refs = append(b.refs, reference{
				b.variableOf(p, addr), b.codeOf(a.PC), e, uint8(addr % wordBytes), uint8((next-1)%wordBytes) + 1, a.Write, a.Atomic,
			})
		}
		addr = next
	}
}

func (b *Builder) write(p *page, e EventID, from, to uint64) {
	for at := from; at < to; at++ {
		p.writers[at%pageBytes] = e + 1
	}
}

func (b *Builder) read(p *page, e EventID, from, to uint64) {
	last := EventID(0)
	for at := from; at < to; at++ {
		if w := p.writers[at%pageBytes]; w != last && w > 0 {
			b.depend(e, w-1)
			last = w
		}
	}
}

func (b *Builder) variableOf(p *page, addr uint64) int32 {
	v := &p.vars[addr%pageBytes/wordBytes]
	if *v == 0 {
		b.vars++
		*v = b.vars
	}
	return *v
}

func (b *Builder) codeOf(pc uint64) int32 {
	n, known := b.pcs[pc]
	if !known {
		n = int32(len(b.code))
		b.pcs[pc] = n
		b.code = append(b.code, pc)
	}
	return n
}

// Renew makes the memory [from, to) new: it has no earlier accesses.
func (b *Builder) Renew(from, to uint64) {
	for at := from; at < to; {
		next := min(to, (at|(pageBytes-1))+1)
		if p := b.memory[at>>pageShift]; p != nil {
			clear(p.writers[at%pageBytes : (next-1)%pageBytes+1])
			clear(p.vars[at%pageBytes/wordBytes : (next-1)%pageBytes/wordBytes+1])
		}
		at = next
	}
}

// Sharing finds the words that several threads access, and one of them writes: no others need be given to a
// Builder.
type Sharing struct {
	pages map[uint64]*[pageWords]uint16
}

// NewSharing makes a Sharing that has seen no access.
func NewSharing() *Sharing { return &Sharing{pages: map[uint64]*[pageWords]uint16{}} }

// A word has the number of the thread that has accessed it, plus 1, or severalThreads, and whether it was
// written.
const (
	wasWritten     = 1 << 15
	severalThreads = wasWritten - 1
)

// Note takes an access of a thread to [from, to), which lie in one page.
func (s *Sharing) Note(thread int, from, to uint64, write bool) {
	p := s.pages[from>>pageShift]
	if p == nil {
		p = &[pageWords]uint16{}
		s.pages[from>>pageShift] = p
	}
	me := uint16(min(thread+1, severalThreads))
	for w := from >> wordShift; w <= (to-1)>>wordShift; w++ {
		x := &p[w%pageWords]
		if of := *x &^ wasWritten; of == 0 {
			*x |= me
		} else if of != me {
			*x |= severalThreads
		}
		if write {
			*x |= wasWritten
		}
	}
}

// Has reports whether some word of [from, to), which lie in one page, is shared.
func (s *Sharing) Has(from, to uint64) bool {
	p := s.pages[from>>pageShift]
	if p == nil {
		return false
	}
	for w := from >> wordShift; w <= (to-1)>>wordShift; w++ {
		if p[w%pageWords] == wasWritten|severalThreads {
			return true
		}
	}
	return false
}

// HasPage reports whether any word of a page was accessed.
func (s *Sharing) HasPage(number uint64) bool { return s.pages[number] != nil }
