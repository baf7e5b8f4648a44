package symbolic

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Expressions that are written and read into another pool print as before, and a Program
// computes the Evaluator's values.
func TestLinesAndPrograms(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	for range 2000 {
		tw := newTwins()
		var all []*Expr
		for range 3 {
			all = append(all, tw.drawExpr(r, drawSize(r), 4).plain)
		}
		lines, numbers := Lines(all)
		parser := NewParser(NewPool())
		for _, line := range lines {
			if err := parser.ParseLine(line); err != nil {
				t.Fatalf("%v in %q", err, lines)
			}
		}
		values := map[string]Value{}
		p := Compile(all)
		var symbols []Value
		for i, name := range p.Symbols() {
			values[name] = drawValue(r, p.sizes[i])
			symbols = append(symbols, values[name])
		}
		got := p.Run(symbols)
		e := NewEvaluator(func(name string) (Value, bool) { v, ok := values[name]; return v, ok })
		for i, x := range all {
			if again := parser.Expr(numbers[i]); again.String() != x.String() || again.Bits != x.Bits {
				t.Errorf("%v was read as %v", x, again)
			}
			if want, err := e.Value(x); err != nil || got[i] != want {
				t.Errorf("%v is %x, want %x, %v", x, got[i], want, err)
			}
		}
	}
}

// Damaged lines are refused.
func TestDamagedLines(t *testing.T) {
	for _, text := range []string{
		"1 const 8 0 1", "0 const 0 0 1", "0 const 129 0 1", "0 nothing 8 0 0", "0 add 8 0 0 0 0", "0 symbol 8 x",
		"0 const 8 0 1\n1 add 16 0 0 0 0", "0 const 8 0 1\n1 not 8 0 0", "0 const 8 0 1\n1 extract 4 0 5 0",
		"0 const 8 0 1\n1 not 8 9 0 0", "0 const 8 0 1\n1 eq 8 0 0 0 0", "0 const 8 0 1\n1 ite 8 0 0 0 0 0",
	} {
		p := NewParser(NewPool())
		var err error
		for line := range strings.SplitSeq(text, "\n") {
			if err = p.ParseLine(line); err != nil {
				break
			}
		}
		if err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
