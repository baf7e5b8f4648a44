package symtrace

import (
	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// makeStack gives a thread the stack that it has where its path reaches a position, the call of its
// function. The code before that is not followed, but it is executed on private memory, as functions
// of the C library take other branches for strings with another alignment within cache lines and
// pages, and as the frames of its callers matter where exceptions are thrown.
func (w *threadExec) makeStack(end paths.Position) {
	top := w.ownBase() + ownStack + w.pass.image.NewThread.Stack%symmem.PageSize
	m, memory := w.machine, symmem.Known{Memory: w.memory.Fork()}
	m.Memory = memory
	m.State.SetWord(offsetRSP, top)
	m.State.SetWord(vex.OffsetRAX+8*8, w.threadPointer()) // where clone keeps the argument
	stack := top - 8
	if w.runBetween(&m, paths.Position{}, end) == nil {
		stack = m.State.Word(offsetRSP)
		for _, r := range calleeSaved {
			w.machine.State.SetWord(vex.OffsetRAX+8*r, m.State.Word(vex.OffsetRAX+8*r))
		}
		for at := stack; at < top; at += 8 {
			w.memory.Store(at, memory.Memory.Load(w.pass.pool, at, 8))
		}
	}
	if back := w.memory.Load(w.pass.pool, stack, 8); back.IsConst() && back.Value.Lo != 0 {
		w.returnAddress = back.Value.Lo
	} else {
		w.memory.Write(stack, wordBytes(w.returnAddress))
	}
	w.machine.State.SetWord(offsetRSP, stack)
}

// runBetween executes a part of the thread's path, on numbers.
func (w *threadExec) runBetween(m *vex.Machine, at, end paths.Position) error {
	for at.Block < end.Block {
		pc, _ := w.path.PCAt(at)
		m.State.SetWord(vex.OffsetRIP, pc)
		n, size := w.path.Remaining(at)
		b, err := w.pass.liftBlock(pc, n, size)
		if err != nil {
			return err
		}
		if _, _, err = m.Run(b.Block); err != nil {
			return err
		}
		at = w.path.Advance(at, max(1, m.Count))
	}
	return nil
}
