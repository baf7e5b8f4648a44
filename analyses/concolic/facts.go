package concolic

import (
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// Facts about the system besides the bytes that were read: results of system calls and
// sizes of files, as expressions.

// Symbol returns the symbol of a name, which is a property of an input, and sets its recorded value. If the input is
// pinned it returns the value.
func (x *Executor) Symbol(name, of string, bits int, value uint64) *symbolic.Expr {
	if x.isPinned(of) {
		return x.Pool.Word(value, bits)
	}
	return x.Express(x.namedTerm(name, of, bits, symbolic.Value{Lo: value}))
}

// givenTerm is the term of an expression; 0: it depends on pinned inputs alone.
func (x *Executor) givenTerm(e *symbolic.Expr) Term {
	if e = x.replacePinned(e); e.IsConst() {
		return 0
	}
	if set, untracked := x.inputsOfExpression(e); untracked {
		return x.terms.untrackedTerm(set, e.Bits)
	}
	t := x.terms.addNode(termNode{op: nodeGiven, bits: uint8(e.Bits), a: Term(len(x.expressions))})
	x.expressions[t] = e
	if x.terms.tracker != nil {
		x.terms.tracker.sets[t] = x.leafSet(t, x.terms.node(t))
	}
	return t
}

// SetMemory makes bytes that the kernel wrote an expression.
func (x *Executor) SetMemory(space, addr uint64, e *symbolic.Expr) {
	x.memory.storeTerm(space, addr, e.Bits/8, x.givenTerm(e))
}

// SetResult makes the result of a finished system call an expression of 64 bits.
func (x *Executor) SetResult(id arch.ThreadID, value uint64, e *symbolic.Expr) {
	if t := x.threads[id]; t != nil {
		t.machine.State.SetWord(vex.OffsetRAX, value)
		t.registers.setTerm(vex.SpanOf(vex.OffsetRAX, 8), x.givenTerm(e))
	}
}

// SyscallArgument returns argument n, from 0, of the system call that a thread is making.
func (x *Executor) SyscallArgument(id arch.ThreadID, n int) *symbolic.Expr {
	t := x.threads[id]
	if t == nil {
		return nil
	}
	v, term := t.registerTerm(vex.OffsetRAX+8*[]int{7, 6, 2, 10, 8, 9}[n], 8)
	if term == 0 {
		return x.Pool.Const(v, 64)
	}
	return x.Express(term)
}
