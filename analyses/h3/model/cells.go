package model

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Cell is a piece of memory that every access touches as a whole or not at all: a
// range of bytes, or an array, of which an access touches one element.
type Cell struct {
	Addr  uint64
	Size  int    // in bytes; an array's, of an element
	Array *Array // nil: no array
	// Reads and Writes are the accesses, by event.
	Reads, Writes []Access
}

// Access is the part of an event that concerns a cell.
type Access struct {
	Event ID
	// Low is the first bit of the cell in the event's symbol and value.
	Low int
	// Index is the element's number, nil if the cell is no array.
	Index *symbolic.Expr
}

// Part is the cell's part of the event's symbol or value.
func (c *Cell) Part(t *Trace, a *Access, of *symbolic.Expr) *symbolic.Expr {
	return t.Pool.Extract(of, a.Low, 8*c.Size)
}

// Content is the initial content of the cell, or of an array's element.
func (c *Cell) Content(t *Trace, index *symbolic.Expr) *symbolic.Expr {
	if c.Array == nil {
		return t.initialValue(c.Addr, c.Size)
	}
	content := t.initialValue(c.Addr, c.Size)
	for i := 1; i < c.Array.Count; i++ {
		is := t.Pool.Eq(index, t.Pool.Word(uint64(i), 64))
		content = t.Pool.Ite(is, t.initialValue(c.Addr+uint64(i*c.Size), c.Size), content)
	}
	return content
}

func (t *Trace) initialValue(addr uint64, size int) *symbolic.Expr {
	var v symbolic.Value
	for i := range size {
		b := uint64(t.Initial[addr+uint64(i)])
		if i < 8 {
			v.Lo |= b << (8 * i)
		} else {
			v.Hi |= b << (8 * (i - 8))
		}
	}
	return t.Pool.Const(v, 8*size)
}

// Cells lists the pieces of memory that any event touches, by address.
func (t *Trace) Cells() []Cell {
	cells := t.accessRanges()
	for i := range t.Arrays {
		a := &t.Arrays[i]
		cells = append(cells, Cell{Addr: a.Addr, Size: a.Elem, Array: a})
	}
	slices.SortFunc(cells, func(a, b Cell) int { return cmp.Compare(a.Addr, b.Addr) })
	for id := range t.Events {
		if e := &t.Events[id]; e.Kind.Reads() || e.Kind.Writes() {
			enterAccess(cells, e, ID(id))
		}
	}
	return slices.DeleteFunc(cells, func(c Cell) bool { return len(c.Reads)+len(c.Writes) == 0 })
}

// accessRanges are the ranges between the borders of accesses, without arrays.
func (t *Trace) accessRanges() []Cell {
	var borders []uint64
	for i := range t.Events {
		if e := &t.Events[i]; (e.Kind.Reads() || e.Kind.Writes()) && e.Index == nil {
			borders = append(borders, e.Addr, e.Addr+uint64(e.Size))
		}
	}
	slices.Sort(borders)
	borders = slices.Compact(borders)
	var cells []Cell
	for i := 1; i < len(borders); i++ {
		// A range between two accesses is a cell without any, and is dropped later.
		if size := borders[i] - borders[i-1]; size <= 16 {
			cells = append(cells, Cell{Addr: borders[i-1], Size: int(size)})
		}
	}
	return cells
}

// enterAccess enters an access in the cells that it touches.
func enterAccess(cells []Cell, e *Event, id ID) {
	first, _ := slices.BinarySearchFunc(cells, e.Addr, func(c Cell, addr uint64) int { return cmp.Compare(c.Addr, addr) })
	for i := first; i < len(cells); i++ {
		c := &cells[i]
		if c.Addr >= e.Addr+uint64(e.Size) {
			return
		}
		a := Access{Event: id, Low: 8 * int(c.Addr-e.Addr), Index: e.Index}
		if e.Kind.Reads() {
			c.Reads = append(c.Reads, a)
		}
		if e.Kind.Writes() {
			c.Writes = append(c.Writes, a)
		}
		if c.Array != nil {
			return
		}
	}
}
