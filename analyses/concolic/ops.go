package concolic

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// operands are the operands of an operation, as expressions of a pool.
type operands struct {
	*symbolic.Pool
	args [4]*symbolic.Expr
}

func (t *operands) first() *symbolic.Expr  { return t.args[0] }
func (t *operands) second() *symbolic.Expr { return t.args[1] }
func (t *operands) third() *symbolic.Expr  { return t.args[2] }

// opFunc builds the expression of an operation.
type opFunc func(t *operands) *symbolic.Expr

// operationRule says how an operation is expressed.
type operationRule struct {
	// build builds its expression; nil: it has none.
	build opFunc
	// fixedOperand is the number, from 1, of an operand that must not depend on inputs;
	// needsNearest is set if it is a rounding mode that must be the nearest.
	fixedOperand int
	needsNearest bool
	// division is set if it can trap.
	division bool
	// widens and narrows are set if it adds bits at the top, or keeps the lowest.
	widens, narrows bool
}

// operationRules are the rules of libVEX's operations, by number.
var operationRules = sync.OnceValue(func() []operationRule {
	named := map[string]opFunc{}
	addIntegerOps(named)
	addConversionOps(named)
	addDivisionOps(named)
	addWideOps(named)
	addVectorOps(named)
	addFloatOps(named)
	var table []operationRule
	for o := vex.Op(0); int(o) < vex.NumOps(); o++ {
		name := o.String()
		r := operationRule{build: named[name], division: strings.HasPrefix(name, "DivMod")}
		switch {
		case slices.Contains(roundingModeOps, name):
			r.fixedOperand = 1
		case slices.Contains(nearestModeOps, name):
			r.fixedOperand, r.needsNearest = 1, true
		case name == "PermOrZero8x16":
			r.fixedOperand = 2
		}
		table = append(table, r)
	}
	for _, name := range conversionNames(false) {
		table[opNumber(name)].narrows = true
	}
	for _, name := range conversionNames(true) {
		table[opNumber(name)].widens = true
	}
	return table
})

// opNumbers has the operations by name.
var opNumbers = sync.OnceValue(func() map[string]vex.Op {
	numbers := map[string]vex.Op{}
	for o := vex.Op(0); int(o) < vex.NumOps(); o++ {
		numbers[o.String()] = o
	}
	return numbers
})

func opNumber(name string) vex.Op { return opNumbers()[name] }

// conversionNames returns the names of the conversions between integer sizes that exist.
func conversionNames(widening bool) []string {
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

// binaryOp makes an opFunc of an operation on two operands.
func binaryOp(f func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr) opFunc {
	return func(t *operands) *symbolic.Expr { return f(t.Pool, t.first(), t.second()) }
}

// shiftOp makes an opFunc of a shift, whose distance is a byte.
func shiftOp(f func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr) opFunc {
	return func(t *operands) *symbolic.Expr {
		return f(t.Pool, t.first(), resizeExpr(t.Pool, t.second(), t.first().Bits))
	}
}

// resizeExpr adds zeros at the top of an expression, or keeps its lower part.
func resizeExpr(p *symbolic.Pool, e *symbolic.Expr, bits int) *symbolic.Expr {
	if e.Bits > bits {
		return p.Extract(e, 0, bits)
	}
	return p.ZeroExt(e, bits)
}

func notEqual(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr { return p.Not(p.Eq(a, b)) }

func addIntegerOps(named map[string]opFunc) {
	not := func(t *operands) *symbolic.Expr { return t.Not(t.first()) }
	for _, n := range []int{8, 16, 32, 64} {
		set := func(format string, f opFunc) { named[fmt.Sprintf(format, n)] = f }
		set("Add%d", binaryOp((*symbolic.Pool).Add))
		set("Sub%d", binaryOp((*symbolic.Pool).Sub))
		set("Mul%d", binaryOp((*symbolic.Pool).Mul))
		set("And%d", binaryOp((*symbolic.Pool).And))
		set("Or%d", binaryOp((*symbolic.Pool).Or))
		set("Xor%d", binaryOp((*symbolic.Pool).Xor))
		set("Not%d", not)
		set("Shl%d", shiftOp((*symbolic.Pool).Shl))
		set("Shr%d", shiftOp((*symbolic.Pool).LShr))
		set("Sar%d", shiftOp((*symbolic.Pool).AShr))
		for _, equal := range []string{"CmpEQ%d", "CasCmpEQ%d"} {
			set(equal, binaryOp((*symbolic.Pool).Eq))
		}
		for _, different := range []string{"CmpNE%d", "CasCmpNE%d", "ExpCmpNE%d"} {
			set(different, binaryOp(notEqual))
		}
		set("CmpLT%dU", binaryOp((*symbolic.Pool).ULT))
		set("CmpLE%dU", binaryOp((*symbolic.Pool).ULE))
		set("CmpLT%dS", binaryOp((*symbolic.Pool).SLT))
		set("CmpLE%dS", binaryOp((*symbolic.Pool).SLE))
		set("Clz%d", func(t *operands) *symbolic.Expr { return t.Count(symbolic.Clz, t.first()) })
		set("Ctz%d", func(t *operands) *symbolic.Expr { return t.Count(symbolic.Ctz, t.first()) })
	}
	named["And1"], named["Or1"], named["Not1"] = named["And8"], named["Or8"], not
	named["AndV128"], named["OrV128"], named["XorV128"], named["NotV128"] = named["And8"], named["Or8"], named["Xor8"], not
}

// lowBits and highBits extract bits from the bottom and the top.
func lowBits(n int) opFunc {
	return func(t *operands) *symbolic.Expr { return t.Extract(t.first(), 0, n) }
}

func highBits(n int) opFunc {
	return func(t *operands) *symbolic.Expr { return t.Extract(t.first(), t.first().Bits-n, n) }
}

func zeroExtended(n int) opFunc {
	return func(t *operands) *symbolic.Expr { return t.ZeroExt(t.first(), n) }
}

func signExtended(n int) opFunc {
	return func(t *operands) *symbolic.Expr { return t.SignExt(t.first(), n) }
}

func firstOperand(t *operands) *symbolic.Expr { return t.first() }

func addConversionOps(named map[string]opFunc) {
	sizes := []int{1, 8, 16, 32, 64}
	for i, from := range sizes {
		for _, to := range sizes[i+1:] {
			named[fmt.Sprintf("%dUto%d", from, to)] = zeroExtended(to)
			named[fmt.Sprintf("%dSto%d", from, to)] = signExtended(to)
			named[fmt.Sprintf("%dto%d", to, from)] = lowBits(from)
		}
	}
	for _, n := range []int{8, 16, 32, 64} {
		named[fmt.Sprintf("%dHIto%d", 2*n, n)] = highBits(n)
		named[fmt.Sprintf("%dto%d", 2*n, n)] = lowBits(n)
		named[fmt.Sprintf("%dHLto%d", n, 2*n)] = binaryOp((*symbolic.Pool).Concat)
		named[fmt.Sprintf("MullU%d", n)] = func(t *operands) *symbolic.Expr {
			return t.Mul(t.ZeroExt(t.first(), 2*n), t.ZeroExt(t.second(), 2*n))
		}
		named[fmt.Sprintf("MullS%d", n)] = func(t *operands) *symbolic.Expr {
			return t.Mul(t.SignExt(t.first(), 2*n), t.SignExt(t.second(), 2*n))
		}
	}
}

// addDivisionOps adds the divisions; the quotient is the lower half, the remainder the
// upper. The executor adds the constraint that the quotient fits and the divisor is not 0,
// since the processor would trap.
func addDivisionOps(named map[string]opFunc) {
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
			by := d.widen(t.Pool, t.second(), 2*d.n)
			return t.Concat(t.Extract(t.Div(d.rm, t.first(), by), 0, d.n), t.Extract(t.Div(d.div, t.first(), by), 0, d.n))
		}
	}
}

// divisionSound is the truth that a division with these operands does not trap; nil if the
// operation is no division.
func divisionSound(t *operands, name string) *symbolic.Expr {
	div, wide, widen := symbolic.UDiv, symbolic.ZeroExt, (*symbolic.Pool).ZeroExt
	switch name {
	case "DivModU64to32", "DivModU128to64":
	case "DivModS64to32", "DivModS128to64":
		div, wide, widen = symbolic.SDiv, symbolic.SignExt, (*symbolic.Pool).SignExt
	default:
		return nil
	}
	n := t.second().Bits
	divisor := t.Not(t.Eq(t.second(), t.Word(0, n)))
	switch {
	case t.first().Op != wide || t.first().A.Bits > n:
		quotient := t.Div(div, t.first(), widen(t.Pool, t.second(), 2*n))
		return t.And(divisor, t.Eq(widen(t.Pool, t.Extract(quotient, 0, n), 2*n), quotient))
	case div == symbolic.SDiv:
		// The least number divided by -1 does not fit.
		least := t.Shl(t.Word(1, n), t.Word(uint64(n-1), n))
		over := t.And(t.Eq(t.Extract(t.first(), 0, n), least), t.Eq(t.second(), t.Not(t.Word(0, n))))
		return t.And(divisor, t.Not(over))
	}
	return divisor
}

func addWideOps(named map[string]opFunc) {
	named["V128to64"], named["V128to32"] = lowBits(64), lowBits(32)
	named["V128HIto64"] = highBits(64)
	named["64HLtoV128"] = binaryOp((*symbolic.Pool).Concat)
	named["32UtoV128"], named["64UtoV128"] = zeroExtended(128), zeroExtended(128)
	set := func(n int) opFunc {
		return func(t *operands) *symbolic.Expr { return t.Concat(t.Extract(t.first(), n, 128-n), t.second()) }
	}
	named["SetV128lo32"], named["SetV128lo64"] = set(32), set(64)
	for _, name := range []string{"F64asI64", "I64asF64", "F32asI32", "I32asF32", "V128asI128", "I128asV128"} {
		named["Reinterp"+name] = firstOperand
	}
}
