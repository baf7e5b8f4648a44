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
	x.recorded[name] = symbolic.Value{Lo: value}
	return x.Pool.Symbol(name, bits)
}

// Written makes bytes of memory, which the kernel wrote, an expression.
func (x *Executor) Written(space, addr uint64, e *symbolic.Expr) {
	x.memory.store(space, addr, e.Bits/8, e)
}

// Result makes the result of a system call, which has returned a value, an expression
// of 64 bits.
func (x *Executor) Result(id event.ThreadID, value uint64, e *symbolic.Expr) {
	t := x.threads[id]
	if t == nil {
		return
	}
	t.machine.State.SetWord(vex.OffsetRAX, value)
	t.symbolic += scatter(t.shadow[vex.OffsetRAX:vex.OffsetRAX+8], e)
}
