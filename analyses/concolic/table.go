package concolic

import (
	"bytes"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// A load at an address that depends on inputs may be from constant memory, such as the C
// library's tables of characters, where the same value is at other addresses, too. Then the
// address need only be one of a row of such addresses at equal distances.

// maxRowDistance is the extent of a row, in bytes on each side of the recorded address.
const maxRowDistance = 1024

// addressRow is the addresses from low to high, both included, that are stride bytes apart.
type addressRow struct {
	low, high uint64
	stride    uint64
}

// tableConstraint builds the constraint of a load from a table; 0: only the recorded
// address is known to have the value.
func (r *blockRun) tableConstraint(addr uint64, e Term, size int) Term {
	if r.x.ConstantRange == nil || r.terms.sizeOf(e) != 64 {
		return 0
	}
	low, high := r.x.ConstantRange(r.space, addr)
	low, high = max(low, addr-min(addr, maxRowDistance)), min(high, addr+maxRowDistance)
	if addr < low || high < addr+uint64(size) {
		return 0
	}
	if !r.hasRepeats(addr, size, low, high) {
		return 0
	}
	memory := make([]byte, high-low)
	if n := r.x.readCode(r.space, low, memory); n < len(memory) || r.x.memory.dependsOnInput(r.space, low, len(memory)) {
		return 0
	}
	best := addressRow{addr, addr, 1}
	for stride := uint64(1); stride <= maxStride; stride *= 2 {
		if w := findRow(memory, addr-low, stride, size); (w.high-w.low)/stride > (best.high-best.low)/best.stride {
			best = addressRow{low + w.low, low + w.high, stride}
		}
	}
	if best.low == best.high {
		return 0
	}
	return r.terms.withinRow(e, best)
}

// maxStride is the most bytes between the addresses of a row.
const maxStride = 8

// hasRepeats reports whether the loaded bytes are repeated next to them, at one of the
// strides: in most tables of numbers they are not.
func (r *blockRun) hasRepeats(addr uint64, size int, low, high uint64) bool {
	low, high = max(low, addr-min(addr, maxStride)), min(high, addr+uint64(size)+maxStride)
	memory := r.nearMemory[:high-low]
	if r.x.readCode(r.space, low, memory) < len(memory) {
		return false
	}
	for stride := uint64(1); stride <= maxStride; stride *= 2 {
		if w := findRow(memory, addr-low, stride, size); w.low != w.high {
			return true
		}
	}
	return false
}

// findRow returns the row of offsets in memory, around one, at which the same bytes are.
func findRow(memory []byte, at, stride uint64, size int) addressRow {
	n := uint64(size)
	same := func(i uint64) bool { return bytes.Equal(memory[i:i+n], memory[at:at+n]) }
	w := addressRow{at, at, stride}
	for w.low >= stride && same(w.low-stride) {
		w.low -= stride
	}
	for w.high+stride+n <= uint64(len(memory)) && same(w.high+stride) {
		w.high += stride
	}
	return w
}

// withinRow is the truth that an address is in a row.
func (t *termStore) withinRow(e Term, w addressRow) Term {
	number := func(x uint64) Term { return t.constantTerm(symbolic.Value{Lo: x}, 64) }
	distance := t.operationTerm(opNumber("Sub64"), 64, e, number(w.low), 0)
	in := t.operationTerm(opNumber("CmpLE64U"), 1, distance, number(w.high-w.low), 0)
	if w.stride == 1 {
		return in
	}
	between := t.operationTerm(opNumber("And64"), 64, distance, number(w.stride-1), 0)
	return t.addNode(termNode{op: nodeAnd, bits: 1, a: in, b: t.equalTerm(between, number(0))})
}
