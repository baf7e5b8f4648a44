package memtrace

import (
	"encoding/binary"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Bounds of a block: it ends at this number of items, or of bytes of pages and of
// kernel stores, or of bytes in all, which are checked at intervals.
const (
	maxItems = 1 << 20
	maxData  = 1 << 21
	maxBytes = 1 << 23
	lookEach = 1 << 10
)

// columns are the parts of a block, each of one kind of thing.
const (
	colControl  = iota // a byte for each item
	colSites           // numbers of instructions, and descriptions of new ones
	colAddrs           // differences of addresses
	colNear            // differences of values
	colRaw             // values
	colHigh            // how second halves of values are coded
	colBranches        // numbers of branches
	colItems           // the fields of items
	colData            // contents of pages, and the kernel's stores
	columns
)

// coded is a block that is complete.
type coded struct {
	record []byte
	// stamps are those that the index covers.
	stamps []event.Stamp
}

// frontSize is the number of pages whose place the coder has at hand.
const frontSize = 1 << 10

// Encoder makes blocks from the engine's log.
type Encoder struct {
	model
	known map[uint64]uint32 // sites by description
	cols  [columns][]byte
	items int
	most  int // of a block
	look  int // the number of items at which to look at the size

	live  map[uint64]uint64 // the page of each address's page, as the engine has it
	front [frontSize]uint64 // pages whose mapping the block has: number and epoch

	stamp    event.Stamp // of the piece
	branches uint64      // before the last access
	lasts    map[arch.ThreadID]uint32

	done   []coded
	stamps []event.Stamp
}

// NewEncoder makes an Encoder that has nothing.
func NewEncoder() *Encoder {
	e := &Encoder{most: maxItems, known: map[uint64]uint32{}, live: map[uint64]uint64{}, lasts: map[arch.ThreadID]uint32{}}
	e.beginBlock()
	return e
}

func (e *Encoder) beginBlock() {
	e.resetModel()
	clear(e.known)
	clear(e.lasts)
	for i := range e.cols {
		e.cols[i] = e.cols[i][:0]
	}
	e.items, e.look = 0, lookEach
	e.stamps = nil
	e.branches = 0
}

func (e *Encoder) putNumber(column int, v uint64) {
	e.cols[column] = binary.AppendUvarint(e.cols[column], v)
}

// Log is a part of the engine's memory log; memlog.Buffer is one.
type Log interface {
	Entries() []memlog.Entry
	Bytes(*memlog.Entry) []byte
}

// Add encodes a part of the log. Start is the stamp of its begin, and
// counted the engine's count of branches there.
func (e *Encoder) Add(b Log, start event.Stamp, counted uint64) {
	entries := b.Entries()
	if len(entries) == 0 {
		return
	}
	e.beginPiece(start)
	for i := 0; i < len(entries); i++ {
		part := i > 0 && entries[i-1].Kind == memlog.Part
		if !part && e.isFull() {
			at := start
			at.Branches = e.branches
			e.finishBlock()
			e.beginPiece(at)
		}
		n := &entries[i]
		switch n.Kind {
		case memlog.Load, memlog.Store:
			high := uint64(0)
			if n.Size > 8 {
				i++
				high = entries[i].Value
			}
			e.encodeAccess(n, high, start.Branches+uint64(n.Branches-uint32(counted)))
		case memlog.Map:
			e.noteMapping(uint64(n.Addr)>>pageShift, n.PC)
		default:
			e.encodeChange(n, b.Bytes(n))
		}
	}
}

func (e *Encoder) isFull() bool {
	if e.items >= e.most || len(e.cols[colData]) >= maxData {
		return true
	}
	if e.items < e.look {
		return false
	}
	e.look = e.items + lookEach
	size := 0
	for _, c := range e.cols {
		size += len(c)
	}
	return size >= maxBytes
}

// beginPiece begins a piece of a thread's run, unless it continues the last one.
func (e *Encoder) beginPiece(at event.Stamp) {
	last := e.stamp
	if len(e.stamps) == 0 {
		last = event.Stamp{}
	} else if last.Thread == at.Thread && last.Seq == at.Seq && last.Core == at.Core {
		return
	}
	e.lasts[last.Thread] = e.last
	e.last = e.lasts[at.Thread]
	e.putItem(itemPiece)
	for _, v := range [...]uint64{
		at.Seq - last.Seq, at.Sync - last.Sync, uint64(at.Thread - last.Thread), uint64(at.Core - last.Core),
		uint64(at.Time - last.Time), at.Instructions - last.Instructions, at.Branches - last.Branches,
	} {
		e.putNumber(colItems, zigzag(v))
	}
	e.stamp, e.branches = at, at.Branches
	e.stamps = append(e.stamps, at)
}

func (e *Encoder) putItem(kind byte) {
	e.cols[colControl] = append(e.cols[colControl], other|kind)
	e.items++
}

// noteMapping notes where an address leads from now on.
func (e *Encoder) noteMapping(number, page uint64) {
	e.live[number] = page
	if seen, ok := e.pages[number]; !ok || seen != page {
		e.front[number&(frontSize-1)] = 0
	}
}

// ensureMapped makes sure that the block has the page of an address.
func (e *Encoder) ensureMapped(addr uint64) {
	number := addr >> pageShift
	f := &e.front[number&(frontSize-1)]
	if *f == number|e.epoch {
		return
	}
	page := e.live[number]
	if seen, ok := e.pages[number]; !ok || seen != page {
		e.pages[number] = page
		e.putItem(itemMap)
		e.putNumber(colItems, number)
		e.putNumber(colItems, page)
	}
	*f = number | e.epoch
}

func (e *Encoder) encodeAccess(n *memlog.Entry, high, branches uint64) {
	addr := uint64(n.Addr)
	e.ensureMapped(addr)
	if end := addr + uint64(n.Size) - 1; end>>pageShift != addr>>pageShift {
		e.ensureMapped(end)
	}
	descr := uint8(n.Size)
	if n.Kind == memlog.Store {
		descr |= flagStore
	}
	if n.Flags&memlog.FlagAtomic != 0 {
		descr |= flagAtomic
	}
	id, control, expected := e.findSite(n.PC, descr)
	later := branches - e.branches
	e.branches = branches
	if later != uint64(expected) {
		control |= branchesOther
		e.putNumber(colBranches, later)
	}
	e.noteSuccessor(id, uint32(later))
	s := &e.sites[id]
	switch addr {
	case s.addr + s.stride:
	case e.where + s.away:
		control |= addrPair
	default:
		control |= addrOther
		e.putNumber(colAddrs, zigzag(addr-s.addr))
	}
	control |= e.encodeValue(s, addr, n.Value, descr) << valueShift
	e.noteAccess(s, addr, n.Value)
	if n.Size > 8 {
		e.encodeHigh(addr+8, high, uint8(n.Size)-8)
	}
	e.cols[colControl] = append(e.cols[colControl], control)
	e.items++
}

// findSite returns the site of an access, the coding of the site, and how many branches are
// expected before it.
func (e *Encoder) findSite(pc uint64, descr uint8) (id uint32, control byte, branches uint32) {
	l := &e.sites[e.last]
	for k, next := range l.next {
		if next != noSite && e.sites[next].pc == pc && e.sites[next].descr == descr {
			return next, byte(k), l.branches[k]
		}
	}
	key := pc<<8 | uint64(descr)
	id, ok := e.known[key]
	if ok {
		e.putNumber(colSites, uint64(id))
		return id, siteOther, 0
	}
	e.putNumber(colSites, uint64(len(e.sites)))
	e.putNumber(colSites, zigzag(pc-l.pc))
	e.cols[colSites] = append(e.cols[colSites], descr)
	id = e.addSite(pc, descr)
	e.known[key] = id
	return id, siteOther, 0
}

// encodeValue encodes the first half of a value.
func (e *Encoder) encodeValue(s *site, addr, v uint64, descr uint8) byte {
	size := lowSize(descr & sizeMask)
	first, second := firstBytes(e.lastValue(addr), size), firstBytes(s.value+s.trend, size)
	if descr&flagStore != 0 {
		first, second = second, firstBytes(e.before+s.difference, size)
	}
	switch v {
	case first:
		return valueCache
	case second:
		return valueTrend
	}
	near := zigzag(signedTo(v, s.value, size))
	if varintSize(near) < int(size) {
		e.putNumber(colNear, near)
		return valueNear
	}
	e.putRaw(v, size)
	return valueRaw
}

func (e *Encoder) putRaw(v uint64, size uint8) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	e.cols[colRaw] = append(e.cols[colRaw], b[:size]...)
}

func (e *Encoder) encodeHigh(addr, v uint64, size uint8) {
	how := byte(highCache)
	if v != firstBytes(e.lastValue(addr), size) {
		how = highRaw
		e.putRaw(v, size)
	}
	e.noteValue(addr, v)
	e.cols[colHigh] = append(e.cols[colHigh], how)
}

// encodeChange encodes an entry that is neither an access nor a place.
func (e *Encoder) encodeChange(n *memlog.Entry, data []byte) {
	switch n.Kind {
	case memlog.Kernel:
		kind := byte(itemKernel)
		if data == nil {
			kind = itemLater
		} else if n.Flags&memlog.FlagBuffered != 0 {
			kind = itemView
		}
		e.putItem(kind)
		e.putNumber(colItems, uint64(n.Addr))
		e.putNumber(colItems, n.PC)
		e.putNumber(colItems, uint64(n.Branches))
	case memlog.Read:
		e.putItem(itemRead)
		e.putNumber(colItems, uint64(n.Addr))
		e.putNumber(colItems, n.PC)
		e.putNumber(colItems, uint64(n.Branches))
	case memlog.Part:
		e.putItem(itemPart)
		e.putNumber(colItems, n.PC)
		e.putNumber(colItems, uint64(n.Addr))
	case memlog.Content:
		e.putItem(itemContent)
		e.putNumber(colItems, n.PC)
	case memlog.Zero:
		e.putItem(itemZero)
		e.putNumber(colItems, n.PC)
	case memlog.Copy:
		e.putItem(itemCopy)
		e.putNumber(colItems, n.PC)
		e.putNumber(colItems, n.Value)
	}
	e.cols[colData] = append(e.cols[colData], data...)
}

// AppendTo completes the block and appends all blocks that it has not appended yet to a stream
// of a trace, that of Key.
func (e *Encoder) AppendTo(to *trace.Stream) {
	e.finishBlock()
	appendBlocks(to, e.done)
	e.done = nil
}

func appendBlocks(to *trace.Stream, blocks []coded) {
	for _, c := range blocks {
		to.Append(c.record, c.stamps[0], c.stamps[1:]...)
	}
}

// finishBlock completes the block.
func (e *Encoder) finishBlock() {
	if e.items == 0 {
		return
	}
	var head []byte
	size := 0
	for _, c := range e.cols {
		head = binary.AppendUvarint(head, uint64(len(c)))
		size += len(c)
	}
	record := append(make([]byte, 0, len(head)+size), head...)
	for _, c := range e.cols {
		record = append(record, c...)
	}
	e.done = append(e.done, coded{record, e.stamps})
	e.beginBlock()
}
