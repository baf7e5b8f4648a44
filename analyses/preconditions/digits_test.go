package preconditions_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// digitTerms are the constraints of code that reads a number of some digits and compares it: digits are digits, the
// byte after them is none, intermediate numbers are compared as against an overflow, and the number, perhaps negated or
// scaled, is compared with limits.
func digitTerms(p *symbolic.Pool, r *rand.Rand, digits int) []*symbolic.Expr {
	bits := []int{16, 32, 64}[r.IntN(3)]
	number := p.Word(0, bits)
	word := func(x int) *symbolic.Expr { return p.Word(uint64(x), bits) }
	var terms []*symbolic.Expr
	isDigit := func(b *symbolic.Expr) *symbolic.Expr {
		return p.ULT(p.Sub(p.ZeroExt(b, 32), p.Word('0', 32)), p.Word(10, 32))
	}
	for i := range digits {
		b := p.Symbol(byteNames[i], 8)
		terms = append(terms, isDigit(b))
		if r.IntN(3) == 0 {
			terms = append(terms, p.SLT(number, word(1000)))
		}
		digit := p.Sub(p.ZeroExt(b, bits), word('0'))
		switch r.IntN(3) {
		case 0:
			number = p.Add(p.Mul(number, word(10)), digit)
		case 1: // (n + 4n) * 2 + b - 48
			number = p.Sub(p.Add(p.Shl(p.Add(number, p.Shl(number, word(2))), word(1)), p.ZeroExt(b, bits)), word('0'))
		default: // the digit is computed in 8 bits
			number = p.Add(p.Mul(number, word(10)), p.ZeroExt(p.Sub(b, p.Word('0', 8)), bits))
		}
	}
	terms = append(terms, p.Not(isDigit(p.Symbol(byteNames[digits], 8))))
	if r.IntN(4) == 0 {
		number = p.Neg(number)
	}
	if r.IntN(4) == 0 {
		number = p.Mul(number, word(4))
	}
	wide := p.SignExt(number, 64)
	limit := r.IntN(1500) - 200
	terms = append(terms, []*symbolic.Expr{
		p.SLT(wide, p.Word(uint64(limit), 64)), p.Eq(number, word(limit)), p.ULT(number, word(limit)), p.Not(p.Eq(number, word(limit))),
	}[r.IntN(4)])
	if r.IntN(3) == 0 {
		terms = append(terms, p.Not(p.Eq(p.Symbol(byteNames[0], 8), p.Word('0', 8))))
	}
	if r.IntN(3) == 0 {
		terms = append(terms, p.Eq(p.Div(symbolic.URem, number, word(2)), word(r.IntN(2))))
	}
	return terms
}

var byteNames = []string{"stdin[3]", "stdin[4]", "stdin[5]", "stdin[6]"}

// Terms about the digits of a number and terms about the number decide all inputs alike.
func TestNumbersDecideAsDigits(t *testing.T) {
	r, named := rand.New(rand.NewPCG(3, 33)), 0
	for range 60 {
		p, digits := symbolic.NewPool(), 2+r.IntN(2)
		terms := digitTerms(p, r, digits)
		plain := &preconditions.Set{Terms: terms}
		var values symbolic.Assignment
		inputs := digitStrings(digits)
		check := checker(t, plain)
		for _, in := range inputs {
			if failed, _ := check.Check(stdinOf(in)); failed < 0 {
				values = func(name string) (symbolic.Value, bool) {
					for i, n := range byteNames {
						if n == name {
							return symbolic.Value{Lo: uint64(in[3+i])}, true
						}
					}
					return symbolic.Value{}, false
				}
				break
			}
		}
		if values == nil {
			continue
		}
		s := &preconditions.Set{Terms: terms}
		with, complete := s.NameDigits(p, values)
		s.Terms = preconditions.Simplify(p, s.Terms, with, preconditions.Limits{Steps: preconditions.DefaultLimit})
		complete()
		if strings.Contains(s.String(), "number(stdin[3:") {
			named++
		}
		again, err := preconditions.Parse(s.Lines(), symbolic.NewPool())
		if err != nil {
			t.Fatal(err)
		}
		simple := checker(t, again)
		for _, in := range inputs {
			want, _ := check.Check(stdinOf(in))
			if got, _ := simple.Check(stdinOf(in)); (got < 0) != (want < 0) {
				t.Fatalf("%q: %v, want %v\n%s\n%s", in, got < 0, want < 0, plain, s)
			}
		}
	}
	if named < 20 {
		t.Errorf("%d sets have a number", named)
	}
}

func checker(t *testing.T, s *preconditions.Set) *preconditions.Checker {
	t.Helper()
	c, err := preconditions.NewChecker(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// digitStrings returns all texts of three letters, some digits or near digits, and one more.
func digitStrings(digits int) []string {
	list := []string{"n: "}
	for i := range digits + 1 {
		letters := "0123456789/: -"
		if i == digits {
			letters = "5\nx"
		}
		var longer []string
		for _, s := range list {
			for _, b := range letters {
				longer = append(longer, s+string(b))
			}
		}
		list = longer
	}
	return list
}

func stdinOf(text string) *preconditions.Input {
	return &preconditions.Input{Open: func(string) preconditions.Content { return strings.NewReader(text) }}
}
