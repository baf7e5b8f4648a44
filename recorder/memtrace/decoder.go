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
	d.start()
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

// take takes a number off a column.
func (d *Decoder) take(column int) uint64 {
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

func (d *Decoder) bytes(column int, n uint64) []byte {
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
			d.access(control)
		} else if !d.item(control &^ other) {
			continue
		}
		if !d.bad {
			return &d.memory, nil
		}
	}
	if d.bad || !d.empty() {
		return nil, errBlock
	}
	return nil, nil
}

func (d *Decoder) empty() bool {
	for _, c := range d.cols {
		if len(c) > 0 {
			return false
		}
	}
	return true
}

// item decodes an item that is no access. It returns whether there is an event to give.
func (d *Decoder) item(kind byte) bool {
	d.fresh = true
	if kind != itemPiece && !d.begun {
		d.bad = true
		return false
	}
	m := &d.memory
	switch kind {
	case itemPiece:
		d.piece()
		return false
	case itemMap:
		number, page := d.take(colItems), d.take(colItems)
		d.front[number&(frontSize-1)] = place{}
		d.pages[number] = page
		return false
	case itemPart:
		d.part, d.parts = uint8(d.take(colItems)), uint8(d.take(colItems))
		return false
	case itemKernel, itemLater, itemView:
		*m = event.Memory{Stamp: d.stamp, Kind: event.KernelStore, Addr: arch.Addr(d.take(colItems)), Page: d.take(colItems), Length: d.take(colItems)}
		if kind == itemView {
			m.Kind = event.View
		}
		if kind != itemLater {
			m.Data = d.bytes(colData, m.Length)
		}
	case itemRead:
		*m = event.Memory{Stamp: d.stamp, Kind: event.KernelLoad, Addr: arch.Addr(d.take(colItems)), Page: d.take(colItems), Length: d.take(colItems)}
	case itemContent, itemZero:
		*m = event.Memory{Stamp: d.stamp, Kind: event.Content, Page: d.take(colItems)}
		if kind == itemContent {
			m.Data = d.bytes(colData, arch.PageSize)
		}
	case itemCopy:
		*m = event.Memory{Stamp: d.stamp, Kind: event.Copy, Page: d.take(colItems), From: d.take(colItems)}
	default:
		d.bad = true
	}
	m.Branches = d.count
	return true
}

func (d *Decoder) piece() {
	s := &d.stamp
	if d.begun {
		d.lasts[s.Thread] = d.last
	}
	d.begun = true
	s.Seq += unzigzag(d.take(colItems))
	s.Sync += unzigzag(d.take(colItems))
	s.Thread += arch.ThreadID(unzigzag(d.take(colItems)))
	s.Core += arch.CoreID(unzigzag(d.take(colItems)))
	s.Time += arch.Cycles(unzigzag(d.take(colItems)))
	s.Instructions += unzigzag(d.take(colItems))
	s.Branches += unzigzag(d.take(colItems))
	d.last = d.lasts[s.Thread]
	d.count = s.Branches
}

// lead is the page of an address.
func (d *Decoder) lead(addr uint64) uint64 {
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

func (d *Decoder) access(control byte) {
	id, later := d.site(control)
	if d.bad || !d.begun {
		d.bad = true
		return
	}
	if control&branchesOther != 0 {
		later = d.take(colBranches)
	}
	d.count += later
	d.follow(id, uint32(later))
	s := &d.sites[id]
	addr := s.addr + s.stride
	switch control & (addrOther | addrPair) {
	case addrPair:
		addr = d.where + s.away
	case addrOther:
		addr = s.addr + unzigzag(d.take(colAddrs))
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
	m.Page = d.lead(addr)
	if end := addr + uint64(m.Size) - 1; end>>pageShift != addr>>pageShift {
		m.Next = d.lead(end)
	}
	m.Value[0] = d.value(s, addr, control>>valueShift&valueMask)
	d.learn(s, addr, m.Value[0])
	if m.Size > 8 {
		m.Value[1] = d.high(addr+8, m.Size-8)
	}
}

// site finds which instruction an access is of.
func (d *Decoder) site(control byte) (id uint32, branches uint64) {
	l := &d.sites[d.last]
	switch k := control & siteMask; k {
	case siteFirst, siteSecond:
		id, branches = l.next[k], uint64(l.branches[k])
	case siteOther:
		id = uint32(d.take(colSites))
		if int(id) == len(d.sites) {
			pc := l.pc + unzigzag(d.take(colSites))
			descr := d.bytes(colSites, 1)
			if d.bad || descr[0]&sizeMask == 0 || descr[0]&sizeMask > 16 {
				d.bad = true
				return 0, 0
			}
			d.add(pc, descr[0])
		}
	}
	if id == 0 || int(id) >= len(d.sites) {
		d.bad = true
	}
	return id, branches
}

func (d *Decoder) value(s *site, addr uint64, how byte) uint64 {
	size := lowSize(s.descr & sizeMask)
	store := s.descr&flagStore != 0
	switch {
	case how == valueCache && !store:
		return firstBytes(d.recall(addr), size)
	case how == valueCache, how == valueTrend && !store:
		return firstBytes(s.value+s.trend, size)
	case how == valueTrend:
		return firstBytes(d.before+s.difference, size)
	case how == valueNear:
		return firstBytes(s.value+unzigzag(d.take(colNear)), size)
	}
	return d.raw(size)
}

func (d *Decoder) raw(size uint8) uint64 {
	var b [8]byte
	copy(b[:], d.bytes(colRaw, uint64(size)))
	return binary.LittleEndian.Uint64(b[:])
}

func (d *Decoder) high(addr uint64, size uint8) uint64 {
	v := firstBytes(d.recall(addr), size)
	if how := d.bytes(colHigh, 1); !d.bad && how[0] == highRaw {
		v = d.raw(size)
	}
	d.remember(addr, v)
	return v
}
