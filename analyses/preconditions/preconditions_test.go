package preconditions_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// atoi is a symbol for the number in an argument.
func atoi(s *preconditions.Set, p *symbolic.Pool, n int) *symbolic.Expr {
	input := fmt.Sprintf("argv[%d]", n)
	name := "atoi(" + input + ")"
	s.Derived[name] = &concolic.Derived{Summary: concolic.Summary{Function: "atoi", Result: "number", Bits: 32}, Input: input}
	return p.Symbol(name, 32)
}

// figure4 has the branches of the slice of PEREGRINE's figure 4, in execution order: L3
// (both halves), L4 twice, L7.
func figure4() (*preconditions.Set, *symbolic.Pool) {
	p := symbolic.NewPool()
	s := &preconditions.Set{Args: 4, Derived: map[string]*concolic.Derived{}}
	threads, size, add := atoi(s, p, 1), atoi(s, p, 2), atoi(s, p, 3)
	s.Terms = []*symbolic.Expr{
		p.SLT(p.Word(0, 32), threads), p.SLE(threads, size), p.SLT(p.Word(1, 32), threads), p.SLT(threads, p.Word(3, 32)),
		p.Not(p.Eq(add, p.Word(1, 32))),
	}
	return s, p
}

func recorded(values map[string]uint64) symbolic.Assignment {
	return func(name string) (symbolic.Value, bool) { v, ok := values[name]; return symbolic.Value{Lo: v}, ok }
}

var substitutePins = recorded(map[string]uint64{"atoi(argv[1])": 2, "atoi(argv[2])": 2, "atoi(argv[3])": 0})

// PEREGRINE's figure 5.
func TestFigure5(t *testing.T) {
	s, p := figure4()
	s.Terms = preconditions.Simplify(p, s.Terms, substitutePins, preconditions.Limits{Steps: preconditions.DefaultLimit})
	const want = "atoi(argv[1]) ≤ atoi(argv[2]) ∧ atoi(argv[1]) = 2 ∧ atoi(argv[3]) ≠ 1"
	if got := s.String(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TERN's loop (section 7.3): of {0 ≠ n, ..., 10 = n} the last is left.
func TestLoopCount(t *testing.T) {
	p := symbolic.NewPool()
	n := p.Symbol("argv[1][0]", 8)
	var terms []*symbolic.Expr
	for i := range uint64(10) {
		terms = append(terms, p.Not(p.Eq(n, p.Word(i, 8))))
	}
	terms = append(terms, p.Eq(n, p.Word(10, 8)))
	got := preconditions.Simplify(p, terms, recorded(map[string]uint64{"argv[1][0]": 10}), preconditions.Limits{Steps: preconditions.DefaultLimit})
	if !slices.Equal(got, terms[10:]) {
		t.Errorf("%v", got)
	}
}

// Invariant 3, and the inputs that figure 5 admits: those in the paper, with the failed
// term for the others.
func TestChecker(t *testing.T) {
	s, p := figure4()
	s.Terms = preconditions.Simplify(p, s.Terms, substitutePins, preconditions.Limits{Steps: preconditions.DefaultLimit})
	again, err := preconditions.Parse(s.Lines(), symbolic.NewPool())
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []*preconditions.Set{s, again} {
		c, err := preconditions.NewChecker(set)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			args   []string
			failed int
			shape  bool
		}{
			{[]string{"x", "2", "2", "0"}, -1, true},
			{[]string{"x", "2", "1000", "8"}, -1, true},
			{[]string{"x", " +2x", "0002", ""}, -1, true},
			{[]string{"x", "3", "1000", "8"}, 1, true},
			{[]string{"x", "2", "1", "8"}, 0, true},
			{[]string{"x", "2", "-5", "8"}, 0, true},
			{[]string{"x", "2", "1000", "1"}, 2, true},
			{[]string{"x", "2", "1000"}, 0, false},
		} {
			failed, shape := c.Check(&preconditions.Input{Args: x.args})
			if failed != x.failed || shape != x.shape {
				t.Errorf("%q: term %d, %v; want %d, %v", x.args, failed, shape, x.failed, x.shape)
			}
		}
	}
}

type content []byte

func (c content) ReadAt(p []byte, at int64) (int, error) { return bytes.NewReader(c).ReadAt(p, at) }
func (c content) Size() int64                            { return int64(len(c)) }

// Bytes of strings are printed as strings, and an input does not satisfy terms about data
// that it lacks.
func TestBytes(t *testing.T) {
	p := symbolic.NewPool()
	is := func(name string, b byte) *symbolic.Expr { return p.Eq(p.Symbol(name, 8), p.Word(uint64(b), 8)) }
	s := &preconditions.Set{Args: 2, Env: []string{"A"}, Terms: []*symbolic.Expr{
		is("argv[1][0]", '-'), is("argv[1][1]", 'b'), is("argv[1][2]", 0), is("env[A][1]", '"'),
		is("file(argv[1])[4]", 'x'), is("file(argv[1])[5]", '\n'), p.ULT(p.Symbol("size(stdin)", 64), p.Word(9, 64)),
	}}
	const want = `argv[1] = "-b" ∧ env[A][1] = '"' ∧ file(argv[1])[4:6] = "x\n" ∧ size(stdin) <u 9`
	if s.String() != want {
		t.Errorf("%s\nwant %s", s, want)
	}
	c, err := preconditions.NewChecker(s)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]content{"argv[1]": content("....x\n"), "stdin": content("12345678")}
	in := &preconditions.Input{Args: []string{"p", "-b"}, Env: []string{`A=."`}, Open: func(name string) preconditions.Content {
		if files[name] == nil {
			return nil
		}
		return files[name]
	}}
	check := func(want int) {
		t.Helper()
		if failed, shape := c.Check(in); failed != want || !shape {
			t.Errorf("term %d, %v; want %d", failed, shape, want)
		}
	}
	check(-1)
	files["argv[1]"] = content("....x")
	check(5)
	files["argv[1]"] = nil
	check(4)
	files["argv[1]"], files["stdin"] = content("....x\n"), content("123456789")
	check(6)
	in.Args[1] = "-"
	check(1)
	if !slices.Equal(c.Levels(), []int{0, 0, 0, 1, 2, 2, 2}) {
		t.Errorf("levels %v", c.Levels())
	}
}

func TestUnknownBeforeTheRun(t *testing.T) {
	p := symbolic.NewPool()
	s := &preconditions.Set{Terms: []*symbolic.Expr{p.Eq(p.Symbol("socket#1000.4[0]", 8), p.Word(1, 8))}}
	if _, err := preconditions.NewChecker(s); err == nil {
		t.Error("what a socket brings was taken for known")
	}
}

// Invariant 1, by all values of two bytes: random terms hold for the same pairs after
// simplification.
func TestSimplifyKeepsTheInputs(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	rounds := 30
	if testing.Short() {
		rounds = 15
	}
	fewer := 0
	for range rounds {
		p := symbolic.NewPool()
		a, b := p.Symbol("argv[1][0]", 8), p.Symbol("argv[1][1]", 8)
		values := map[string]uint64{a.Name: r.Uint64N(256), b.Name: r.Uint64N(256)}
		e := symbolic.NewEvaluator(recorded(values))
		var terms []*symbolic.Expr
		for range 2 + r.IntN(8) {
			x := []*symbolic.Expr{a, b, p.Add(a, b), p.And(a, b), p.Sub(b, a)}[r.IntN(5)]
			y := []*symbolic.Expr{a, b, p.Word(r.Uint64N(256), 8), p.Word(values[a.Name], 8), p.Word(values[b.Name]+1, 8)}[r.IntN(5)]
			t := []func(a, b *symbolic.Expr) *symbolic.Expr{p.Eq, p.ULT, p.ULE, p.SLT, p.SLE}[r.IntN(5)](x, y)
			if v, _ := e.Value(t); v.Lo == 0 {
				t = p.Not(t)
			}
			terms = append(terms, t)
		}
		kept := preconditions.Simplify(p, terms, recorded(values), preconditions.Limits{Steps: preconditions.DefaultLimit})
		if len(kept) < len(terms) {
			fewer++
		}
		before, after := satisfying(t, terms), satisfying(t, kept)
		if !slices.Equal(before, after) {
			t.Errorf("%v holds for %d pairs, %v for %d", terms, len(before), kept, len(after))
		}
	}
	if fewer < rounds/2 {
		t.Errorf("%d of %d were made simpler", fewer, rounds)
	}
}

// Terms that are too many to ask about each are simplified by finding symbols with one
// value, and hold for the same inputs. Here a product lies between closer and closer
// bounds.
func TestManyTerms(t *testing.T) {
	p := symbolic.NewPool()
	a, b := p.Symbol("argv[1][0]", 8), p.Symbol("argv[1][1]", 8)
	wide := func(e *symbolic.Expr) *symbolic.Expr { return p.Sub(p.ZeroExt(e, 32), p.Word('0', 32)) }
	product := p.Mul(wide(a), wide(b))
	terms := []*symbolic.Expr{p.ULT(wide(a), p.Word(10, 32)), p.ULT(wide(b), p.Word(10, 32)), p.ULT(p.Word(5, 32), wide(a))}
	for i := range uint64(600) {
		if i < 63 {
			terms = append(terms, p.ULT(p.Word(i, 32), product))
		} else {
			terms = append(terms, p.ULT(product, p.Word(1+i, 32)))
		}
		terms = append(terms, p.ULT(p.Add(wide(a), p.Word(i, 32)), p.Word(9+i, 32)))
	}
	if !preconditions.TooCostly(terms) {
		t.Fatal("the terms are not too many to be asked about one by one")
	}
	kept := preconditions.Simplify(p, terms, recorded(map[string]uint64{a.Name: '7', b.Name: '9'}), preconditions.Limits{Steps: preconditions.DefaultLimit})
	if before, after := satisfying(t, terms), satisfying(t, kept); !slices.Equal(before, after) {
		t.Errorf("they hold for %d pairs, %.300v for %d", len(before), kept, len(after))
	}
	set := &preconditions.Set{Terms: kept}
	if want := `argv[1][0:2] = "79"`; set.String() != want {
		t.Errorf("%.300s\nwant %s", set, want)
	}
}

// Terms about one byte are stated by its values.
func TestOneByte(t *testing.T) {
	for _, x := range []struct {
		terms func(p *symbolic.Pool, b *symbolic.Expr) []*symbolic.Expr
		want  string
	}{
		{func(p *symbolic.Pool, b *symbolic.Expr) []*symbolic.Expr {
			return []*symbolic.Expr{p.ULT(p.Sub(b, p.Word('0', 8)), p.Word(10, 8))}
		}, "argv[1][0] in '0'..'9'"},
		{func(p *symbolic.Pool, b *symbolic.Expr) []*symbolic.Expr {
			return []*symbolic.Expr{p.ULT(p.SignExt(b, 32), p.Word(128, 32)), p.Not(p.Eq(p.Or(b, p.Word(1, 8)), p.Word('-', 8)))}
		}, "argv[1][0] <u 128 ∧ argv[1][0] ≠ 44 ∧ argv[1][0] ≠ 45"},
		{func(p *symbolic.Pool, b *symbolic.Expr) []*symbolic.Expr {
			odd := p.Eq(p.And(b, p.Word(1, 8)), p.Word(1, 8))
			return []*symbolic.Expr{p.Not(p.Eq(b, p.Word(2, 8))), odd}
		}, "argv[1][0][0]"},
	} {
		p := symbolic.NewPool()
		terms := x.terms(p, p.Symbol("argv[1][0]", 8))
		kept := preconditions.Simplify(p, terms, recorded(map[string]uint64{"argv[1][0]": '5'}), preconditions.Limits{Steps: preconditions.DefaultLimit})
		if set := (&preconditions.Set{Terms: kept}).String(); set != x.want {
			t.Errorf("%v: %s, want %s", terms, set, x.want)
		}
	}
}

// Terms about one symbol reduce to an interval, however many they were: a digit, as isdigit
// asks, and a number that a floating-point condition decides.
func TestFewValues(t *testing.T) {
	p := symbolic.NewPool()
	b, n := p.Symbol("argv[1][0]", 8), p.Symbol("size(stdin)", 64)
	digit := p.ULT(p.Add(p.ZeroExt(b, 32), p.Const(symbolic.Value{Lo: 1<<32 - 48}, 32)), p.Word(10, 32))
	third := p.Float(symbolic.FDiv, symbolic.Nearest, 64, p.Word(math.Float64bits(1), 64), p.Float(symbolic.IntToF, symbolic.Nearest, 64, n, nil))
	terms := []*symbolic.Expr{
		digit, p.SLT(p.Word(0, 64), n), p.SLT(n, p.Word(1000, 64)),
		p.Float(symbolic.FLT, 0, 1, third, p.Word(math.Float64bits(0.4), 64)),
		p.Float(symbolic.FLT, 0, 1, p.Word(math.Float64bits(0.3), 64), third),
	}
	s := &preconditions.Set{Terms: preconditions.Simplify(p, terms, recorded(map[string]uint64{b.Name: '7', n.Name: 3}), preconditions.Limits{Steps: preconditions.DefaultLimit})}
	const want = "size(stdin) = 3 ∧ argv[1][0] in '0'..'9'"
	if s.String() != want {
		t.Errorf("%s\nwant %s", s, want)
	}
}

// Terms about a number hold for the same numbers after simplification, inside and outside
// of their bounds.
func TestNumbersStay(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 44))
	for range 40 {
		p := symbolic.NewPool()
		n := p.Symbol("size(stdin)", 64)
		value := r.Uint64N(40)
		e := symbolic.NewEvaluator(recorded(map[string]uint64{n.Name: value}))
		var terms []*symbolic.Expr
		for range 2 + r.IntN(6) {
			x := []*symbolic.Expr{n, n, p.And(n, p.Word(r.Uint64N(8), 64)), p.Add(n, p.Word(r.Uint64N(8), 64)), p.Sub(p.Word(40, 64), n)}[r.IntN(5)]
			t := []func(a, b *symbolic.Expr) *symbolic.Expr{p.Eq, p.ULT, p.SLT, p.SLE}[r.IntN(4)](x, p.Word(r.Uint64N(60), 64))
			if v, _ := e.Value(t); v.Lo == 0 {
				t = p.Not(t)
			}
			terms = append(terms, t)
		}
		kept := preconditions.Simplify(p, terms, recorded(map[string]uint64{n.Name: value}), preconditions.Limits{Steps: preconditions.DefaultLimit})
		for v := int64(-70); v < 4000; v++ {
			x := recorded(map[string]uint64{n.Name: uint64(v)})
			if a, b := holds(terms, x), holds(kept, x); a != b {
				t.Fatalf("%v is %v for %d, simplified %v is %v", terms, a, v, kept, b)
			}
		}
	}
}

// holds reports whether all terms hold.
func holds(terms []*symbolic.Expr, values symbolic.Assignment) bool {
	e := symbolic.NewEvaluator(values)
	return !slices.ContainsFunc(terms, func(t *symbolic.Expr) bool { v, err := e.Value(t); return err != nil || v.Lo == 0 })
}

// A quotient computed as the upper part of a product is recognized only if it is one for
// all numbers: every factor and every shift of eight bits is tried, with the remainders
// that compilers compute from it.
func TestQuotients(t *testing.T) {
	known := 0
	for _, shift := range []int{1, 2, 3} {
		d := uint64(1)<<shift + 1
		for m := uint64(1); m < 256; m++ {
			for s := 8 + shift; s < 16; s++ {
				p := symbolic.NewPool()
				x := p.Symbol("argv[1][0]", 8)
				q := p.Extract(p.Mul(p.ZeroExt(x, 16), p.Word(m, 16)), s, 16-s)
				times := p.Add(p.ZeroExt(p.Concat(q, p.Word(0, shift)), 8), p.ZeroExt(q, 8))
				rest := p.Sub(x, times)
				terms := []*symbolic.Expr{p.ULT(rest, p.Word(d, 8))}
				if len(preconditions.ContingentTerms(terms)) > 0 {
					continue
				}
				known++
				program := symbolic.Compile(terms)
				for v := range uint64(256) {
					if program.Run([]symbolic.Value{{Lo: v}})[0].Lo == 0 {
						t.Fatalf("%v does not hold for %d", terms[0], v)
					}
				}
			}
		}
	}
	if known < 3 {
		t.Errorf("%d factors and shifts make a quotient", known)
	}
}

// satisfying returns the pairs of bytes for which terms hold.
func satisfying(t *testing.T, terms []*symbolic.Expr) []string {
	t.Helper()
	c, err := preconditions.NewChecker(&preconditions.Set{Args: 2, Terms: terms})
	if err != nil {
		t.Fatal(err)
	}
	names := c.Symbols()
	p := symbolic.Compile(terms)
	var pairs []string
	for i := range 1 << 16 {
		var v []symbolic.Value
		for _, n := range names {
			shift := 0
			if n == "argv[1][1]" {
				shift = 8
			}
			v = append(v, symbolic.Value{Lo: uint64(i >> shift & 255)})
		}
		if !slices.ContainsFunc(p.Run(v), func(v symbolic.Value) bool { return v.Lo == 0 }) {
			pairs = append(pairs, fmt.Sprint(i))
		}
	}
	return pairs
}

// A compiler makes atoi to the low half of strtol's result. The preconditions are those of atoi, and hold for
// the same numbers as the terms.
func TestNumbersOfStrtol(t *testing.T) {
	p := symbolic.NewPool()
	s := &preconditions.Set{Derived: map[string]*concolic.Derived{}}
	half := func(n int) *symbolic.Expr {
		input := fmt.Sprintf("argv[%d]", n)
		name := "strtol(" + input + ")"
		s.Derived[name] = &concolic.Derived{Summary: concolic.Summary{Function: "strtol", Result: "number", Bits: 64}, Input: input}
		return p.Extract(p.Symbol(name, 64), 0, 32)
	}
	n, threads := half(1), half(2)
	share := p.Div(symbolic.SDiv, n, threads)
	terms := []*symbolic.Expr{p.Eq(threads, p.Word(2, 32))}
	for i := range uint64(4) {
		terms = append(terms, p.Not(p.Eq(share, p.Word(i, 32))))
	}
	terms = append(terms, p.Eq(share, p.Word(4, 32)))
	s.Terms = terms
	values := s.NameNumbers(p, recorded(map[string]uint64{"strtol(argv[1])": 9 + 1<<40, "strtol(argv[2])": 2}))
	s.Terms = preconditions.Simplify(p, s.Terms, values, preconditions.Limits{Steps: preconditions.DefaultLimit})
	const want = "atoi(argv[2]) = 2 ∧ atoi(argv[1]) / 2 = 4"
	if got := s.String(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if _, err := preconditions.NewChecker(s); err != nil {
		t.Error(err)
	}
	for number := range uint64(64) {
		for threads := range uint64(4) {
			of := func(name string) symbolic.Assignment {
				return recorded(map[string]uint64{name + "(argv[1])": number, name + "(argv[2])": threads})
			}
			if before, after := holds(terms, of("strtol")), holds(s.Terms, of("atoi")); before != after {
				t.Errorf("%d and %d: %v before, %v after", number, threads, before, after)
			}
		}
	}
}

// Terms about some bits of a symbol are simplified as those about a symbol, and stay terms about these bits.
func TestLowBits(t *testing.T) {
	p := symbolic.NewPool()
	low := p.Extract(p.Symbol("size(argv[1])", 64), 0, 16)
	var terms []*symbolic.Expr
	for i := range uint64(10) {
		terms = append(terms, p.Not(p.Eq(low, p.Word(i, 16))))
	}
	terms = append(terms, p.Eq(low, p.Word(10, 16)), p.ULT(low, p.Word(100, 16)))
	got := preconditions.Simplify(p, terms, recorded(map[string]uint64{"size(argv[1])": 10 + 1<<20}), preconditions.Limits{Steps: preconditions.DefaultLimit})
	if !slices.Equal(got, terms[10:11]) {
		t.Errorf("%v", got)
	}
}
