package exec

import (
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// What is known of the system besides bytes that were read: results of calls and
// what they say of files, as expressions.

// Symbol is the symbol of a name, whose recorded value is given.
func (x *Executor) Symbol(name string, bits int, value uint64) *symbolic.Expr {
	return x.Express(x.symbol(name, bits, symbolic.Value{Lo: value}))
}

// given is the term of an expression.
func (x *Executor) given(e *symbolic.Expr) Term {
	t := x.terms.add(node{op: nodeGiven, bits: uint8(e.Bits), a: Term(len(x.made))})
	x.made[t] = e
	return t
}

// Written makes bytes of memory, which the kernel wrote, an expression.
func (x *Executor) Written(space, addr uint64, e *symbolic.Expr) {
	x.memory.store(space, addr, e.Bits/8, x.given(e))
}

// Result makes the result of a system call, which has returned a value, an expression
// of 64 bits.
func (x *Executor) Result(id event.ThreadID, value uint64, e *symbolic.Expr) {
	if t := x.threads[id]; t != nil {
		t.machine.State.SetWord(vex.OffsetRAX, value)
		t.registers.set(vex.SpanOf(vex.OffsetRAX, 8), x.given(e))
	}
}

// Argument is an argument of the system call that a thread has made, from 0 on.
func (x *Executor) Argument(id event.ThreadID, n int) *symbolic.Expr {
	t := x.threads[id]
	if t == nil {
		return nil
	}
	v, term := t.register(vex.OffsetRAX+8*[]int{7, 6, 2, 10, 8, 9}[n], 8)
	if term == 0 {
		return x.Pool.Const(v, 64)
	}
	return x.Express(term)
}
