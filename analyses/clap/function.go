package clap

import (
	"cmp"
	"slices"
	"sort"

	"github.com/heddle-dmt/heddle/internal/zydis"
)

// Function is an instrumented function: the code that its entry reaches without calls.
type Function struct {
	Entry uint64
	// Index is the function's place in Program.Functions.
	Index int
	// Paths is how many paths it has, and Base the number of the first.
	Paths, Base uint64
	// Blocks are by address.
	Blocks []*Block

	// entryEdges are the edges from the begin: to the first block, and to the blocks where
	// paths begin after an edge that goes back.
	entryEdges []*edge
}

// Block is a straight piece of a function.
type Block struct {
	Addr uint64
	// Kind is the kind of its last instruction.
	Kind zydis.Kind

	index   int
	lengths []byte // of its instructions
	bytes   uint64
	target  uint64 // of a direct branch
	next    []*edge
	// paths is how many paths lead from here to the end, and potential the difference, here,
	// between the register and the sum of the numbers of the edges so far.
	paths, potential uint64
}

// endAddr is the first address after the block.
func (b *Block) endAddr() uint64 { return b.Addr + b.bytes }

// Instructions is how many the block has.
func (b *Block) Instructions() int { return len(b.lengths) }

// endsWithCall reports whether the block ends with a call.
func (b *Block) endsWithCall() bool { return b.Kind == zydis.Call || b.Kind == zydis.IndirectCall }

// edge is a way from a block to another.
type edge struct {
	from, to *Block // from is nil of the begin, to of the end
	// addr is where it goes; 0 of a return.
	addr uint64
	// back: a path ends with the edge and another begins at to, with init.
	back bool
	init *edge
	// tail: a jump to another function. instrumented: that function is instrumented.
	tail, instrumented bool
	// afterBackEdge: an edge from the begin to the block where a path begins after an edge that
	// went back.
	afterBackEdge bool
	// value is the edge's number, increment the number that is added to the register.
	value, increment uint64
	weight           float64
}

// endsPath reports whether a path ends with the edge.
func (e *edge) endsPath() bool { return e.back || e.to == nil }

func (f *Function) firstBlock() *Block { return f.entryEdges[0].to }

// blockWith is the block that has an instruction at an address, or nil.
func (f *Function) blockWith(addr uint64) *Block {
	i := sort.Search(len(f.Blocks), func(i int) bool { return f.Blocks[i].Addr > addr }) - 1
	for ; i >= 0 && addr-f.Blocks[i].Addr < maxBlockBytes; i-- {
		if n, ok := f.Blocks[i].instructionsBefore(addr); ok && n < len(f.Blocks[i].lengths) {
			return f.Blocks[i]
		}
	}
	return nil
}

// instructionsBefore is how many instructions of the block come before an address, where one
// begins or the block ends.
func (b *Block) instructionsBefore(addr uint64) (int, bool) {
	at := b.Addr
	for i, n := range b.lengths {
		if at >= addr {
			return i, at == addr
		}
		at += uint64(n)
	}
	return len(b.lengths), at == addr
}

// edgeTo is the edge to an address, or nil; the end is 0.
func (b *Block) edgeTo(addr uint64) *edge {
	for _, e := range b.next {
		if e.addr == addr {
			return e
		}
	}
	return nil
}

// longest is more than a block has of bytes: maxRunInstructions instructions of 15 bytes.
const (
	maxRunInstructions = 256
	maxBlockBytes      = maxRunInstructions * 15
)

// findBlocks finds the blocks of a function: runs up to the first branch, cut where other
// blocks begin.
func (p *Program) findBlocks(entry uint64) *Function {
	f := &Function{Entry: entry}
	runs := p.reachableRuns(entry)
	for _, b := range runs {
		f.Blocks = append(f.Blocks, b)
	}
	slices.SortFunc(f.Blocks, func(a, b *Block) int { return cmp.Compare(a.Addr, b.Addr) })
	for i, b := range f.Blocks {
		b.index = i
		b.cutAtLater(f.Blocks[i+1:])
	}
	for _, b := range f.Blocks {
		p.linkBlock(entry, b, runs)
	}
	f.entryEdges = []*edge{{to: runs[entry], addr: entry}}
	return f
}

// reachableRuns has the runs that a function's entry reaches, by address.
func (p *Program) reachableRuns(entry uint64) map[uint64]*Block {
	runs := map[uint64]*Block{}
	work := []uint64{entry}
	for len(work) > 0 {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		if runs[at] != nil {
			continue
		}
		b := p.straightRun(at)
		runs[at] = b
		for _, to := range p.successors(b) {
			if p.staysInside(entry, to) {
				work = append(work, to)
			}
		}
	}
	return runs
}

// straightRun is the straight run at an address.
func (p *Program) straightRun(addr uint64) *Block {
	code := make([]byte, maxBlockBytes)
	code = code[:p.code.Read(addr, code)]
	var lengths [maxRunInstructions]byte
	w := zydis.Walk(code, lengths[:])
	b := &Block{Addr: addr, Kind: w.Kind, lengths: slices.Clone(lengths[:w.Count]), bytes: uint64(w.Bytes)}
	b.target = b.endAddr() + uint64(w.Relative)
	return b
}

// successors are the addresses that may follow a run in its function.
func (p *Program) successors(b *Block) []uint64 {
	switch b.Kind {
	case zydis.Jump:
		return []uint64{b.target}
	case zydis.Conditional:
		return []uint64{b.target, b.endAddr()}
	case zydis.IndirectJump:
		return p.known.Targets[b.endAddr()]
	case zydis.Straight, zydis.Call, zydis.IndirectCall, zydis.Far:
		return []uint64{b.endAddr()}
	}
	return nil // a return, or no code
}

// staysInside reports whether an edge to an address stays in the function.
func (p *Program) staysInside(entry, to uint64) bool {
	if to == entry {
		return true
	}
	if !p.isInstrumented(to) {
		return false
	}
	own, named := p.code.Function(entry)
	other, ok := p.code.Function(to)
	if named && ok {
		return own == other
	}
	return named == ok && !p.entries[to]
}

// cutAtLater ends a block where a later one begins, if an instruction begins there.
func (b *Block) cutAtLater(later []*Block) {
	for _, l := range later {
		if l.Addr >= b.endAddr() {
			return
		}
		if n, ok := b.instructionsBefore(l.Addr); ok {
			b.lengths, b.bytes, b.Kind = b.lengths[:n], l.Addr-b.Addr, zydis.Straight
			return
		}
	}
}

// linkBlock makes the edges of a block.
func (p *Program) linkBlock(entry uint64, b *Block, runs map[uint64]*Block) {
	for _, to := range p.successors(b) {
		switch {
		case b.edgeTo(to) != nil:
		case p.staysInside(entry, to):
			b.next = append(b.next, &edge{from: b, to: runs[to], addr: to})
		default:
			b.next = append(b.next, &edge{from: b, addr: to, tail: true, instrumented: p.isInstrumented(to)})
		}
	}
	if len(b.next) == 0 {
		b.next = []*edge{{from: b}}
	}
}
