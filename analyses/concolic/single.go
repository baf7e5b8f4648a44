package concolic

import (
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// Operation returns the expression of one of libVEX's operations, nil if it has none for
// these operands, and the truth that it does not trap, nil if it never does.
func Operation(p *symbolic.Pool, op vex.Op, args []*symbolic.Expr) (e, holds *symbolic.Expr) {
	r := &operationRules()[op]
	if k := r.fixedOperand; r.build == nil || k > 0 && (!args[k-1].IsConst() || r.needsNearest && args[k-1].Value.Lo != 0) {
		return nil, nil
	}
	t := &operands{Pool: p}
	copy(t.args[:], args)
	if e = r.build(t); e != nil && r.division {
		holds = divisionSound(t, op.String())
	}
	return e, holds
}

// Flags returns the expression of one of libVEX's helpers that compute flags, nil if the
// helper is another or its operation is not constant.
func Flags(p *symbolic.Pool, callee string, args []*symbolic.Expr) *symbolic.Expr {
	condition := callee == "amd64g_calculate_condition"
	operands := args
	if condition {
		operands = args[1:]
	}
	switch callee {
	case "amd64g_calculate_condition", "amd64g_calculate_rflags_all", "amd64g_calculate_rflags_c":
	default:
		return nil
	}
	if !operands[0].IsConst() || condition && !args[0].IsConst() {
		return nil
	}
	t := newFlagThunk(p, operands[0].Value.Lo, operands[1], operands[2], operands[3])
	switch {
	case t == nil:
		return nil
	case condition:
		return t.ZeroExt(t.conditionValue(args[0].Value.Lo), 64)
	case callee == "amd64g_calculate_rflags_c":
		return t.ZeroExt(t.flagValue(flagCarry), 64)
	}
	return t.allFlags()
}
