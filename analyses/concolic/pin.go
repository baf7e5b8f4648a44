package concolic

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// Inputs may be pinned: their bytes, and what is derived from them, become their recorded values. Then fewer inputs
// satisfy the constraints, and these are smaller. Inputs are pinned as a whole, those first on which the most terms
// depend, when the conditions that are needed have too many (Executor.Fit), or depend on untracked inputs
// (Executor.PinUntracked).

// inputSet is a set of inputs: bit i stands for input number i, the highest bit for all with a greater number, and
// otherInputs for what belongs to no input, such as results of opaque functions.
type inputSet uint32

const (
	otherInputs  inputSet = 1
	lastInputBit          = 31
	allInputs             = ^inputSet(0)
)

// numberInput gives an input that terms depend on a number; the empty name is otherInputs.
func (x *Executor) numberInput(name string) uint8 {
	if name == "" {
		return 0
	}
	n, known := x.inputNumbers[name]
	if !known {
		n = uint8(min(len(x.inputNumbers)+1, lastInputBit))
		x.inputNumbers[name] = n
	}
	return n
}

// isPinned reports whether an input is pinned.
func (x *Executor) isPinned(name string) bool {
	return x.pinned != 0 && x.pinned>>x.numberInput(name)&1 != 0
}

// Pinned returns the names of the pinned inputs, sorted.
func (x *Executor) Pinned() []string {
	var names []string
	for name := range x.inputNumbers {
		if x.isPinned(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// vectorOperations is for how many operations one on a vector counts: its expression has one for each lane.
const vectorOperations = 16

// operations is the number of operations in the expression of a term, without those of its operands.
func (n *termNode) operations() int {
	if n.bits > 64 {
		return vectorOperations
	}
	return 1
}

// Fit pins inputs until some conditions need at most limit operations, and reports whether it pinned any.
func (x *Executor) Fit(conditions []Term, limit int) bool {
	sets := x.dependences()
	needed := x.neededTerms(conditions)
	fits := func() bool {
		count := 0
		for t, s := range sets {
			if s&^x.pinned != 0 && needed[t/64]>>(t%64)&1 != 0 {
				count += x.terms.node(Term(t)).operations()
			}
		}
		return count <= limit
	}
	changed := false
	for !fits() {
		x.pinInputs(x.heaviest(sets, needed), sets)
		changed = true
	}
	return changed
}

// neededTerms marks the terms that some conditions are computed from, a bit for each.
func (x *Executor) neededTerms(conditions []Term) []uint64 {
	marks := make([]uint64, x.terms.nodes.Len()/64+1)
	mark := func(t Term) {
		if t > 0 {
			marks[t/64] |= 1 << (t % 64)
		}
	}
	for _, t := range conditions {
		mark(t)
	}
	// Operands come before what is computed from them.
	for t := x.terms.nodes.Len() - 1; t > 0; t-- {
		if marks[t/64]>>(t%64)&1 == 0 {
			continue
		}
		for _, a := range x.terms.node(Term(t)).operandTerms() {
			mark(a)
		}
	}
	return marks
}

// dependences returns the inputs that each term depends on.
func (x *Executor) dependences() []inputSet {
	if x.terms.tracker != nil {
		return x.terms.tracker.sets
	}
	sets := make([]inputSet, x.terms.nodes.Len())
	for i := 1; i < len(sets); i++ {
		n := x.terms.node(Term(i))
		if n.isLeaf() {
			sets[i] = x.leafSet(Term(i), n)
		}
		for _, a := range n.operandTerms() {
			if a > 0 {
				sets[i] |= sets[a]
			}
		}
	}
	return sets
}

// inputOfSymbol returns the input that a symbol of a given expression is of.
func (x *Executor) inputOfSymbol(name string) inputSet {
	if at, known := x.nameOf[name]; known {
		return 1 << x.names[at].number
	}
	return 1 << x.numberInput(inputName(name))
}

// pinInputs pins inputs: what depends on pinned inputs alone no longer depends on inputs.
func (x *Executor) pinInputs(more inputSet, sets []inputSet) {
	x.pinned |= more
	x.constants = make([]uint64, len(sets)/64+1)
	for t, s := range sets {
		if s&^x.pinned == 0 {
			x.constants[t/64] |= 1 << (t % 64)
		}
	}
	for _, pg := range x.memory.pages {
		x.forgetPinned(pg.cells[:])
	}
	x.memory.dropEmptyPages()
	for _, t := range x.threads {
		x.forgetPinned(t.registers.cells[:])
		t.registers.findWords()
		if t.call != nil {
			for i := range t.call.saved {
				x.forgetPinned(t.call.saved[i][:])
			}
		}
	}
	x.reviseExpressions()
}

// forgetPinned marks the bytes that depend on pinned inputs alone as independent of inputs.
func (x *Executor) forgetPinned(cells []cell) {
	for i, c := range cells {
		if c != 0 && x.IsSettled(c.term()) {
			cells[i] = 0
		}
	}
}

// IsSettled reports whether a term depends on pinned inputs alone.
func (x *Executor) IsSettled(t Term) bool {
	return t > 0 && int(t)/64 < len(x.constants) && x.constants[t/64]>>(t%64)&1 != 0
}

// reviseExpressions drops the expressions that were built before inputs were pinned.
func (x *Executor) reviseExpressions() {
	var given []Term
	for t := range x.expressions {
		if x.terms.node(t).op == nodeGiven {
			given = append(given, t)
		} else {
			delete(x.expressions, t)
		}
	}
	slices.Sort(given) // the pool's order is that of the calls
	for _, t := range given {
		x.expressions[t] = x.replacePinned(x.expressions[t])
	}
}

// replacePinned puts the values of pinned inputs into an expression that was given.
func (x *Executor) replacePinned(e *symbolic.Expr) *symbolic.Expr {
	if x.pinned == 0 {
		return e
	}
	return x.Pool.Substitute(e, func(name string) *symbolic.Expr {
		v, known := x.Recorded(name)
		if !known || x.pinned&x.inputOfSymbol(name) == 0 {
			return nil
		}
		size := 8
		if at, named := x.nameOf[name]; named {
			size = x.names[at].bits
		}
		return x.Pool.Const(v, size)
	})
}

// dropEmptyPages removes the pages without bytes that depend on inputs.
func (m *memoryShadow) dropEmptyPages() {
	for k, pg := range m.pages {
		pg.count = 0
		for _, c := range pg.cells {
			if c != 0 {
				pg.count++
			}
		}
		if pg.count == 0 {
			m.setPage(k, nil)
			m.spare = append(m.spare, pg)
		}
	}
}

// findWords finds the words with bytes that depend on inputs.
func (r *registerShadow) findWords() {
	r.words = [2]uint64{}
	for w := range len(r.cells) / 8 {
		if r.wordDepends(w) {
			addWords(&r.words, wordMask(vex.SpanOf(8*w, 8)))
		}
	}
}
