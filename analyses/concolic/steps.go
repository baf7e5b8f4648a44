package concolic

import (
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// runSteps executes the steps of a block on terms, up to the exit that was taken. Most
// depend on no input and are skipped.
func (r *blockRun) runSteps() {
	f, temps := r.block.flat, r.temps
	for i := range f.Steps[:r.machine.Done] {
		s := &f.Steps[i]
		r.stmt = i
		switch s.Kind {
		case vex.StepMark:
			r.at = s.Bits
			r.n++
		case vex.StepGet:
			if at := int(s.Offset); r.registers.wordMayDepend(at) || r.registers.wordMayDepend(at+int(s.Size)-1) {
				r.assignTemp(vex.Temp(s.To), r.readState(at, int(s.Size), r.recordedOperand(s.To)))
			}
		case vex.StepPut:
			at := int(s.Offset)
			if t := temps[s.A]; t != 0 || r.registers.wordMayDepend(at) || r.registers.wordMayDepend(at+int(s.Size)-1) {
				r.registers.setTerm(vex.SpanOf(at, int(s.Size)), r.sizedTerm(t, s, s.A))
			}
		case vex.StepCopy:
			temps[s.To] = temps[s.A]
		case vex.StepOperation:
			if temps[s.A]|temps[s.B]|temps[s.C] != 0 {
				r.assignTemp(vex.Temp(s.To), r.runOperation(s))
			}
		case vex.StepLoad:
			r.assignTemp(vex.Temp(s.To), r.loadTerm(r.recordedOperand(s.A).Lo, temps[s.A], int(s.Size), r.recordedOperand(s.To)))
		case vex.StepStore:
			r.fixAddress(r.recordedOperand(s.A), temps[s.A], int(s.Size))
			r.x.memory.storeTerm(r.space, r.recordedOperand(s.A).Lo, int(s.Size), r.sizedTerm(temps[s.B], s, s.B))
		case vex.StepChoose:
			r.assignTemp(vex.Temp(s.To), r.chooseTerm(s))
		case vex.StepExit:
			r.addExitConstraint(r.recordedOperand(s.A), temps[s.A])
		default:
			r.runStatement(r.block.Stmts[i])
		}
	}
}

// sizedTerm is the term of an operand in the size that a step puts or stores.
func (r *blockRun) sizedTerm(t Term, s *vex.Step, operand int32) Term {
	if r.block.flat.Bits[operand] == 8*s.Size {
		return t
	}
	return r.terms.fitSize(t, 8*int(s.Size))
}

// recordedOperand is the recorded value of an operand.
func (r *blockRun) recordedOperand(operand int32) symbolic.Value {
	return r.machine.Temp(vex.Temp(operand))
}

// operandOrConstant returns an operand as a term, a constant if it depends on no input.
// Constants of the block are made once.
func (r *blockRun) operandOrConstant(operand int32) Term {
	if t := r.temps[operand]; t != 0 {
		return t
	}
	f := r.block.flat
	if operand <= f.None {
		return r.terms.constantTerm(r.recordedOperand(operand), int(f.Bits[operand]))
	}
	c := &r.block.constants[operand-f.None]
	if *c == 0 {
		*c = r.terms.constantTerm(r.recordedOperand(operand), int(f.Bits[operand]))
	}
	return *c
}

// runOperation builds the term of an operation. If it has no expression its operands are
// fixed.
func (r *blockRun) runOperation(s *vex.Step) Term {
	rule := &r.terms.rules[s.Op]
	if rule.build == nil || rule.fixedOperand > 0 && !r.isFixedOperand([...]int32{s.A, s.B, s.C}[rule.fixedOperand-1], rule.needsNearest) {
		for _, o := range []int32{s.A, s.B, s.C} {
			r.fixToRecorded(r.recordedOperand(o), r.temps[o], Fixed, s.Op.String())
		}
		return 0
	}
	a, b, c := r.operandOrConstant(s.A), Term(0), Term(0)
	if s.B != r.block.flat.None {
		b = r.operandOrConstant(s.B)
	}
	if s.C != r.block.flat.None {
		c = r.operandOrConstant(s.C)
	}
	t := r.terms.operationTerm(s.Op, int(r.block.flat.Bits[s.To]), a, b, c)
	if rule.division {
		r.addConstraint(r.terms.addNode(termNode{op: nodeDivisionSound, bits: 1, a: t}), Division, "")
	}
	return t
}

// isFixedOperand reports whether an operand depends on no input and, if needed, is the
// nearest rounding mode.
func (r *blockRun) isFixedOperand(operand int32, nearest bool) bool {
	return r.temps[operand] == 0 && (!nearest || symbolic.Mode(r.recordedOperand(operand).Lo&3) == symbolic.Nearest)
}

// chooseTerm is one of two operands, by the recorded choice if that depends on no input.
func (r *blockRun) chooseTerm(s *vex.Step) Term {
	switch c := r.temps[s.A]; {
	case c != 0:
		then := r.operandOrConstant(s.B)
		return r.terms.addNode(termNode{op: nodeIte, bits: uint8(r.terms.sizeOf(then)), a: c, b: then, c: r.operandOrConstant(s.C)})
	case r.recordedOperand(s.A).Lo != 0:
		return r.temps[s.B]
	}
	return r.temps[s.C]
}

// addExitConstraint adds the condition of a side exit, or its negation.
func (r *blockRun) addExitConstraint(v symbolic.Value, e Term) {
	if e == 0 {
		return
	}
	r.checkTerm(v, e)
	if v.Lo == 0 {
		e = r.terms.notTerm(e)
	}
	r.addConstraint(e, Branch, "")
}

// readState returns the term of bytes of the state whose recorded value is v.
func (r *blockRun) readState(offset, size int, v symbolic.Value) Term {
	return r.terms.gatherTerm(r.registers.cells[offset:offset+size], v)
}

func (r *blockRun) writeState(offset, size int, e Term) {
	r.registers.setTerm(vex.SpanOf(offset, size), r.terms.fitSize(e, 8*size))
}

// loadTerm returns the term of memory at an address, which is fixed to the recorded one, or
// to those with the same bytes.
func (r *blockRun) loadTerm(addr uint64, e Term, size int, v symbolic.Value) Term {
	if e != 0 {
		if t, known := r.lookedUp(addr, e, size); known {
			return t
		}
		if row := r.tableConstraint(addr, e, size); row != 0 {
			r.addConstraint(row, Address, "")
			return 0
		}
		r.fixAddress(symbolic.Value{Lo: addr}, e, size)
	}
	for _, f := range r.freshLoads {
		if f.pc == r.at && f.addr == addr && f.size == size {
			return f.term
		}
	}
	if cells := r.x.memory.cellsWithin(r.space, addr, size); cells != nil {
		return r.terms.gatherTerm(cells, v)
	}
	if !r.x.memory.dependsOnInput(r.space, addr, size) {
		return 0
	}
	var cells [16]cell
	some := cells[:size]
	r.x.memory.loadCells(r.space, addr, some)
	return r.terms.gatherTerm(some, v)
}
