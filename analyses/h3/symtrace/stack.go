package symtrace

import (
	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// privateMemory is a copy of memory whose writes no one else sees.
type privateMemory struct{ *symmem.Memory }

// Load is vex.Memory's.
func (a privateMemory) Load(addr uint64, p []byte) error {
	if !a.Read(addr, p) {
		return errSymbolic
	}
	return nil
}

// Store is vex.Memory's.
func (a privateMemory) Store(addr uint64, p []byte) error {
	a.Write(addr, p)
	return nil
}

// stackPointerAt is the stack pointer of a thread where its path reaches a position. The code
// before that is not followed, but it is executed on private memory, as functions of the C library
// take other branches for strings with another alignment within cache lines and pages.
func (w *threadExec) stackPointerAt(end paths.Position) uint64 {
	stack := w.ownBase() + ownBlock/2 + w.pass.image.Stack%symmem.PageSize
	m := w.machine
	m.Memory = privateMemory{w.memory.Fork()}
	m.State.SetWord(offsetRSP, stack)
	m.State.SetWord(vex.OffsetRAX+8*8, w.threadPointer()) // where clone keeps the argument
	for at := (paths.Position{}); at.Block < end.Block; {
		pc, _ := w.path.PCAt(at)
		m.State.SetWord(vex.OffsetRIP, pc)
		n, size := w.path.Remaining(at)
		b, err := w.pass.liftBlock(pc, n, size)
		if err != nil {
			return stack - 8
		}
		if _, _, err = m.Run(b.Block); err != nil {
			return stack - 8
		}
		at = w.path.Advance(at, max(1, m.Count))
	}
	return m.State.Word(offsetRSP)
}
