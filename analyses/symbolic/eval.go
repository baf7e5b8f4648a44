package symbolic

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/vex"
)

// computeOperation returns the value of an operation, given the values of its operands.
func computeOperation(e *Expr, a, b, c Value) Value {
	n := e.Bits
	switch e.Op {
	case Not:
		return complementBits(a, n)
	case Extract:
		return truncate(shiftRight(a, e.Low), n)
	case ZeroExt:
		return a
	case SignExt:
		return signExtend(a, e.A.Bits, n)
	case Concat:
		return bitwiseOr(shiftLeft(a, e.B.Bits, n), b)
	case And:
		return bitwiseAnd(a, b)
	case Or:
		return bitwiseOr(a, b)
	case Xor:
		return bitwiseXor(a, b)
	case Add:
		return addWrapping(a, b, n)
	case Sub:
		return subtractWrapping(a, b, n)
	case Mul:
		return multiplyWrapping(a, b, n)
	case Ite:
		if a.Lo != 0 {
			return b
		}
		return c
	case Clz:
		return wordValue(uint64(leadingZeros(a, n)))
	case Ctz:
		return wordValue(uint64(trailingZeros(a, n)))
	}
	if e.Op >= FAdd {
		return computeFloat(e, a, b)
	}
	return computeBinary(e, a, b)
}

func computeBinary(e *Expr, a, b Value) Value {
	n := e.A.Bits
	switch e.Op {
	case UDiv:
		q, _ := divideUnsigned(a, b, n)
		return q
	case URem:
		_, r := divideUnsigned(a, b, n)
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
		return boolValue(a == b)
	case ULT:
		return boolValue(lessUnsigned(a, b))
	case ULE:
		return boolValue(!lessUnsigned(b, a))
	case SLT:
		return boolValue(lessSigned(a, b, n))
	case SLE:
		return boolValue(!lessSigned(b, a, n))
	default:
		panic(fmt.Sprintf("bug: %v has no value", e.Op))
	}
}

// computeFloat computes floating point with the interpreter of libVEX's code.
func computeFloat(e *Expr, a, b Value) Value {
	n, mode := e.A.Bits, wordValue(uint64(e.Mode))
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
		return boolValue(vex.Apply("Cmp"+name+size, a, b).Lo&1 != 0)
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

// Assignment gives symbols values, by name; false: the symbol has no value.
type Assignment func(name string) (Value, bool)

// Evaluator computes the values of expressions under an assignment, each subexpression
// once.
type Evaluator struct {
	assignment Assignment
	computed   map[*Expr]Value
	missing    string
}

// NewEvaluator makes an Evaluator.
func NewEvaluator(a Assignment) *Evaluator {
	return &Evaluator{assignment: a, computed: map[*Expr]Value{}}
}

// Value returns the value of e. It returns an error if a symbol of e has no value.
func (v *Evaluator) Value(e *Expr) (Value, error) {
	x := v.evaluate(e)
	if v.missing != "" {
		return Value{}, fmt.Errorf("symbol %s has no value", v.missing)
	}
	return x, nil
}

func (v *Evaluator) evaluate(e *Expr) Value {
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
	if x, ok := v.computed[e]; ok {
		return x
	}
	x := computeOperation(e, v.evaluate(e.A), v.evaluate(e.B), v.evaluate(e.C))
	v.computed[e] = x
	return x
}

// Substitute replaces symbols by expressions of the same size; a symbol whose replacement
// is nil stays.
func (p *Pool) Substitute(e *Expr, replacement func(name string) *Expr) *Expr {
	return p.SubstituteAll([]*Expr{e}, replacement)[0]
}

// SubstituteAll substitutes in several expressions and visits common parts once.
func (p *Pool) SubstituteAll(all []*Expr, replacement func(name string) *Expr) []*Expr {
	return p.ReplaceAll(all, func(e *Expr) *Expr {
		if e.Op != Symbol {
			return nil
		}
		return replacement(e.Name)
	})
}

// ReplaceAll replaces subexpressions by others of the same size, outer ones first; a
// subexpression whose replacement is nil stays.
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
			r = p.rebuildWith(e, replace(e.A), replace(e.B), replace(e.C))
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

// Symbols calls f for each symbol of an expression once, in the order of their first use.
func Symbols(e *Expr, f func(*Expr)) { SymbolsOf([]*Expr{e}, f) }

// SymbolsOf calls f for each symbol of several expressions once.
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
		e.eachOperand(visit)
	}
	for _, e := range all {
		visit(e)
	}
}
