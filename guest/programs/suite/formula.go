package suite

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Evaluate gives the value of a formula for a case and a number of threads. A
// formula has numbers, the names of the case's values, threads, + - * /,
// parentheses, and the functions min, max, ceil, floor, log2 and sqrt.
func (c Case) Evaluate(formula string, threads int) (float64, error) {
	e, err := parser.ParseExpr(formula)
	if err != nil {
		return 0, fmt.Errorf("%q is no formula: %w", formula, err)
	}
	values := maps.Clone(c.Values)
	if values == nil {
		values = map[string]float64{}
	}
	values["threads"] = float64(threads)
	return evaluate(e, values)
}

func evaluate(e ast.Expr, values map[string]float64) (float64, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return strconv.ParseFloat(e.Value, 64)
	case *ast.Ident:
		if v, ok := values[e.Name]; ok {
			return v, nil
		}
		names := slices.Sorted(maps.Keys(values))
		return 0, fmt.Errorf("%s is none of %s", e.Name, strings.Join(names, ", "))
	case *ast.ParenExpr:
		return evaluate(e.X, values)
	case *ast.BinaryExpr:
		return evaluateBinary(e, values)
	case *ast.CallExpr:
		return evaluateCall(e, values)
	}
	return 0, fmt.Errorf("a formula cannot have a %T", e)
}

func evaluateBinary(e *ast.BinaryExpr, values map[string]float64) (float64, error) {
	x, err := evaluate(e.X, values)
	if err != nil {
		return 0, err
	}
	y, err := evaluate(e.Y, values)
	if err != nil {
		return 0, err
	}
	switch e.Op {
	case token.ADD:
		return x + y, nil
	case token.SUB:
		return x - y, nil
	case token.MUL:
		return x * y, nil
	case token.QUO:
		return x / y, nil
	}
	return 0, fmt.Errorf("a formula cannot have the operator %s", e.Op)
}

func evaluateCall(e *ast.CallExpr, values map[string]float64) (float64, error) {
	name, _ := e.Fun.(*ast.Ident)
	var args []float64
	for _, a := range e.Args {
		v, err := evaluate(a, values)
		if err != nil {
			return 0, err
		}
		args = append(args, v)
	}
	switch {
	case name == nil:
	case name.Name == "min" && len(args) > 0:
		return slices.Min(args), nil
	case name.Name == "max" && len(args) > 0:
		return slices.Max(args), nil
	case len(args) != 1:
	case name.Name == "ceil":
		return math.Ceil(args[0]), nil
	case name.Name == "floor":
		return math.Floor(args[0]), nil
	case name.Name == "log2":
		return math.Log2(args[0]), nil
	case name.Name == "sqrt":
		return math.Sqrt(args[0]), nil
	}
	return 0, fmt.Errorf("a formula calls min, max, ceil, floor, log2 or sqrt")
}
