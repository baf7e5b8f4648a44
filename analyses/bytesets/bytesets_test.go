package bytesets

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

func number(v uint64) symbolic.Value { return symbolic.Value{Lo: v} }

// input is an assignment of in[0], in[1] and so on.
func input(bytes []byte) symbolic.Assignment {
	return func(name string) (symbolic.Value, bool) {
		for i, b := range bytes {
			if name == fmt.Sprintf("in[%d]", i) {
				return number(uint64(b)), true
			}
		}
		return symbolic.Value{}, false
	}
}

func TestDigitsAndUnusedBytes(t *testing.T) {
	p := symbolic.NewPool()
	at := func(i int) *symbolic.Expr { return p.Symbol(fmt.Sprintf("in[%d]", i), 8) }
	f := New(input([]byte("7x0")))
	f.Add(p.ULE(at(0), p.Word('9', 8)))
	f.Add(p.ULE(p.Word('0', 8), at(0)))
	if s := f.Set("in[0]"); s.Len() != 10 || !s.Has('0') || !s.Has('9') || s.Has('a') || s.First() != '0' {
		t.Errorf("a digit has %d values, from %q on", s.Len(), s.First())
	}
	if s := f.Set("in[1]"); s != All() {
		t.Errorf("a byte without terms has %d values", s.Len())
	}
	// A comparison of two bytes keeps each of them; one of truths on single bytes keeps the truths.
	f.Add(p.Eq(p.And(p.Eq(at(1), p.Word('x', 8)), p.ULT(at(2), p.Word('5', 8))), p.Bool(true)))
	if s := f.Set("in[1]"); s != Only('x') {
		t.Errorf("x has %d values", s.Len())
	}
	if s := f.Set("in[2]"); s.Len() != '5' {
		t.Errorf("0 has %d values, want those below '5'", s.Len())
	}
	if !f.Complete() {
		t.Error("incomplete")
	}
	f.Add(p.Eq(p.Symbol("other", 8), p.Word(1, 8)))
	if f.Complete() {
		t.Error("complete with a symbol whose value is not known")
	}
}

// All inputs of the sets satisfy random terms that hold for the recorded input, and the recorded input is one of them.
func TestSetsAreSufficient(t *testing.T) {
	const bytes = 4
	for seed := range uint64(testsize.Runs(50, 500, 5000)) {
		rnd := rand.New(rand.NewPCG(seed, 21))
		p := symbolic.NewPool()
		ops := []func(a, b *symbolic.Expr) *symbolic.Expr{p.And, p.Or, p.Xor, p.Add, p.Sub, p.Mul, p.Shl, p.LShr}
		tests := []func(a, b *symbolic.Expr) *symbolic.Expr{p.Eq, p.ULT, p.ULE, p.SLT, p.SLE}
		recorded := make([]byte, bytes)
		for i := range recorded {
			recorded[i] = byte(rnd.Uint32())
		}
		var random func(depth int) *symbolic.Expr
		random = func(depth int) *symbolic.Expr {
			switch {
			case depth == 0 && rnd.IntN(3) == 0:
				return p.Word(uint64(rnd.IntN(256)), 8)
			case depth == 0:
				return p.Symbol(fmt.Sprintf("in[%d]", rnd.IntN(bytes)), 8)
			}
			return ops[rnd.IntN(len(ops))](random(depth-1), random(depth-1))
		}
		f := New(input(recorded))
		var terms []*symbolic.Expr
		for range 3 {
			e := tests[rnd.IntN(len(tests))](random(rnd.IntN(3)), random(rnd.IntN(3)))
			if v, err := symbolic.NewEvaluator(input(recorded)).Value(e); err != nil || v.Lo == 0 {
				continue // it does not hold
			}
			terms = append(terms, e)
			f.Add(e)
		}
		for i, b := range recorded {
			if s := f.Set(fmt.Sprintf("in[%d]", i)); !s.Has(b) {
				t.Fatalf("seed %d: byte %d is not in its set", seed, i)
			}
		}
		for range 50 {
			chosen := make([]byte, bytes)
			for i := range chosen {
				s := f.Set(fmt.Sprintf("in[%d]", i))
				for chosen[i] = byte(rnd.Uint32()); !s.Has(chosen[i]); chosen[i]++ {
				}
			}
			for _, e := range terms {
				if v, err := symbolic.NewEvaluator(input(chosen)).Value(e); err != nil || v.Lo != 1 {
					t.Fatalf("seed %d: %v does not hold for %v, recorded %v", seed, e, chosen, recorded)
				}
			}
		}
	}
}
