package exec

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// modes are the operations of which the first operand is a rounding mode, which must
// be known; of nearestModes it must be the nearest besides.
var (
	modes        = []string{"AddF64", "SubF64", "MulF64", "DivF64", "F64toF32", "F64toI32S", "F64toI64S", "I64StoF64", "RoundF64toInt"}
	nearestModes = func() (names []string) {
		for _, op := range []string{"Add", "Sub", "Mul", "Div", "Sqrt"} {
			names = append(names, op+"64Fx2", op+"32Fx4")
		}
		return names
	}()
)

// mode is a rounding mode.
func mode(e *symbolic.Expr) symbolic.Mode { return symbolic.Mode(e.Value.Lo & 3) }

// moded makes an operation of floating point with a rounding mode as its first
// operand; count is how many others there are.
func moded(op symbolic.Op, bits, count int) opFunc {
	return func(t *operands) *symbolic.Expr {
		m := mode(t.a())
		if count == 1 {
			return t.Float(op, m, bits, t.b(), nil)
		}
		return t.Float(op, m, bits, t.b(), t.c())
	}
}

// float makes a lane's operation.
func float(op symbolic.Op) laneFunc {
	return func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr {
		if op == symbolic.FSqrt {
			return p.Float(op, symbolic.Nearest, a.Bits, a, nil)
		}
		return p.Float(op, symbolic.Nearest, a.Bits, a, b)
	}
}

// compared makes a lane's comparison.
func compared(op symbolic.Op) laneFunc {
	return func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr { return p.Float(op, 0, 1, a, b) }
}

// lowest makes an operation on the lowest lane alone.
func lowest(n int, f laneFunc) opFunc {
	return func(t *operands) *symbolic.Expr {
		b := t.b()
		if b == nil {
			b = t.a()
		}
		r := f(t.Pool, t.Extract(t.a(), 0, n), t.Extract(b, 0, n))
		return t.Concat(t.Extract(t.a(), n, 128-n), r)
	}
}

// withoutMode drops a rounding mode, which is the nearest.
func withoutMode(f opFunc) opFunc {
	return func(t *operands) *symbolic.Expr {
		with := &operands{Pool: t.Pool, args: [4]*symbolic.Expr{t.args[1], t.args[2], t.args[3]}}
		if with.args[1] == nil {
			with.args[1] = with.args[0]
		}
		return f(with)
	}
}

func floatOps(named map[string]opFunc) {
	for name, op := range map[string]symbolic.Op{
		"Add": symbolic.FAdd, "Sub": symbolic.FSub, "Mul": symbolic.FMul, "Div": symbolic.FDiv, "Sqrt": symbolic.FSqrt,
	} {
		named[name+"64F0x2"], named[name+"32F0x4"] = lowest(64, float(op)), lowest(32, float(op))
		named[name+"64Fx2"], named[name+"32Fx4"] = withoutMode(lanes(64, 2, float(op))), withoutMode(lanes(32, 4, float(op)))
		if op != symbolic.FSqrt {
			named[name+"F64"] = moded(op, 64, 2)
		}
	}
	// The second operand unless the first is truly less or greater.
	for name, f := range map[string]laneFunc{
		"Min": choice(compared(symbolic.FLT)), "Max": choice(swapped(compared(symbolic.FLT))),
	} {
		named[name+"64F0x2"], named[name+"32F0x4"] = lowest(64, f), lowest(32, f)
		named[name+"64Fx2"], named[name+"32Fx4"] = lanes(64, 2, f), lanes(32, 4, f)
	}
	for name, op := range map[string]symbolic.Op{
		"EQ": symbolic.FEq, "LT": symbolic.FLT, "LE": symbolic.FLE, "UN": symbolic.FUnordered,
	} {
		f := spread(compared(op))
		named["Cmp"+name+"64F0x2"], named["Cmp"+name+"32F0x4"] = lowest(64, f), lowest(32, f)
		named["Cmp"+name+"64Fx2"], named["Cmp"+name+"32Fx4"] = lanes(64, 2, f), lanes(32, 4, f)
	}
	floatConversions(named)
}

func floatConversions(named map[string]opFunc) {
	named["CmpF64"] = compareF64
	named["F32toF64"] = func(t *operands) *symbolic.Expr { return t.Float(symbolic.FToF, 0, 64, t.a(), nil) }
	named["F64toF32"] = moded(symbolic.FToF, 32, 1)
	named["F64toI32S"], named["F64toI64S"] = moded(symbolic.FToInt, 32, 1), moded(symbolic.FToInt, 64, 1)
	named["I64StoF64"] = moded(symbolic.IntToF, 64, 1)
	named["I32StoF64"] = func(t *operands) *symbolic.Expr {
		return t.Float(symbolic.IntToF, 0, 64, t.SignExt(t.a(), 64), nil)
	}
	named["I32UtoF64"] = func(t *operands) *symbolic.Expr {
		return t.Float(symbolic.IntToF, 0, 64, t.ZeroExt(t.a(), 64), nil)
	}
	named["RoundF64toInt"] = moded(symbolic.FRound, 64, 1)
	for _, n := range []int{32, 64} {
		sign := func(t *operands) *symbolic.Expr { return t.Shl(t.Word(1, n), t.Word(uint64(n-1), n)) }
		named[fmt.Sprintf("NegF%d", n)] = func(t *operands) *symbolic.Expr { return t.Xor(t.a(), sign(t)) }
		named[fmt.Sprintf("AbsF%d", n)] = func(t *operands) *symbolic.Expr { return t.And(t.a(), t.Not(sign(t))) }
	}
}

// compareF64 gives IRCmpFResult: 0x45 unordered, 1 less, 0 greater, 0x40 equal.
func compareF64(t *operands) *symbolic.Expr {
	is := func(op symbolic.Op) *symbolic.Expr { return t.Float(op, 0, 1, t.a(), t.b()) }
	number := func(n uint64) *symbolic.Expr { return t.Word(n, 32) }
	return t.Ite(is(symbolic.FUnordered), number(0x45),
		t.Ite(is(symbolic.FLT), number(1), t.Ite(is(symbolic.FEq), number(0x40), number(0))))
}
