package exec

import (
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// cell is a byte that depends on inputs: number at of an expression. The zero cell
// is a byte that does not.
type cell struct {
	e  *symbolic.Expr
	at int
}

// gather is the expression of bytes, the lowest first, of which the recorded
// values are given; nil if none depends on inputs.
func gather(p *symbolic.Pool, cells []cell, value symbolic.Value) *symbolic.Expr {
	var all *symbolic.Expr
	some := false
	for i := 0; i < len(cells); {
		c, n := cells[i], 1
		if c.e == nil {
			for i+n < len(cells) && cells[i+n].e == nil {
				n++
			}
		} else {
			some = true
			for i+n < len(cells) && cells[i+n] == (cell{c.e, c.at + n}) {
				n++
			}
		}
		part := c.part(p, i, n, value)
		if all == nil {
			all = part
		} else {
			all = p.Concat(part, all)
		}
		i += n
	}
	if !some {
		return nil
	}
	return all
}

// part is n bytes from cell number i on, of one expression or of none.
func (c cell) part(p *symbolic.Pool, i, n int, value symbolic.Value) *symbolic.Expr {
	if c.e != nil {
		return p.Extract(c.e, 8*c.at, 8*n)
	}
	return p.Extract(p.Const(value, 128), 8*i, 8*n)
}

// scatter sets cells to the bytes of an expression, nil for none. It returns by
// how much the number of bytes that depend on inputs has grown.
func scatter(cells []cell, e *symbolic.Expr) (grown int) {
	for i := range cells {
		if cells[i].e != nil {
			grown--
		}
		cells[i] = cell{}
		if e != nil {
			cells[i] = cell{e, i}
			grown++
		}
	}
	return grown
}

const pageSize = 4096

// page is a page of memory, some bytes of which depend on inputs.
type page struct {
	cells [pageSize]cell
	count int
}

type place struct {
	space  uint64
	number uint64
}

// memory says which bytes of memory depend on inputs.
type memory map[place]*page

// touched tells whether any of n bytes depends on inputs.
func (m memory) touched(space, addr uint64, n int) bool {
	if len(m) == 0 {
		return false
	}
	for at := addr; at < addr+uint64(n); at++ {
		pg := m[place{space, at / pageSize}]
		if pg == nil {
			at |= pageSize - 1
			continue
		}
		if pg.cells[at%pageSize].e != nil {
			return true
		}
	}
	return false
}

// load copies cells out.
func (m memory) load(space, addr uint64, to []cell) {
	for i := range to {
		at := addr + uint64(i)
		to[i] = cell{}
		if pg := m[place{space, at / pageSize}]; pg != nil {
			to[i] = pg.cells[at%pageSize]
		}
	}
}

// store sets n bytes to an expression, nil for none.
func (m memory) store(space, addr uint64, n int, e *symbolic.Expr) {
	for done := 0; done < n; {
		at := addr + uint64(done)
		from := int(at % pageSize)
		part := min(n-done, pageSize-from)
		k := place{space, at / pageSize}
		pg := m[k]
		if pg == nil && e != nil {
			pg = &page{}
			m[k] = pg
		}
		if pg != nil {
			pg.count += scatterFrom(pg.cells[from:from+part], e, done)
			if pg.count == 0 {
				delete(m, k)
			}
		}
		done += part
	}
}

// scatterFrom is scatter from byte number first of the expression on.
func scatterFrom(cells []cell, e *symbolic.Expr, first int) int {
	grown := scatter(cells, e)
	for i := range cells {
		if e != nil {
			cells[i].at += first
		}
	}
	return grown
}
