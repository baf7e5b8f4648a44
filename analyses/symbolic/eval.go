package symbolic

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/vex"
)

// compute is the value of an operation, by those of its operands.
func compute(e *Expr, a, b, c Value) Value {
	n := e.Bits
	switch e.Op {
	case Not:
		return not(a, n)
	case Extract:
		return truncate(shiftRight(a, e.Low), n)
	case ZeroExt:
		return a
	case SignExt:
		return signExtend(a, e.A.Bits, n)
	case Concat:
		return or(shiftLeft(a, e.B.Bits, n), b)
	case And:
		return and(a, b)
	case Or:
		return or(a, b)
	case Xor:
		return xor(a, b)
	case Add:
		return add(a, b, n)
	case Sub:
		return sub(a, b, n)
	case Mul:
		return mul(a, b, n)
	case Ite:
		if a.Lo != 0 {
			return b
		}
		return c
	case Clz:
		return word(uint64(leadingZeros(a, n)))
	case Ctz:
		return word(uint64(trailingZeros(a, n)))
	}
	if e.Op >= FAdd {
		return computeFloat(e, a, b)
	}
	return computeMore(e, a, b)
}

func computeMore(e *Expr, a, b Value) Value {
	n := e.A.Bits
	switch e.Op {
	case UDiv:
		q, _ := divide(a, b, n)
		return q
	case URem:
		_, r := divide(a, b, n)
		return r
	case SDiv:
		q, _ := divideSigned(a, b, n)
		return q
	case SRem:
		_, r := divideSigned(a, b, n)
		return r
	case Shl:
		return shiftLeft(a, shiftAmount(b), n)
	case LShr:
		return shiftRight(a, shiftAmount(b))
	case AShr:
		return shiftRightSigned(a, shiftAmount(b), n)
	case Eq:
		return truth(a == b)
	case ULT:
		return truth(less(a, b))
	case ULE:
		return truth(!less(b, a))
	case SLT:
		return truth(lessSigned(a, b, n))
	case SLE:
		return truth(!lessSigned(b, a, n))
	default:
		panic(fmt.Sprintf("bug: %v has no value", e.Op))
	}
}

// computeFloat leaves floating point to the interpreter of libVEX's code.
func computeFloat(e *Expr, a, b Value) Value {
	n, mode := e.A.Bits, word(uint64(e.Mode))
	wide := n == 64
	name := ""
	switch e.Op {
	case FAdd, FSub, FMul, FDiv:
		name = [...]string{"Add", "Sub", "Mul", "Div"}[e.Op-FAdd]
		if wide {
			return vex.Apply(name+"F64", mode, a, b)
		}
		return vex.Apply(name+"32F0x4", a, b)
	case FSqrt:
		if wide {
			return vex.Apply("SqrtF64", mode, a)
		}
		return vex.Apply("Sqrt32F0x4", a)
	case FEq, FLT, FLE, FUnordered:
		name = [...]string{"EQ", "LT", "LE", "UN"}[e.Op-FEq]
		size := "32F0x4"
		if wide {
			size = "64F0x2"
		}
		return truth(vex.Apply("Cmp"+name+size, a, b).Lo&1 != 0)
	case FToF:
		if wide {
			return vex.Apply("F64toF32", mode, a)
		}
		return vex.Apply("F32toF64", a)
	case FToInt:
		return vex.Apply(fmt.Sprintf("F64toI%dS", e.Bits), mode, a)
	case IntToF:
		if n == 32 {
			return vex.Apply("I32StoF64", a)
		}
		return vex.Apply("I64StoF64", mode, a)
	default: // FRound
		return vex.Apply(fmt.Sprintf("RoundF%dtoInt", n), mode, a)
	}
}

// Assignment gives symbols values, by name; false: it has none for the name.
type Assignment func(name string) (Value, bool)

// Evaluator gives expressions their values under an assignment, each
// subexpression once.
type Evaluator struct {
	assignment Assignment
	known      map[*Expr]Value
	missing    string
}

// NewEvaluator makes an Evaluator.
func NewEvaluator(a Assignment) *Evaluator {
	return &Evaluator{assignment: a, known: map[*Expr]Value{}}
}

// Value is the value of e. It is an error if a symbol of it has none.
func (v *Evaluator) Value(e *Expr) (Value, error) {
	x := v.value(e)
	if v.missing != "" {
		return Value{}, fmt.Errorf("symbol %s has no value", v.missing)
	}
	return x, nil
}

func (v *Evaluator) value(e *Expr) Value {
	if e == nil {
		return Value{}
	}
	switch e.Op {
	case Const:
		return e.Value
	case Symbol:
		x, ok := v.assignment(e.Name)
		if !ok {
			v.missing = e.Name
		}
		return truncate(x, e.Bits)
	}
	if x, ok := v.known[e]; ok {
		return x
	}
	x := compute(e, v.value(e.A), v.value(e.B), v.value(e.C))
	v.known[e] = x
	return x
}

// Substitute replaces symbols by expressions of their sizes; those without a
// replacement, nil, stay.
func (p *Pool) Substitute(e *Expr, replacement func(name string) *Expr) *Expr {
	return p.SubstituteAll([]*Expr{e}, replacement)[0]
}

// SubstituteAll is Substitute for expressions: what they have in common is done once.
func (p *Pool) SubstituteAll(all []*Expr, replacement func(name string) *Expr) []*Expr {
	return p.ReplaceAll(all, func(e *Expr) *Expr {
		if e.Op != Symbol {
			return nil
		}
		return replacement(e.Name)
	})
}

// ReplaceAll replaces, in expressions, expressions of which they are made by others of
// their sizes, those further out first; those without a replacement, nil, stay.
func (p *Pool) ReplaceAll(all []*Expr, replacement func(*Expr) *Expr) []*Expr {
	done := map[*Expr]*Expr{}
	var replace func(*Expr) *Expr
	replace = func(e *Expr) *Expr {
		if e == nil || e.Op == Const {
			return e
		}
		if r := done[e]; r != nil {
			return r
		}
		r := replacement(e)
		switch {
		case r != nil:
		case e.Op == Symbol:
			r = e
		default:
			r = p.rebuild(e, replace(e.A), replace(e.B), replace(e.C))
		}
		done[e] = r
		return r
	}
	out := make([]*Expr, len(all))
	for i, e := range all {
		out[i] = replace(e)
	}
	return out
}

// Symbols calls f for each symbol of an expression once, in the order in which
// they stand in it.
func Symbols(e *Expr, f func(*Expr)) { SymbolsOf([]*Expr{e}, f) }

// SymbolsOf is Symbols for expressions, each symbol once among all.
func SymbolsOf(all []*Expr, f func(*Expr)) {
	seen := map[*Expr]bool{}
	var visit func(*Expr)
	visit = func(e *Expr) {
		if seen[e] {
			return
		}
		seen[e] = true
		if e.Op == Symbol {
			f(e)
		}
		e.args(visit)
	}
	for _, e := range all {
		visit(e)
	}
}
