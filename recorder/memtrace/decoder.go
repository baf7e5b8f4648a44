package memtrace

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

var errBlock = errors.New("it is no block of memory accesses")

// Bounds of a block, so that a few bytes do not stand for any number of things.
const (
	mostAccesses = 1 << 24
	mostMappings = 1 << 24
)

// place is where a page of addresses leads.
type place struct {
	number, page uint64
	known        bool
}

// frontSize is the number of pages whose place the decoder has at hand.
const frontSize = 1 << 10

// Decoder decodes blocks, one after the other. A decoded access is valid until the
// next call.
type Decoder struct {
	rest    []byte // of the block, without:
	numbers []byte // the bytes of words, and of pages and kernel stores
	ended   bool
	bad     bool

	forms  []*form
	pc     uint64 // of the last definition
	last   *form
	lasts  [lastsSize]*form
	origin form
	next   int    // the access of the last form that comes next
	run    uint64 // predicted records that come next, then head
	head   byte
	headed bool // there is a head
	left   uint64
	values [cacheSize]uint64

	pages    map[uint64]uint64
	mappings uint64
	front    [frontSize]place

	stamp event.Stamp
	base  uint64 // branches before the last record
	count uint64 // branches before the last access
	begun bool
	// part and parts are those of the next access.
	part, parts uint8
	fresh       bool // memory is not an access of the present piece
	memory      event.Memory
}

// NewDecoder makes a Decoder.
func NewDecoder() *Decoder { return &Decoder{pages: map[uint64]uint64{}, ended: true} }

// Block begins to decode a record of the stream.
func (d *Decoder) Block(record []byte) error {
	forms, pages := d.forms[:0], d.pages
	*d = Decoder{}
	clear(pages)
	d.forms, d.pages, d.fresh, d.left = forms, pages, true, mostAccesses
	d.last = &d.origin
	for i := range d.lasts {
		d.lasts[i] = &d.origin
	}
	n, size := binary.Uvarint(record)
	if size <= 0 || n > uint64(len(record)-size) {
		return errBlock
	}
	d.rest, d.numbers = record[size:][:n], record[size:][n:]
	return nil
}

func (d *Decoder) takeByte() byte {
	if len(d.rest) == 0 {
		d.bad = true
		return 0
	}
	v := d.rest[0]
	d.rest = d.rest[1:]
	return v
}

func (d *Decoder) takeNumber() uint64 {
	if len(d.rest) > 0 && d.rest[0] < 0x80 {
		return uint64(d.takeByte())
	}
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *Decoder) takeBytes(n uint64) []byte { return d.take(&d.rest, n) }

// takeData takes bytes of a page or a kernel store.
func (d *Decoder) takeData(n uint64) []byte { return d.take(&d.numbers, n) }

func (d *Decoder) take(from *[]byte, n uint64) []byte {
	if n > uint64(len(*from)) {
		d.bad = true
		return nil
	}
	b := (*from)[:n:n]
	*from = (*from)[n:]
	return b
}

// Next is the next access or change, nil at the end of the block.
func (d *Decoder) Next() (*event.Memory, error) {
	for {
		switch {
		case d.bad:
			return nil, errBlock
		case d.next < len(d.last.accesses):
			d.decodeAccess(&d.last.accesses[d.next])
			d.next++
			if !d.bad {
				return &d.memory, nil
			}
		case d.ended:
			return nil, nil
		case d.decodeMore():
			if !d.bad {
				return &d.memory, nil
			}
		}
	}
}

// decodeMore decodes a record or an item. It returns whether there is an event to give.
func (d *Decoder) decodeMore() bool {
	switch {
	case d.run > 0:
		d.run--
		d.predictRecord()
	case !d.headed:
		d.head, d.headed = d.takeByte(), true
		if d.run = uint64(d.head >> runShift); d.run == runMost {
			d.run += d.takeNumber()
		}
	default:
		d.headed = false
		if d.head&headWhich == headItem {
			return d.decodeItem(d.takeByte())
		}
		d.decodeRecord()
	}
	return false
}

// ---- records ------------------------------------------------------------------------------

// enter makes a form the last one, of which the accesses come next.
func (d *Decoder) enter(f *form, branches uint64) {
	if n := uint64(len(f.accesses)); !d.begun || n == 0 || n > d.left {
		d.bad = true
		return
	}
	d.left -= uint64(len(f.accesses))
	d.base += branches
	d.last, d.next = f, 0
}

// predictRecord decodes a record that is predicted.
func (d *Decoder) predictRecord() {
	f := d.last.next[0]
	if f == nil {
		d.bad = true
		return
	}
	for i := range f.words {
		w := &f.words[i]
		w.last = (w.last + w.difference) & w.mask
	}
	d.enter(f, d.last.branches[0])
}

func (d *Decoder) decodeRecord() {
	f, branches := d.decodeForm()
	if d.head&headBranches != 0 {
		branches = d.takeNumber()
	}
	if f == nil || d.bad {
		d.bad = true
		return
	}
	d.decodeWords(f, d.decodePattern(f))
	d.last.noteSuccessor(f, branches)
	d.enter(f, branches)
}

// decodeForm decodes which form it is, and the expected number of branches.
func (d *Decoder) decodeForm() (*form, uint64) {
	which := d.head & headWhich
	if which != headNumber {
		return d.last.next[which], d.last.branches[which]
	}
	number := d.takeNumber()
	if number == uint64(len(d.forms)) {
		d.forms = append(d.forms, d.decodeDefinition())
	}
	if number >= uint64(len(d.forms)) {
		return nil, 0
	}
	return d.forms[number], 0
}

func (d *Decoder) decodeDefinition() *form {
	n := d.takeNumber()
	if n == 0 || n > uint64(len(d.rest)) {
		d.bad = true
		return nil
	}
	f := &form{accesses: make([]access, n)}
	for i := range f.accesses {
		a := &f.accesses[i]
		d.pc += unzigzag(d.takeNumber())
		a.pc, a.descr, a.branches = d.pc, d.takeByte(), d.takeNumber()
		address := d.takeNumber()
		a.at = unzigzag(d.takeNumber())
		value := d.takeNumber()
		a.address, a.value = uint8(address), uint8(value)
		if value == 0 {
			a.constant = d.takeNumber()
		}
		size := a.descr & sizeMask
		if d.bad || size == 0 || size > 16 || size > 8 && value == 0 || address > mostWords || value+uint64(size-1)/8 > mostWords {
			d.bad = true
			return nil
		}
		f.addWords(a)
	}
	for i := range f.words {
		w := &f.words[i]
		w.mask = maskOf(w.size)
		if int(w.address) > i {
			d.bad = true
		}
	}
	return f
}

// addWords notes the words of an access.
func (f *form) addWords(a *access) {
	size := a.descr & sizeMask
	if a.address > 0 {
		f.setWord(int(a.address)-1, word{size: 8})
	}
	for at := uint8(0); a.value > 0 && at < size; at += 8 {
		f.setWord(int(a.value-1+at/8), word{size: min(size-at, 8), at: a.at + uint64(at), address: a.address, value: true})
	}
}

func (f *form) setWord(i int, w word) {
	for len(f.words) <= i {
		f.words = append(f.words, word{})
	}
	f.words[i] = w
}

// decodePattern decodes which words are given, and how.
func (d *Decoder) decodePattern(f *form) pattern {
	switch which := d.head >> patternShift & patternMask; which {
	case patternNone:
		return pattern{}
	default:
		return f.patterns[which]
	case patternNew:
		var b [8]byte
		copy(b[:], d.takeBytes(uint64(len(f.words)+7)/8))
		p := pattern{words: binary.LittleEndian.Uint64(b[:])}
		p.codes = d.takeBytes(uint64(bits.OnesCount64(p.words)+1) / 2)
		d.bad = d.bad || p.words>>len(f.words) != 0
		f.patterns[f.replaced] = p
		f.replaced = (f.replaced + 1) % patterns
		return p
	}
}

// decodeWords decodes a record's words, of which some are given.
func (d *Decoder) decodeWords(f *form, p pattern) {
	misses, given := p.words, givenCodes{codes: p.codes}
	moved := uint64(0) // how far the last address has
	for i := range f.words {
		if w := &f.words[i]; w.size > 0 && !w.value {
			now := w.last + w.difference
			if misses>>i&1 != 0 {
				now = d.decodeAddress(w, given.take(), moved)
			}
			moved = now - w.last
			w.difference, w.last = moved, now
		}
	}
	for i := range f.words {
		if w := &f.words[i]; w.value {
			now := (w.last + w.difference) & w.mask
			if misses>>i&1 != 0 {
				now = d.decodeValue(f, w, given.take())
			}
			w.difference, w.last = now-w.last, now
		}
	}
}

// givenCodes says how words are given.
type givenCodes struct {
	codes []byte
	taken uint
}

// take takes the next code; of as many as words are given there is one.
func (g *givenCodes) take() byte {
	if g.taken/2 == uint(len(g.codes)) {
		return missNone
	}
	code := g.codes[g.taken/2] >> (4 * (g.taken & 1)) & 15
	g.taken++
	return code
}

func (d *Decoder) decodeAddress(w *word, code byte, moved uint64) uint64 {
	if code == missOther {
		return w.last + moved
	}
	return w.last + d.takeDifference(code)
}

func (d *Decoder) decodeValue(f *form, w *word, code byte) uint64 {
	addr := w.at
	if w.address > 0 {
		addr += f.words[w.address-1].last
	}
	kept := &d.values[slotOf(addr)]
	if code != missOther {
		*kept = w.last + d.takeDifference(code)
	}
	*kept &= w.mask
	return *kept
}

// takeDifference takes a difference that is given in so many bytes.
func (d *Decoder) takeDifference(size byte) uint64 {
	if size > missMost {
		d.bad = true
		return 0
	}
	if len(d.numbers) >= 8 {
		v := binary.LittleEndian.Uint64(d.numbers) & maskOf(size)
		d.numbers = d.numbers[size:]
		return unzigzag(v)
	}
	var b [8]byte
	copy(b[:], d.takeData(uint64(size)))
	return unzigzag(binary.LittleEndian.Uint64(b[:]))
}

// ---- accesses -----------------------------------------------------------------------------

// pageOf is the page of an address.
func (d *Decoder) pageOf(addr uint64) uint64 {
	number := addr >> pageShift
	p := &d.front[number&(frontSize-1)]
	if p.number != number || !p.known {
		page, ok := d.pages[number]
		if !ok {
			d.bad = true
		}
		*p = place{number, page, true}
	}
	return p.page
}

// decodeAccess decodes an access of the last record.
func (d *Decoder) decodeAccess(a *access) {
	m, words := &d.memory, d.last.words
	if d.fresh { // otherwise only the fields that differ from the last access are set
		*m = event.Memory{Stamp: d.stamp}
		d.fresh = false
	}
	addr := a.at
	if a.address > 0 {
		addr += words[a.address-1].last
	}
	addr &= 1<<addrBits - 1
	m.Kind, m.Atomic, m.Size = event.Load, a.descr&flagAtomic != 0, a.descr&sizeMask
	m.PC, m.Addr, m.Next = arch.Addr(a.pc), arch.Addr(addr), 0
	if a.descr&flagStore != 0 {
		m.Kind = event.Store
	}
	m.Part, m.Parts = d.part, d.parts
	d.part, d.parts = 0, 0
	d.count = d.base + a.branches
	m.Branches = d.count
	m.Page = d.pageOf(addr)
	if end := addr + uint64(m.Size) - 1; end>>pageShift != addr>>pageShift {
		m.Next = d.pageOf(end)
	}
	m.Value = [2]uint64{a.constant}
	if a.value > 0 {
		m.Value[0] = words[a.value-1].last
	}
	if m.Size > 8 {
		m.Value[1] = words[a.value].last
	}
}

// ---- items --------------------------------------------------------------------------------

// decodeItem decodes an item that is no record. It returns whether there is an event to give.
func (d *Decoder) decodeItem(kind byte) bool {
	d.fresh = true
	if kind != itemPiece && !d.begun {
		d.bad = true
		return false
	}
	m := &d.memory
	switch kind {
	case itemEnd:
		d.ended = true
		d.bad = d.bad || len(d.rest)+len(d.numbers) > 0
		return false
	case itemPiece:
		d.decodePiece()
		return false
	case itemMap:
		d.decodeMappings(d.takeNumber(), d.takeNumber(), d.takeNumber())
		return false
	case itemPart:
		d.part, d.parts = uint8(d.takeNumber()), uint8(d.takeNumber())
		return false
	case itemKernel, itemLater, itemView:
		*m = event.Memory{Stamp: d.stamp, Kind: event.KernelStore, Addr: arch.Addr(d.takeNumber()), Page: d.takeNumber(), Length: d.takeNumber()}
		if kind == itemView {
			m.Kind = event.View
		}
		if kind != itemLater {
			m.Data = d.takeData(m.Length)
		}
	case itemRead:
		*m = event.Memory{Stamp: d.stamp, Kind: event.KernelLoad, Addr: arch.Addr(d.takeNumber()), Page: d.takeNumber(), Length: d.takeNumber()}
	case itemContent, itemZero:
		*m = event.Memory{Stamp: d.stamp, Kind: event.Content, Page: d.takeNumber()}
		if kind == itemContent {
			m.Data = d.takeData(arch.PageSize)
		}
	case itemCopy:
		*m = event.Memory{Stamp: d.stamp, Kind: event.Copy, Page: d.takeNumber(), From: d.takeNumber()}
	default:
		d.bad = true
	}
	m.Branches = d.count
	return true
}

// decodeMappings notes that n pages of addresses lead to pages, one after the other.
func (d *Decoder) decodeMappings(number, page, n uint64) {
	if d.mappings += n; n > mostMappings || d.mappings > mostMappings {
		d.bad = true
		return
	}
	for i := range n {
		d.pages[number+i] = page + i
		d.front[(number+i)&(frontSize-1)] = place{}
	}
}

func (d *Decoder) decodePiece() {
	s := &d.stamp
	d.lasts[uint8(s.Thread)] = d.last
	d.begun = true
	s.Seq += unzigzag(d.takeNumber())
	s.Sync += unzigzag(d.takeNumber())
	s.Thread += arch.ThreadID(unzigzag(d.takeNumber()))
	s.Core += arch.CoreID(unzigzag(d.takeNumber()))
	s.Time += arch.Cycles(unzigzag(d.takeNumber()))
	s.Instructions += unzigzag(d.takeNumber())
	s.Branches += unzigzag(d.takeNumber())
	d.last = d.lasts[uint8(s.Thread)]
	d.next = len(d.last.accesses)
	d.base, d.count = s.Branches, s.Branches
}
