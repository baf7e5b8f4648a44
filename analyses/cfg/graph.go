package cfg

import (
	"slices"
	"sort"

	"github.com/heddle-dmt/heddle/analyses/vex"
)

// Observed is what a run did that the code alone does not tell.
type Observed struct {
	// Entries are where functions began.
	Entries []uint64
	// Targets are, by the address of a jump or call through a pointer or a table,
	// where it went within the image.
	Targets map[uint64][]uint64
}

// Graph is the control flow of an image.
type Graph struct {
	Image  *Image
	Models Models
	// Functions are by their entries' addresses, in order.
	Functions []*Function

	observed *Observed
	byEntry  map[uint64]*Function
	lifted   map[liftKey]*vex.Block
	entries  map[uint64]bool // of functions: jumps there are calls
	never    map[uint64]bool // functions that do not return
	pending  []uint64
}

// Function is a function: what its entry reaches without calls.
type Function struct {
	Entry  uint64
	Name   string
	Blocks []*Block // by address; Blocks[Index] is a block
	First  *Block
	// Model says what it does, if it is to be looked at as a whole.
	Model *Model

	graph     *Graph
	immediate []*Block // post-dominators, by block; nil: the end of the function
	solved    bool
}

// Block is a block of a function.
type Block struct {
	*vex.Block
	Function *Function
	Index    int
	// Last is the address of its last instruction.
	Last uint64
	// Next are where it goes within the function, and Prev where it comes from. Of
	// a call, Next is where that returns to.
	Next, Prev []*Block
	// Calls are the functions of the image that it calls at its end, and Import is
	// what it calls of another file.
	Calls  []*Function
	Import string
	// Call tells that it ends with a call; Tail, that the function ends with that.
	Call, Tail bool
	// Indirect tells that it calls through a pointer: what it was seen to call.
	Indirect bool
	// System tells that it ends with a system call.
	System bool
	// Leaves tells that it ends the function: it returns, or there is no way on.
	// Never tells that it does not return.
	Leaves, Never bool
	// Unknown tells that it may go elsewhere.
	Unknown bool

	targets []uint64
	callees []uint64
}

type liftKey struct {
	addr uint64
	size int
}

// longest is of how many bytes a block is lifted at once.
const longest = 400

// Build makes the graph of what the entries that were observed reach.
func Build(m *Image, models Models, o *Observed) *Graph {
	g := &Graph{Image: m, Models: models, observed: o, lifted: map[liftKey]*vex.Block{}, never: map[uint64]bool{}}
	for range 8 { // a function that does not return may make others such
		g.build()
		if !g.findNever() {
			break
		}
	}
	return g
}

func (g *Graph) build() {
	g.Functions, g.byEntry, g.entries = nil, map[uint64]*Function{}, map[uint64]bool{}
	for _, at := range g.observed.Entries {
		g.want(at)
	}
	for len(g.pending) > 0 {
		at := g.pending[len(g.pending)-1]
		g.pending = g.pending[:len(g.pending)-1]
		f := &Function{Entry: at, graph: g}
		if y, ok := g.Image.Function(at); ok {
			f.Name = y.Name
			f.Model = g.Models[y.Name]
		}
		g.byEntry[at] = f
		g.explore(f)
		g.Functions = append(g.Functions, f)
	}
	sort.Slice(g.Functions, func(i, j int) bool { return g.Functions[i].Entry < g.Functions[j].Entry })
	for _, f := range g.Functions {
		for _, b := range f.Blocks {
			for _, at := range b.callees {
				b.Calls = append(b.Calls, g.byEntry[at])
			}
		}
	}
}

// want has a function explored.
func (g *Graph) want(at uint64) {
	if !g.entries[at] && g.Image.Owns(at) {
		g.entries[at] = true
		g.pending = append(g.pending, at)
	}
}

// At is the function that begins at an address, or nil.
func (g *Graph) At(entry uint64) *Function { return g.byEntry[entry] }

// Block is the block of a function that has the instruction at an address, or nil.
func (f *Function) Block(addr uint64) *Block {
	i := sort.Search(len(f.Blocks), func(i int) bool { return f.Blocks[i].Addr > addr }) - 1
	if i < 0 || addr-f.Blocks[i].Addr >= uint64(f.Blocks[i].Size) {
		return nil
	}
	return f.Blocks[i]
}

// lift lifts at most size bytes at an address; nil: there is no instruction.
func (g *Graph) lift(addr uint64, size int) *vex.Block {
	k := liftKey{addr, size}
	if b, ok := g.lifted[k]; ok {
		return b
	}
	code := make([]byte, size)
	n, _ := g.Image.Read(addr, code)
	b, err := vex.Lift(code[:n], addr)
	if err == nil && b.Jump == vex.JumpNoDecode && b.Size > 0 && b.Size < n {
		b, err = vex.Lift(code[:b.Size], addr) // the code was cut off in an instruction
	}
	if err != nil {
		b = nil
	}
	g.lifted[k] = b
	return b
}

// explore finds the blocks of a function: first where they begin, then, each up to
// where the next begins, what they are.
func (g *Graph) explore(f *Function) {
	leaders := g.leaders(f)
	byAddr := map[uint64]*Block{}
	for i, at := range leaders {
		size := longest
		if i+1 < len(leaders) && leaders[i+1]-at < longest && g.boundary(at, leaders[i+1]) {
			size = int(leaders[i+1] - at)
		}
		v := g.lift(at, size)
		if v == nil {
			continue
		}
		b := &Block{Block: v, Function: f, Index: len(f.Blocks)}
		g.classify(b)
		f.Blocks = append(f.Blocks, b)
		byAddr[at] = b
	}
	for _, b := range f.Blocks {
		for _, at := range b.targets {
			if next := byAddr[at]; next != nil {
				b.Next = append(b.Next, next)
				next.Prev = append(next.Prev, b)
			} else {
				b.Unknown = true
			}
		}
		b.Leaves = len(b.Next) == 0
	}
	f.First = byAddr[f.Entry]
}

// boundary tells whether an instruction of the code from an address on begins at
// another.
func (g *Graph) boundary(from, at uint64) bool {
	for from < at {
		b := g.lift(from, longest)
		if b == nil {
			return false
		}
		for _, s := range b.Stmts {
			if m, ok := s.(*vex.Mark); ok && m.Addr == at {
				return true
			}
		}
		from += uint64(b.Size)
	}
	return from == at
}

// leaders are where the blocks of a function begin.
func (g *Graph) leaders(f *Function) []uint64 {
	found := map[uint64]bool{f.Entry: true}
	work := []uint64{f.Entry}
	for len(work) > 0 {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		v := g.lift(at, longest)
		if v == nil {
			continue
		}
		b := &Block{Block: v, Function: f}
		g.classify(b)
		for _, next := range b.targets {
			if !found[next] {
				found[next] = true
				work = append(work, next)
			}
		}
	}
	list := make([]uint64, 0, len(found))
	for at := range found {
		list = append(list, at)
	}
	slices.Sort(list)
	return list
}

// classify finds out where a block goes.
func (g *Graph) classify(b *Block) {
	for _, s := range b.Stmts {
		switch s := s.(type) {
		case *vex.Mark:
			b.Last = s.Addr
		case *vex.Exit:
			if s.Jump == vex.JumpBoring {
				g.jump(b, s.Dst)
			}
		}
	}
	next, direct := b.Block.Next.(*vex.Const)
	switch b.Jump {
	case vex.JumpBoring:
		if direct {
			g.jump(b, next.Bits)
		} else {
			g.indirect(b)
		}
	case vex.JumpCall:
		b.Call = true
		if direct {
			g.call(b, next.Bits)
		} else {
			g.through(b)
		}
		if !b.Never {
			b.targets = append(b.targets, b.Addr+uint64(b.Size))
		}
	case vex.JumpRet:
	case vex.JumpSyscall:
		b.System = true
		b.targets = append(b.targets, next.Bits)
	case vex.JumpYield, vex.JumpNoRedir, vex.JumpInvalICache, vex.JumpFlushDCache, vex.JumpEmWarn:
		g.jump(b, next.Bits)
	default:
		b.Never = true
	}
}

// jump adds a jump: to another function it is a call that ends this one.
func (g *Graph) jump(b *Block, to uint64) {
	if g.foreign(b.Function, to) {
		b.Call, b.Tail = true, true
		g.call(b, to)
		return
	}
	if !slices.Contains(b.targets, to) {
		b.targets = append(b.targets, to)
	}
}

// foreign tells whether a jump to an address leaves a function.
func (g *Graph) foreign(f *Function, to uint64) bool {
	if to == f.Entry {
		return false
	}
	if !g.Image.Owns(to) {
		return true
	}
	y, ok := g.Image.Function(to)
	return g.entries[to] || ok && y.Addr == to && y.Name != f.Name && !isPart(y.Name)
}

// call adds a direct call.
func (g *Graph) call(b *Block, to uint64) {
	if g.Image.Owns(to) {
		g.want(to)
		b.callees = append(b.callees, to)
		b.Never = b.Never || g.never[to]
		return
	}
	name, ok := g.linkage(to)
	if !ok {
		b.Unknown = true
		return
	}
	b.Import = name
	b.Never = b.Never || g.Models.Of(name).Never
}

// linkage is the import that an entry of the linkage table jumps to.
func (g *Graph) linkage(at uint64) (string, bool) {
	for range 3 { // an entry may begin with a block that goes nowhere else
		b := g.lift(at, longest)
		if b == nil {
			return "", false
		}
		if next, ok := b.Next.(*vex.Const); ok && b.Jump == vex.JumpBoring {
			at = next.Bits
			continue
		}
		return g.slot(b, b.Next)
	}
	return "", false
}

// slot is the import whose address an expression of a block loads from its slot.
func (g *Graph) slot(b *vex.Block, e vex.Expr) (string, bool) {
	if l, ok := definition(b, e).(*vex.Load); ok {
		if at, ok := definition(b, l.Addr).(*vex.Const); ok {
			return g.Image.Slot(at.Bits)
		}
	}
	return "", false
}

// definition is what a temporary is assigned, if it is one, and of that what it
// copies.
func definition(b *vex.Block, e vex.Expr) vex.Expr {
	for range len(b.Types) + 1 {
		t, ok := e.(*vex.Read)
		if !ok {
			break
		}
		for _, s := range b.Stmts {
			if a, ok := s.(*vex.Assign); ok && a.Temp == t.Temp {
				e = a.Data
			}
		}
		if e == vex.Expr(t) {
			break
		}
	}
	return e
}

// through adds a call through a pointer.
func (g *Graph) through(b *Block) {
	if name, ok := g.slot(b.Block, b.Block.Next); ok {
		b.Import = name
		b.Never = g.Models.Of(name).Never
		return
	}
	b.Indirect = true
	b.Unknown = len(g.observed.Targets[b.Last]) == 0
	for _, to := range g.observed.Targets[b.Last] {
		g.want(to)
		b.callees = append(b.callees, to)
	}
}

// indirect adds a jump through a pointer or a table.
func (g *Graph) indirect(b *Block) {
	if name, ok := g.slot(b.Block, b.Block.Next); ok {
		b.Import, b.Call, b.Tail = name, true, true
		return
	}
	targets, whole := g.table(b)
	b.Unknown = !whole
	for _, to := range append(targets, g.observed.Targets[b.Last]...) {
		g.jump(b, to)
	}
}
