package memtrace

import (
	"encoding/binary"
	"errors"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

var errBlock = errors.New("it is no block of memory accesses")

// place is where an address leads.
type place struct{ number, page uint64 }

// Decoder decodes blocks, one after the other. A decoded access is valid until the
// next call.
type Decoder struct {
	model
	cols  [columns][]byte
	front [frontSize]place // with the epoch in number
	stamp event.Stamp
	count uint64 // of branches
	lasts map[arch.ThreadID]uint32
	begun bool
	// part and parts are those of the next access.
	part, parts uint8
	fresh       bool // memory is not an access of the present piece
	bad         bool
	memory      event.Memory
}

// NewDecoder makes a Decoder.
func NewDecoder() *Decoder { return &Decoder{lasts: map[arch.ThreadID]uint32{}} }

// Block begins to decode a record of the stream.
func (d *Decoder) Block(record []byte) error {
	d.resetModel()
	clear(d.lasts)
	d.stamp, d.count, d.begun, d.bad, d.fresh = event.Stamp{}, 0, false, false, true
	var sizes [columns]uint64
	for i := range sizes {
		n, size := binary.Uvarint(record)
		if size <= 0 {
			return errBlock
		}
		sizes[i], record = n, record[size:]
	}
	for i, n := range sizes {
		if n > uint64(len(record)) {
			return errBlock
		}
		d.cols[i], record = record[:n], record[n:]
	}
	if len(record) > 0 {
		return errBlock
	}
	return nil
}

// takeNumber takes a number off a column.
func (d *Decoder) takeNumber(column int) uint64 {
	c := d.cols[column]
	if len(c) > 0 && c[0] < 0x80 {
		d.cols[column] = c[1:]
		return uint64(c[0])
	}
	v, n := binary.Uvarint(c)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.cols[column] = c[n:]
	return v
}

func (d *Decoder) takeBytes(column int, n uint64) []byte {
	c := d.cols[column]
	if n > uint64(len(c)) {
		d.bad = true
		return nil
	}
	d.cols[column] = c[n:]
	return c[:n:n]
}

// Next is the next access or change, nil at the end of the block.
func (d *Decoder) Next() (*event.Memory, error) {
	for len(d.cols[colControl]) > 0 && !d.bad {
		control := d.cols[colControl][0]
		d.cols[colControl] = d.cols[colControl][1:]
		if control&other == 0 {
			d.decodeAccess(control)
		} else if !d.decodeItem(control &^ other) {
			continue
		}
		if !d.bad {
			return &d.memory, nil
		}
	}
	if d.bad || !d.isAtEnd() {
		return nil, errBlock
	}
	return nil, nil
}

func (d *Decoder) isAtEnd() bool {
	for _, c := range d.cols {
		if len(c) > 0 {
			return false
		}
	}
	return true
}

// decodeItem decodes an item that is no access. It returns whether there is an event to give.
func (d *Decoder) decodeItem(kind byte) bool {
	d.fresh = true
	if kind != itemPiece && !d.begun {
		d.bad = true
		return false
	}
	m := &d.memory
	switch kind {
	case itemPiece:
		d.decodePiece()
		return false
	case itemMap:
		number, page := d.takeNumber(colItems), d.takeNumber(colItems)
		d.front[number&(frontSize-1)] = place{}
		d.pages[number] = page
		return false
	case itemPart:
		d.part, d.parts = uint8(d.takeNumber(colItems)), uint8(d.takeNumber(colItems))
		return false
	case itemKernel, itemLater, itemView:
		*m = event.Memory{Stamp: d.stamp, Kind: event.KernelStore, Addr: arch.Addr(d.takeNumber(colItems)), Page: d.takeNumber(colItems), Length: d.takeNumber(colItems)}
		if kind == itemView {
			m.Kind = event.View
		}
		if kind != itemLater {
			m.Data = d.takeBytes(colData, m.Length)
		}
	case itemRead:
		*m = event.Memory{Stamp: d.stamp, Kind: event.KernelLoad, Addr: arch.Addr(d.takeNumber(colItems)), Page: d.takeNumber(colItems), Length: d.takeNumber(colItems)}
	case itemContent, itemZero:
		*m = event.Memory{Stamp: d.stamp, Kind: event.Content, Page: d.takeNumber(colItems)}
		if kind == itemContent {
			m.Data = d.takeBytes(colData, arch.PageSize)
		}
	case itemCopy:
		*m = event.Memory{Stamp: d.stamp, Kind: event.Copy, Page: d.takeNumber(colItems), From: d.takeNumber(colItems)}
	default:
		d.bad = true
	}
	m.Branches = d.count
	return true
}

func (d *Decoder) decodePiece() {
	s := &d.stamp
	if d.begun {
		d.lasts[s.Thread] = d.last
	}
	d.begun = true
	s.Seq += unzigzag(d.takeNumber(colItems))
	s.Sync += unzigzag(d.takeNumber(colItems))
	s.Thread += arch.ThreadID(unzigzag(d.takeNumber(colItems)))
	s.Core += arch.CoreID(unzigzag(d.takeNumber(colItems)))
	s.Time += arch.Cycles(unzigzag(d.takeNumber(colItems)))
	s.Instructions += unzigzag(d.takeNumber(colItems))
	s.Branches += unzigzag(d.takeNumber(colItems))
	d.last = d.lasts[s.Thread]
	d.count = s.Branches
}

// pageOf is the page of an address.
func (d *Decoder) pageOf(addr uint64) uint64 {
	number := addr >> pageShift
	f := &d.front[number&(frontSize-1)]
	if f.number == number|d.epoch {
		return f.page
	}
	page, ok := d.pages[number]
	if !ok {
		d.bad = true
	}
	*f = place{number | d.epoch, page}
	return page
}

func (d *Decoder) decodeAccess(control byte) {
	id, later := d.decodeSite(control)
	if d.bad || !d.begun {
		d.bad = true
		return
	}
	if control&branchesOther != 0 {
		later = d.takeNumber(colBranches)
	}
	d.count += later
	d.noteSuccessor(id, uint32(later))
	s := &d.sites[id]
	addr := s.addr + s.stride
	switch control & (addrOther | addrPair) {
	case addrPair:
		addr = d.where + s.away
	case addrOther:
		addr = s.addr + unzigzag(d.takeNumber(colAddrs))
	}
	addr &= 1<<addrBits - 1
	m := &d.memory
	if d.fresh { // otherwise only the fields that differ from the last access are set
		*m = event.Memory{Stamp: d.stamp}
		d.fresh = false
	}
	m.Kind, m.Atomic, m.Size = event.Load, s.descr&flagAtomic != 0, s.descr&sizeMask
	m.PC, m.Addr, m.Next, m.Value[1] = arch.Addr(s.pc), arch.Addr(addr), 0, 0
	if s.descr&flagStore != 0 {
		m.Kind = event.Store
	}
	m.Part, m.Parts = d.part, d.parts
	d.part, d.parts = 0, 0
	m.Branches = d.count
	m.Page = d.pageOf(addr)
	if end := addr + uint64(m.Size) - 1; end>>pageShift != addr>>pageShift {
		m.Next = d.pageOf(end)
	}
	m.Value[0] = d.decodeValue(s, addr, control>>valueShift&valueMask)
	d.noteAccess(s, addr, m.Value[0])
	if m.Size > 8 {
		m.Value[1] = d.decodeHigh(addr+8, m.Size-8)
	}
}

// decodeSite finds which instruction an access is of.
func (d *Decoder) decodeSite(control byte) (id uint32, branches uint64) {
	l := &d.sites[d.last]
	switch k := control & siteMask; k {
	case siteFirst, siteSecond:
		id, branches = l.next[k], uint64(l.branches[k])
	case siteOther:
		id = uint32(d.takeNumber(colSites))
		if int(id) == len(d.sites) {
			pc := l.pc + unzigzag(d.takeNumber(colSites))
			descr := d.takeBytes(colSites, 1)
			if d.bad || descr[0]&sizeMask == 0 || descr[0]&sizeMask > 16 {
				d.bad = true
				return 0, 0
			}
			d.addSite(pc, descr[0])
		}
	}
	if id == 0 || int(id) >= len(d.sites) {
		d.bad = true
	}
	return id, branches
}

func (d *Decoder) decodeValue(s *site, addr uint64, how byte) uint64 {
	size := lowSize(s.descr & sizeMask)
	store := s.descr&flagStore != 0
	switch {
	case how == valueCache && !store:
		return firstBytes(d.lastValue(addr), size)
	case how == valueCache, how == valueTrend && !store:
		return firstBytes(s.value+s.trend, size)
	case how == valueTrend:
		return firstBytes(d.before+s.difference, size)
	case how == valueNear:
		return firstBytes(s.value+unzigzag(d.takeNumber(colNear)), size)
	}
	return d.takeRaw(size)
}

func (d *Decoder) takeRaw(size uint8) uint64 {
	var b [8]byte
	copy(b[:], d.takeBytes(colRaw, uint64(size)))
	return binary.LittleEndian.Uint64(b[:])
}

func (d *Decoder) decodeHigh(addr uint64, size uint8) uint64 {
	v := firstBytes(d.lastValue(addr), size)
	if how := d.takeBytes(colHigh, 1); !d.bad && how[0] == highRaw {
		v = d.takeRaw(size)
	}
	d.noteValue(addr, v)
	return v
}
