package concolic

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// roundingModeOps are the operations whose first operand is a rounding mode, which must be
// known; for nearestModeOps it must also be the nearest.
var (
	roundingModeOps = []string{"AddF64", "SubF64", "MulF64", "DivF64", "F64toF32", "F64toI32S", "F64toI64S", "I64StoF64", "RoundF64toInt"}
	nearestModeOps  = func() (names []string) {
		for _, op := range []string{"Add", "Sub", "Mul", "Div", "Sqrt"} {
			names = append(names, op+"64Fx2", op+"32Fx4")
		}
		return names
	}()
)

// roundingMode is the value of a rounding mode.
func roundingMode(e *symbolic.Expr) symbolic.Mode { return symbolic.Mode(e.Value.Lo & 3) }

// roundedOp makes a floating-point operation whose first operand is a rounding mode; count
// is the number of other operands.
func roundedOp(op symbolic.Op, bits, count int) opFunc {
	return func(t *operands) *symbolic.Expr {
		m := roundingMode(t.first())
		if count == 1 {
			return t.Float(op, m, bits, t.second(), nil)
		}
		return t.Float(op, m, bits, t.second(), t.third())
	}
}

// floatLane makes the operation of one lane.
func floatLane(op symbolic.Op) laneFunc {
	return func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr {
		if op == symbolic.FSqrt {
			return p.Float(op, symbolic.Nearest, a.Bits, a, nil)
		}
		return p.Float(op, symbolic.Nearest, a.Bits, a, b)
	}
}

// compareLane makes the comparison of one lane.
func compareLane(op symbolic.Op) laneFunc {
	return func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr { return p.Float(op, 0, 1, a, b) }
}

// lowestLaneOp makes an operation on the lowest lane alone.
func lowestLaneOp(n int, f laneFunc) opFunc {
	return func(t *operands) *symbolic.Expr {
		b := t.second()
		if b == nil {
			b = t.first()
		}
		r := f(t.Pool, t.Extract(t.first(), 0, n), t.Extract(b, 0, n))
		return t.Concat(t.Extract(t.first(), n, 128-n), r)
	}
}

// dropModeOperand removes a rounding mode, which is the nearest.
func dropModeOperand(f opFunc) opFunc {
	return func(t *operands) *symbolic.Expr {
		with := &operands{Pool: t.Pool, args: [4]*symbolic.Expr{t.args[1], t.args[2], t.args[3]}}
		if with.args[1] == nil {
			with.args[1] = with.args[0]
		}
		return f(with)
	}
}

func addFloatOps(named map[string]opFunc) {
	for name, op := range map[string]symbolic.Op{
		"Add": symbolic.FAdd, "Sub": symbolic.FSub, "Mul": symbolic.FMul, "Div": symbolic.FDiv, "Sqrt": symbolic.FSqrt,
	} {
		named[name+"64F0x2"], named[name+"32F0x4"] = lowestLaneOp(64, floatLane(op)), lowestLaneOp(32, floatLane(op))
		named[name+"64Fx2"], named[name+"32Fx4"] = dropModeOperand(lanewiseOp(64, 2, floatLane(op))), dropModeOperand(lanewiseOp(32, 4, floatLane(op)))
		if op != symbolic.FSqrt {
			named[name+"F64"] = roundedOp(op, 64, 2)
		}
	}
	// The second operand unless the first compares less or greater.
	for name, f := range map[string]laneFunc{
		"Min": chooseOperand(compareLane(symbolic.FLT)), "Max": chooseOperand(swapOperands(compareLane(symbolic.FLT))),
	} {
		named[name+"64F0x2"], named[name+"32F0x4"] = lowestLaneOp(64, f), lowestLaneOp(32, f)
		named[name+"64Fx2"], named[name+"32Fx4"] = lanewiseOp(64, 2, f), lanewiseOp(32, 4, f)
	}
	for name, op := range map[string]symbolic.Op{
		"EQ": symbolic.FEq, "LT": symbolic.FLT, "LE": symbolic.FLE, "UN": symbolic.FUnordered,
	} {
		f := spreadTruth(compareLane(op))
		named["Cmp"+name+"64F0x2"], named["Cmp"+name+"32F0x4"] = lowestLaneOp(64, f), lowestLaneOp(32, f)
		named["Cmp"+name+"64Fx2"], named["Cmp"+name+"32Fx4"] = lanewiseOp(64, 2, f), lanewiseOp(32, 4, f)
	}
	addFloatConversions(named)
}

func addFloatConversions(named map[string]opFunc) {
	named["CmpF64"] = compareF64
	named["F32toF64"] = func(t *operands) *symbolic.Expr { return t.Float(symbolic.FToF, 0, 64, t.first(), nil) }
	named["F64toF32"] = roundedOp(symbolic.FToF, 32, 1)
	named["F64toI32S"], named["F64toI64S"] = roundedOp(symbolic.FToInt, 32, 1), roundedOp(symbolic.FToInt, 64, 1)
	named["I64StoF64"] = roundedOp(symbolic.IntToF, 64, 1)
	named["I32StoF64"] = func(t *operands) *symbolic.Expr {
		return t.Float(symbolic.IntToF, 0, 64, t.SignExt(t.first(), 64), nil)
	}
	named["I32UtoF64"] = func(t *operands) *symbolic.Expr {
		return t.Float(symbolic.IntToF, 0, 64, t.ZeroExt(t.first(), 64), nil)
	}
	named["RoundF64toInt"] = roundedOp(symbolic.FRound, 64, 1)
	for _, n := range []int{32, 64} {
		sign := func(t *operands) *symbolic.Expr { return t.Shl(t.Word(1, n), t.Word(uint64(n-1), n)) }
		named[fmt.Sprintf("NegF%d", n)] = func(t *operands) *symbolic.Expr { return t.Xor(t.first(), sign(t)) }
		named[fmt.Sprintf("AbsF%d", n)] = func(t *operands) *symbolic.Expr { return t.And(t.first(), t.Not(sign(t))) }
	}
}

// compareF64 returns an IRCmpFResult: 0x45 unordered, 1 less, 0 greater, 0x40 equal.
func compareF64(t *operands) *symbolic.Expr {
	is := func(op symbolic.Op) *symbolic.Expr { return t.Float(op, 0, 1, t.first(), t.second()) }
	number := func(n uint64) *symbolic.Expr { return t.Word(n, 32) }
	return t.Ite(is(symbolic.FUnordered), number(0x45),
		t.Ite(is(symbolic.FLT), number(1), t.Ite(is(symbolic.FEq), number(0x40), number(0))))
}
