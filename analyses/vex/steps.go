package vex

import (
	"encoding/binary"
	"math"
)

// runSteps runs the steps of a block, up to a side exit that is taken, and returns the
// exit's target. It sets Done. Frequent operations are computed here instead of in their
// functions.
func (m *Machine) runSteps(b *Block, f *Flat) (uint64, JumpKind) {
	v, state := m.temps[:len(f.Bits)], &m.State
	for i := range f.Steps {
		s := &f.Steps[i]
		x, y := &v[s.A], &v[s.B]
		r := Value{}
		switch s.code {
		case codeMark:
			m.PC = s.Bits
			if s.Size > 0 { // otherwise it marks no instruction
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
			r = state.readBytes(s.Offset, 16)
		case codePut8:
			binary.LittleEndian.PutUint64(state[s.Offset:], x.Lo)
			continue
		case codePut1, codePut2, codePut4, codePut16:
			state.writeBytes(s.Offset, s.Size, *x)
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
			r = boolValue(x.Lo == y.Lo)
		case codeDiffer:
			r = boolValue(x.Lo != y.Lo)
		case codeBelow:
			r = boolValue(x.Lo < y.Lo)
		case codeBelowEqual:
			r = boolValue(x.Lo <= y.Lo)
		case codeLess:
			r = boolValue(int64(x.Lo<<s.shift) < int64(y.Lo<<s.shift))
		case codeLessEqual:
			r = boolValue(int64(x.Lo<<s.shift) <= int64(y.Lo<<s.shift))
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
			if to, jump := m.runSlowStep(b, f, i); jump != JumpInvalid || m.err != nil {
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

// runSlowStep runs a step that may fail, or takes longer. A jump kind other than
// JumpInvalid leaves the block.
func (m *Machine) runSlowStep(b *Block, f *Flat, i int) (uint64, JumpKind) {
	v, s := m.temps[:len(f.Bits)], &f.Steps[i]
	switch s.code {
	case codeLoad:
		v[s.To] = m.loadMemory(v[s.A].Lo, int(s.Size))
	case codeStore:
		m.storeMemory(v[s.A].Lo, v[s.B], int(s.Size))
	case codeOther:
		return m.runStatement(b.Stmts[i])
	default:
		v[s.To] = m.computeStep(s, &v[s.A], &v[s.B], &v[s.C])
	}
	return 0, JumpInvalid
}

// computeStep computes an operation on numbers directly, others by their function.
func (m *Machine) computeStep(s *Step, a, b, c *Value) Value {
	if r := computeFloat64(s.code, float64Of(a.Lo), float64Of(b.Lo)); r == r {
		return Value{math.Float64bits(r), a.Hi}
	}
	m.args[0], m.args[1], m.args[2], m.args[3] = *a, *b, *c, Value{}
	return m.table[s.Op](&m.args)
}

// computeFloat64 is arithmetic on numbers; a NaN leaves the result to the operation's
// function.
func computeFloat64(c stepCode, x, y float64) float64 {
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
