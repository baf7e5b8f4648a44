package symbolic

import (
	"fmt"
	"strings"
)

// String writes the expression in mathematical notation: comparisons and arithmetic infix,
// truths with ∧ and ∨. Unsigned comparisons and divisions have a u after the sign, floating
// point an f and the rounding mode: ↓, ↑ or ₀ (towards zero). A long part that occurs
// several times is named first: let t1 = ... in.
func (e *Expr) String() string {
	w := &printer{names: map[*Expr]string{}, uses: map[*Expr]int{}}
	w.countUses(e)
	body := w.formatExpr(e, 0)
	if len(w.lets) == 0 {
		return body
	}
	return "let " + strings.Join(w.lets, ", ") + " in " + body
}

type printer struct {
	uses  map[*Expr]int
	names map[*Expr]string
	lets  []string
}

func (w *printer) countUses(e *Expr) {
	w.uses[e]++
	if w.uses[e] == 1 {
		e.eachOperand(w.countUses)
	}
}

// minNamedSize is the size from which a common part is named.
const minNamedSize = 6

// Levels of precedence, the loosest first.
const (
	levelIte = iota + 1
	levelOr
	levelXor
	levelAnd
	levelNot
	levelCompare
	levelConcat
	levelAdd
	levelMul
	levelShift
	levelUnary
)

type infixOperator struct {
	level int
	sign  string
}

var infixOperators = map[Op]infixOperator{
	And: {levelAnd, "&"}, Or: {levelOr, "|"}, Xor: {levelXor, "^"}, Add: {levelAdd, "+"}, Sub: {levelAdd, "-"},
	Mul: {levelMul, "*"}, UDiv: {levelMul, "/u"}, URem: {levelMul, "%u"}, SDiv: {levelMul, "/"}, SRem: {levelMul, "%"},
	Shl: {levelShift, "<<"}, LShr: {levelShift, ">>u"}, AShr: {levelShift, ">>"}, Eq: {levelCompare, "="},
	ULT: {levelCompare, "<u"}, ULE: {levelCompare, "≤u"}, SLT: {levelCompare, "<"}, SLE: {levelCompare, "≤"},
	Concat: {levelConcat, "∘"}, FAdd: {levelAdd, "+f"}, FSub: {levelAdd, "-f"}, FMul: {levelMul, "*f"},
	FDiv: {levelMul, "/f"}, FEq: {levelCompare, "=f"}, FLT: {levelCompare, "<f"}, FLE: {levelCompare, "≤f"},
}

// negatedSigns are the signs of negated comparisons. Negated comparisons of integers have
// been turned into the opposite ones before.
var negatedSigns = map[Op]string{Eq: "≠"}

func (w *printer) formatExpr(e *Expr, outer int) string {
	if name := w.names[e]; name != "" {
		return name
	}
	if w.uses[e] > 1 && e.Size() >= minNamedSize {
		body := w.formatOperation(e, 0)
		name := fmt.Sprintf("t%d", len(w.lets)+1)
		w.names[e] = name
		w.lets = append(w.lets, name+" = "+body)
		return name
	}
	return w.formatOperation(e, outer)
}

func (w *printer) formatOperation(e *Expr, outer int) string {
	switch e.Op {
	case Const:
		return formatNumber(e.Value, e.Bits)
	case Symbol:
		return e.Name
	case Not:
		if sign := negatedSigns[e.A.Op]; sign != "" && w.names[e.A] == "" {
			return parenthesize(w.formatExpr(e.A.A, levelCompare)+" "+sign+" "+w.formatExpr(e.A.B, levelCompare), levelCompare, outer)
		}
		if e.Bits == 1 {
			return parenthesize("¬"+w.formatExpr(e.A, levelUnary), levelNot, outer)
		}
		return "~" + w.formatExpr(e.A, levelUnary)
	case Ite:
		body := "if " + w.formatExpr(e.A, levelIte) + " then " + w.formatExpr(e.B, levelIte) + " else " + w.formatExpr(e.C, 0)
		return parenthesize(body, levelIte, outer)
	case Extract:
		if e.Bits == 1 {
			return fmt.Sprintf("%s[%d]", w.formatExpr(e.A, levelUnary), e.Low)
		}
		return fmt.Sprintf("%s[%d:%d]", w.formatExpr(e.A, levelUnary), e.Low+e.Bits-1, e.Low)
	}
	if i, ok := infixOperators[e.Op]; ok && e.B != nil {
		sign := i.sign
		if e.Bits == 1 && (e.Op == And || e.Op == Or) {
			sign = map[Op]string{And: "∧", Or: "∨"}[e.Op]
		}
		if e.Op == Add && e.B.Op == Const && e.Bits >= 8 && bitAt(e.B.Value, e.Bits-1) {
			return parenthesize(w.formatExpr(e.A, i.level-1)+" - "+formatNumber(negateWrapping(e.B.Value, e.Bits), e.Bits), i.level, outer)
		}
		sign += [...]string{"", "↓", "↑", "₀"}[e.Mode]
		return parenthesize(w.formatExpr(e.A, i.level-1)+" "+sign+" "+w.formatExpr(e.B, i.level), i.level, outer)
	}
	return w.formatFunction(e)
}

// formatFunction writes an operation without an infix sign.
func (w *printer) formatFunction(e *Expr) string {
	args := []string{}
	e.eachOperand(func(a *Expr) { args = append(args, w.formatExpr(a, 0)) })
	name := e.Op.String()
	switch e.Op {
	case ZeroExt, SignExt, FToF, FToInt, IntToF:
		name = fmt.Sprintf("%s%d", name, e.Bits)
	}
	if e.Mode != Nearest {
		name += [...]string{"", "_down", "_up", "_zero"}[e.Mode]
	}
	return name + "(" + strings.Join(args, ", ") + ")"
}

func parenthesize(text string, level, outer int) string {
	if level <= outer {
		return "(" + text + ")"
	}
	return text
}

// formatNumber writes small numbers in decimal, negative ones with their sign, others in
// hexadecimal.
func formatNumber(v Value, n int) string {
	const small = 1 << 20
	switch neg := negateWrapping(v, n); {
	case v.Hi == 0 && v.Lo < small:
		return fmt.Sprint(v.Lo)
	case n > 8 && neg.Hi == 0 && neg.Lo < small:
		return fmt.Sprintf("-%d", neg.Lo)
	case v.Hi == 0:
		return fmt.Sprintf("%#x", v.Lo)
	}
	return fmt.Sprintf("0x%x%016x", v.Hi, v.Lo)
}
