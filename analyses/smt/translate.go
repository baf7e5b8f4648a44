package smt

import (
	"fmt"
	"math/big"

	"github.com/aclements/go-z3/z3"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

func (s *Solver) number(x uint64, bits int) z3.BV { return s.constant(symbolic.Value{Lo: x}, bits) }

func (s *Solver) constant(v symbolic.Value, bits int) z3.BV {
	x := new(big.Int).SetUint64(v.Hi)
	x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(v.Lo))
	return s.keep(s.ctx.FromBigInt(x, s.ctx.BVSort(bits)).(z3.BV))
}

func (s *Solver) keep(b z3.BV) z3.BV {
	s.kept = append(s.kept, b)
	return b
}

// truth is a truth as a number of one bit.
func (s *Solver) truth(b z3.Bool) z3.BV {
	return s.keep(b.IfThenElse(s.number(1, 1), s.number(0, 1)).(z3.BV))
}

// holds is a number of one bit as a truth.
func (s *Solver) holds(e *symbolic.Expr) z3.Bool {
	b := s.bits(e).Eq(s.number(1, 1))
	s.kept = append(s.kept, b)
	return b
}

// bits translates an expression.
func (s *Solver) bits(e *symbolic.Expr) z3.BV {
	if b, ok := s.known[e]; ok {
		return b
	}
	b := s.keep(s.translate(e))
	s.known[e] = b
	return b
}

func (s *Solver) translate(e *symbolic.Expr) z3.BV {
	switch e.Op {
	case symbolic.Const:
		return s.constant(e.Value, e.Bits)
	case symbolic.Symbol:
		return s.symbol(e)
	case symbolic.Not:
		return s.bits(e.A).Not()
	case symbolic.Extract:
		return s.bits(e.A).Extract(e.Low+e.Bits-1, e.Low)
	case symbolic.ZeroExt:
		return s.bits(e.A).ZeroExtend(e.Bits - e.A.Bits)
	case symbolic.SignExt:
		return s.bits(e.A).SignExtend(e.Bits - e.A.Bits)
	case symbolic.Ite:
		return s.holds(e.A).IfThenElse(s.bits(e.B), s.bits(e.C)).(z3.BV)
	case symbolic.Clz, symbolic.Ctz:
		return s.count(e)
	}
	if e.Op >= symbolic.FAdd {
		return s.float(e)
	}
	return s.binary(e)
}

func (s *Solver) symbol(e *symbolic.Expr) z3.BV {
	if n, ok := s.sizes[e.Name]; ok && n != e.Bits {
		panic(fmt.Sprintf("bug: symbol %s has %d and %d bits", e.Name, n, e.Bits))
	}
	b, ok := s.symbols[e.Name]
	if !ok {
		b = s.keep(s.ctx.BVConst(e.Name, e.Bits))
		s.symbols[e.Name], s.sizes[e.Name] = b, e.Bits
	}
	return b
}

func (s *Solver) binary(e *symbolic.Expr) z3.BV {
	a, b := s.bits(e.A), s.bits(e.B)
	switch e.Op {
	case symbolic.Concat:
		return a.Concat(b)
	case symbolic.And:
		return a.And(b)
	case symbolic.Or:
		return a.Or(b)
	case symbolic.Xor:
		return a.Xor(b)
	case symbolic.Add:
		return a.Add(b)
	case symbolic.Sub:
		return a.Sub(b)
	case symbolic.Mul:
		return a.Mul(b)
	case symbolic.UDiv:
		return a.UDiv(b)
	case symbolic.URem:
		return a.URem(b)
	case symbolic.SDiv:
		return a.SDiv(b)
	case symbolic.SRem:
		return a.SRem(b)
	case symbolic.Shl:
		return a.Lsh(b)
	case symbolic.LShr:
		return a.URsh(b)
	case symbolic.AShr:
		return a.SRsh(b)
	}
	return s.truth(s.comparison(e.Op, a, b))
}

func (s *Solver) comparison(op symbolic.Op, a, b z3.BV) z3.Bool {
	switch op {
	case symbolic.Eq:
		return a.Eq(b)
	case symbolic.ULT:
		return a.ULT(b)
	case symbolic.ULE:
		return a.ULE(b)
	case symbolic.SLT:
		return a.SLT(b)
	case symbolic.SLE:
		return a.SLE(b)
	default:
		panic(fmt.Sprintf("bug: %v is not translated", op))
	}
}

// count counts zeros: from the far end on, each bit that is set decides anew.
func (s *Solver) count(e *symbolic.Expr) z3.BV {
	a, n := s.bits(e.A), e.Bits
	result := s.number(uint64(n), n)
	one := s.number(1, 1)
	for i := range n {
		at := i // from the lowest for Clz
		zeros := n - 1 - i
		if e.Op == symbolic.Ctz {
			at, zeros = n-1-i, n-1-i
		}
		result = s.keep(a.Extract(at, at).Eq(one).IfThenElse(s.number(uint64(zeros), n), result).(z3.BV))
	}
	return result
}
