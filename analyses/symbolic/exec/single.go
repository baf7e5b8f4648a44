package exec

import (
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// Operation is the expression of an operation of libVEX's, nil if it has none for
// these operands, and the truth that it does not trap, nil if it never does.
func Operation(p *symbolic.Pool, op vex.Op, args []*symbolic.Expr) (e, holds *symbolic.Expr) {
	r := &rules()[op]
	if k := r.known; r.make == nil || k > 0 && (!args[k-1].IsConst() || r.nearest && args[k-1].Value.Lo != 0) {
		return nil, nil
	}
	t := &operands{Pool: p}
	copy(t.args[:], args)
	if e = r.make(t); e != nil && r.division {
		holds = sound(t, op.String())
	}
	return e, holds
}

// Flags is the expression of a helper of libVEX's that computes flags, nil if it is
// none or its operation is no constant.
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
	t := newThunk(p, operands[0].Value.Lo, operands[1], operands[2], operands[3])
	switch {
	case t == nil:
		return nil
	case condition:
		return t.ZeroExt(t.condition(args[0].Value.Lo), 64)
	case callee == "amd64g_calculate_rflags_c":
		return t.ZeroExt(t.flag(carry), 64)
	}
	return t.all()
}
