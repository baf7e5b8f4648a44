package vex

import "math"

// steps carries out the steps of a block, up to a side exit that is taken: where that
// goes. It sets Done.
func (m *Machine) steps(b *Block, f *Flat) (uint64, JumpKind) {
	v := m.temps[:len(f.Bits)]
	for i := range f.Steps {
		switch s := &f.Steps[i]; s.Kind {
		case StepMark:
			m.PC = s.Bits
			if s.Size > 0 { // otherwise there is no instruction
				m.Count++
			}
		case StepGet:
			v[s.To] = m.State.read(s.Offset, s.Size)
		case StepPut:
			m.State.write(s.Offset, s.Size, v[s.A])
		case StepCopy:
			v[s.To] = v[s.A]
		case StepOperation:
			v[s.To] = m.compute(s, &v[s.A], &v[s.B], &v[s.C])
		case StepLoad:
			v[s.To] = m.load(v[s.A].Lo, int(s.Size))
		case StepStore:
			m.store(v[s.A].Lo, v[s.B], int(s.Size))
		case StepChoose:
			from := s.C
			if v[s.A].Lo != 0 {
				from = s.B
			}
			v[s.To] = v[from]
		case StepExit:
			if v[s.A].Lo != 0 {
				m.Done = i + 1
				to := b.Stmts[i].(*Exit)
				return to.Dst, to.Jump
			}
		default:
			if to, jump := m.step(b.Stmts[i]); jump != JumpInvalid {
				m.Done = i + 1
				return to, jump
			}
		}
		if m.err != nil {
			m.Done = i + 1
			return 0, JumpInvalid
		}
	}
	m.Done = len(f.Steps)
	return 0, JumpInvalid
}

// compute carries out an operation. What is quick does as the operation's function does.
func (m *Machine) compute(s *Step, a, b, c *Value) Value {
	switch s.quick {
	case quickCopy:
		return *a
	case quickMask:
		return Value{Lo: a.Lo & s.Bits}
	case quickSign:
		return Value{Lo: uint64(int64(a.Lo<<s.shift)>>s.shift) & s.Bits}
	case quickNot:
		return Value{Lo: ^a.Lo & s.Bits}
	case quickAdd:
		return Value{Lo: (a.Lo + b.Lo) & s.Bits}
	case quickSub:
		return Value{Lo: (a.Lo - b.Lo) & s.Bits}
	case quickAnd:
		return Value{Lo: a.Lo & b.Lo}
	case quickOr:
		return Value{Lo: a.Lo | b.Lo}
	case quickXor:
		return Value{Lo: a.Lo ^ b.Lo}
	case quickMul:
		return Value{Lo: a.Lo * b.Lo & s.Bits}
	case quickShl:
		return Value{Lo: a.Lo << b.Lo & s.Bits}
	case quickShr:
		return Value{Lo: a.Lo >> b.Lo}
	case quickEqual:
		return boolean(a.Lo == b.Lo)
	case quickDiffer:
		return boolean(a.Lo != b.Lo)
	case quickBelow:
		return boolean(a.Lo < b.Lo)
	case quickBelowEqual:
		return boolean(a.Lo <= b.Lo)
	case quickLess:
		return boolean(int64(a.Lo<<s.shift) < int64(b.Lo<<s.shift))
	case quickLessEqual:
		return boolean(int64(a.Lo<<s.shift) <= int64(b.Lo<<s.shift))
	}
	if r := real64(s.quick, f64(a.Lo), f64(b.Lo)); r == r {
		return Value{math.Float64bits(r), a.Hi}
	}
	m.args[0], m.args[1], m.args[2], m.args[3] = *a, *b, *c, Value{}
	return s.compute(&m.args)
}

// real64 is quick arithmetic on numbers; a NaN leaves it to the operation's function.
func real64(q quick, x, y float64) float64 {
	switch q {
	case quickAddReal:
		return x + y
	case quickSubReal:
		return x - y
	case quickMulReal:
		return x * y
	case quickDivReal:
		return x / y
	}
	return math.NaN()
}
