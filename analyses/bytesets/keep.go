package bytesets

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// mask is a set of bits of an expression.
type mask symbolic.Value

// lowBits has the n lowest bits.
func lowBits(n int) mask { return mask{Lo: ^uint64(0), Hi: ^uint64(0)}.shift(128 - n).shift(n - 128) }

func (m mask) isEmpty() bool           { return m == mask{} }
func (m mask) and(o mask) mask         { return mask{Lo: m.Lo & o.Lo, Hi: m.Hi & o.Hi} }
func (m mask) or(o mask) mask          { return mask{Lo: m.Lo | o.Lo, Hi: m.Hi | o.Hi} }
func (m mask) without(o mask) mask     { return mask{Lo: m.Lo &^ o.Lo, Hi: m.Hi &^ o.Hi} }
func (m mask) differences(o mask) mask { return mask{Lo: m.Lo ^ o.Lo, Hi: m.Hi ^ o.Hi} }

// shift moves the bits up by n, or down if n is negative.
func (m mask) shift(n int) mask {
	for ; n >= 64; n -= 64 {
		m = mask{Hi: m.Lo}
	}
	for ; n <= -64; n += 64 {
		m = mask{Lo: m.Hi}
	}
	switch {
	case n > 0:
		return mask{Lo: m.Lo << n, Hi: m.Hi<<n | m.Lo>>(64-n)}
	case n < 0:
		return mask{Lo: m.Lo>>-n | m.Hi<<(64+n), Hi: m.Hi >> -n}
	}
	return m
}

// lowest and highest are numbers of bits of a mask that has some.
func (m mask) lowest() int {
	if m.Lo == 0 {
		return 64 + bits.TrailingZeros64(m.Hi)
	}
	return bits.TrailingZeros64(m.Lo)
}

func (m mask) highest() int {
	if m.Hi == 0 {
		return bits.Len64(m.Lo) - 1
	}
	return 63 + bits.Len64(m.Hi)
}

// value is the recorded value of an expression.
func (f *Finder) value(e *symbolic.Expr) mask {
	v, err := f.values.Value(e)
	if err != nil {
		f.unknown = true
	}
	return mask(v)
}

// keep has some bits of an expression keep the values that they have for the recorded input. If the expression depends on
// several bytes, it is sufficient that its operands keep some of theirs, as far as they decide these bits.
func (f *Finder) keep(e *symbolic.Expr, of mask) {
	if e == nil {
		return
	}
	of = of.and(lowBits(e.Bits)).without(f.kept[e])
	if of.isEmpty() {
		return
	}
	f.kept[e] = f.kept[e].or(of)
	switch s := f.symbolsOf(e); s.number {
	case 0:
	case 1:
		want := f.value(e).and(of)
		f.narrow(e, s.one, func(v symbolic.Value) bool { return mask(v).and(of) == want })
	default:
		f.keepOperands(e, of)
	}
}

// keepOperands has the operands of an operation keep the bits that decide some bits of its result.
func (f *Finder) keepOperands(e *symbolic.Expr, of mask) {
	a, b := e.A, e.B
	switch e.Op {
	case symbolic.Not:
		f.keep(a, of)
	case symbolic.Xor:
		f.keep(a, of)
		f.keep(b, of)
	case symbolic.Extract:
		f.keep(a, of.shift(e.Low))
	case symbolic.ZeroExt:
		f.keep(a, of)
	case symbolic.SignExt:
		if of.highest() >= a.Bits {
			of = of.or(lowBits(1).shift(a.Bits - 1))
		}
		f.keep(a, of)
	case symbolic.Concat:
		f.keep(b, of)
		f.keep(a, of.shift(-b.Bits))
	case symbolic.And, symbolic.Or:
		f.keepEither(e, of)
	case symbolic.Add, symbolic.Sub, symbolic.Mul:
		low := lowBits(of.highest() + 1)
		f.keep(a, low)
		f.keep(b, low)
	case symbolic.Shl, symbolic.LShr, symbolic.AShr:
		f.keepShifted(e, of)
	case symbolic.Ite:
		f.keep(a, lowBits(1))
		if f.value(a).isEmpty() {
			f.keep(e.C, of)
		} else {
			f.keep(b, of)
		}
	case symbolic.Ctz, symbolic.Clz:
		f.keepZeros(e)
	case symbolic.Eq:
		f.keepEquality(e)
	case symbolic.ULT, symbolic.ULE, symbolic.SLT, symbolic.SLE:
		f.keepComparison(e)
	default:
		for _, x := range []*symbolic.Expr{a, b, e.C} {
			if x != nil {
				f.keep(x, lowBits(x.Bits))
			}
		}
	}
}

// keepEither is And and Or: for each bit it is sufficient that one operand keeps a 0, or a 1. If both have it, that is the
// one with fewer symbols.
func (f *Finder) keepEither(e *symbolic.Expr, of mask) {
	a, b := e.A, e.B
	if f.symbolsOf(b).number < f.symbolsOf(a).number {
		a, b = b, a
	}
	decides := func(x *symbolic.Expr) mask {
		if e.Op == symbolic.Or {
			return f.value(x)
		}
		return lowBits(x.Bits).without(f.value(x))
	}
	byA := of.and(decides(a))
	byB := of.and(decides(b)).without(byA)
	both := of.without(byA).without(byB)
	f.keep(a, byA.or(both))
	f.keep(b, byB.or(both))
}

func (f *Finder) keepShifted(e *symbolic.Expr, of mask) {
	f.keep(e.B, lowBits(e.B.Bits))
	by := f.value(e.B)
	switch n := int(min(by.Lo, 128)); {
	case by.Hi != 0 || n >= e.Bits:
		if e.Op == symbolic.AShr {
			f.keep(e.A, lowBits(1).shift(e.Bits-1))
		}
	case e.Op == symbolic.Shl:
		f.keep(e.A, of.shift(-n))
	default:
		if e.Op == symbolic.AShr && of.highest()+n >= e.Bits {
			of = of.or(lowBits(1).shift(e.Bits - 1 - n))
		}
		f.keep(e.A, of.shift(n))
	}
}

// keepZeros is Ctz and Clz: the zeros that are counted and the one beyond them.
func (f *Finder) keepZeros(e *symbolic.Expr) {
	v, all := f.value(e.A), lowBits(e.A.Bits)
	switch {
	case v.isEmpty():
		f.keep(e.A, all)
	case e.Op == symbolic.Ctz:
		f.keep(e.A, lowBits(v.lowest()+1))
	default:
		f.keep(e.A, all.without(lowBits(v.highest())))
	}
}

// keepEquality is Eq: for two that differ a byte in which they do is sufficient, the lowest one.
func (f *Finder) keepEquality(e *symbolic.Expr) {
	a, b := e.A, e.B
	d := f.value(a).differences(f.value(b))
	if d.isEmpty() {
		f.keep(a, lowBits(a.Bits))
		f.keep(b, lowBits(b.Bits))
		return
	}
	if a.IsConst() {
		a, b = b, a
	}
	from := d.lowest() &^ 7
	if c := f.value(b).shift(-from).Lo & 0xff; b.IsConst() && f.narrowPart(a, from, func(v uint64) bool { return v != c }) {
		return
	}
	if f.keepSmall(e) {
		return
	}
	bit := lowBits(1).shift(d.lowest())
	f.keep(a, bit)
	f.keep(b, bit)
}

// keepComparison is the comparison of two numbers by their size, which the highest bit decides in which they differ. For
// signed numbers, too: that is the sign, or the signs are equal.
func (f *Finder) keepComparison(e *symbolic.Expr) {
	a, b, signed := e.A, e.B, e.Op == symbolic.SLT || e.Op == symbolic.SLE
	all := lowBits(a.Bits)
	d := f.value(a).differences(f.value(b))
	if d.isEmpty() {
		f.keep(a, all)
		f.keep(b, all)
		return
	}
	bit := d.highest()
	variable, number := a, b
	if a.IsConst() {
		variable, number = b, a
	}
	if from := bit &^ 7; number.IsConst() && (!signed || from+8 < a.Bits) {
		c, v := f.value(number).shift(-from).Lo&0xff, f.value(variable).shift(-from).Lo&0xff
		if f.narrowPart(variable, from, func(x uint64) bool { return x != c && x < c == (v < c) }) {
			f.keep(variable, all.without(lowBits(from+8)))
			return
		}
	}
	if f.keepSmall(e) {
		return
	}
	high := all.without(lowBits(bit))
	f.keep(a, high)
	f.keep(b, high)
}

// Of a small number at least half of the bytes are 0, and it has no more than maxSmall. A byte is nearly free with nearlyFree values.
const (
	maxSmall   = 8
	nearlyFree = 192
	maxNodes   = 64 // of the condition as a tree
)

// countNodes returns how many of a number of nodes are left when those of an expression, as a tree, are counted; 0: none.
func countNodes(e *symbolic.Expr, left int) int {
	for _, x := range []*symbolic.Expr{e.A, e.B, e.C} {
		if x != nil && left > 0 {
			left = countNodes(x, left)
		}
	}
	return max(0, left-1)
}

// keepSmall is for conditions on a small number, such as that a counter is less than its successor, which hold for nearly all values
// of one byte as long as the others are what they are: counters change their other bytes seldom. It reports whether there is such
// a byte.
func (f *Finder) keepSmall(e *symbolic.Expr) bool {
	if countNodes(e, maxNodes) == 0 {
		return false // a hash, or a long computation
	}
	program := symbolic.Compile([]*symbolic.Expr{e})
	names := program.Symbols()
	inputs := make([]symbolic.Value, len(names))
	zeros := 0
	for i, name := range names {
		v, known := f.recorded(name)
		if !known || v.Hi != 0 || v.Lo > 0xff {
			return false
		}
		inputs[i] = v
		if v.Lo == 0 {
			zeros++
		}
	}
	if len(names) > maxSmall || 2*zeros < len(names) {
		return false
	}
	want := f.value(e)
	holds := func(i int, v byte) bool {
		recorded := inputs[i]
		inputs[i].Lo = uint64(v)
		defer func() { inputs[i] = recorded }()
		return mask(program.Run(inputs)[0]) == want
	}
	free := func(i int) (set Set) {
		wrong := 0
		for n := range 256 {
			v := byte(n) * 97 // all values, far from each other
			if holds(i, v) {
				set[v/64] |= 1 << (v % 64)
			} else if wrong++; wrong > 256-nearlyFree {
				return Set{}
			}
		}
		return set
	}
	best, allowed := -1, Set{}
	for i := range names {
		if set := free(i); set.Len() >= nearlyFree && (best < 0 || changesBefore(names, inputs, i, best)) {
			best, allowed = i, set
		}
	}
	if best < 0 {
		return false
	}
	symbolic.SymbolsOf([]*symbolic.Expr{e}, func(s *symbolic.Expr) {
		f.narrow(s, s, func(v symbolic.Value) bool {
			if s.Name == names[best] {
				return allowed.Has(byte(v.Lo))
			}
			return v == inputs[slices.Index(names, s.Name)]
		})
	})
	return true
}

// narrowPart leaves the values of a symbol with which the byte from a bit on of an expression has a value that is allowed, and
// reports whether it depends on one symbol alone.
func (f *Finder) narrowPart(e *symbolic.Expr, from int, allowed func(uint64) bool) bool {
	for f.symbolsOf(e).number > 1 {
		switch {
		case e.Op == symbolic.Concat && from >= e.B.Bits:
			e, from = e.A, from-e.B.Bits
		case e.Op == symbolic.Concat && from+8 <= e.B.Bits:
			e = e.B
		case e.Op == symbolic.ZeroExt && from < e.A.Bits:
			e = e.A
		case e.Op == symbolic.Extract && from+8 <= e.Bits:
			e, from = e.A, from+e.Low
		default:
			return false
		}
	}
	s := f.symbolsOf(e)
	if s.number == 0 {
		return false
	}
	f.narrow(e, s.one, func(v symbolic.Value) bool { return allowed(mask(v).shift(-from).Lo & 0xff) })
	return true
}

// changesBefore says which of two bytes of a counter is more likely to change: one that is not 0, and of these the one at the lower
// address, whose name is shorter or comes first.
func changesBefore(names []string, values []symbolic.Value, i, j int) bool {
	if zero := values[i].Lo == 0; zero != (values[j].Lo == 0) {
		return !zero
	}
	return cmp.Or(cmp.Compare(len(names[i]), len(names[j])), cmp.Compare(names[i], names[j])) < 0
}
