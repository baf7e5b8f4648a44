package exec

import (
	"bytes"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// A load at an address that depends on inputs from memory that does not change, such as
// the C library's tables of characters: what is loaded is the same at other addresses,
// too. That it is one of those, a row of them at equal distances, is all that has to be
// fixed.

// farthest is how many bytes from the recorded address a row may go each way.
const farthest = 1024

// row is addresses from low on, each a stride from the one before.
type row struct {
	low, high uint64
	stride    uint64
}

// tabled makes the constraint of a load of so many bytes from a table; 0: there is none
// but that the address is the recorded one.
func (r *round) tabled(addr uint64, e Term, size int) Term {
	if r.x.Constant == nil || r.terms.bits(e) != 64 {
		return 0
	}
	low, high := r.x.Constant(r.space, addr)
	low, high = max(low, addr-min(addr, farthest)), min(high, addr+farthest)
	if addr < low || high < addr+uint64(size) {
		return 0
	}
	if !r.repeated(addr, size, low, high) {
		return 0
	}
	memory := make([]byte, high-low)
	if n := r.x.code(r.space, low, memory); n < len(memory) || r.x.memory.touched(r.space, low, len(memory)) {
		return 0
	}
	best := row{addr, addr, 1}
	for stride := uint64(1); stride <= longestStride; stride *= 2 {
		if w := rowOf(memory, addr-low, stride, size); (w.high-w.low)/stride > (best.high-best.low)/best.stride {
			best = row{low + w.low, low + w.high, stride}
		}
	}
	if best.low == best.high {
		return 0
	}
	return r.terms.within(e, best)
}

// longestStride is how far the places of a row are apart at most.
const longestStride = 8

// repeated tells whether the same bytes are next to where they are, at one of the
// strides: in few tables of numbers they are.
func (r *round) repeated(addr uint64, size int, low, high uint64) bool {
	low, high = max(low, addr-min(addr, longestStride)), min(high, addr+uint64(size)+longestStride)
	memory := r.near[:high-low]
	if r.x.code(r.space, low, memory) < len(memory) {
		return false
	}
	for stride := uint64(1); stride <= longestStride; stride *= 2 {
		if w := rowOf(memory, addr-low, stride, size); w.low != w.high {
			return true
		}
	}
	return false
}

// rowOf is the row of places in memory, around one, at which the same bytes are.
func rowOf(memory []byte, at, stride uint64, size int) row {
	n := uint64(size)
	same := func(i uint64) bool { return bytes.Equal(memory[i:i+n], memory[at:at+n]) }
	w := row{at, at, stride}
	for w.low >= stride && same(w.low-stride) {
		w.low -= stride
	}
	for w.high+stride+n <= uint64(len(memory)) && same(w.high+stride) {
		w.high += stride
	}
	return w
}

// longestNumber is how many digits a number has at most that does not overflow.
const longestNumber = 18

// measure makes the bound of a call that says where a number ends: what is before its
// digits is the same, they are digits, and what is behind them is none. It tells whether
// there is a number.
func (t *thread) measure(c *summarized) bool {
	addr := t.argument(0)
	text := t.inputAt(addr, 0, nil).data
	n := len(text) - len(bytes.TrimLeft(text, " \t\n\v\f\r"))
	if n < len(text) && (text[n] == '-' || text[n] == '+') {
		n++
	}
	digits := 0
	for n+digits < len(text) && text[n+digits]-'0' < 10 {
		digits++
	}
	if digits == 0 || digits > longestNumber || n+digits == len(text) {
		return false
	}
	var cells [1]cell
	for i := range n + digits + 1 {
		t.x.memory.load(t.space, addr+uint64(i), cells[:])
		c.require(t.x.terms, t.x.terms.byteOf(cells[0], text[i]), text[i], i >= n)
	}
	return true
}

// require adds to the bound that a byte is what it was, or a digit, or none, as it was.
func (c *summarized) require(t *terms, b Term, was byte, digit bool) {
	if b < 0 {
		return
	}
	is := t.equal(b, t.constant(symbolic.Value{Lo: uint64(was)}, 8))
	if digit {
		wide := t.fit(b, 32)
		is = t.operation(opNumber("CmpLT32U"), 1, t.operation(opNumber("Sub32"), 32, wide, t.constant(symbolic.Value{Lo: '0'}, 32), 0),
			t.constant(symbolic.Value{Lo: 10}, 32), 0)
		if was-'0' >= 10 {
			is = t.not(is)
		}
	}
	if c.bound != 0 {
		is = t.add(node{op: nodeAnd, bits: 1, a: c.bound, b: is})
	}
	c.bound = is
}

// within is that an address is in a row.
func (t *terms) within(e Term, w row) Term {
	number := func(x uint64) Term { return t.constant(symbolic.Value{Lo: x}, 64) }
	distance := t.operation(opNumber("Sub64"), 64, e, number(w.low), 0)
	in := t.operation(opNumber("CmpLE64U"), 1, distance, number(w.high-w.low), 0)
	if w.stride == 1 {
		return in
	}
	between := t.operation(opNumber("And64"), 64, distance, number(w.stride-1), 0)
	return t.add(node{op: nodeAnd, bits: 1, a: in, b: t.equal(between, number(0))})
}
