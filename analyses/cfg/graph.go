package cfg

import (
	"slices"
	"sort"

	"github.com/heddle-dmt/heddle/analyses/vex"
)

// Observations are facts from the trace of a run that the code alone does not determine.
type Observations struct {
	// Entries are the addresses at which functions began.
	Entries []uint64
	// Targets are the observed targets within the image of a jump or call through a pointer
	// or a table, by its address.
	Targets map[uint64][]uint64
}

// Graph is the control flow graph of an image.
type Graph struct {
	Image  *Image
	Models Models
	// Functions are in the order of their entry addresses.
	Functions []*Function

	observations *Observations
	byEntry      map[uint64]*Function
	lifted       map[liftKey]*vex.Block
	entries      map[uint64]bool // of functions: jumps to these are calls
	nonReturning map[uint64]bool // entries of functions that do not return
	pending      []uint64
}

// Function is the code that its entry reaches without following calls.
type Function struct {
	Entry  uint64
	Name   string
	Blocks []*Block // by address; Blocks[Index] is a block
	First  *Block
	// Model describes the function's effects if it is not to be analysed; otherwise nil.
	Model *Model

	graph           *Graph
	postDominators  []*Block // immediate post-dominators, by block; nil: the end of the function
	dominatorsKnown bool
}

// Block is a block of a function.
type Block struct {
	*vex.Block
	Function *Function
	Index    int
	// Last is the address of its last instruction.
	Last uint64
	// Next are its successors within the function and Prev its predecessors. The successor
	// of a call is where it returns to.
	Next, Prev []*Block
	// Calls are the functions of the image that it calls at its end; Import is the name of
	// the function of another file that it calls.
	Calls  []*Function
	Import string
	// Call is set if the block ends with a call; Tail, if the function ends with that call.
	Call, Tail bool
	// Indirect is set for a call through a pointer: Calls are the observed targets.
	Indirect bool
	// Syscall is set if the block ends with a system call.
	Syscall bool
	// Leaves is set if the block ends the function: it returns, or it has no successor.
	// NoReturn is set if it does not return.
	Leaves, NoReturn bool
	// Unknown is set if the block may have further successors.
	Unknown bool

	targets []uint64
	callees []uint64
}

type liftKey struct {
	addr uint64
	size int
}

// maxLiftBytes is the number of code bytes given to the lifter at once.
const maxLiftBytes = 400

// Build makes the graph of the code that the observed entries reach.
func Build(m *Image, models Models, o *Observations) *Graph {
	g := &Graph{Image: m, Models: models, observations: o, lifted: map[liftKey]*vex.Block{}, nonReturning: map[uint64]bool{}}
	for range 8 { // each function that does not return may reveal others
		g.exploreAll()
		if !g.findNonReturning() {
			break
		}
	}
	return g
}

func (g *Graph) exploreAll() {
	g.Functions, g.byEntry, g.entries = nil, map[uint64]*Function{}, map[uint64]bool{}
	for _, at := range g.observations.Entries {
		g.exploreLater(at)
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
		g.exploreFunction(f)
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

// exploreLater has a function explored later.
func (g *Graph) exploreLater(at uint64) {
	if !g.entries[at] && g.Image.OwnsCode(at) {
		g.entries[at] = true
		g.pending = append(g.pending, at)
	}
}

// FunctionAt returns the function that begins at an address, or nil.
func (g *Graph) FunctionAt(entry uint64) *Function { return g.byEntry[entry] }

// Block returns the block of a function that contains the instruction at an address, or
// nil.
func (f *Function) Block(addr uint64) *Block {
	i := sort.Search(len(f.Blocks), func(i int) bool { return f.Blocks[i].Addr > addr }) - 1
	if i < 0 || addr-f.Blocks[i].Addr >= uint64(f.Blocks[i].Size) {
		return nil
	}
	return f.Blocks[i]
}

// liftAt lifts at most size bytes at an address; nil: there is no valid instruction.
func (g *Graph) liftAt(addr uint64, size int) *vex.Block {
	k := liftKey{addr, size}
	if b, ok := g.lifted[k]; ok {
		return b
	}
	code := make([]byte, size)
	n, _ := g.Image.Read(addr, code)
	b, err := vex.Lift(code[:n], addr)
	if err == nil && b.Jump == vex.JumpNoDecode && b.Size > 0 && b.Size < n {
		b, err = vex.Lift(code[:b.Size], addr) // the last instruction was cut off
	}
	if err != nil {
		b = nil
	}
	g.lifted[k] = b
	return b
}

// exploreFunction finds the blocks of a function: first where they begin, then the content
// of each, up to the beginning of the next.
func (g *Graph) exploreFunction(f *Function) {
	leaders := g.findLeaders(f)
	byAddr := map[uint64]*Block{}
	for i, at := range leaders {
		size := maxLiftBytes
		if i+1 < len(leaders) && leaders[i+1]-at < maxLiftBytes && g.isBoundary(at, leaders[i+1]) {
			size = int(leaders[i+1] - at)
		}
		v := g.liftAt(at, size)
		if v == nil {
			continue
		}
		b := &Block{Block: v, Function: f, Index: len(f.Blocks)}
		g.classifyEnd(b)
		f.Blocks = append(f.Blocks, b)
		byAddr[at] = b
	}
	for _, b := range f.Blocks {
		for _, at := range b.targets {
			if next := byAddr[at]; next != nil && g.IsImpossible(next) && len(b.targets) > 1 {
				continue
			} else if next != nil {
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

// IsImpossible reports whether a block is never executed: it calls a function that is called only when an access has left
// its object.
func (g *Graph) IsImpossible(b *Block) bool {
	return b.Import != "" && g.Models.Of(b.Import).Impossible
}

// isBoundary reports whether an instruction begins at an address, decoding from another
// address on.
func (g *Graph) isBoundary(from, at uint64) bool {
	for from < at {
		b := g.liftAt(from, maxLiftBytes)
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

// findLeaders returns the addresses at which the blocks of a function begin.
func (g *Graph) findLeaders(f *Function) []uint64 {
	found := map[uint64]bool{f.Entry: true}
	work := []uint64{f.Entry}
	for len(work) > 0 {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		v := g.liftAt(at, maxLiftBytes)
		if v == nil {
			continue
		}
		b := &Block{Block: v, Function: f}
		g.classifyEnd(b)
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

// classifyEnd finds the successors of a block.
func (g *Graph) classifyEnd(b *Block) {
	for _, s := range b.Stmts {
		switch s := s.(type) {
		case *vex.Mark:
			b.Last = s.Addr
		case *vex.Exit:
			if s.Jump == vex.JumpBoring {
				g.addJump(b, s.Dst)
			}
		}
	}
	next, direct := b.Block.Next.(*vex.Const)
	switch b.Jump {
	case vex.JumpBoring:
		if direct {
			g.addJump(b, next.Bits)
		} else {
			g.addIndirectJump(b)
		}
	case vex.JumpCall:
		b.Call = true
		if direct {
			g.addCall(b, next.Bits)
		} else {
			g.addIndirectCall(b)
		}
		if !b.NoReturn {
			b.targets = append(b.targets, b.Addr+uint64(b.Size))
		}
	case vex.JumpRet:
	case vex.JumpSyscall:
		b.Syscall = true
		b.targets = append(b.targets, next.Bits)
	case vex.JumpYield, vex.JumpNoRedir, vex.JumpInvalICache, vex.JumpFlushDCache, vex.JumpEmWarn:
		g.addJump(b, next.Bits)
	default:
		b.NoReturn = true
	}
}

// addJump adds a jump; a jump to another function is a call that ends this one.
func (g *Graph) addJump(b *Block, to uint64) {
	if g.leavesFunction(b.Function, to) {
		b.Call, b.Tail = true, true
		g.addCall(b, to)
		return
	}
	if !slices.Contains(b.targets, to) {
		b.targets = append(b.targets, to)
	}
}

// leavesFunction reports whether a jump to an address leaves a function.
func (g *Graph) leavesFunction(f *Function, to uint64) bool {
	if to == f.Entry {
		return false
	}
	if !g.Image.OwnsCode(to) {
		return true
	}
	y, ok := g.Image.Function(to)
	return g.entries[to] || ok && y.Addr == to && y.Name != f.Name && !isFunctionPart(y.Name)
}

// addCall adds a direct call.
func (g *Graph) addCall(b *Block, to uint64) {
	if g.Image.OwnsCode(to) {
		g.exploreLater(to)
		b.callees = append(b.callees, to)
		b.NoReturn = b.NoReturn || g.nonReturning[to]
		return
	}
	if !g.addLinked(b, g.linkageSlot(to)) {
		b.Unknown = true
	}
}

// addLinked adds a call of the function whose address is in a word of a linkage table: of a function of the image, or of an
// import. It reports whether it is one.
func (g *Graph) addLinked(b *Block, slot uint64) bool {
	if to, ok := g.Image.LinkOfSlot(slot); ok {
		g.exploreLater(to)
		b.callees = append(b.callees, to)
		b.NoReturn = b.NoReturn || g.nonReturning[to]
		return true
	}
	name, ok := g.Image.ImportOfSlot(slot)
	if !ok {
		return false
	}
	b.Import = name
	m := g.Models.Of(name)
	b.NoReturn = b.NoReturn || m.NoReturn || m.Impossible
	return true
}

// linkageSlot returns the word whose contents an entry of the procedure linkage table jumps to; 0: no such word.
func (g *Graph) linkageSlot(at uint64) uint64 {
	for range 3 { // an entry may begin with a block that only jumps on
		b := g.liftAt(at, maxLiftBytes)
		if b == nil {
			return 0
		}
		if next, ok := b.Next.(*vex.Const); ok && b.Jump == vex.JumpBoring {
			at = next.Bits
			continue
		}
		return g.loadedSlot(b)
	}
	return 0
}

// loadedSlot returns the word at a constant address whose contents a block jumps to; 0: no such word.
func (g *Graph) loadedSlot(b *vex.Block) uint64 {
	if l, ok := findDefinition(b, b.Next).(*vex.Load); ok {
		if at, ok := findDefinition(b, l.Addr).(*vex.Const); ok {
			return at.Bits
		}
	}
	return 0
}

// findDefinition follows a temporary, through copies, to the expression that is assigned to
// it.
func findDefinition(b *vex.Block, e vex.Expr) vex.Expr {
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

// addIndirectCall adds a call through a pointer.
func (g *Graph) addIndirectCall(b *Block) {
	if g.addLinked(b, g.loadedSlot(b.Block)) {
		return
	}
	b.Indirect = true
	b.Unknown = len(g.observations.Targets[b.Last]) == 0
	for _, to := range g.observations.Targets[b.Last] {
		g.exploreLater(to)
		b.callees = append(b.callees, to)
	}
}

// addIndirectJump adds a jump through a pointer or a table.
func (g *Graph) addIndirectJump(b *Block) {
	if g.addLinked(b, g.loadedSlot(b.Block)) {
		b.Call, b.Tail = true, true
		return
	}
	targets, whole := g.jumpTable(b)
	b.Unknown = !whole
	for _, to := range append(targets, g.observations.Targets[b.Last]...) {
		g.addJump(b, to)
	}
}
