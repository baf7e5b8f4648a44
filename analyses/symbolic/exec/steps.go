package exec

import (
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// steps executes the steps of a block, up to where it was left, on terms. Most depend on
// no input, and are passed over.
func (r *round) steps() {
	f, temps := r.block.flat, r.temps
	for i := range f.Steps[:r.machine.Done] {
		s := &f.Steps[i]
		r.stmt = i
		switch s.Kind {
		case vex.StepMark:
			r.at = s.Bits
			r.n++
		case vex.StepGet:
			if at := int(s.Offset); r.registers.word(at) || r.registers.word(at+int(s.Size)-1) {
				r.assign(vex.Temp(s.To), r.get(at, int(s.Size), r.value(s.To)))
			}
		case vex.StepPut:
			at := int(s.Offset)
			if t := temps[s.A]; t != 0 || r.registers.word(at) || r.registers.word(at+int(s.Size)-1) {
				r.registers.set(vex.SpanOf(at, int(s.Size)), r.sized(t, s, s.A))
			}
		case vex.StepCopy:
			temps[s.To] = temps[s.A]
		case vex.StepOperation:
			if temps[s.A]|temps[s.B]|temps[s.C] != 0 {
				r.assign(vex.Temp(s.To), r.operation(s))
			}
		case vex.StepLoad:
			r.assign(vex.Temp(s.To), r.load(r.value(s.A).Lo, temps[s.A], int(s.Size), r.value(s.To)))
		case vex.StepStore:
			r.fix(r.value(s.A), temps[s.A], Address, "")
			r.x.memory.store(r.space, r.value(s.A).Lo, int(s.Size), r.sized(temps[s.B], s, s.B))
		case vex.StepChoose:
			r.assign(vex.Temp(s.To), r.choose(s))
		case vex.StepExit:
			r.exit(r.value(s.A), temps[s.A])
		default:
			r.statement(r.block.Stmts[i])
		}
	}
}

// sized is the term of an operand in as many bytes as a step puts or stores.
func (r *round) sized(t Term, s *vex.Step, operand int32) Term {
	if r.block.flat.Bits[operand] == 8*s.Size {
		return t
	}
	return r.terms.fit(t, 8*int(s.Size))
}

// value is the recorded value of an operand.
func (r *round) value(operand int32) symbolic.Value { return r.machine.Temp(vex.Temp(operand)) }

// either is an operand as a term, a constant if it depends on no input. Those of the
// block are made once.
func (r *round) either(operand int32) Term {
	if t := r.temps[operand]; t != 0 {
		return t
	}
	f := r.block.flat
	if operand <= f.None {
		return r.terms.constant(r.value(operand), int(f.Bits[operand]))
	}
	c := &r.block.constants[operand-f.None]
	if *c == 0 {
		*c = r.terms.constant(r.value(operand), int(f.Bits[operand]))
	}
	return *c
}

// operation makes an operation's term. One that has no expression has its operands
// fixed.
func (r *round) operation(s *vex.Step) Term {
	rule := &r.terms.rules[s.Op]
	if rule.make == nil || rule.known > 0 && !r.isKnown([...]int32{s.A, s.B, s.C}[rule.known-1], rule.nearest) {
		for _, o := range []int32{s.A, s.B, s.C} {
			r.fix(r.value(o), r.temps[o], Fixed, s.Op.String())
		}
		return 0
	}
	a, b, c := r.either(s.A), Term(0), Term(0)
	if s.B != r.block.flat.None {
		b = r.either(s.B)
	}
	if s.C != r.block.flat.None {
		c = r.either(s.C)
	}
	t := r.terms.operation(s.Op, int(r.block.flat.Bits[s.To]), a, b, c)
	if rule.division {
		r.add(r.terms.add(node{op: nodeSound, bits: 1, a: t}), Division, "")
	}
	return t
}

// isKnown tells whether an operand depends on no input, and is the nearest rounding
// mode if it has to be.
func (r *round) isKnown(operand int32, nearest bool) bool {
	return r.temps[operand] == 0 && (!nearest || symbolic.Mode(r.value(operand).Lo&3) == symbolic.Nearest)
}

// choose is one of two, by the recorded choice if that depends on no input.
func (r *round) choose(s *vex.Step) Term {
	switch c := r.temps[s.A]; {
	case c != 0:
		then := r.either(s.B)
		return r.terms.add(node{op: nodeIte, bits: uint8(r.terms.bits(then)), a: c, b: then, c: r.either(s.C)})
	case r.value(s.A).Lo != 0:
		return r.temps[s.B]
	}
	return r.temps[s.C]
}

// exit adds the condition of a side exit, or its negation.
func (r *round) exit(v symbolic.Value, e Term) {
	if e == 0 {
		return
	}
	r.check(v, e)
	if v.Lo == 0 {
		e = r.terms.not(e)
	}
	r.add(e, Branch, "")
}

// get is what bytes of the state depend on, of which the recorded values are given.
func (r *round) get(offset, size int, v symbolic.Value) Term {
	return r.terms.gather(r.registers.cells[offset:offset+size], v)
}

func (r *round) put(offset, size int, e Term) {
	r.registers.set(vex.SpanOf(offset, size), r.terms.fit(e, 8*size))
}

// load is what memory has at an address, which is fixed to the recorded one, or to
// those with the same bytes.
func (r *round) load(addr uint64, e Term, size int, v symbolic.Value) Term {
	if e != 0 {
		if row := r.tabled(addr, e, size); row != 0 {
			r.add(row, Address, "")
			return 0
		}
		r.fix(symbolic.Value{Lo: addr}, e, Address, "")
	}
	for _, f := range r.fresh {
		if f.pc == r.at && f.addr == addr && f.size == size {
			return f.term
		}
	}
	if cells := r.x.memory.within(r.space, addr, size); cells != nil {
		return r.terms.gather(cells, v)
	}
	if !r.x.memory.touched(r.space, addr, size) {
		return 0
	}
	var cells [16]cell
	some := cells[:size]
	r.x.memory.load(r.space, addr, some)
	return r.terms.gather(some, v)
}
