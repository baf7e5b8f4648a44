package exec

import (
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/internal/chunks"
)

// Term is a value that depends on inputs, as what the code did to compute it. It
// costs little to make: an expression comes of it when it is asked for
// (Executor.Express). 0 is a value that depends on no input; negative are constants.
type Term int32

// node is how a term is computed: an operation of libVEX, or one of the kinds below.
type node struct {
	op          uint16
	bits, extra uint8
	a, b, c     Term
}

// Kinds of nodes, behind libVEX's operations.
const (
	// nodeByte is byte b of input number a, nodeNamed the symbol number a.
	nodeByte uint16 = 0xff00 + iota
	nodeNamed
	// nodeExtract is a from byte b on, nodeConcat has a above b, and nodeFit is a cut
	// off or with zeros above, nodeSign with its sign.
	nodeExtract
	nodeConcat
	nodeFit
	nodeSign
	// nodeIte is b if a, otherwise c; nodeEq that a and b are equal, nodeIs that a is a
	// number, of which b has the lower 32 bits and c the upper ones, nodeAnd that both
	// are true, nodeNot that a is not.
	nodeIte
	nodeEq
	nodeIs
	nodeAnd
	nodeNot
	// nodeSound is that the division a does not trap.
	nodeSound
	// nodeFlags are all flags, nodeCarry one, and nodeCondition the condition number
	// b, after the operation number extra, of which a, b and c are the operands. Of a
	// condition the number is in bits.
	nodeFlags
	nodeCarry
	nodeCondition
	// nodeGiven is the expression that was given as number a.
	nodeGiven
)

// terms has terms. Latest ones are the same if they are computed alike.
type terms struct {
	nodes chunks.List[node]
	// latest are some of the last terms, by what they are computed from.
	latest [1 << 12]struct {
		node
		term Term
	}
	literals []literal
	known    map[literal]Term
	// used are some of the constants that were used last.
	used [1 << 10]struct {
		literal
		term Term
	}
	rules []rule
}

// literal is a constant.
type literal struct {
	value symbolic.Value
	bits  int
}

func newTerms() *terms {
	t := &terms{known: map[literal]Term{}, rules: rules()}
	t.nodes.Add() // 0 is no term
	return t
}

// node is a term's.
func (t *terms) node(of Term) *node { return t.nodes.At(int(of)) }

// add makes a term.
func (t *terms) add(n node) Term {
	h := uint32(n.a)*0x9e3779b1 ^ uint32(n.b)*0x85ebca6b ^ uint32(n.c)*0xc2b2ae35 ^ uint32(n.op)*0x27d4eb2f ^ uint32(n.bits)<<8
	slot := &t.latest[(h^h>>15)%uint32(len(t.latest))]
	if slot.term == 0 || slot.node != n {
		slot.node, slot.term = n, Term(t.nodes.Len())
		*t.nodes.Add() = n
	}
	return slot.term
}

// constant is a number as a term.
func (t *terms) constant(v symbolic.Value, bits int) Term {
	k := literal{v, bits}
	h := v.Lo*0x9e3779b97f4a7c15 ^ v.Hi ^ uint64(bits)
	slot := &t.used[h>>32%uint64(len(t.used))]
	if slot.term == 0 || slot.literal != k {
		slot.literal, slot.term = k, t.number(k)
	}
	return slot.term
}

// number is the term of a literal.
func (t *terms) number(k literal) Term {
	at, known := t.known[k]
	if !known {
		t.literals = append(t.literals, k)
		at = Term(-len(t.literals))
		t.known[k] = at
	}
	return at
}

// bits is the size of a term.
func (t *terms) bits(of Term) int {
	if of < 0 {
		return t.literals[-of-1].bits
	}
	n := t.node(of)
	if n.op == nodeCondition {
		return 64
	}
	return int(n.bits)
}

// extract is bytes of a term from one on.
func (t *terms) extract(of Term, from, bytes int) Term {
	if from == 0 && t.bits(of) == 8*bytes {
		return of
	}
	if n := t.node(of); n.op == nodeExtract {
		return t.extract(n.a, from+int(n.b), bytes)
	}
	return t.add(node{op: nodeExtract, bits: uint8(8 * bytes), a: of, b: Term(from)})
}

// fit is a term cut off, or with zeros above.
func (t *terms) fit(of Term, bits int) Term {
	if of == 0 || t.bits(of) == bits {
		return of
	}
	return t.add(node{op: nodeFit, bits: uint8(bits), a: of})
}

func (t *terms) concat(high, low Term) Term {
	return t.add(node{op: nodeConcat, bits: uint8(t.bits(high) + t.bits(low)), a: high, b: low})
}

// is is that a term has a value.
func (t *terms) is(e Term, v symbolic.Value) Term {
	if v.Hi != 0 {
		return t.equal(e, t.constant(v, t.bits(e)))
	}
	return t.add(node{op: nodeIs, bits: 1, a: e, b: Term(uint32(v.Lo)), c: Term(v.Lo >> 32)})
}

func (t *terms) equal(a, b Term) Term { return t.add(node{op: nodeEq, bits: 1, a: a, b: b}) }

func (t *terms) not(a Term) Term { return t.add(node{op: nodeNot, bits: 1, a: a}) }

// operation is one of libVEX's. Of a number that was widened the lower part is the
// number.
func (t *terms) operation(op vex.Op, bits int, a, b, c Term) Term {
	if t.rules[op].narrows && a > 0 {
		n := t.node(a)
		if int(n.op) < len(t.rules) && t.rules[n.op].widens && t.bits(n.a) == bits {
			return n.a
		}
	}
	return t.add(node{op: uint16(op), bits: uint8(bits), a: a, b: b, c: c})
}
