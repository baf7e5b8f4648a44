package balllarus

import (
	"cmp"
	"slices"
	"sort"

	"github.com/heddle-dmt/heddle/internal/zydis"
)

// Function is an instrumented function: what its entry reaches without calls.
type Function struct {
	Entry uint64
	// Index is the function's place in Program.Functions.
	Index int
	// Paths is how many paths it has, and Base the number of the first.
	Paths, Base uint64
	// Blocks are by address.
	Blocks []*Block

	// enter are the edges from the begin: to the first block, and to the blocks where
	// paths begin after an edge that goes back.
	enter []*edge
}

// Block is a straight piece of a function.
type Block struct {
	Addr uint64
	// Kind is what its last instruction does.
	Kind zydis.Kind

	index   int
	lengths []byte // of its instructions
	bytes   uint64
	target  uint64 // of a direct branch
	next    []*edge
	// paths is how many there are from here to the end, and potential what the
	// register differs here from the sum of the numbers of the edges so far.
	paths, potential uint64
}

// end is the address behind the block.
func (b *Block) end() uint64 { return b.Addr + b.bytes }

// Instructions is how many the block has.
func (b *Block) Instructions() int { return len(b.lengths) }

// calls tells that the block ends with a call.
func (b *Block) calls() bool { return b.Kind == zydis.Call || b.Kind == zydis.IndirectCall }

// edge is a way from a block to another.
type edge struct {
	from, to *Block // from is nil of the begin, to of the end
	// addr is where it goes; 0 of a return.
	addr uint64
	// back tells that a path ends with it and another begins at to, with init.
	back bool
	init *edge
	// tail tells of a jump to another function; on, that that is instrumented.
	tail, on bool
	// again tells of an edge from the begin to where a path begins after one that went back.
	again bool
	// value is the edge's number, increment what the register gets.
	value, increment uint64
	weight           float64
}

// ends tells that a path ends with the edge.
func (e *edge) ends() bool { return e.back || e.to == nil }

func (f *Function) first() *Block { return f.enter[0].to }

// blockWith is the block that has an instruction at an address, or nil.
func (f *Function) blockWith(addr uint64) *Block {
	i := sort.Search(len(f.Blocks), func(i int) bool { return f.Blocks[i].Addr > addr }) - 1
	for ; i >= 0 && addr-f.Blocks[i].Addr < longest; i-- {
		if n, ok := f.Blocks[i].before(addr); ok && n < len(f.Blocks[i].lengths) {
			return f.Blocks[i]
		}
	}
	return nil
}

// before is how many instructions of the block come before an address, where one
// begins or the block ends.
func (b *Block) before(addr uint64) (int, bool) {
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

// longest is more than a block has of bytes: mostRun instructions of 15 bytes.
const (
	mostRun = 256
	longest = mostRun * 15
)

// explore finds the blocks of a function: runs up to the first branch, cut where other
// blocks begin.
func (p *Program) explore(entry uint64) *Function {
	f := &Function{Entry: entry}
	runs := p.reach(entry)
	for _, b := range runs {
		f.Blocks = append(f.Blocks, b)
	}
	slices.SortFunc(f.Blocks, func(a, b *Block) int { return cmp.Compare(a.Addr, b.Addr) })
	for i, b := range f.Blocks {
		b.index = i
		b.cut(f.Blocks[i+1:])
	}
	for _, b := range f.Blocks {
		p.link(entry, b, runs)
	}
	f.enter = []*edge{{to: runs[entry], addr: entry}}
	return f
}

// reach has the runs that a function's entry reaches, by address.
func (p *Program) reach(entry uint64) map[uint64]*Block {
	runs := map[uint64]*Block{}
	work := []uint64{entry}
	for len(work) > 0 {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		if runs[at] != nil {
			continue
		}
		b := p.walk(at)
		runs[at] = b
		for _, to := range p.successors(b) {
			if p.within(entry, to) {
				work = append(work, to)
			}
		}
	}
	return runs
}

// walk is the straight run at an address.
func (p *Program) walk(addr uint64) *Block {
	code := make([]byte, longest)
	code = code[:p.code.Read(addr, code)]
	var lengths [mostRun]byte
	w := zydis.Walk(code, lengths[:])
	b := &Block{Addr: addr, Kind: w.Kind, lengths: slices.Clone(lengths[:w.Count]), bytes: uint64(w.Bytes)}
	b.target = b.end() + uint64(w.Relative)
	return b
}

// successors are the addresses that may come behind a run in its function.
func (p *Program) successors(b *Block) []uint64 {
	switch b.Kind {
	case zydis.Jump:
		return []uint64{b.target}
	case zydis.Conditional:
		return []uint64{b.target, b.end()}
	case zydis.IndirectJump:
		return p.known.Targets[b.end()]
	case zydis.Straight, zydis.Call, zydis.IndirectCall, zydis.Far:
		return []uint64{b.end()}
	}
	return nil // a return, or no code
}

// within tells whether a way of a function to an address stays in the function.
func (p *Program) within(entry, to uint64) bool {
	if to == entry {
		return true
	}
	if !p.runs(to) {
		return false
	}
	own, named := p.code.Function(entry)
	other, ok := p.code.Function(to)
	if named && ok {
		return own == other
	}
	return named == ok && !p.entries[to]
}

// cut ends a block where a later one begins, if an instruction begins there.
func (b *Block) cut(later []*Block) {
	for _, l := range later {
		if l.Addr >= b.end() {
			return
		}
		if n, ok := b.before(l.Addr); ok {
			b.lengths, b.bytes, b.Kind = b.lengths[:n], l.Addr-b.Addr, zydis.Straight
			return
		}
	}
}

// link makes the edges of a block.
func (p *Program) link(entry uint64, b *Block, runs map[uint64]*Block) {
	for _, to := range p.successors(b) {
		switch {
		case b.edgeTo(to) != nil:
		case p.within(entry, to):
			b.next = append(b.next, &edge{from: b, to: runs[to], addr: to})
		default:
			b.next = append(b.next, &edge{from: b, addr: to, tail: true, on: p.runs(to)})
		}
	}
	if len(b.next) == 0 {
		b.next = []*edge{{from: b}}
	}
}
