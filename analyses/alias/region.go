package alias

import (
	"encoding/binary"
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/simplify"
)

// RegionKind says what a region is of.
type RegionKind uint8

// Kinds of regions.
const (
	// Library is everything that libraries have for themselves.
	Library RegionKind = iota
	// Arguments are the program's arguments and environment.
	Arguments
	// Global is a variable of the program.
	Global
	// Stack is a frame of a context: offsets count from its return address.
	Stack
	// Heap is what a context allocates at a place.
	Heap
)

// Region is memory that pointers do not leave.
type Region struct {
	Kind RegionKind
	// Symbol is the variable of a Global.
	Symbol cfg.Symbol
	// Context is that of a Stack or a Heap, and Site what allocates a Heap.
	Context *simplify.Context
	Site    *cfg.Block

	number int
	memory memory
	// escaped tells that its address is in memory, or known to a library.
	escaped bool
	readers map[node]bool
}

// Name says what a region is.
func (r *Region) Name() string {
	switch r.Kind {
	case Global:
		return r.Symbol.Name
	case Stack:
		return "frame of " + r.Context.Name()
	case Heap:
		return fmt.Sprintf("memory of %s at %#x", r.Context.Name(), r.Site.Last)
	}
	if r.Kind == Arguments {
		return "arguments"
	}
	return "libraries"
}

// memory is what a region's words may have: those at a known offset by themselves.
type memory struct {
	cells map[int64]Value
	rows  []row // somewhere in some intervals
	rest  Value // somewhere
}

// row is what words in an interval of offsets may have.
type row struct {
	at   Interval
	size int
	has  Value
}

// mostRows is how many intervals of a region are told apart.
const mostRows = 32

type regionKey struct {
	kind    RegionKind
	addr    uint64
	context *simplify.Context
	site    *cfg.Block
}

// region is the region of a key.
func (a *analysis) region(k regionKey) *Region {
	if n, ok := a.numbers[k]; ok {
		return a.regions[n]
	}
	r := &Region{
		Kind: k.kind, Context: k.context, Site: k.site, number: len(a.regions),
		memory: memory{cells: map[int64]Value{}}, readers: map[node]bool{},
	}
	if k.kind == Global {
		r.Symbol, _ = a.image.Variable(k.addr)
	}
	a.numbers[k] = r.number
	a.regions = append(a.regions, r)
	return r
}

// value is a constant of the program: an address in its data is one in a variable.
func (a *analysis) value(word uint64) Value {
	if !a.image.Within(word) || a.image.Owns(word) {
		return numeric(Exactly(int64(word)))
	}
	y, ok := a.image.Variable(word)
	if !ok {
		return numeric(Exactly(int64(word)))
	}
	r := a.region(regionKey{kind: Global, addr: y.Addr})
	return pointer(r.number, Exactly(int64(word-y.Addr)))
}

const wordBytes = 8

// load is what so many bytes at an address may be.
func (a *analysis) load(at Value, size int, by node) Value {
	if size < wordBytes {
		return narrowNumber(size)
	}
	if at.any {
		return top
	}
	var out Value
	for _, p := range at.parts {
		if p.region == number {
			out = join(out, numbers)
			continue
		}
		r := a.regions[p.region]
		r.readers[by] = true
		out = join(out, a.content(r, p.at, size))
	}
	return out
}

func narrowNumber(size int) Value { return numeric(Range(-1<<(8*size-1), 1<<(8*size)-1)) }

// content is what may be at offsets of a region.
func (a *analysis) content(r *Region, at Interval, size int) Value {
	switch r.Kind {
	case Library:
		return top
	case Arguments:
		return join(pointer(r.number, All), numbers)
	}
	out := r.memory.rest
	for _, w := range r.memory.rows {
		if w.at.Meets(w.size, at, size) {
			out = join(out, w.has)
		}
	}
	if r.escaped {
		out = join(out, a.everywhere)
	}
	for _, offset := range sortedCells(r, at, size) {
		out = join(out, r.memory.cells[offset])
	}
	if r.Kind == Global {
		out = join(out, a.initial(r, at))
	}
	if out.none() && r.Kind != Global {
		return Value{} // nobody has written there yet
	}
	return out
}

// mostInitial is of how many words the first values are told apart.
const mostInitial = 512

// initial is what a variable's words have when the program begins.
func (a *analysis) initial(r *Region, at Interval) Value {
	low, high := int64(0), int64(r.Symbol.Size)
	if at.Low > low {
		low = at.Low
	}
	if at.High < high {
		high = at.High + 1
	}
	if high-low > mostInitial*wordBytes {
		return numbers
	}
	step := int64(1)
	if at.Stride > 1 {
		step = int64(at.Stride)
	} else if !at.One() {
		step = wordBytes
		low &^= wordBytes - 1
	}
	var out Value
	for offset := low; offset < high; offset += step {
		var word [wordBytes]byte
		if n, _ := a.image.Read(r.Symbol.Addr+uint64(offset), word[:]); n < wordBytes {
			break
		}
		if _, ok := a.image.Slot(r.Symbol.Addr + uint64(offset)); ok {
			return top
		}
		out = join(out, a.value(binary.LittleEndian.Uint64(word[:])))
	}
	return out
}

// store says that so many bytes at an address may be a value.
func (a *analysis) store(at Value, size int, v Value) {
	if v.none() {
		return
	}
	if size >= wordBytes && !v.isNumber() {
		a.escape(v)
	}
	if at.any {
		if size >= wordBytes && !v.isNumber() {
			a.flood(v)
		}
		return
	}
	for _, p := range at.parts {
		if p.region != number {
			a.write(a.regions[p.region], p.at, size, v)
		}
	}
}

// flood says that a value may be anywhere that libraries and unknown addresses reach.
func (a *analysis) flood(v Value) {
	if w := join(a.everywhere, v); !w.equal(a.everywhere) {
		a.everywhere = w
		for _, r := range a.regions {
			if r.escaped {
				a.changed(r)
			}
		}
	}
}

func (a *analysis) write(r *Region, at Interval, size int, v Value) {
	if size < wordBytes {
		v = numbers
	}
	if !at.One() {
		to := r.memory.row(at, max(size, wordBytes))
		if w := widen(*to, v); !w.equal(*to) {
			*to = w
			a.changed(r)
		}
		return
	}
	for offset := at.Low; offset < at.Low+int64(max(size, wordBytes)); offset += wordBytes {
		old := r.memory.cells[offset]
		if w := widen(old, v); !w.equal(old) {
			r.memory.cells[offset] = w
			a.changed(r)
		}
	}
}

// row is where it is kept what words in an interval may have.
func (m *memory) row(at Interval, size int) *Value {
	for i := range m.rows {
		if m.rows[i].at == at && m.rows[i].size == size {
			return &m.rows[i].has
		}
	}
	if len(m.rows) == mostRows {
		return &m.rest
	}
	m.rows = append(m.rows, row{at, size, Value{}})
	return &m.rows[len(m.rows)-1].has
}

// escape says that an address is known outside of the registers of its context.
func (a *analysis) escape(v Value) {
	for _, p := range v.parts {
		if p.region == number || a.regions[p.region].escaped {
			continue
		}
		a.regions[p.region].escaped = true
		a.changed(a.regions[p.region])
	}
}

func (a *analysis) changed(r *Region) {
	for n := range r.readers { // the order of work does not matter: it is sorted
		a.add(n)
	}
}
