package vex

import (
	"encoding/binary"
	"math"
)

// steps carries out the steps of a block, up to a side exit that is taken: where that
// goes. It sets Done. Operations that are frequent do here what their functions do.
func (m *Machine) steps(b *Block, f *Flat) (uint64, JumpKind) {
	v, state := m.temps[:len(f.Bits)], &m.State
	for i := range f.Steps {
		s := &f.Steps[i]
		x, y := &v[s.A], &v[s.B]
		r := Value{}
		switch s.code {
		case codeMark:
			m.PC = s.Bits
			if s.Size > 0 { // otherwise there is no instruction
				m.Count++
			}
			continue
		case codeGet1:
			r.Lo = uint64(state[s.Offset])
		case codeGet2:
			r.Lo = uint64(binary.LittleEndian.Uint16(state[s.Offset:]))
		case codeGet4:
			r.Lo = uint64(binary.LittleEndian.Uint32(state[s.Offset:]))
		case codeGet8:
			r.Lo = binary.LittleEndian.Uint64(state[s.Offset:])
		case codeGet16:
			r = state.read(s.Offset, 16)
		case codePut8:
			binary.LittleEndian.PutUint64(state[s.Offset:], x.Lo)
			continue
		case codePut1, codePut2, codePut4, codePut16:
			state.write(s.Offset, s.Size, *x)
			continue
		case codeCopy:
			r = *x
		case codeMask:
			r.Lo = x.Lo & s.Bits
		case codeSign:
			r.Lo = uint64(int64(x.Lo<<s.shift)>>s.shift) & s.Bits
		case codeNot:
			r.Lo = ^x.Lo & s.Bits
		case codeAdd:
			r.Lo = (x.Lo + y.Lo) & s.Bits
		case codeSub:
			r.Lo = (x.Lo - y.Lo) & s.Bits
		case codeAnd:
			r.Lo = x.Lo & y.Lo
		case codeOr:
			r.Lo = x.Lo | y.Lo
		case codeXor:
			r.Lo = x.Lo ^ y.Lo
		case codeMul:
			r.Lo = x.Lo * y.Lo & s.Bits
		case codeShl:
			r.Lo = x.Lo << y.Lo & s.Bits
		case codeShr:
			r.Lo = x.Lo >> y.Lo
		case codeEqual:
			r = boolean(x.Lo == y.Lo)
		case codeDiffer:
			r = boolean(x.Lo != y.Lo)
		case codeBelow:
			r = boolean(x.Lo < y.Lo)
		case codeBelowEqual:
			r = boolean(x.Lo <= y.Lo)
		case codeLess:
			r = boolean(int64(x.Lo<<s.shift) < int64(y.Lo<<s.shift))
		case codeLessEqual:
			r = boolean(int64(x.Lo<<s.shift) <= int64(y.Lo<<s.shift))
		case codeChoose:
			if r = v[s.C]; x.Lo != 0 {
				r = *y
			}
		case codeExit:
			if x.Lo != 0 {
				m.Done = i + 1
				to := b.Stmts[i].(*Exit)
				return to.Dst, to.Jump
			}
			continue
		default:
			if to, jump := m.rare(b, f, i); jump != JumpInvalid || m.err != nil {
				m.Done = i + 1
				return to, jump
			}
			continue
		}
		v[s.To] = r
	}
	m.Done = len(f.Steps)
	return 0, JumpInvalid
}

// rare carries out a step that may fail, or takes longer. A jump kind other than
// JumpInvalid leaves the block.
func (m *Machine) rare(b *Block, f *Flat, i int) (uint64, JumpKind) {
	v, s := m.temps[:len(f.Bits)], &f.Steps[i]
	switch s.code {
	case codeLoad:
		v[s.To] = m.load(v[s.A].Lo, int(s.Size))
	case codeStore:
		m.store(v[s.A].Lo, v[s.B], int(s.Size))
	case codeOther:
		return m.step(b.Stmts[i])
	default:
		v[s.To] = m.compute(s, &v[s.A], &v[s.B], &v[s.C])
	}
	return 0, JumpInvalid
}

// compute carries out an operation on numbers, or by its function.
func (m *Machine) compute(s *Step, a, b, c *Value) Value {
	if r := real64(s.code, f64(a.Lo), f64(b.Lo)); r == r {
		return Value{math.Float64bits(r), a.Hi}
	}
	m.args[0], m.args[1], m.args[2], m.args[3] = *a, *b, *c, Value{}
	return m.table[s.Op](&m.args)
}

// real64 is arithmetic on numbers; a NaN leaves it to the operation's function.
func real64(c code, x, y float64) float64 {
	switch c {
	case codeAddReal:
		return x + y
	case codeSubReal:
		return x - y
	case codeMulReal:
		return x * y
	case codeDivReal:
		return x / y
	}
	return math.NaN()
}
