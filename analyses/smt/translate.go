package smt

import (
	"fmt"
	"math/big"

	"github.com/aclements/go-z3/z3"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

func (s *Solver) wordBits(x uint64, bits int) z3.BV {
	return s.constantBits(symbolic.Value{Lo: x}, bits)
}

func (s *Solver) constantBits(v symbolic.Value, bits int) z3.BV {
	x := new(big.Int).SetUint64(v.Hi)
	x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(v.Lo))
	return s.keepAlive(s.ctx.FromBigInt(x, s.ctx.BVSort(bits)).(z3.BV))
}

func (s *Solver) keepAlive(b z3.BV) z3.BV {
	s.kept = append(s.kept, b)
	return b
}

// truthToBit is a Boolean as a number of one bit.
func (s *Solver) truthToBit(b z3.Bool) z3.BV {
	return s.keepAlive(b.IfThenElse(s.wordBits(1, 1), s.wordBits(0, 1)).(z3.BV))
}

// bitToTruth is a number of one bit as a Boolean.
func (s *Solver) bitToTruth(e *symbolic.Expr) z3.Bool {
	b := s.bitVector(e).Eq(s.wordBits(1, 1))
	s.kept = append(s.kept, b)
	return b
}

// bitVector is an expression as a bit vector of Z3.
func (s *Solver) bitVector(e *symbolic.Expr) z3.BV {
	if b, ok := s.translations[e]; ok {
		return b
	}
	b := s.keepAlive(s.translateExpr(e))
	s.translations[e] = b
	return b
}

func (s *Solver) translateExpr(e *symbolic.Expr) z3.BV {
	switch e.Op {
	case symbolic.Const:
		return s.constantBits(e.Value, e.Bits)
	case symbolic.Symbol:
		return s.symbolConstant(e)
	case symbolic.Not:
		return s.bitVector(e.A).Not()
	case symbolic.Extract:
		return s.bitVector(e.A).Extract(e.Low+e.Bits-1, e.Low)
	case symbolic.ZeroExt:
		return s.bitVector(e.A).ZeroExtend(e.Bits - e.A.Bits)
	case symbolic.SignExt:
		return s.bitVector(e.A).SignExtend(e.Bits - e.A.Bits)
	case symbolic.Ite:
		return s.bitToTruth(e.A).IfThenElse(s.bitVector(e.B), s.bitVector(e.C)).(z3.BV)
	case symbolic.Clz, symbolic.Ctz:
		return s.countZeros(e)
	}
	if e.Op >= symbolic.FAdd {
		return s.translateFloat(e)
	}
	return s.translateBinary(e)
}

func (s *Solver) symbolConstant(e *symbolic.Expr) z3.BV {
	if n, ok := s.sizes[e.Name]; ok && n != e.Bits {
		panic(fmt.Sprintf("bug: symbol %s has %d and %d bits", e.Name, n, e.Bits))
	}
	b, ok := s.symbols[e.Name]
	if !ok {
		b = s.keepAlive(s.ctx.BVConst(e.Name, e.Bits))
		s.symbols[e.Name], s.sizes[e.Name] = b, e.Bits
	}
	return b
}

func (s *Solver) translateBinary(e *symbolic.Expr) z3.BV {
	a, b := s.bitVector(e.A), s.bitVector(e.B)
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
	return s.truthToBit(s.translateComparison(e.Op, a, b))
}

func (s *Solver) translateComparison(op symbolic.Op, a, b z3.BV) z3.Bool {
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

// countZeros counts zeros: a chain of conditionals in which the set bit nearest to the
// counted end decides last.
func (s *Solver) countZeros(e *symbolic.Expr) z3.BV {
	a, n := s.bitVector(e.A), e.Bits
	result := s.wordBits(uint64(n), n)
	one := s.wordBits(1, 1)
	for i := range n {
		at := i // from the lowest bit for Clz
		zeros := n - 1 - i
		if e.Op == symbolic.Ctz {
			at, zeros = n-1-i, n-1-i
		}
		result = s.keepAlive(a.Extract(at, at).Eq(one).IfThenElse(s.wordBits(uint64(zeros), n), result).(z3.BV))
	}
	return result
}
