package exec

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// Express makes the expression of a term, the same each time; nil of term 0.
func (x *Executor) Express(t Term) *symbolic.Expr {
	if e := x.expression(t); e != nil || t == 0 {
		return e
	}
	todo := append(x.todo[:0], t)
	for len(todo) > 0 {
		last := todo[len(todo)-1]
		n := x.terms.node(last)
		missing := false
		for _, a := range n.operands() {
			if a > 0 && x.made[a] == nil {
				todo, missing = append(todo, a), true
			}
		}
		if missing {
			continue
		}
		if x.made[last] == nil {
			x.made[last] = x.build(n)
		}
		todo = todo[:len(todo)-1]
	}
	x.todo = todo
	return x.made[t]
}

// expression is that of a constant, or one that was made.
func (x *Executor) expression(t Term) *symbolic.Expr {
	switch {
	case t == 0:
		return nil
	case t < 0:
		n := &x.terms.literals[-t-1]
		return x.Pool.Const(n.value, n.bits)
	}
	return x.made[t]
}

// operands are the terms that a node is computed from.
func (n *node) operands() [3]Term {
	switch n.op {
	case nodeByte, nodeNamed, nodeGiven:
		return [3]Term{}
	case nodeExtract, nodeIs:
		return [3]Term{n.a}
	}
	return [3]Term{n.a, n.b, n.c}
}

// build makes the expression of a node, of whose operands there are some.
func (x *Executor) build(n *node) *symbolic.Expr {
	switch n.op {
	case nodeByte:
		in := x.inputs[n.a]
		return x.Pool.Symbol(symbolName(in.name, in.first+int(n.b)), 8)
	case nodeNamed:
		s := x.names[n.a]
		return x.Pool.Symbol(s.name, s.bits)
	}
	p, bits := x.Pool, int(n.bits)
	o := &operands{Pool: p}
	for i, a := range n.operands() {
		o.args[i] = x.expression(a)
	}
	a, b := o.a(), o.b()
	switch n.op {
	case nodeExtract:
		return p.Extract(a, 8*int(n.b), bits)
	case nodeConcat:
		return p.Concat(a, b)
	case nodeFit:
		return resize(p, a, bits)
	case nodeSign:
		return p.SignExt(a, bits)
	case nodeIte:
		return p.Ite(a, b, o.c())
	case nodeEq:
		return p.Eq(a, b)
	case nodeIs:
		return p.Eq(a, p.Word(uint64(uint32(n.b))|uint64(n.c)<<32, a.Bits))
	case nodeAnd:
		return p.And(a, b)
	case nodeNot:
		return p.Not(a)
	case nodeSound:
		return x.sound(n)
	case nodeFlags, nodeCarry, nodeCondition:
		return flagsOf(newThunk(p, uint64(n.extra), a, b, o.c()), n)
	}
	return x.terms.rules[n.op].make(o)
}

// flagsOf is the expression of what code asks of the flags.
func flagsOf(t *thunk, n *node) *symbolic.Expr {
	switch n.op {
	case nodeCondition:
		return t.ZeroExt(t.condition(uint64(n.bits)), 64)
	case nodeCarry:
		return t.ZeroExt(t.flag(carry), 64)
	}
	return t.all()
}

// sound is that a division does not trap.
func (x *Executor) sound(n *node) *symbolic.Expr {
	division := x.terms.node(n.a)
	o := &operands{Pool: x.Pool}
	for i, a := range division.operands() {
		o.args[i] = x.expression(a)
	}
	return sound(o, vex.Op(division.op).String())
}

func symbolName(input string, at int) string { return fmt.Sprintf("%s[%d]", input, at) }
