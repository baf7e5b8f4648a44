package concolic

import (
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/internal/chunks"
)

// Term is a value that depends on inputs, as a record of its computation. It is cheap to
// make; its expression is built when it is asked for (Executor.Express). 0 is a value that
// depends on no input; negative terms are constants.
type Term int32

// termNode is the computation of a term: an operation of libVEX, or one of the kinds below.
type termNode struct {
	op          uint16
	bits, extra uint8
	a, b, c     Term
}

// Kinds of nodes, above libVEX's operations.
const (
	// nodeByte is byte b of input number a, nodeNamed the symbol number a.
	nodeByte uint16 = 0xff00 + iota
	nodeNamed
	// nodeExtract is a from byte b on, nodeConcat is a above b, nodeFit is a cut off or
	// zero-extended, nodeSign is a sign-extended.
	nodeExtract
	nodeConcat
	nodeFit
	nodeSign
	// nodeIte is b if a, otherwise c. nodeEq is that a and b are equal. nodeHasValue is
	// that a is a number, with the lower 32 bits in b and the upper ones in c. nodeAnd is
	// that both a and b are true, nodeNot that a is not.
	nodeIte
	nodeEq
	nodeHasValue
	nodeAnd
	nodeNot
	// nodeDivisionSound is that the division a does not trap.
	nodeDivisionSound
	// nodeFlags is all flags, nodeCarry one of them, and nodeCondition the condition with
	// the number in bits, after the operation number extra with the operands a, b and c.
	nodeFlags
	nodeCarry
	nodeCondition
	// nodeGiven is the expression that was given as number a.
	nodeGiven
	// nodeUntracked is a value that depends on the inputs in the set a; how is unknown.
	nodeUntracked
)

// termStore holds terms. Recent terms that are computed alike are the same.
type termStore struct {
	nodes chunks.List[termNode]
	// latest are some of the last terms, by their computation.
	latest [1 << 12]struct {
		termNode
		term Term
	}
	literals     []literal
	literalTerms map[literal]Term
	// latestLiterals are some of the constants used last.
	latestLiterals [1 << 10]struct {
		literal
		term Term
	}
	// tracker is set once inputs have become untracked.
	tracker *tracker
	rules   []operationRule
}

// literal is a constant.
type literal struct {
	value symbolic.Value
	bits  int
}

func newTerms() *termStore {
	t := &termStore{literalTerms: map[literal]Term{}, rules: operationRules()}
	t.nodes.Add() // 0 is no term
	return t
}

// node returns the node of a term.
func (t *termStore) node(of Term) *termNode { return t.nodes.At(int(of)) }

// addNode makes a term.
func (t *termStore) addNode(n termNode) Term {
	var set inputSet
	if t.tracker != nil {
		var untracked bool
		if set, untracked = t.tracker.setOf(t, &n); untracked {
			return t.untrackedTerm(set, t.nodeSize(&n))
		}
	}
	h := uint32(n.a)*0x9e3779b1 ^ uint32(n.b)*0x85ebca6b ^ uint32(n.c)*0xc2b2ae35 ^ uint32(n.op)*0x27d4eb2f ^ uint32(n.bits)<<8
	slot := &t.latest[(h^h>>15)%uint32(len(t.latest))]
	if slot.term == 0 || slot.termNode != n {
		slot.termNode, slot.term = n, Term(t.nodes.Len())
		*t.nodes.Add() = n
		if t.tracker != nil {
			if n.isLeaf() {
				set = t.tracker.leafSet(slot.term, &n)
			}
			t.tracker.sets = append(t.tracker.sets, set)
		}
	}
	return slot.term
}

// constantTerm is a number as a term.
func (t *termStore) constantTerm(v symbolic.Value, bits int) Term {
	k := literal{v, bits}
	h := v.Lo*0x9e3779b97f4a7c15 ^ v.Hi ^ uint64(bits)
	slot := &t.latestLiterals[h>>32%uint64(len(t.latestLiterals))]
	if slot.term == 0 || slot.literal != k {
		slot.literal, slot.term = k, t.literalTerm(k)
	}
	return slot.term
}

// literalTerm is the term of a literal.
func (t *termStore) literalTerm(k literal) Term {
	at, known := t.literalTerms[k]
	if !known {
		t.literals = append(t.literals, k)
		at = Term(-len(t.literals))
		t.literalTerms[k] = at
	}
	return at
}

// sizeOf is the size of a term in bits.
func (t *termStore) sizeOf(of Term) int {
	if of < 0 {
		return t.literals[-of-1].bits
	}
	return t.nodeSize(t.node(of))
}

// nodeSize is the size of a term in bits, given its node.
func (t *termStore) nodeSize(n *termNode) int {
	if n.op == nodeCondition {
		return 64
	}
	return int(n.bits)
}

// extractBytes is bytes of a term, from one on.
func (t *termStore) extractBytes(of Term, from, bytes int) Term {
	if from == 0 && t.sizeOf(of) == 8*bytes {
		return of
	}
	if of < 0 {
		return t.constantTerm(valueBytes(t.literals[-of-1].value, from, bytes), 8*bytes)
	}
	switch n := t.node(of); n.op {
	case nodeExtract:
		return t.extractBytes(n.a, from+int(n.b), bytes)
	case nodeConcat:
		switch low := t.sizeOf(n.b) / 8; {
		case t.sizeOf(n.b)%8 != 0:
		case from+bytes <= low:
			return t.extractBytes(n.b, from, bytes)
		case from >= low:
			return t.extractBytes(n.a, from-low, bytes)
		}
	}
	return t.addNode(termNode{op: nodeExtract, bits: uint8(8 * bytes), a: of, b: Term(from)})
}

// lowByte is the term of which a term's low byte is a copy, as far as sizes have changed on the way: instructions that
// copy bytes load them into wider registers.
func (t *termStore) lowByte(e Term) Term {
	for e > 0 {
		n := t.node(e)
		resizes := int(n.op) < len(t.rules) && (t.rules[n.op].narrows || t.rules[n.op].widens) && t.sizeOf(n.a) >= 8
		switch {
		case n.op == nodeConcat && t.sizeOf(n.b) >= 8:
			e = n.b
		case n.op == nodeFit, n.op == nodeSign, n.op == nodeExtract && n.b == 0, resizes:
			e = n.a
		default:
			return e
		}
	}
	return e
}

// fitSize is a term cut off, or zero-extended.
func (t *termStore) fitSize(of Term, bits int) Term {
	if of == 0 || t.sizeOf(of) == bits {
		return of
	}
	return t.addNode(termNode{op: nodeFit, bits: uint8(bits), a: of})
}

func (t *termStore) concatTerms(high, low Term) Term {
	return t.addNode(termNode{op: nodeConcat, bits: uint8(t.sizeOf(high) + t.sizeOf(low)), a: high, b: low})
}

// hasValue is the truth that a term has a value.
func (t *termStore) hasValue(e Term, v symbolic.Value) Term {
	if v.Hi != 0 {
		return t.equalTerm(e, t.constantTerm(v, t.sizeOf(e)))
	}
	return t.addNode(termNode{op: nodeHasValue, bits: 1, a: e, b: Term(uint32(v.Lo)), c: Term(v.Lo >> 32)})
}

func (t *termStore) equalTerm(a, b Term) Term {
	return t.addNode(termNode{op: nodeEq, bits: 1, a: a, b: b})
}

func (t *termStore) notTerm(a Term) Term { return t.addNode(termNode{op: nodeNot, bits: 1, a: a}) }

// operationTerm is one of libVEX's operations. Narrowing a widened number gives the number.
func (t *termStore) operationTerm(op vex.Op, bits int, a, b, c Term) Term {
	if t.rules[op].narrows && a > 0 {
		n := t.node(a)
		if int(n.op) < len(t.rules) && t.rules[n.op].widens && t.sizeOf(n.a) == bits {
			return n.a
		}
	}
	return t.addNode(termNode{op: uint16(op), bits: uint8(bits), a: a, b: b, c: c})
}
