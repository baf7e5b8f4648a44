package symbolic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Lines writes expressions as text, one line for each operation or leaf, operands before
// operations and common parts once:
//
//	NUMBER symbol BITS "NAME"
//	NUMBER const BITS HIGH LOW
//	NUMBER OPERATION BITS MODE BIT OPERAND...
//
// Lines are numbered from 0, and operands are the numbers of earlier lines. HIGH and LOW
// are hexadecimal. It returns the lines and the numbers of the given expressions.
func Lines(all []*Expr) (lines []string, numbers []int) {
	known := map[*Expr]int{}
	var write func(*Expr) int
	write = func(e *Expr) int {
		if n, ok := known[e]; ok {
			return n
		}
		var line string
		switch e.Op {
		case Symbol:
			line = fmt.Sprintf("symbol %d %q", e.Bits, e.Name)
		case Const:
			line = fmt.Sprintf("const %d %x %x", e.Bits, e.Value.Hi, e.Value.Lo)
		default:
			line = fmt.Sprintf("%s %d %d %d", e.Op, e.Bits, e.Mode, e.Low)
			e.eachOperand(func(a *Expr) { line += fmt.Sprintf(" %d", write(a)) })
		}
		known[e] = len(lines)
		lines = append(lines, fmt.Sprintf("%d %s", len(lines), line))
		return known[e]
	}
	for _, e := range all {
		numbers = append(numbers, write(e))
	}
	return lines, numbers
}

// Parser reads the lines that Lines writes, in their order.
type Parser struct {
	pool   *Pool
	parsed []*Expr
}

// NewParser makes a Parser that builds its expressions in a pool.
func NewParser(p *Pool) *Parser { return &Parser{pool: p} }

// Expr returns the expression with a number, or nil.
func (r *Parser) Expr(n int) *Expr {
	if n < 0 || n >= len(r.parsed) {
		return nil
	}
	return r.parsed[n]
}

// ParseLine reads a line. It returns an error if the line is damaged or has the wrong
// number.
func (r *Parser) ParseLine(line string) error {
	number, rest, _ := strings.Cut(line, " ")
	if number != strconv.Itoa(len(r.parsed)) {
		return fmt.Errorf("found the number %s, expected %d", number, len(r.parsed))
	}
	op, rest, _ := strings.Cut(rest, " ")
	e, err := r.parseExpr(op, rest)
	if err != nil {
		return fmt.Errorf("found %q, expected an expression: %w", line, err)
	}
	r.parsed = append(r.parsed, r.pool.intern(e))
	return nil
}

func (r *Parser) parseExpr(op, rest string) (Expr, error) {
	e := Expr{Op: Op(max(0, slices.Index(opNames[:], op)))}
	if opNames[e.Op] != op {
		return e, fmt.Errorf("%q is no operation", op)
	}
	switch e.Op {
	case Symbol:
		_, err := fmt.Sscanf(rest, "%d %q", &e.Bits, &e.Name)
		return e, checkBits(&e, err)
	case Const:
		_, err := fmt.Sscanf(rest, "%d %x %x", &e.Bits, &e.Value.Hi, &e.Value.Lo)
		if err = checkBits(&e, err); err == nil {
			e.Value = truncate(e.Value, e.Bits)
		}
		return e, err
	}
	words := strings.Fields(rest)
	numbers := make([]int, len(words))
	for i, w := range words {
		n, err := strconv.ParseUint(w, 10, 31)
		if err != nil {
			return e, fmt.Errorf("%q is no number", w)
		}
		numbers[i] = int(n)
	}
	if len(numbers) < 4 || len(numbers) > 6 || numbers[1] > int(TowardsZero) {
		return e, fmt.Errorf("%d numbers", len(numbers))
	}
	e.Bits, e.Mode, e.Low = numbers[0], Mode(numbers[1]), numbers[2]
	for i, to := range []**Expr{&e.A, &e.B, &e.C}[:len(numbers)-3] {
		if *to = r.Expr(numbers[3+i]); *to == nil {
			return e, fmt.Errorf("%d is no line before", numbers[3+i])
		}
	}
	return e, checkBits(&e, e.checkOperands())
}

func checkBits(e *Expr, err error) error {
	if err == nil && (e.Bits < 1 || e.Bits > 128) {
		return fmt.Errorf("%d bits", e.Bits)
	}
	return err
}

// operandCount is the number of operands of an operation.
func (o Op) operandCount() int {
	switch o {
	case Const, Symbol:
		return 0
	case Not, Extract, ZeroExt, SignExt, Clz, Ctz, FSqrt, FToF, FToInt, IntToF, FRound:
		return 1
	case Ite:
		return 3
	}
	return 2
}

// checkOperands returns an error if number and sizes of the operands do not fit the
// operation.
func (e *Expr) checkOperands() error {
	have := 0
	e.eachOperand(func(*Expr) { have++ })
	if have != e.Op.operandCount() {
		return fmt.Errorf("%v of %d operands", e.Op, have)
	}
	fits := true
	switch e.Op {
	case Extract:
		fits = e.Low+e.Bits <= e.A.Bits
	case ZeroExt, SignExt:
		fits = e.Bits >= e.A.Bits
	case Concat:
		fits = e.Bits == e.A.Bits+e.B.Bits
	case Ite:
		fits = e.A.Bits == 1 && e.B.Bits == e.Bits && e.C.Bits == e.Bits
	case Not, And, Or, Xor, Add, Sub, Mul, UDiv, URem, SDiv, SRem, Clz, Ctz:
		fits = e.A.Bits == e.Bits && (e.B == nil || e.B.Bits == e.Bits)
	case Shl, LShr, AShr:
		fits = e.A.Bits == e.Bits
	case Eq, ULT, ULE, SLT, SLE:
		fits = e.Bits == 1 && e.A.Bits == e.B.Bits
	case FAdd, FSub, FMul, FDiv, FSqrt, FRound:
		fits = e.A.Bits == e.Bits && (e.Bits == 32 || e.Bits == 64) && (e.B == nil || e.B.Bits == e.Bits)
	case FEq, FLT, FLE, FUnordered:
		fits = e.Bits == 1 && e.A.Bits == e.B.Bits && (e.A.Bits == 32 || e.A.Bits == 64)
	}
	if !fits {
		return fmt.Errorf("%v of %d bits does not fit its operands", e.Op, e.Bits)
	}
	return nil
}
