package smt_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// A square root by hand: 48841 is 221 squared, and no other number of 8 bits has that
// square.
func TestModel(t *testing.T) {
	p := symbolic.NewPool()
	x := p.Symbol("x", 8)
	square := p.Mul(p.ZeroExt(x, 16), p.ZeroExt(x, 16))
	s := smt.New(smt.DefaultLimit)
	s.Assert(p.Eq(square, p.Word(48841, 16)))
	if a := s.Check(); a != smt.Satisfiable {
		t.Fatal(a)
	}
	if v := s.Model()["x"].Lo; v != 221 {
		t.Errorf("the root is %d", v)
	}
	s.Push()
	s.Assert(p.Not(p.Eq(x, p.Word(221, 8))))
	if a := s.Check(); a != smt.Unsatisfiable {
		t.Errorf("another root: %v", a)
	}
	s.Pop()
	if a := s.Check(); a != smt.Satisfiable {
		t.Errorf("back: %v", a)
	}
}

func TestValid(t *testing.T) {
	p := symbolic.NewPool()
	x, y := p.Symbol("x", 32), p.Symbol("y", 32)
	// De Morgan's law is valid; x < y implies x+1 < y+1 is not, since bit vectors wrap.
	if a, _ := smt.Valid(p.Eq(p.Not(p.And(x, y)), p.Or(p.Not(x), p.Not(y))), smt.DefaultLimit); a != smt.Unsatisfiable {
		t.Errorf("De Morgan: %v", a)
	}
	a, model := smt.Valid(p.Or(p.Not(p.SLT(x, y)), p.SLT(p.Add(x, p.Word(1, 32)), p.Add(y, p.Word(1, 32)))), smt.DefaultLimit)
	if a != smt.Satisfiable || int32(model["y"].Lo) != 1<<31-1 {
		t.Errorf("%v, %v", a, model)
	}
}

// Invariant 1.
func TestAnswersRepeat(t *testing.T) {
	var first map[string]symbolic.Value
	for range 3 {
		p := symbolic.NewPool()
		s := smt.New(smt.DefaultLimit)
		x, y := p.Symbol("x", 32), p.Symbol("y", 32)
		s.Assert(p.ULT(p.Mul(x, y), p.Word(1000, 32)))
		s.Assert(p.ULT(p.Word(70000, 32), x))
		s.Assert(p.ULT(p.Word(70000, 32), p.Xor(y, x)))
		if a := s.Check(); a != smt.Satisfiable {
			t.Fatal(a)
		}
		m := s.Model()
		if first == nil {
			first = m
		}
		if m["x"] != first["x"] || m["y"] != first["y"] {
			t.Errorf("%v, then %v", first, m)
		}
	}
}

// A limit ends a search, always at the same point.
func TestLimit(t *testing.T) {
	p := symbolic.NewPool()
	x, y := p.Symbol("x", 64), p.Symbol("y", 64)
	s := smt.New(20_000)
	wide := p.Mul(p.ZeroExt(x, 128), p.ZeroExt(y, 128))
	s.Assert(p.Eq(wide, p.Const(symbolic.Value{Lo: 0x123456789abcdef1, Hi: 0x0fedcba987654321}, 128)))
	s.Assert(p.ULT(p.Word(1, 64), x))
	s.Assert(p.ULT(p.Word(1, 64), y))
	if a := s.Check(); a != smt.Unknown {
		t.Errorf("%v", a)
	}
}
