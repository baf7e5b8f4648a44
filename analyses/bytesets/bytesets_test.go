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

// A small counter that is less than its successor, or whose successor is more than 1, may have nearly all values of its lowest byte.
func TestSmallCounters(t *testing.T) {
	for _, n := range []byte{1, 2, 3, 4, 7, 64, 127, 254} {
		p := symbolic.NewPool()
		f := New(input([]byte{n, 0, 0, 0}))
		word := p.Symbol("in[0]", 8)
		for i := 1; i < 4; i++ {
			word = p.Concat(p.Symbol(fmt.Sprintf("in[%d]", i), 8), word)
		}
		next := p.Add(word, p.Word(1, 32))
		f.Add(p.SLT(word, next))
		f.Add(p.Not(p.Eq(p.Extract(next, 1, 31), p.Word(0, 31))))
		if s := f.Set("in[0]"); s.Len() < 250 || !s.Has(n) || s.Has(0) {
			t.Errorf("%d: the lowest byte has %d values", n, s.Len())
		}
		if s := f.Set("in[3]"); s != Only(0) {
			t.Errorf("%d: the highest byte has %d values", n, s.Len())
		}
	}
}

// All inputs of the sets satisfy random terms that hold for the recorded input, and the recorded input is one of them.
func TestSetsAreSufficient(t *testing.T) {
	const bytes = 4
	for seed := range uint64(testsize.Runs(50, 500, 5000)) {
		rnd := rand.New(rand.NewPCG(seed, 21))
		p := symbolic.NewPool()
		tests := []func(a, b *symbolic.Expr) *symbolic.Expr{p.Eq, p.ULT, p.ULE, p.SLT, p.SLE}
		recorded := make([]byte, bytes)
		for i := range recorded {
			recorded[i] = byte(rnd.Uint32() >> (8 * rnd.IntN(4)))
		}
		random := randomExpressions(p, rnd, bytes)
		f := New(input(recorded))
		var terms []*symbolic.Expr
		for range 3 {
			bits := []int{8, 32, 64, 128}[rnd.IntN(4)]
			e := tests[rnd.IntN(len(tests))](random(rnd.IntN(4), bits), random(rnd.IntN(4), bits))
			if v, err := symbolic.NewEvaluator(input(recorded)).Value(e); err != nil {
				t.Fatal(err)
			} else if v.Lo == 0 {
				e = p.Not(e)
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

// randomExpressions returns a function that makes an expression with a number of levels of operations and a number of bits.
func randomExpressions(p *symbolic.Pool, rnd *rand.Rand, bytes int) func(depth, bits int) *symbolic.Expr {
	type binary = func(a, b *symbolic.Expr) *symbolic.Expr
	ops := []binary{p.And, p.Or, p.Xor, p.Add, p.Sub, p.Mul, p.Shl, p.LShr, p.AShr}
	var random func(depth, bits int) *symbolic.Expr
	leaf := func(bits int) *symbolic.Expr {
		e := p.Symbol(fmt.Sprintf("in[%d]", rnd.IntN(bytes)), 8)
		switch {
		case rnd.IntN(3) == 0:
			return p.Word(rnd.Uint64()>>rnd.IntN(64), bits)
		case bits < 8:
			return p.Extract(e, rnd.IntN(9-bits), bits)
		case bits == 8:
			return e
		case rnd.IntN(2) == 0 && bits%8 == 0:
			return p.Concat(random(0, bits-8), e)
		}
		return p.ZeroExt(e, bits)
	}
	random = func(depth, bits int) *symbolic.Expr {
		if depth == 0 {
			return leaf(bits)
		}
		less := func(bits int) *symbolic.Expr { return random(depth-1, bits) }
		switch n := rnd.IntN(18); {
		case n == 9:
			return p.Not(less(bits))
		case n == 10 && bits > 1:
			low := 1 + rnd.IntN(bits-1)
			return p.Concat(less(bits-low), less(low))
		case n == 11 && bits < 128:
			wide := bits + 1 + rnd.IntN(128-bits)
			return p.Extract(less(wide), rnd.IntN(wide-bits+1), bits)
		case n == 12 && bits > 1:
			return p.SignExt(less(1+rnd.IntN(bits-1)), bits)
		case n == 13 && bits > 1:
			return p.ZeroExt(less(1+rnd.IntN(bits-1)), bits)
		case n == 14:
			return p.Ite(less(1), less(bits), less(bits))
		case n == 15 && bits >= 8:
			return p.Count([]symbolic.Op{symbolic.Ctz, symbolic.Clz}[rnd.IntN(2)], less(bits))
		case n == 16 && bits <= 64:
			return p.Div([]symbolic.Op{symbolic.UDiv, symbolic.SRem}[rnd.IntN(2)], less(bits), less(bits))
		case n == 17 && bits == 1:
			return []binary{p.Eq, p.ULT, p.ULE, p.SLT, p.SLE}[rnd.IntN(5)](less(32), less(32))
		default:
			return ops[n%len(ops)](less(bits), less(bits))
		}
	}
	return random
}

// Of what decides a term no more is kept than is needed for it.
func TestWhatDecidesIsKept(t *testing.T) {
	p := symbolic.NewPool()
	at := func(i int) *symbolic.Expr { return p.Symbol(fmt.Sprintf("in[%d]", i), 8) }
	differs := func(i int, v byte) *symbolic.Expr { return p.Not(p.Eq(at(i), p.Word(uint64(v), 8))) }
	for _, x := range []struct {
		name, recorded string
		term           *symbolic.Expr
		lens           [4]int // of the sets
	}{
		{
			"of bytes before the end all, of the others none", "ab\nc",
			p.Eq(p.Count(symbolic.Ctz, p.Concat(p.Not(differs(3, 10)), p.Concat(p.Not(differs(2, 10)), p.Concat(p.Not(differs(1, 10)), p.Not(differs(0, 10)))))), p.Word(2, 4)),
			[4]int{255, 255, 1, 256},
		},
		{
			"a text that differs in its first byte", "xbcd",
			p.Not(p.Eq(p.Concat(p.Concat(at(3), at(2)), p.Concat(at(1), at(0))), p.Word('a'|'b'<<8|'c'<<16|'d'<<24, 32))),
			[4]int{255, 256, 256, 256},
		},
		{
			"a number below a limit by its second byte", "\x05\x03\x00\x00",
			p.ULT(p.Concat(p.Concat(at(3), at(2)), p.Concat(at(1), at(0))), p.Word(0x401, 32)),
			[4]int{256, 4, 1, 1},
		},
		{
			"one of several is false", "abcd",
			p.Not(p.And(differs(0, 'x'), p.And(differs(1, 'b'), differs(2, 'y')))),
			[4]int{256, 1, 256, 256},
		},
	} {
		f := New(input([]byte(x.recorded)))
		f.Add(x.term)
		for i, want := range x.lens {
			if s := f.Set(fmt.Sprintf("in[%d]", i)); s.Len() != want {
				t.Errorf("%s: byte %d has %d values, want %d", x.name, i, s.Len(), want)
			}
		}
	}
}
