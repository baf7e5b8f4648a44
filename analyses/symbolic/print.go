package symbolic

import (
	"fmt"
	"strings"
)

// String writes the expression as one would on paper: comparisons and arithmetic
// infix, truths with ∧ and ∨. A comparison or a division without a sign has a u
// behind it, floating point an f and how it rounds: ↓, ↑ or ₀, to zero. What
// stands in several places and is long is named before: let t1 = ... in.
func (e *Expr) String() string {
	w := &printer{names: map[*Expr]string{}, uses: map[*Expr]int{}}
	w.count(e)
	body := w.text(e, 0)
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

func (w *printer) count(e *Expr) {
	w.uses[e]++
	if w.uses[e] == 1 {
		e.args(w.count)
	}
}

// long is how many operations and leaves a common part has that is named.
const long = 6

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

type infix struct {
	level int
	sign  string
}

var infixes = map[Op]infix{
	And: {levelAnd, "&"}, Or: {levelOr, "|"}, Xor: {levelXor, "^"}, Add: {levelAdd, "+"}, Sub: {levelAdd, "-"},
	Mul: {levelMul, "*"}, UDiv: {levelMul, "/u"}, URem: {levelMul, "%u"}, SDiv: {levelMul, "/"}, SRem: {levelMul, "%"},
	Shl: {levelShift, "<<"}, LShr: {levelShift, ">>u"}, AShr: {levelShift, ">>"}, Eq: {levelCompare, "="},
	ULT: {levelCompare, "<u"}, ULE: {levelCompare, "≤u"}, SLT: {levelCompare, "<"}, SLE: {levelCompare, "≤"},
	Concat: {levelConcat, "∘"}, FAdd: {levelAdd, "+f"}, FSub: {levelAdd, "-f"}, FMul: {levelMul, "*f"},
	FDiv: {levelMul, "/f"}, FEq: {levelCompare, "=f"}, FLT: {levelCompare, "<f"}, FLE: {levelCompare, "≤f"},
}

// negated are the signs of comparisons that are not so. A comparison of numbers
// without NaN is turned round instead, before it comes here.
var negated = map[Op]string{Eq: "≠"}

func (w *printer) text(e *Expr, outer int) string {
	if name := w.names[e]; name != "" {
		return name
	}
	if w.uses[e] > 1 && e.Size() >= long {
		body := w.plain(e, 0)
		name := fmt.Sprintf("t%d", len(w.lets)+1)
		w.names[e] = name
		w.lets = append(w.lets, name+" = "+body)
		return name
	}
	return w.plain(e, outer)
}

func (w *printer) plain(e *Expr, outer int) string {
	switch e.Op {
	case Const:
		return number(e.Value, e.Bits)
	case Symbol:
		return e.Name
	case Not:
		if sign := negated[e.A.Op]; sign != "" && w.names[e.A] == "" {
			return enclose(w.text(e.A.A, levelCompare)+" "+sign+" "+w.text(e.A.B, levelCompare), levelCompare, outer)
		}
		if e.Bits == 1 {
			return enclose("¬"+w.text(e.A, levelUnary), levelNot, outer)
		}
		return "~" + w.text(e.A, levelUnary)
	case Ite:
		body := "if " + w.text(e.A, levelIte) + " then " + w.text(e.B, levelIte) + " else " + w.text(e.C, 0)
		return enclose(body, levelIte, outer)
	case Extract:
		if e.Bits == 1 {
			return fmt.Sprintf("%s[%d]", w.text(e.A, levelUnary), e.Low)
		}
		return fmt.Sprintf("%s[%d:%d]", w.text(e.A, levelUnary), e.Low+e.Bits-1, e.Low)
	}
	if i, ok := infixes[e.Op]; ok && e.B != nil {
		sign := i.sign
		if e.Bits == 1 && (e.Op == And || e.Op == Or) {
			sign = map[Op]string{And: "∧", Or: "∨"}[e.Op]
		}
		if e.Op == Add && e.B.Op == Const && e.Bits >= 8 && bit(e.B.Value, e.Bits-1) {
			return enclose(w.text(e.A, i.level-1)+" - "+number(negate(e.B.Value, e.Bits), e.Bits), i.level, outer)
		}
		sign += [...]string{"", "↓", "↑", "₀"}[e.Mode]
		return enclose(w.text(e.A, i.level-1)+" "+sign+" "+w.text(e.B, i.level), i.level, outer)
	}
	return w.function(e)
}

// function writes what has no sign.
func (w *printer) function(e *Expr) string {
	args := []string{}
	e.args(func(a *Expr) { args = append(args, w.text(a, 0)) })
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

func enclose(text string, level, outer int) string {
	if level <= outer {
		return "(" + text + ")"
	}
	return text
}

// number writes small numbers in decimal, negative ones with their sign, others in
// hexadecimal.
func number(v Value, n int) string {
	const small = 1 << 20
	switch neg := negate(v, n); {
	case v.Hi == 0 && v.Lo < small:
		return fmt.Sprint(v.Lo)
	case n > 8 && neg.Hi == 0 && neg.Lo < small:
		return fmt.Sprintf("-%d", neg.Lo)
	case v.Hi == 0:
		return fmt.Sprintf("%#x", v.Lo)
	}
	return fmt.Sprintf("0x%x%016x", v.Hi, v.Lo)
}
