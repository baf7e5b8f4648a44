package symtrace

import (
	"errors"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// fault is a thread that can fault where its path ends, and when: always if there is
// no condition.
type fault struct {
	thread    *threadExec
	condition *symbolic.Expr
	where     arch.Addr
}

// noteFault notes that the thread can fault here.
func (w *threadExec) noteFault(condition *symbolic.Expr) {
	w.pass.faults = append(w.pass.faults, fault{w, condition, arch.Addr(w.currentPC())})
}

// probeFault executes the instruction after the path, to see whether it can raise a signal.
func (w *threadExec) probeFault() {
	var code [15]byte
	n := w.pass.image.peekChanged(w.currentPC(), code[:])
	if n == 0 {
		w.noteFault(nil) // a jump to nowhere
		return
	}
	lifted, err := vex.Lift(code[:n], w.currentPC())
	if err != nil {
		return
	}
	x := &block{Block: lifted, code: code[:n]}
	x.scanStatements()
	if len(w.temps) < len(x.Types) {
		w.temps = make([]*symbolic.Expr, 2*len(x.Types))
	}
	events, conds, since, at, pc := len(w.events), len(w.conditions), w.sinceCall, w.at, w.currentPC()
	r := &round{threadExec: w, block: x, sinceAtBegin: w.sinceCall, from: w.at}
	w.faulting = true
	for _, s := range x.Stmts {
		if m, ok := s.(*vex.Mark); ok && m.Addr != x.Addr || r.err != nil {
			break
		}
		r.execStatement(s)
	}
	w.faulting, w.sinceCall, w.at = false, since, at
	w.events, w.coordinates, w.conditions = w.events[:events], w.coordinates[:events], w.conditions[:conds]
	w.machine.State.SetWord(vex.OffsetRIP, pc)
	var f errFault
	if errors.As(r.err, &f) {
		w.noteFault(f.condition)
	}
}

// endAtFault ends the path before the instruction of a number in the block, where the
// signal may have come from.
func (w *threadExec) endAtFault(n int, f errFault) error {
	w.sinceCall += uint64(max(1, n) - 1)
	w.at = w.path.Advance(w.at, max(1, n)-1)
	w.noteFault(f.condition)
	w.endPath(Cut)
	return nil
}

// errFault says that an instruction faults, if the condition holds.
type errFault struct{ condition *symbolic.Expr }

func (errFault) Error() string { return "it faults" }

// unmappedCondition is that there is no memory at an address.
func (b *pass) unmappedCondition(at *symbolic.Expr) *symbolic.Expr {
	p, all := b.pool, b.pool.Bool(true)
	for _, m := range b.image.Mapped {
		inside := p.ULT(p.Sub(at, p.Word(m.Start, 64)), p.Word(m.End-m.Start, 64))
		all = p.And(all, p.Not(inside))
	}
	return all
}
