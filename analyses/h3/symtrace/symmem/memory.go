package symmem

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Granule is how many bytes the memory notes writes in, as a whole.
const Granule = 8

const PageSize = 4096

// Cell is byte number at of an expression; the zero cell is a known byte.
type Cell struct {
	Expr *symbolic.Expr
	Byte int
}

// page is a page of a view. Views share pages until one of them writes.
type page struct {
	owner *Memory
	bytes [PageSize]byte
	// cells, if any, say which bytes are expressions.
	cells *[PageSize]Cell
}

// Memory is memory as a thread sees it: the content at the beginning, with the writes of the thread
// and of the threads that came before it.
type Memory struct {
	peek  func(addr uint64, b []byte) int
	pages map[uint64]*page
	// recent are the pages found last, by their numbers' last digits.
	recent [16]recentPage
	// written are the granules that were written by the view's thread, noted some of them
	// by their last digits.
	written map[uint64]bool
	noted   [256]uint64
}

type recentPage struct {
	number uint64
	*page
}

// New makes a memory whose content at the beginning peek reads: it fills b from an
// address and returns how much of it there is.
func New(peek func(addr uint64, b []byte) int) *Memory {
	return &Memory{peek: peek, pages: map[uint64]*page{}, written: map[uint64]bool{}}
}

// WrittenGranules lists the granules that were written through the view.
func (v *Memory) WrittenGranules() []uint64 { return slices.Sorted(maps.Keys(v.written)) }

func (v *Memory) noteWrite(addr uint64, size int) {
	for g := addr / Granule; g <= (addr+uint64(size)-1)/Granule; g++ {
		if noted := &v.noted[g%uint64(len(v.noted))]; *noted != g {
			*noted, v.written[g] = g, true
		}
	}
}

// Clone copies the view.
func (v *Memory) Clone() *Memory {
	c := v.Fork()
	c.written = maps.Clone(v.written)
	return c
}

// Fork makes a view with the same content, through which nothing was written.
func (v *Memory) Fork() *Memory {
	c := &Memory{peek: v.peek, pages: make(map[uint64]*page, len(v.pages)), written: map[uint64]bool{}}
	for n, p := range v.pages {
		p.owner = nil
		c.pages[n] = p
	}
	v.recent = [16]recentPage{}
	return c
}

// readPage finds a page to read.
func (v *Memory) readPage(n uint64) *page {
	recent := &v.recent[n%uint64(len(v.recent))]
	if recent.page != nil && recent.number == n {
		return recent.page
	}
	p := v.pages[n]
	if p == nil {
		p = &page{owner: v}
		v.peek(n*PageSize, p.bytes[:])
		v.pages[n] = p
	}
	*recent = recentPage{n, p}
	return p
}

// writePage finds a page to write.
func (v *Memory) writePage(n uint64) *page {
	p := v.readPage(n)
	if p.owner == v {
		return p
	}
	c := &page{owner: v, bytes: p.bytes}
	if p.cells != nil {
		cells := *p.cells
		c.cells = &cells
	}
	v.pages[n], v.recent[n%uint64(len(v.recent))].page = c, c
	return c
}

// Read fills b; false: some of it is an expression.
func (v *Memory) Read(addr uint64, b []byte) bool {
	if at := addr % PageSize; at+uint64(len(b)) <= PageSize {
		if p := v.readPage(addr / PageSize); p.cells == nil {
			copy(b, p.bytes[at:])
			return true
		}
	}
	for i := range b {
		at := addr + uint64(i)
		p := v.readPage(at / PageSize)
		if p.cells != nil && p.cells[at%PageSize].Expr != nil {
			return false
		}
		b[i] = p.bytes[at%PageSize]
	}
	return true
}

// Write stores known bytes.
func (v *Memory) Write(addr uint64, b []byte) {
	v.noteWrite(addr, len(b))
	if at := addr % PageSize; at+uint64(len(b)) <= PageSize {
		if p := v.writePage(addr / PageSize); p.cells == nil {
			copy(p.bytes[at:], b)
			return
		}
	}
	for i, x := range b {
		at := addr + uint64(i)
		p := v.writePage(at / PageSize)
		p.bytes[at%PageSize] = x
		if p.cells != nil {
			p.cells[at%PageSize] = Cell{}
		}
	}
}

// Load returns bytes as an expression.
func (v *Memory) Load(p *symbolic.Pool, addr uint64, size int) *symbolic.Expr {
	var cells [16]Cell
	var b [16]byte
	for i := range size {
		at := addr + uint64(i)
		pg := v.readPage(at / PageSize)
		b[i] = pg.bytes[at%PageSize]
		if pg.cells != nil {
			cells[i] = pg.cells[at%PageSize]
		}
	}
	return Gather(p, cells[:size], b[:size])
}

// Store makes bytes those of an expression.
func (v *Memory) Store(addr uint64, e *symbolic.Expr) {
	size := e.Bits / 8
	if e.IsConst() {
		b := BytesOf(e.Value)
		v.Write(addr, b[:size])
		return
	}
	v.noteWrite(addr, size)
	for i := range size {
		at := addr + uint64(i)
		p := v.writePage(at / PageSize)
		if p.cells == nil {
			p.cells = &[PageSize]Cell{}
		}
		p.cells[at%PageSize] = Cell{e, i}
	}
}

func BytesOf(v symbolic.Value) (b [16]byte) {
	binary.LittleEndian.PutUint64(b[:], v.Lo)
	binary.LittleEndian.PutUint64(b[8:], v.Hi)
	return b
}

func ValueOf(b []byte) symbolic.Value {
	var all [16]byte
	copy(all[:], b)
	return symbolic.Value{Lo: binary.LittleEndian.Uint64(all[:]), Hi: binary.LittleEndian.Uint64(all[8:])}
}

// Gather is the expression of bytes, the lowest first.
func Gather(p *symbolic.Pool, cells []Cell, b []byte) *symbolic.Expr {
	var all *symbolic.Expr
	for i := 0; i < len(cells); {
		c, n := cells[i], 1
		var part *symbolic.Expr
		if c.Expr == nil {
			for i+n < len(cells) && cells[i+n].Expr == nil {
				n++
			}
			part = p.Const(ValueOf(b[i:i+n]), 8*n)
		} else {
			for i+n < len(cells) && cells[i+n] == (Cell{c.Expr, c.Byte + n}) {
				n++
			}
			part = p.Extract(c.Expr, 8*c.Byte, 8*n)
		}
		if all == nil {
			all = part
		} else {
			all = p.Concat(part, all)
		}
		i += n
	}
	return all
}
