package symtrace

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

const pageSize = 4096

// cell is byte number at of an expression; the zero cell is a known byte.
type cell struct {
	e  *symbolic.Expr
	at int
}

// page is a page of a view. Views share pages until one of them writes.
type page struct {
	of    *view
	bytes [pageSize]byte
	// cells, if any, say which bytes are expressions.
	cells *[pageSize]cell
}

// view is memory as a thread has it: the image, and what was written since by the
// thread and by those that came before it.
type view struct {
	image *Image
	pages map[uint64]*page
	// recent are the pages found last, by their numbers' last digits.
	recent [16]recentPage
	// wrote are the granules that were written by the view's thread, noted some of them
	// by their last digits.
	wrote map[uint64]bool
	noted [256]uint64
}

type recentPage struct {
	number uint64
	*page
}

func newView(image *Image) *view {
	return &view{image: image, pages: map[uint64]*page{}, wrote: map[uint64]bool{}}
}

// written lists the granules that were written through the view.
func (v *view) written() []uint64 { return slices.Sorted(maps.Keys(v.wrote)) }

func (v *view) note(addr uint64, size int) {
	for g := addr / granule; g <= (addr+uint64(size)-1)/granule; g++ {
		if noted := &v.noted[g%uint64(len(v.noted))]; *noted != g {
			*noted, v.wrote[g] = g, true
		}
	}
}

// clone is a view of its own with the same content.
func (v *view) clone() *view {
	c := &view{image: v.image, pages: make(map[uint64]*page, len(v.pages)), wrote: map[uint64]bool{}}
	for n, p := range v.pages {
		p.of = nil
		c.pages[n] = p
	}
	v.recent = [16]recentPage{}
	return c
}

// page finds a page to read.
func (v *view) page(n uint64) *page {
	recent := &v.recent[n%uint64(len(v.recent))]
	if recent.page != nil && recent.number == n {
		return recent.page
	}
	p := v.pages[n]
	if p == nil {
		p = &page{of: v}
		v.image.peek(n*pageSize, p.bytes[:])
		v.pages[n] = p
	}
	*recent = recentPage{n, p}
	return p
}

// own finds a page to write.
func (v *view) own(n uint64) *page {
	p := v.page(n)
	if p.of == v {
		return p
	}
	c := &page{of: v, bytes: p.bytes}
	if p.cells != nil {
		cells := *p.cells
		c.cells = &cells
	}
	v.pages[n], v.recent[n%uint64(len(v.recent))].page = c, c
	return c
}

// read fills b; false: some of it is an expression.
func (v *view) read(addr uint64, b []byte) bool {
	if at := addr % pageSize; at+uint64(len(b)) <= pageSize {
		if p := v.page(addr / pageSize); p.cells == nil {
			copy(b, p.bytes[at:])
			return true
		}
	}
	for i := range b {
		at := addr + uint64(i)
		p := v.page(at / pageSize)
		if p.cells != nil && p.cells[at%pageSize].e != nil {
			return false
		}
		b[i] = p.bytes[at%pageSize]
	}
	return true
}

// write stores known bytes.
func (v *view) write(addr uint64, b []byte) {
	v.note(addr, len(b))
	if at := addr % pageSize; at+uint64(len(b)) <= pageSize {
		if p := v.own(addr / pageSize); p.cells == nil {
			copy(p.bytes[at:], b)
			return
		}
	}
	for i, x := range b {
		at := addr + uint64(i)
		p := v.own(at / pageSize)
		p.bytes[at%pageSize] = x
		if p.cells != nil {
			p.cells[at%pageSize] = cell{}
		}
	}
}

// load is what bytes are, as an expression.
func (v *view) load(p *symbolic.Pool, addr uint64, size int) *symbolic.Expr {
	var cells [16]cell
	var b [16]byte
	for i := range size {
		at := addr + uint64(i)
		pg := v.page(at / pageSize)
		b[i] = pg.bytes[at%pageSize]
		if pg.cells != nil {
			cells[i] = pg.cells[at%pageSize]
		}
	}
	return gather(p, cells[:size], b[:size])
}

// store makes bytes those of an expression.
func (v *view) store(addr uint64, e *symbolic.Expr) {
	size := e.Bits / 8
	if e.IsConst() {
		b := bytesOf(e.Value)
		v.write(addr, b[:size])
		return
	}
	v.note(addr, size)
	for i := range size {
		at := addr + uint64(i)
		p := v.own(at / pageSize)
		if p.cells == nil {
			p.cells = &[pageSize]cell{}
		}
		p.cells[at%pageSize] = cell{e, i}
	}
}

func bytesOf(v symbolic.Value) (b [16]byte) {
	binary.LittleEndian.PutUint64(b[:], v.Lo)
	binary.LittleEndian.PutUint64(b[8:], v.Hi)
	return b
}

func valueOf(b []byte) symbolic.Value {
	var all [16]byte
	copy(all[:], b)
	return symbolic.Value{Lo: binary.LittleEndian.Uint64(all[:]), Hi: binary.LittleEndian.Uint64(all[8:])}
}

// gather is the expression of bytes, the lowest first.
func gather(p *symbolic.Pool, cells []cell, b []byte) *symbolic.Expr {
	var all *symbolic.Expr
	for i := 0; i < len(cells); {
		c, n := cells[i], 1
		var part *symbolic.Expr
		if c.e == nil {
			for i+n < len(cells) && cells[i+n].e == nil {
				n++
			}
			part = p.Const(valueOf(b[i:i+n]), 8*n)
		} else {
			for i+n < len(cells) && cells[i+n] == (cell{c.e, c.at + n}) {
				n++
			}
			part = p.Extract(c.e, 8*c.at, 8*n)
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
