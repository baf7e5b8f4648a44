package memtrace

import "math/bits"

// The control byte of an access: how its instruction, address, value and
// branches are coded.
const (
	siteMask   = 3
	siteFirst  = 0 // the successor that came last
	siteSecond = 1 // the one that came before that
	siteOther  = 2 // by number, a new one with its description

	// Without either the address follows from the instruction's last two.
	addrPair  = 1 << 2 // from the access before as far as last time
	addrOther = 1 << 5 // the difference to the instruction's last address

	valueShift = 3
	valueMask  = 3
	valueCache = 0 // a load: the last value at the address. A store: the instruction's trend
	valueTrend = 1 // a load: the instruction's trend. A store: the last access's value and the usual difference
	valueNear  = 2 // the difference to the instruction's last value
	valueRaw   = 3 // in full

	branchesOther = 1 << 6 // the number of branches since the last access
	other         = 1 << 7 // no access: the rest is an item
)

// The second half of a value, in a byte of its own.
const (
	highCache = iota // the last value at the address
	highRaw          // in full
)

// Items that are no accesses.
const (
	itemPiece   = iota // a new piece: its stamp
	itemMap            // the page of an address
	itemKernel         // a KernelStore with data
	itemLater          // ... without
	itemContent        // of a page
	itemZero
	itemCopy
	itemView
	itemRead // a KernelLoad
	itemPart // the next access is one of several of its instruction
)

// Flags of an instruction's description, above the size.
const (
	sizeMask   = 31
	flagStore  = 32
	flagAtomic = 64
)

// site is an instruction's accesses of one kind and size: the state of their
// prediction.
type site struct {
	pc           uint64
	addr, stride uint64
	away         uint64 // between its address and that of the access before
	value, trend uint64
	difference   uint64    // between its value and that of the access before
	next         [2]uint32 // the sites that came after it, the last first
	branches     [2]uint32 // and how many branches later
	descr        uint8     // size and flags
}

// cacheSize is the number of values that are remembered by address.
const cacheSize = 1 << 16

type cached struct{ addr, value uint64 }

// model is the state that the encoder and the decoder share.
type model struct {
	sites  []site
	last   uint32 // the site before
	where  uint64 // the address before
	before uint64 // the value before
	cache  [cacheSize]cached
	epoch  uint64 // of the cache's entries, above the bits of addresses
	pages  map[uint64]uint64
}

const (
	noSite    = ^uint32(0)
	addrBits  = 48
	pageShift = 12
)

// resetModel forgets everything. Site 0 is the one before the first.
func (m *model) resetModel() {
	m.sites = append(m.sites[:0], site{next: [2]uint32{noSite, noSite}})
	m.last = 0
	m.where, m.before = 0, 0
	m.epoch += 1 << addrBits
	if m.epoch == 0 { // all were used
		clear(m.cache[:])
		m.epoch = 1 << addrBits
	}
	if m.pages == nil {
		m.pages = map[uint64]uint64{}
	}
	clear(m.pages)
}

func slotOf(addr uint64) uint64 { return (addr>>2 ^ addr<<14 ^ addr>>20) & (cacheSize - 1) }

// lastValue is the value last seen at an address, 0 if it is not known.
func (m *model) lastValue(addr uint64) uint64 {
	c := &m.cache[slotOf(addr)]
	if c.addr == addr|m.epoch {
		return c.value
	}
	return 0
}

func (m *model) noteValue(addr, value uint64) { m.cache[slotOf(addr)] = cached{addr | m.epoch, value} }

// addSite makes a new site.
func (m *model) addSite(pc uint64, descr uint8) uint32 {
	m.sites = append(m.sites, site{pc: pc, descr: descr, next: [2]uint32{noSite, noSite}})
	return uint32(len(m.sites) - 1)
}

// noteSuccessor notes that a site came after the last one, with this number of branches between.
func (m *model) noteSuccessor(id uint32, branches uint32) {
	l := &m.sites[m.last]
	if l.next[0] != id {
		l.next[1], l.branches[1] = l.next[0], l.branches[0]
		l.next[0] = id
	}
	l.branches[0] = branches
	m.last = id
}

// noteAccess notes the site's address and value.
func (m *model) noteAccess(s *site, addr, value uint64) {
	s.stride = addr - s.addr
	s.addr = addr
	s.away = addr - m.where
	m.where = addr
	s.trend = value - s.value
	s.value = value
	s.difference = value - m.before
	m.before = value
	m.noteValue(addr, value)
}

// firstBytes masks a number to the low size bytes.
func firstBytes(v uint64, size uint8) uint64 {
	if size >= 8 {
		return v
	}
	return v & (1<<(8*size) - 1)
}

// lowSize is the number of bytes of the first half of an access.
func lowSize(size uint8) uint8 { return min(size, 8) }

func zigzag(v uint64) uint64   { return v<<1 ^ uint64(int64(v)>>63) }
func unzigzag(v uint64) uint64 { return v>>1 ^ -(v & 1) }

// varintSize is the length of a number as a varint.
func varintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// signedTo is the difference between numbers of size bytes, as a signed one.
func signedTo(v, from uint64, size uint8) uint64 {
	shift := 64 - 8*uint(lowSize(size))
	return uint64(int64((v-from)<<shift) >> shift)
}
