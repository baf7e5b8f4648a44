package smt

import (
	"fmt"
	"math"

	"github.com/aclements/go-z3/z3"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

var roundingModes = [...]z3.RoundingMode{
	symbolic.Nearest: z3.RoundToNearestEven, symbolic.Down: z3.RoundToNegative, symbolic.Up: z3.RoundToPositive,
	symbolic.TowardsZero: z3.RoundToZero,
}

// floatOperand is an operand as a number of Z3's floating point.
func (s *Solver) floatOperand(e *symbolic.Expr) z3.Float {
	if f, ok := s.floats[e]; ok {
		return f
	}
	sort := s.double
	if e.Bits == 32 {
		sort = s.single
	}
	f := s.bitVector(e).IEEEToFloat(sort)
	s.kept = append(s.kept, f)
	s.floats[e] = f
	return f
}

// quietBit and defaultNaN are x86's rules for NaN: the bit that makes a NaN quiet, and the
// NaN of an invalid operation.
func quietBit(bits int) uint64 {
	if bits == 32 {
		return 1 << 22
	}
	return 1 << 51
}

func defaultNaN(bits int) uint64 {
	if bits == 32 {
		return 0xffc00000
	}
	return 0xfff8000000000000
}

// ifThenElse is a if c holds, otherwise b.
func (s *Solver) ifThenElse(c z3.Bool, a, b z3.BV) z3.BV {
	return s.keepAlive(c.IfThenElse(a, b).(z3.BV))
}

// quietNaN is the result of an operation whose operand is NaN.
func (s *Solver) quietNaN(e *symbolic.Expr) z3.BV {
	return s.keepAlive(s.bitVector(e).Or(s.wordBits(quietBit(e.Bits), e.Bits)))
}

// floatResult returns the bits of a result; a NaN that no operand was becomes the default
// NaN.
func (s *Solver) floatResult(f z3.Float, bits int) z3.BV {
	s.kept = append(s.kept, f)
	return s.ifThenElse(f.IsNaN(), s.wordBits(defaultNaN(bits), bits), s.keepAlive(f.ToIEEEBV()))
}

// translateFloat translates a floating-point operation.
func (s *Solver) translateFloat(e *symbolic.Expr) z3.BV {
	old := s.ctx.SetRoundingMode(roundingModes[e.Mode])
	defer s.ctx.SetRoundingMode(old)
	switch e.Op {
	case symbolic.FAdd, symbolic.FSub, symbolic.FMul, symbolic.FDiv:
		a, b := s.floatOperand(e.A), s.floatOperand(e.B)
		r := s.floatResult(s.floatArithmetic(e.Op, a, b), e.Bits)
		return s.ifThenElse(a.IsNaN(), s.quietNaN(e.A), s.ifThenElse(b.IsNaN(), s.quietNaN(e.B), r))
	case symbolic.FSqrt:
		a := s.floatOperand(e.A)
		return s.ifThenElse(a.IsNaN(), s.quietNaN(e.A), s.floatResult(a.Sqrt(), e.Bits))
	case symbolic.FRound:
		a := s.floatOperand(e.A)
		return s.ifThenElse(a.IsNaN(), s.quietNaN(e.A), s.floatResult(a.Round(roundingModes[e.Mode]), e.Bits))
	case symbolic.FEq, symbolic.FLT, symbolic.FLE, symbolic.FUnordered:
		return s.truthToBit(s.compareFloats(e.Op, s.floatOperand(e.A), s.floatOperand(e.B)))
	case symbolic.FToF:
		return s.convertFloat(e)
	case symbolic.FToInt:
		return s.floatToInteger(e)
	case symbolic.IntToF:
		return s.keepAlive(s.bitVector(e.A).SToFloat(s.double).ToIEEEBV())
	default:
		panic(fmt.Sprintf("bug: %v is not translated", e.Op))
	}
}

func (s *Solver) floatArithmetic(op symbolic.Op, a, b z3.Float) z3.Float {
	switch op {
	case symbolic.FAdd:
		return a.Add(b)
	case symbolic.FSub:
		return a.Sub(b)
	case symbolic.FMul:
		return a.Mul(b)
	default:
		return a.Div(b)
	}
}

func (s *Solver) compareFloats(op symbolic.Op, a, b z3.Float) z3.Bool {
	switch op {
	case symbolic.FEq:
		return a.IEEEEq(b)
	case symbolic.FLT:
		return a.LT(b)
	case symbolic.FLE:
		return a.LE(b)
	default:
		return a.IsNaN().Or(b.IsNaN())
	}
}

// convertFloat converts between 32 and 64 bits. The significand of a NaN keeps its upper
// bits.
func (s *Solver) convertFloat(e *symbolic.Expr) z3.BV {
	a, f := s.bitVector(e.A), s.floatOperand(e.A)
	sort := s.single
	var nan z3.BV
	if e.Bits == 64 {
		sort = s.double
		nan = a.Extract(31, 31).Concat(s.wordBits(0x7ff, 11)).Concat(a.Extract(22, 0)).Concat(s.wordBits(0, 29))
	} else {
		nan = a.Extract(63, 63).Concat(s.wordBits(0xff, 8)).Concat(a.Extract(51, 29))
	}
	nan = s.keepAlive(nan.Or(s.wordBits(quietBit(e.Bits), e.Bits)))
	return s.ifThenElse(f.IsNaN(), nan, s.keepAlive(f.ToFloat(sort).ToIEEEBV()))
}

// floatToInteger gives the integer indefinite if the number does not fit.
func (s *Solver) floatToInteger(e *symbolic.Expr) z3.BV {
	rounded := s.floatOperand(e.A).Round(roundingModes[e.Mode])
	limit := math.Ldexp(1, e.Bits-1)
	low, high := s.ctx.FromFloat64(-limit, s.double), s.ctx.FromFloat64(limit, s.double)
	s.kept = append(s.kept, rounded, low, high)
	fits := rounded.GE(low).And(rounded.LT(high))
	return s.ifThenElse(fits, s.keepAlive(rounded.ToSBV(e.Bits)), s.wordBits(1<<(e.Bits-1), e.Bits))
}
