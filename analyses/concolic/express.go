package concolic

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// Express returns the expression of a term, the same one each time; nil for term 0.
func (x *Executor) Express(t Term) *symbolic.Expr {
	if e := x.knownExpression(t); e != nil || t == 0 {
		return e
	}
	pending := append(x.pendingTerms[:0], t)
	for len(pending) > 0 {
		last := pending[len(pending)-1]
		n := x.terms.node(last)
		missing := false
		for _, a := range n.operandTerms() {
			if a > 0 && x.expressions[a] == nil {
				pending, missing = append(pending, a), true
			}
		}
		if missing {
			continue
		}
		if x.expressions[last] == nil {
			x.expressions[last] = x.buildExpression(n)
		}
		pending = pending[:len(pending)-1]
	}
	x.pendingTerms = pending
	return x.expressions[t]
}

// knownExpression returns the expression of a constant, or one that was built already.
func (x *Executor) knownExpression(t Term) *symbolic.Expr {
	switch {
	case t == 0:
		return nil
	case t < 0:
		n := &x.terms.literals[-t-1]
		return x.Pool.Const(n.value, n.bits)
	}
	return x.expressions[t]
}

// operandTerms returns the terms that a node is computed from.
func (n *termNode) operandTerms() [3]Term {
	switch n.op {
	case nodeByte, nodeNamed, nodeGiven, nodeUntracked:
		return [3]Term{}
	case nodeExtract, nodeHasValue:
		return [3]Term{n.a}
	}
	return [3]Term{n.a, n.b, n.c}
}

// isLeaf reports whether a node is computed from no other.
func (n *termNode) isLeaf() bool {
	return n.op == nodeByte || n.op == nodeNamed || n.op == nodeGiven || n.op == nodeUntracked
}

// buildExpression builds the expression of a node whose operands are built.
func (x *Executor) buildExpression(n *termNode) *symbolic.Expr {
	switch n.op {
	case nodeByte:
		in := x.inputs[n.a]
		if x.pinned>>in.number&1 != 0 {
			return x.Pool.Word(uint64(in.data[n.b]), 8)
		}
		return x.Pool.Symbol(symbolName(in.name, in.first+int(n.b)), 8)
	case nodeNamed:
		s := x.names[n.a]
		if x.pinned>>s.number&1 != 0 {
			return x.Pool.Const(s.value, s.bits)
		}
		return x.Pool.Symbol(s.name, s.bits)
	case nodeUntracked:
		return x.untrackedSymbol(n)
	}
	p, bits := x.Pool, int(n.bits)
	o := &operands{Pool: p}
	for i, a := range n.operandTerms() {
		o.args[i] = x.knownExpression(a)
	}
	a, b := o.first(), o.second()
	switch n.op {
	case nodeExtract:
		return p.Extract(a, 8*int(n.b), bits)
	case nodeConcat:
		return p.Concat(a, b)
	case nodeFit:
		return resizeExpr(p, a, bits)
	case nodeSign:
		return p.SignExt(a, bits)
	case nodeIte:
		return p.Ite(a, b, o.third())
	case nodeEq:
		return p.Eq(a, b)
	case nodeHasValue:
		return p.Eq(a, p.Word(uint64(uint32(n.b))|uint64(n.c)<<32, a.Bits))
	case nodeAnd:
		return p.And(a, b)
	case nodeNot:
		return p.Not(a)
	case nodeDivisionSound:
		return x.buildDivisionSound(n)
	case nodeFlags, nodeCarry, nodeCondition:
		return flagsExpression(newFlagThunk(p, uint64(n.extra), a, b, o.third()), n)
	}
	return x.terms.rules[n.op].build(o)
}

// flagsExpression is the expression for the flags that code reads.
func flagsExpression(t *flagThunk, n *termNode) *symbolic.Expr {
	switch n.op {
	case nodeCondition:
		return t.ZeroExt(t.conditionValue(uint64(n.bits)), 64)
	case nodeCarry:
		return t.ZeroExt(t.flagValue(flagCarry), 64)
	}
	return t.allFlags()
}

// buildDivisionSound is the condition that a division does not trap.
func (x *Executor) buildDivisionSound(n *termNode) *symbolic.Expr {
	division := x.terms.node(n.a)
	o := &operands{Pool: x.Pool}
	for i, a := range division.operandTerms() {
		o.args[i] = x.knownExpression(a)
	}
	return divisionSound(o, vex.Op(division.op).String())
}

func symbolName(input string, at int) string { return fmt.Sprintf("%s[%d]", input, at) }
