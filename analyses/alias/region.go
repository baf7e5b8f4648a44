package alias

import (
	"encoding/binary"
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/specialize"
)

// RegionKind is the kind of a region.
type RegionKind uint8

// Kinds of regions.
const (
	// Library is all memory of libraries.
	Library RegionKind = iota
	// Arguments are the program's arguments and environment.
	Arguments
	// Global is a variable of the program.
	Global
	// Stack is a frame of a context: offsets count from its return address.
	Stack
	// Heap is the memory that a context allocates at one place.
	Heap
)

// Region is memory that pointers do not leave.
type Region struct {
	Kind RegionKind
	// Symbol is the variable of a Global.
	Symbol cfg.Symbol
	// Context is that of a Stack or a Heap, and Site the block that allocates a Heap.
	Context *specialize.Context
	Site    *cfg.Block

	number int
	memory regionMemory
	// escaped is set if its address is in memory, or known to a library.
	escaped bool
	readers map[blockNode]bool
}

// Name describes a region.
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

// regionMemory is the contents of a region: words at known offsets have values of their
// own.
type regionMemory struct {
	cells         map[int64]Value
	intervalCells []intervalCell // at an unknown offset in an interval
	anywhere      Value          // at any offset
}

// intervalCell is the value of the words in an interval of offsets.
type intervalCell struct {
	at    Interval
	size  int
	value Value
}

// maxIntervalCells is the number of intervals of a region with values of their own.
const maxIntervalCells = 32

type regionKey struct {
	kind    RegionKind
	addr    uint64
	context *specialize.Context
	site    *cfg.Block
}

// regionFor returns the region of a key.
func (a *analysis) regionFor(k regionKey) *Region {
	if n, ok := a.numbers[k]; ok {
		return a.regions[n]
	}
	r := &Region{
		Kind: k.kind, Context: k.context, Site: k.site, number: len(a.regions),
		memory: regionMemory{cells: map[int64]Value{}}, readers: map[blockNode]bool{},
	}
	if k.kind == Global {
		r.Symbol, _ = a.image.Variable(k.addr)
	}
	a.numbers[k] = r.number
	a.regions = append(a.regions, r)
	return r
}

// constantAddress is the value of a constant of the program: an address in its data points
// into a variable.
func (a *analysis) constantAddress(word uint64) Value {
	if !a.image.Contains(word) || a.image.OwnsCode(word) {
		return numberValue(Exactly(int64(word)))
	}
	y, ok := a.image.Variable(word)
	if !ok {
		return numberValue(Exactly(int64(word)))
	}
	r := a.regionFor(regionKey{kind: Global, addr: y.Addr})
	return pointerValue(r.number, Exactly(int64(word-y.Addr)))
}

const wordBytes = 8

// loadValue is the value of size bytes at an address.
func (a *analysis) loadValue(at Value, size int, by blockNode) Value {
	if size < wordBytes {
		return numberOfSize(size)
	}
	if at.isTop {
		return topValue
	}
	var out Value
	for _, p := range at.parts {
		if p.region == numberRegion {
			out = joinValues(out, anyNumber)
			continue
		}
		r := a.regions[p.region]
		r.readers[by] = true
		out = joinValues(out, a.contentAt(r, p.at, size))
	}
	return out
}

func numberOfSize(size int) Value { return numberValue(Range(-1<<(8*size-1), 1<<(8*size)-1)) }

// contentAt is the value at offsets of a region.
func (a *analysis) contentAt(r *Region, at Interval, size int) Value {
	switch r.Kind {
	case Library:
		return topValue
	case Arguments:
		return joinValues(pointerValue(r.number, All), anyNumber)
	}
	out := r.memory.anywhere
	for _, w := range r.memory.intervalCells {
		if w.at.MayOverlap(w.size, at, size) {
			out = joinValues(out, w.value)
		}
	}
	if r.escaped {
		out = joinValues(out, a.everywhere)
	}
	for _, offset := range cellsAt(r, at, size, a.meter) {
		out = joinValues(out, r.memory.cells[offset])
	}
	if r.Kind == Global {
		out = joinValues(out, a.initialValue(r, at))
	}
	if out.isUnset() && r.Kind != Global {
		return Value{} // no store has reached it yet
	}
	return out
}

// maxInitialWords is the number of words of a variable whose initial values are read.
const maxInitialWords = 512

// initialValue is the value of a variable's words when the program begins, or when the trace does: then it may be anything.
func (a *analysis) initialValue(r *Region, at Interval) Value {
	low, high := int64(0), int64(r.Symbol.Size)
	if at.Low > low {
		low = at.Low
	}
	if at.High < high {
		high = at.High + 1
	}
	if high-low > maxInitialWords*wordBytes {
		if a.run.Late() {
			return topValue
		}
		return anyNumber
	}
	step := int64(1)
	if at.Stride > 1 {
		step = int64(at.Stride)
	} else if !at.IsSingle() {
		step = wordBytes
		low &^= wordBytes - 1
	}
	var out Value
	for offset := low; offset < high; offset += step {
		a.meter.Add(1)
		var word [wordBytes]byte
		n, constant := a.image.Read(r.Symbol.Addr+uint64(offset), word[:])
		if n < wordBytes {
			break
		}
		if a.run.Late() && !constant {
			return topValue
		}
		if _, ok := a.image.ImportOfSlot(r.Symbol.Addr + uint64(offset)); ok {
			return topValue
		}
		out = joinValues(out, a.constantAddress(binary.LittleEndian.Uint64(word[:])))
	}
	return out
}

// storeValue adds a value to the contents of size bytes at an address.
func (a *analysis) storeValue(at Value, size int, v Value) {
	if v.isUnset() {
		return
	}
	if size >= wordBytes && !v.isNumber() {
		a.markEscaped(v)
	}
	if at.isTop {
		if size >= wordBytes && !v.isNumber() {
			a.storeAnywhere(v)
		}
		return
	}
	for _, p := range at.parts {
		if p.region != numberRegion {
			a.writeRegion(a.regions[p.region], p.at, size, v)
		}
	}
}

// storeAnywhere adds a value to all memory that libraries and unknown addresses reach.
func (a *analysis) storeAnywhere(v Value) {
	if w := joinValues(a.everywhere, v); !w.equalTo(a.everywhere) {
		a.everywhere = w
		for _, r := range a.regions {
			if r.escaped {
				a.requeueReaders(r)
			}
		}
	}
}

func (a *analysis) writeRegion(r *Region, at Interval, size int, v Value) {
	if size < wordBytes {
		v = anyNumber
	}
	if !at.IsSingle() {
		to := r.memory.cellFor(at, max(size, wordBytes))
		if w := widenValues(*to, v); !w.equalTo(*to) {
			*to = w
			a.requeueReaders(r)
		}
		return
	}
	for offset := at.Low; offset < at.Low+int64(max(size, wordBytes)); offset += wordBytes {
		old := r.memory.cells[offset]
		if w := widenValues(old, v); !w.equalTo(old) {
			r.memory.cells[offset] = w
			a.requeueReaders(r)
		}
	}
}

// cellFor returns the value that holds the contents of an interval.
func (m *regionMemory) cellFor(at Interval, size int) *Value {
	for i := range m.intervalCells {
		if m.intervalCells[i].at == at && m.intervalCells[i].size == size {
			return &m.intervalCells[i].value
		}
	}
	if len(m.intervalCells) == maxIntervalCells {
		return &m.anywhere
	}
	m.intervalCells = append(m.intervalCells, intervalCell{at, size, Value{}})
	return &m.intervalCells[len(m.intervalCells)-1].value
}

// markEscaped records that an address is known outside of the registers of its context.
func (a *analysis) markEscaped(v Value) {
	for _, p := range v.parts {
		if p.region == numberRegion || a.regions[p.region].escaped {
			continue
		}
		a.regions[p.region].escaped = true
		a.requeueReaders(a.regions[p.region])
	}
}

func (a *analysis) requeueReaders(r *Region) {
	a.meter.Add(len(r.readers))
	for n := range r.readers { // the queue sorts the blocks, so the order does not matter
		a.enqueue(n)
	}
}
