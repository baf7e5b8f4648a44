package smt

import (
	"fmt"
	"math"

	"github.com/aclements/go-z3/z3"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

var modes = [...]z3.RoundingMode{
	symbolic.Nearest: z3.RoundToNearestEven, symbolic.Down: z3.RoundToNegative, symbolic.Up: z3.RoundToPositive,
	symbolic.TowardsZero: z3.RoundToZero,
}

// number as Z3's floating point: the bits of an operand.
func (s *Solver) asFloat(e *symbolic.Expr) z3.Float {
	if f, ok := s.floats[e]; ok {
		return f
	}
	sort := s.double
	if e.Bits == 32 {
		sort = s.single
	}
	f := s.bits(e).IEEEToFloat(sort)
	s.kept = append(s.kept, f)
	s.floats[e] = f
	return f
}

// What x86 makes of numbers that are none: the quiet bit, and the default.
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

// choose is ite.
func (s *Solver) choose(c z3.Bool, a, b z3.BV) z3.BV { return s.keep(c.IfThenElse(a, b).(z3.BV)) }

// quiet is an operand that is NaN as a result.
func (s *Solver) quiet(e *symbolic.Expr) z3.BV {
	return s.keep(s.bits(e).Or(s.number(quietBit(e.Bits), e.Bits)))
}

// result is the bits of what was computed; of NaN, which no operand is, the
// default.
func (s *Solver) result(f z3.Float, bits int) z3.BV {
	s.kept = append(s.kept, f)
	return s.choose(f.IsNaN(), s.number(defaultNaN(bits), bits), s.keep(f.ToIEEEBV()))
}

// float translates an operation of floating point.
func (s *Solver) float(e *symbolic.Expr) z3.BV {
	old := s.ctx.SetRoundingMode(modes[e.Mode])
	defer s.ctx.SetRoundingMode(old)
	switch e.Op {
	case symbolic.FAdd, symbolic.FSub, symbolic.FMul, symbolic.FDiv:
		a, b := s.asFloat(e.A), s.asFloat(e.B)
		r := s.result(s.arithmetic(e.Op, a, b), e.Bits)
		return s.choose(a.IsNaN(), s.quiet(e.A), s.choose(b.IsNaN(), s.quiet(e.B), r))
	case symbolic.FSqrt:
		a := s.asFloat(e.A)
		return s.choose(a.IsNaN(), s.quiet(e.A), s.result(a.Sqrt(), e.Bits))
	case symbolic.FRound:
		a := s.asFloat(e.A)
		return s.choose(a.IsNaN(), s.quiet(e.A), s.result(a.Round(modes[e.Mode]), e.Bits))
	case symbolic.FEq, symbolic.FLT, symbolic.FLE, symbolic.FUnordered:
		return s.truth(s.compareFloats(e.Op, s.asFloat(e.A), s.asFloat(e.B)))
	case symbolic.FToF:
		return s.resize(e)
	case symbolic.FToInt:
		return s.toInteger(e)
	case symbolic.IntToF:
		return s.keep(s.bits(e.A).SToFloat(s.double).ToIEEEBV())
	default:
		panic(fmt.Sprintf("bug: %v is not translated", e.Op))
	}
}

func (s *Solver) arithmetic(op symbolic.Op, a, b z3.Float) z3.Float {
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

// resize converts between 32 and 64 bits. The significand of NaN keeps its upper
// bits.
func (s *Solver) resize(e *symbolic.Expr) z3.BV {
	a, f := s.bits(e.A), s.asFloat(e.A)
	sort := s.single
	var nan z3.BV
	if e.Bits == 64 {
		sort = s.double
		nan = a.Extract(31, 31).Concat(s.number(0x7ff, 11)).Concat(a.Extract(22, 0)).Concat(s.number(0, 29))
	} else {
		nan = a.Extract(63, 63).Concat(s.number(0xff, 8)).Concat(a.Extract(51, 29))
	}
	nan = s.keep(nan.Or(s.number(quietBit(e.Bits), e.Bits)))
	return s.choose(f.IsNaN(), nan, s.keep(f.ToFloat(sort).ToIEEEBV()))
}

// toInteger is the integer indefinite if the number does not fit.
func (s *Solver) toInteger(e *symbolic.Expr) z3.BV {
	rounded := s.asFloat(e.A).Round(modes[e.Mode])
	limit := math.Ldexp(1, e.Bits-1)
	low, high := s.ctx.FromFloat64(-limit, s.double), s.ctx.FromFloat64(limit, s.double)
	s.kept = append(s.kept, rounded, low, high)
	fits := rounded.GE(low).And(rounded.LT(high))
	return s.choose(fits, s.keep(rounded.ToSBV(e.Bits)), s.number(1<<(e.Bits-1), e.Bits))
}
