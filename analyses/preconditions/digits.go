package preconditions

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// A program that reads a number without a function that has a summary, such as scanf(3), C++ streams, or a loop of its
// own, computes a sum of its digits, each times a power of ten. Such sums become a symbol for the number that some
// bytes of an input are: number(stdin[0:3]). It exists only if all of these bytes are digits.

// digitsResult is the kind of the symbols' result (concolic.Summary).
const digitsResult = "digits"

// maxDigitRun is the number of digits up to which any number is within the bounds of forms.
const maxDigitRun = 13

// digitRun is the bytes from one to another, exclusive, of an input, which are digits.
type digitRun struct {
	base     string
	from, to int
}

func (r digitRun) len() int { return r.to - r.from }

func (r digitRun) contains(o digitRun) bool {
	return r.base == o.base && r.from <= o.from && o.to <= r.to
}

func (r digitRun) byteName(i int) string { return fmt.Sprintf("%s[%d]", r.base, i) }

// numberBits is the size of the number's symbol.
func (r digitRun) numberBits() int {
	if r.len() <= 9 {
		return 32
	}
	return 64
}

// numberNamer replaces sums of digits by numbers.
type numberNamer struct {
	pool   *symbolic.Pool
	digits map[string]bool // bytes that are digits, by name
	forms  map[*symbolic.Expr]*linearForm
	runs   []digitRun
}

// NameDigits replaces sums of digits by numbers. It returns the recorded values of the symbols, of which recorded are
// those before, and a function that completes the terms after Simplify.
func (s *Set) NameDigits(p *symbolic.Pool, recorded symbolic.Assignment) (symbolic.Assignment, func()) {
	terms := distinctTerms(s.Terms)
	n := &numberNamer{pool: p, digits: digitBytes(terms), forms: map[*symbolic.Expr]*linearForm{}}
	if len(n.digits) < 2 {
		return recorded, func() {}
	}
	n.findRuns(terms)
	if len(n.runs) == 0 {
		return recorded, func() {}
	}
	derived := maps.Clone(s.Derived)
	if derived == nil {
		derived = map[string]*concolic.Derived{}
	}
	values := map[string]symbolic.Value{}
	for _, r := range n.runs {
		v, ok := r.recordedNumber(recorded)
		if !ok {
			return recorded, func() {}
		}
		d := &concolic.Derived{
			Summary: concolic.Summary{Function: "number", Result: digitsResult, Bits: r.numberBits()},
			Input:   fmt.Sprintf("%s[%d:%d]", r.base, r.from, r.to),
		}
		derived[r.name()], values[r.name()] = d, v
	}
	s.Terms, s.Derived = n.replaceTerms(terms), derived
	with := func(name string) (symbolic.Value, bool) {
		if v, known := values[name]; known {
			return v, true
		}
		return recorded(name)
	}
	return with, func() { s.Terms = n.complete(s.Terms) }
}

func (r digitRun) name() string { return fmt.Sprintf("number(%s[%d:%d])", r.base, r.from, r.to) }

// recordedNumber is the number that the recorded bytes are.
func (r digitRun) recordedNumber(recorded symbolic.Assignment) (symbolic.Value, bool) {
	number := uint64(0)
	for i := r.from; i < r.to; i++ {
		v, ok := recorded(r.byteName(i))
		if !ok || v.Lo < '0' || v.Lo > '9' {
			return symbolic.Value{}, false
		}
		number = 10*number + v.Lo - '0'
	}
	return symbolic.Value{Lo: number}, true
}

// digitBytes returns the bytes that the terms about them alone require to be digits.
func digitBytes(terms []*symbolic.Expr) map[string]bool {
	one, about := soleSymbols{}, map[*symbolic.Expr][]*symbolic.Expr{}
	var order []*symbolic.Expr
	for _, t := range terms {
		if s := one.symbolOf(t); s != nil && s != manySymbols && s.Bits == 8 {
			if about[s] == nil {
				order = append(order, s)
			}
			about[s] = append(about[s], t)
		}
	}
	digits := map[string]bool{}
	for _, s := range order {
		if _, _, ok := splitByteName(s.Name); ok && areDigits(remainingValues(s, about[s])) {
			digits[s.Name] = true
		}
	}
	return digits
}

func areDigits(values []symbolic.Value) bool {
	return len(values) > 0 && values[0].Lo >= '0' && values[len(values)-1].Lo <= '9'
}

// findRuns finds the longest runs of bytes of which terms use the number.
func (n *numberNamer) findRuns(terms []*symbolic.Expr) {
	var found []digitRun
	seen := map[*symbolic.Expr]bool{}
	var visit func(e *symbolic.Expr)
	visit = func(e *symbolic.Expr) {
		if e == nil || seen[e] || e.IsConst() {
			return
		}
		seen[e] = true
		if r, _, _, ok := n.matchNumber(e); ok {
			found = append(found, r)
			return
		}
		visit(e.A)
		visit(e.B)
		visit(e.C)
	}
	for _, t := range terms {
		visit(t)
	}
	slices.SortStableFunc(found, func(a, b digitRun) int { return b.len() - a.len() })
	for _, r := range found {
		overlaps := func(o digitRun) bool { return o.base == r.base && r.from < o.to && o.from < r.to }
		if !slices.ContainsFunc(n.runs, overlaps) {
			n.runs = append(n.runs, r)
		}
	}
}

// matchNumber matches an expression that is factor times the number of a run of at least two digits, plus an addend.
func (n *numberNamer) matchNumber(e *symbolic.Expr) (r digitRun, factor, addend int64, ok bool) {
	f := n.formOf(e)
	if f == nil || len(f.factors) < 2 || len(f.factors) > maxDigitRun {
		return r, 0, 0, false
	}
	last := f.factors[len(f.factors)-1]
	r = digitRun{last.base, last.at - len(f.factors) + 1, last.at + 1}
	factor, addend = last.factor, f.addend
	power := factor
	for i, d := range slices.Backward(f.factors) {
		if d.base != r.base || d.at != r.from+i || d.factor != power {
			return r, 0, 0, false
		}
		addend += '0' * power // within the bounds of forms
		power *= 10
	}
	return r, factor, addend, true
}

// runOf returns the run that contains another one.
func (n *numberNamer) runOf(r digitRun) (digitRun, bool) {
	i := slices.IndexFunc(n.runs, func(o digitRun) bool { return o.contains(r) })
	if i < 0 {
		return r, false
	}
	return n.runs[i], true
}

// partOf is the number of some digits of a run, as an expression of its number.
func (n *numberNamer) partOf(whole, part digitRun) *symbolic.Expr {
	p, bits := n.pool, whole.numberBits()
	e := p.Symbol(whole.name(), bits)
	if part.to < whole.to {
		e = p.Div(symbolic.UDiv, e, p.Word(powerOfTen(whole.to-part.to), bits))
	}
	if part.from > whole.from {
		e = p.Div(symbolic.URem, e, p.Word(powerOfTen(part.len()), bits))
	}
	return e
}

func powerOfTen(n int) uint64 {
	x := uint64(1)
	for range n {
		x *= 10
	}
	return x
}

// replaceTerms puts numbers into terms, and adds their bounds. Terms about one digit that hold for all digits go.
func (n *numberNamer) replaceTerms(terms []*symbolic.Expr) []*symbolic.Expr {
	p, one := n.pool, soleSymbols{}
	var out []*symbolic.Expr
	for _, r := range n.runs {
		out = append(out, p.ULT(p.Symbol(r.name(), r.numberBits()), p.Word(powerOfTen(r.len()), r.numberBits())))
	}
	for _, t := range terms {
		if s := one.symbolOf(t); s != nil && s != manySymbols && n.digits[s.Name] && holdsForDigits(t) {
			if _, within := n.runOfByte(s.Name); within {
				continue
			}
		}
		out = append(out, t)
	}
	out = p.ReplaceAll(out, n.replaceSum)
	return distinctTerms(p.SubstituteAll(out, n.replaceDigit))
}

// runOfByte returns the run that contains a byte.
func (n *numberNamer) runOfByte(name string) (digitRun, bool) {
	base, at, ok := splitByteName(name)
	if !ok {
		return digitRun{}, false
	}
	return n.runOf(digitRun{base, at, at + 1})
}

// replaceSum returns the expression of a sum of digits, or nil.
func (n *numberNamer) replaceSum(e *symbolic.Expr) *symbolic.Expr {
	part, factor, addend, ok := n.matchNumber(e)
	if !ok {
		return nil
	}
	whole, ok := n.runOf(part)
	if !ok {
		return nil
	}
	p, number := n.pool, n.partOf(whole, part)
	if number.Bits < e.Bits {
		number = p.ZeroExt(number, e.Bits)
	} else if number.Bits > e.Bits {
		number = p.Extract(number, 0, e.Bits)
	}
	return p.Add(p.Mul(number, p.Word(uint64(factor), e.Bits)), p.Word(uint64(addend), e.Bits))
}

// replaceDigit returns the expression of a byte of a run, or nil.
func (n *numberNamer) replaceDigit(name string) *symbolic.Expr {
	whole, ok := n.runOfByte(name)
	if !ok {
		return nil
	}
	_, at, _ := splitByteName(name)
	digit := n.partOf(whole, digitRun{whole.base, at, at + 1})
	return n.pool.Add(n.pool.Extract(digit, 0, 8), n.pool.Word('0', 8))
}

// holdsForDigits reports whether a term about one byte holds for all digits.
func holdsForDigits(t *symbolic.Expr) bool {
	program := symbolic.Compile([]*symbolic.Expr{t})
	for b := uint64('0'); b <= '9'; b++ {
		if program.FirstFalse([]symbolic.Value{{Lo: b}}) >= 0 {
			return false
		}
	}
	return true
}

// complete writes a number that has one value as bytes, leaves out the bounds that any number of its length satisfies,
// and requires the bytes of numbers that no term is about to be digits.
func (n *numberNamer) complete(terms []*symbolic.Expr) []*symbolic.Expr {
	p := n.pool
	for _, r := range n.runs {
		s := p.Symbol(r.name(), r.numberBits())
		var out []*symbolic.Expr
		used := false
		for _, t := range terms {
			switch {
			case t.Op == symbolic.Eq && t.A == s && t.B.IsConst():
				text := fmt.Sprintf("%0*d", r.len(), t.B.Value.Lo)
				for i, b := range []byte(text) {
					out = append(out, p.Eq(p.Symbol(r.byteName(r.from+i), 8), p.Word(uint64(b), 8)))
				}
				used = true
			case !boundsAll(t, s, powerOfTen(r.len())-1):
				out = append(out, t)
				used = used || usesSymbol(t, s)
			}
		}
		for i := r.from; i < r.to && !used; i++ {
			b := p.Symbol(r.byteName(i), 8)
			out = append(out, p.ULT(p.Word('0'-1, 8), b), p.ULT(b, p.Word('9'+1, 8)))
		}
		terms = out
	}
	return sortByteTerms(terms)
}

// boundsAll reports whether a term compares a symbol with a constant and holds for all values from 0 to the greatest.
func boundsAll(t, s *symbolic.Expr, greatest uint64) bool {
	if !isPlainComparison(t) || comparedSymbol(t) != s {
		return false
	}
	program := symbolic.Compile([]*symbolic.Expr{t})
	return program.FirstFalse([]symbolic.Value{{}}) < 0 && program.FirstFalse([]symbolic.Value{{Lo: greatest}}) < 0
}

func usesSymbol(t, s *symbolic.Expr) bool {
	found := false
	symbolic.Symbols(t, func(e *symbolic.Expr) { found = found || e == s })
	return found
}

// linearForm is an expression as a sum of digits' bytes, each times a factor, and an addend. It has the expression's
// value as an integer, not only modulo a power of two: from low to high for all digits.
type linearForm struct {
	factors   []byteFactor // by base and position
	addend    int64
	low, high int64
}

type byteFactor struct {
	base   string
	at     int
	factor int64
}

// maxFormValue bounds the numbers of a linear form.
const maxFormValue = math.MaxInt64 / 4096

// formOf returns the linear form of an expression, or nil.
func (n *numberNamer) formOf(e *symbolic.Expr) *linearForm {
	if e == nil || e.Bits > 64 {
		return nil
	}
	f, known := n.forms[e]
	if !known {
		f = n.computeForm(e)
		if f != nil {
			f = f.wrapped(e.Bits)
		}
		n.forms[e] = f
	}
	return f
}

func (n *numberNamer) computeForm(e *symbolic.Expr) *linearForm {
	switch e.Op {
	case symbolic.Const:
		v := int64(e.Value.Lo) << (64 - e.Bits) >> (64 - e.Bits)
		return makeForm(nil, v)
	case symbolic.Symbol:
		if base, at, ok := splitByteName(e.Name); ok && n.digits[e.Name] {
			return makeForm([]byteFactor{{base, at, 1}}, 0)
		}
	case symbolic.Add:
		return n.formOf(e.A).plus(n.formOf(e.B), 1)
	case symbolic.Sub:
		return n.formOf(e.A).plus(n.formOf(e.B), -1)
	case symbolic.Mul:
		a, b := n.formOf(e.A), n.formOf(e.B)
		switch {
		case a == nil || b == nil:
		case len(b.factors) == 0:
			return a.times(b.addend)
		case len(a.factors) == 0:
			return b.times(a.addend)
		}
	case symbolic.ZeroExt:
		return n.formOf(e.A).within(0, e.A.Bits)
	case symbolic.SignExt:
		return n.formOf(e.A).within(-1, e.A.Bits)
	case symbolic.Extract:
		if e.Low == 0 {
			return n.formOf(e.A)
		}
	case symbolic.Concat:
		high, low := n.formOf(e.A), n.formOf(e.B).within(0, e.B.Bits)
		if high != nil && low != nil && e.B.Bits < 32 {
			return high.times(1<<e.B.Bits).plus(low, 1)
		}
	}
	return nil
}

// makeForm makes a form, nil if its numbers are too great.
func makeForm(factors []byteFactor, addend int64) *linearForm {
	f := &linearForm{factors, addend, addend, addend}
	for _, d := range factors {
		if d.factor > maxFormValue/64 || d.factor < -maxFormValue/64 {
			return nil
		}
		f.low += d.factor * '0'
		f.high += d.factor * '9'
		if d.factor < 0 {
			f.low, f.high = f.low+9*d.factor, f.high-9*d.factor
		}
		if max(f.high, -f.low) > maxFormValue {
			return nil
		}
	}
	if max(f.high, -f.low) > maxFormValue {
		return nil
	}
	return f
}

// plus is the sum with a form times 1 or -1.
func (f *linearForm) plus(o *linearForm, sign int64) *linearForm {
	if f == nil || o == nil || len(f.factors)+len(o.factors) > 2*maxDigitRun {
		return nil
	}
	factors := slices.Clone(f.factors)
	for _, d := range o.factors {
		i := slices.IndexFunc(factors, func(x byteFactor) bool { return x.base == d.base && x.at == d.at })
		if i < 0 {
			factors = append(factors, byteFactor{d.base, d.at, sign * d.factor})
		} else {
			factors[i].factor += sign * d.factor
		}
	}
	factors = slices.DeleteFunc(factors, func(d byteFactor) bool { return d.factor == 0 })
	slices.SortFunc(factors, func(a, b byteFactor) int {
		if a.base != b.base {
			if a.base < b.base {
				return -1
			}
			return 1
		}
		return a.at - b.at
	})
	return makeForm(factors, f.addend+sign*o.addend)
}

// times is the product with a number.
func (f *linearForm) times(x int64) *linearForm {
	if f == nil || !productFits(f.addend, x) {
		return nil
	}
	factors := slices.Clone(f.factors)
	for i := range factors {
		if !productFits(factors[i].factor, x) {
			return nil
		}
		factors[i].factor *= x
	}
	return makeForm(factors, f.addend*x)
}

// productFits reports whether a product is within the bounds of forms.
func productFits(a, b int64) bool {
	high, low := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
	return high == 0 && low <= maxFormValue
}

// wrapped is the form with an addend so that its numbers lie around zero, modulo 2 to the bits.
func (f *linearForm) wrapped(size int) *linearForm {
	if size > 50 {
		return f
	}
	turn := int64(1) << size
	turns := (f.low + turn/2) >> size // floor division
	return makeForm(f.factors, f.addend-turns*turn)
}

// within is the form as a number of some bits, not negative if least is 0 and signed if it is -1; nil if its values do
// not all have one representation.
func (f *linearForm) within(least int64, bits int) *linearForm {
	if f == nil {
		return nil
	}
	low, size := int64(0), int64(math.MaxInt64)
	if bits < 62 {
		size = int64(1) << bits
	}
	if least < 0 {
		low = -(size/2 + size%2)
	}
	if f.low >= low && f.high-low < size {
		return f
	}
	if bits <= 50 && f.low < low && f.low+size >= low && f.high+size-low < size {
		return makeForm(f.factors, f.addend+size)
	}
	return nil
}
