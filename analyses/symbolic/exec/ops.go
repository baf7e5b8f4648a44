package exec

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// operands are an operation's, as expressions, and what they are made in.
type operands struct {
	*symbolic.Pool
	args [4]*symbolic.Expr
}

func (t *operands) a() *symbolic.Expr { return t.args[0] }
func (t *operands) b() *symbolic.Expr { return t.args[1] }
func (t *operands) c() *symbolic.Expr { return t.args[2] }

// An opFunc makes the expression of an operation.
type opFunc func(t *operands) *symbolic.Expr

// rule is what is known of an operation.
type rule struct {
	// make makes its expression; nil: it has none.
	make opFunc
	// known is the number, from 1, of an operand that must not depend on inputs;
	// nearest tells that it is a rounding mode that must be the nearest.
	known   int
	nearest bool
	// division tells that it can trap.
	division bool
	// widens and narrows tell that it adds bits above, or takes the lowest.
	widens, narrows bool
}

// rules are those of libVEX's operations, by number.
var rules = sync.OnceValue(func() []rule {
	named := map[string]opFunc{}
	integerOps(named)
	conversionOps(named)
	divisions(named)
	wideOps(named)
	vectorOps(named)
	floatOps(named)
	var table []rule
	for o := vex.Op(0); int(o) < vex.Ops(); o++ {
		name := o.String()
		r := rule{make: named[name], division: strings.HasPrefix(name, "DivMod")}
		switch {
		case slices.Contains(modes, name):
			r.known = 1
		case slices.Contains(nearestModes, name):
			r.known, r.nearest = 1, true
		case name == "PermOrZero8x16":
			r.known = 2
		}
		table = append(table, r)
	}
	for _, name := range conversions(false) {
		table[opNumber(name)].narrows = true
	}
	for _, name := range conversions(true) {
		table[opNumber(name)].widens = true
	}
	return table
})

// opNumber is the operation of a name.
var opNumbers = sync.OnceValue(func() map[string]vex.Op {
	numbers := map[string]vex.Op{}
	for o := vex.Op(0); int(o) < vex.Ops(); o++ {
		numbers[o.String()] = o
	}
	return numbers
})

func opNumber(name string) vex.Op { return opNumbers()[name] }

// conversions are the operations between sizes of numbers that there are.
func conversions(widening bool) []string {
	var names []string
	sizes := []int{1, 8, 16, 32, 64}
	for i, from := range sizes {
		for _, to := range sizes[i+1:] {
			list := []string{fmt.Sprintf("%dto%d", to, from)}
			if widening {
				list = []string{fmt.Sprintf("%dUto%d", from, to), fmt.Sprintf("%dSto%d", from, to)}
			}
			for _, name := range list {
				if _, known := opNumbers()[name]; known {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// two makes an opFunc of an operation on two operands.
func two(f func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr) opFunc {
	return func(t *operands) *symbolic.Expr { return f(t.Pool, t.a(), t.b()) }
}

// shift makes one of a shift by a byte.
func shift(f func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr) opFunc {
	return func(t *operands) *symbolic.Expr { return f(t.Pool, t.a(), resize(t.Pool, t.b(), t.a().Bits)) }
}

// resize is an expression with zeros before it, or its lower part.
func resize(p *symbolic.Pool, e *symbolic.Expr, bits int) *symbolic.Expr {
	if e.Bits > bits {
		return p.Extract(e, 0, bits)
	}
	return p.ZeroExt(e, bits)
}

func differ(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr { return p.Not(p.Eq(a, b)) }

func integerOps(named map[string]opFunc) {
	not := func(t *operands) *symbolic.Expr { return t.Not(t.a()) }
	for _, n := range []int{8, 16, 32, 64} {
		set := func(format string, f opFunc) { named[fmt.Sprintf(format, n)] = f }
		set("Add%d", two((*symbolic.Pool).Add))
		set("Sub%d", two((*symbolic.Pool).Sub))
		set("Mul%d", two((*symbolic.Pool).Mul))
		set("And%d", two((*symbolic.Pool).And))
		set("Or%d", two((*symbolic.Pool).Or))
		set("Xor%d", two((*symbolic.Pool).Xor))
		set("Not%d", not)
		set("Shl%d", shift((*symbolic.Pool).Shl))
		set("Shr%d", shift((*symbolic.Pool).LShr))
		set("Sar%d", shift((*symbolic.Pool).AShr))
		for _, equal := range []string{"CmpEQ%d", "CasCmpEQ%d"} {
			set(equal, two((*symbolic.Pool).Eq))
		}
		for _, different := range []string{"CmpNE%d", "CasCmpNE%d", "ExpCmpNE%d"} {
			set(different, two(differ))
		}
		set("CmpLT%dU", two((*symbolic.Pool).ULT))
		set("CmpLE%dU", two((*symbolic.Pool).ULE))
		set("CmpLT%dS", two((*symbolic.Pool).SLT))
		set("CmpLE%dS", two((*symbolic.Pool).SLE))
		set("Clz%d", func(t *operands) *symbolic.Expr { return t.Count(symbolic.Clz, t.a()) })
		set("Ctz%d", func(t *operands) *symbolic.Expr { return t.Count(symbolic.Ctz, t.a()) })
	}
	named["And1"], named["Or1"], named["Not1"] = named["And8"], named["Or8"], not
	named["AndV128"], named["OrV128"], named["XorV128"], named["NotV128"] = named["And8"], named["Or8"], named["Xor8"], not
}

// low and high make an opFunc of taking bits from the bottom or the top.
func low(n int) opFunc {
	return func(t *operands) *symbolic.Expr { return t.Extract(t.a(), 0, n) }
}

func high(n int) opFunc {
	return func(t *operands) *symbolic.Expr { return t.Extract(t.a(), t.a().Bits-n, n) }
}

func zeroExtended(n int) opFunc {
	return func(t *operands) *symbolic.Expr { return t.ZeroExt(t.a(), n) }
}

func signExtended(n int) opFunc {
	return func(t *operands) *symbolic.Expr { return t.SignExt(t.a(), n) }
}

func same(t *operands) *symbolic.Expr { return t.a() }

func conversionOps(named map[string]opFunc) {
	sizes := []int{1, 8, 16, 32, 64}
	for i, from := range sizes {
		for _, to := range sizes[i+1:] {
			named[fmt.Sprintf("%dUto%d", from, to)] = zeroExtended(to)
			named[fmt.Sprintf("%dSto%d", from, to)] = signExtended(to)
			named[fmt.Sprintf("%dto%d", to, from)] = low(from)
		}
	}
	for _, n := range []int{8, 16, 32, 64} {
		named[fmt.Sprintf("%dHIto%d", 2*n, n)] = high(n)
		named[fmt.Sprintf("%dto%d", 2*n, n)] = low(n)
		named[fmt.Sprintf("%dHLto%d", n, 2*n)] = two((*symbolic.Pool).Concat)
		named[fmt.Sprintf("MullU%d", n)] = func(t *operands) *symbolic.Expr {
			return t.Mul(t.ZeroExt(t.a(), 2*n), t.ZeroExt(t.b(), 2*n))
		}
		named[fmt.Sprintf("MullS%d", n)] = func(t *operands) *symbolic.Expr {
			return t.Mul(t.SignExt(t.a(), 2*n), t.SignExt(t.b(), 2*n))
		}
	}
}

// divisions have quotient low, remainder high. That the quotient fits and the
// divisor is not 0 is a constraint of the executor's: the processor would trap.
func divisions(named map[string]opFunc) {
	for _, d := range []struct {
		name    string
		n       int
		div, rm symbolic.Op
		widen   func(p *symbolic.Pool, e *symbolic.Expr, n int) *symbolic.Expr
	}{
		{"DivModU64to32", 32, symbolic.UDiv, symbolic.URem, (*symbolic.Pool).ZeroExt},
		{"DivModS64to32", 32, symbolic.SDiv, symbolic.SRem, (*symbolic.Pool).SignExt},
		{"DivModU128to64", 64, symbolic.UDiv, symbolic.URem, (*symbolic.Pool).ZeroExt},
		{"DivModS128to64", 64, symbolic.SDiv, symbolic.SRem, (*symbolic.Pool).SignExt},
	} {
		named[d.name] = func(t *operands) *symbolic.Expr {
			by := d.widen(t.Pool, t.b(), 2*d.n)
			return t.Concat(t.Extract(t.Div(d.rm, t.a(), by), 0, d.n), t.Extract(t.Div(d.div, t.a(), by), 0, d.n))
		}
	}
}

// sound is the truth that a division with these operands does not trap; nil if the
// operation is no division.
func sound(t *operands, name string) *symbolic.Expr {
	div, wide, widen := symbolic.UDiv, symbolic.ZeroExt, (*symbolic.Pool).ZeroExt
	switch name {
	case "DivModU64to32", "DivModU128to64":
	case "DivModS64to32", "DivModS128to64":
		div, wide, widen = symbolic.SDiv, symbolic.SignExt, (*symbolic.Pool).SignExt
	default:
		return nil
	}
	n := t.b().Bits
	divisor := t.Not(t.Eq(t.b(), t.Word(0, n)))
	switch {
	case t.a().Op != wide || t.a().A.Bits > n:
		quotient := t.Div(div, t.a(), widen(t.Pool, t.b(), 2*n))
		return t.And(divisor, t.Eq(widen(t.Pool, t.Extract(quotient, 0, n), 2*n), quotient))
	case div == symbolic.SDiv:
		// The least number by -1 does not fit.
		least := t.Shl(t.Word(1, n), t.Word(uint64(n-1), n))
		over := t.And(t.Eq(t.Extract(t.a(), 0, n), least), t.Eq(t.b(), t.Not(t.Word(0, n))))
		return t.And(divisor, t.Not(over))
	}
	return divisor
}

func wideOps(named map[string]opFunc) {
	named["V128to64"], named["V128to32"] = low(64), low(32)
	named["V128HIto64"] = high(64)
	named["64HLtoV128"] = two((*symbolic.Pool).Concat)
	named["32UtoV128"], named["64UtoV128"] = zeroExtended(128), zeroExtended(128)
	set := func(n int) opFunc {
		return func(t *operands) *symbolic.Expr { return t.Concat(t.Extract(t.a(), n, 128-n), t.b()) }
	}
	named["SetV128lo32"], named["SetV128lo64"] = set(32), set(64)
	for _, name := range []string{"F64asI64", "I64asF64", "F32asI32", "I32asF32", "V128asI128", "I128asV128"} {
		named["Reinterp"+name] = same
	}
}
