package concolic

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// When there are too many terms, inputs become untracked: what is computed from their bytes is known to depend on
// them, but not how. All such values of one size and one set of inputs are the same term, so that no more memory is
// needed. A condition on such a value holds if these inputs have their recorded contents: they are pinned only if
// the condition is needed (PinUntracked).

// untrackedKey identifies the term of values that depend on a set of inputs in an unknown way.
type untrackedKey struct {
	set  inputSet
	bits uint8
}

// tracker knows which terms depend on which inputs, from the time on when the first input becomes untracked.
type tracker struct {
	// sets are the inputs that each term depends on.
	sets []inputSet
	// leafSet returns those of a term that is computed from no other.
	leafSet func(t Term, n *termNode) inputSet
	terms   map[untrackedKey]Term
}

// setOf returns the inputs that a new term depends on, and whether an operand is untracked.
func (k *tracker) setOf(t *termStore, n *termNode) (set inputSet, untracked bool) {
	for _, a := range n.operandTerms() {
		if a > 0 {
			set |= k.sets[a]
			untracked = untracked || t.node(a).op == nodeUntracked
		}
	}
	return set, untracked
}

// untrackedTerm is the term of values that depend on inputs in an unknown way.
func (t *termStore) untrackedTerm(set inputSet, size int) Term {
	k := untrackedKey{set, uint8(size)}
	at, known := t.tracker.terms[k]
	if !known {
		at = Term(t.nodes.Len())
		*t.nodes.Add() = termNode{op: nodeUntracked, bits: k.bits, a: Term(set)}
		t.tracker.sets = append(t.tracker.sets, set)
		t.tracker.terms[k] = at
	}
	return at
}

// isUntracked reports whether it is unknown how a term depends on inputs.
func (t *termStore) isUntracked(of Term) bool {
	return of > 0 && t.tracker != nil && t.node(of).op == nodeUntracked
}

// leafSet returns the inputs of a term that is computed from no other.
func (x *Executor) leafSet(t Term, n *termNode) inputSet {
	switch n.op {
	case nodeByte:
		return 1 << x.inputs[n.a].number
	case nodeNamed:
		return 1 << x.names[n.a].number
	case nodeUntracked:
		return inputSet(n.a)
	}
	set, _ := x.inputsOfExpression(x.expressions[t])
	return set
}

// inputsOfExpression returns the inputs that a given expression depends on, and whether it is unknown how.
func (x *Executor) inputsOfExpression(e *symbolic.Expr) (set inputSet, untracked bool) {
	if e == nil {
		return 0, false
	}
	symbolic.Symbols(e, func(s *symbolic.Expr) {
		if of, is := x.untrackedNames[s.Name]; is {
			set, untracked = set|of, true
			return
		}
		set |= x.inputOfSymbol(s.Name)
	})
	return set, untracked
}

// untrackedSymbol is a symbol for a value that depends on inputs in an unknown way.
func (x *Executor) untrackedSymbol(n *termNode) *symbolic.Expr {
	name := fmt.Sprintf("untracked(%#x)", uint32(n.a))
	x.untrackedNames[name] = inputSet(n.a)
	return x.Pool.Symbol(name, int(n.bits))
}

// untrack makes inputs untracked.
func (x *Executor) untrack(more inputSet) {
	if x.terms.tracker == nil {
		x.terms.tracker = &tracker{sets: x.dependences(), leafSet: x.leafSet, terms: map[untrackedKey]Term{}}
	}
	x.untracked |= more
	for _, pg := range x.memory.pages {
		x.forgetTracks(pg.cells[:])
	}
	for _, t := range x.threads {
		x.forgetTracks(t.registers.cells[:])
		if t.call != nil {
			for i := range t.call.saved {
				x.forgetTracks(t.call.saved[i][:])
			}
		}
	}
}

// forgetTracks replaces the terms of bytes that depend on untracked inputs.
func (x *Executor) forgetTracks(cells []cell) {
	for i, c := range cells {
		if t := c.term(); t > 0 && x.terms.tracker.sets[t]&x.untracked != 0 {
			cells[i] = cellOf(x.terms.untrackedTerm(x.terms.tracker.sets[t], 8*c.size()), c.byteIndex(), c.size())
		}
	}
}

// PinUntracked pins the inputs that some conditions depend on in an unknown way, and reports whether it pinned any.
func (x *Executor) PinUntracked(conditions []Term) bool {
	var needed inputSet
	for _, t := range conditions {
		if x.terms.isUntracked(t) {
			needed |= inputSet(x.terms.node(t).a)
		}
	}
	if needed&^x.pinned == 0 {
		return false
	}
	x.pinInputs(needed, x.dependences())
	return true
}

// limitTerms makes inputs untracked if there are too many terms, those first on which the most terms depend: each
// time half as many more are allowed, and at last all inputs are untracked.
func (x *Executor) limitTerms() {
	if x.termLimit == 0 {
		x.termLimit, x.termsLeft = x.MaxTerms, x.MaxTerms
	}
	if x.MaxTerms == 0 || x.untracked == allInputs || x.terms.nodes.Len() <= x.termLimit {
		return
	}
	x.termsLeft /= 2
	if least := x.MaxTerms / 16; x.termsLeft < least || x.termsLeft == 0 {
		x.untrack(allInputs)
	} else {
		x.untrack(x.heaviest(x.dependences(), nil))
	}
	x.termLimit = x.terms.nodes.Len() + max(x.termsLeft, 1)
}

// heaviest returns the input that is neither pinned nor untracked and on which the most terms depend, of those that
// are marked, if marks are given; all inputs if no input can be pinned alone.
func (x *Executor) heaviest(sets []inputSet, marks []uint64) inputSet {
	var counts [lastInputBit + 1]int
	done := x.pinned | otherInputs
	if marks == nil {
		done |= x.untracked
	}
	for t, s := range sets {
		if marks != nil && marks[t/64]>>(t%64)&1 == 0 {
			continue
		}
		for s &^= done; s != 0; s &= s - 1 {
			counts[bits.TrailingZeros32(uint32(s))]++
		}
	}
	most := slices.Max(counts[:])
	if most == 0 {
		return allInputs
	}
	return 1 << slices.Index(counts[:], most)
}
