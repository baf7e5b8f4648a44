package constraints

import (
	"fmt"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Clock is a place in the total order of a schedule: that of the event of the same
// number, Start before all events, or another one that an encoding needs.
type Clock int32

// Start is before every event.
const Start Clock = -1

// Op is the operation of a Formula.
type Op uint8

// Operations.
const (
	True Op = iota
	False
	And
	Or
	// Choice is Or between the writes that a read can see; a size counts its alternatives one by
	// one.
	Choice
	// Less: A is before B. Same: they are equal.
	Less
	Same
	// Holds: Expr, of one bit, is 1.
	Holds
)

// Formula is a statement about clocks and values. It never changes. Formulas may have
// parts in common.
type Formula struct {
	Op   Op
	Args []*Formula
	A, B Clock
	Expr *symbolic.Expr
}

var alwaysTrue, alwaysFalse = &Formula{Op: True}, &Formula{Op: False}

// eventBefore says that event a comes before event b.
func eventBefore(a, b model.ID) *Formula { return &Formula{Op: Less, A: Clock(a), B: Clock(b)} }

func clockBefore(a, b Clock) *Formula { return &Formula{Op: Less, A: a, B: b} }

func sameClock(a, b Clock) *Formula { return &Formula{Op: Same, A: a, B: b} }

func truthOf(e *symbolic.Expr) *Formula {
	if e.IsConst() {
		if e.Value.Lo != 0 {
			return alwaysTrue
		}
		return alwaysFalse
	}
	return &Formula{Op: Holds, Expr: e}
}

func conjunction(args ...*Formula) *Formula { return joinFormulas(And, alwaysTrue, alwaysFalse, args) }

func disjunction(args ...*Formula) *Formula { return joinFormulas(Or, alwaysFalse, alwaysTrue, args) }

func choiceOf(args ...*Formula) *Formula { return joinFormulas(Choice, alwaysFalse, alwaysTrue, args) }

// alternatives is either that stays one condition if one alternative alone is left.
func alternatives(args ...*Formula) *Formula {
	f := disjunction(args...)
	if f.Op == And {
		return &Formula{Op: Or, Args: []*Formula{f}}
	}
	return f
}

// joinFormulas drops the neutral operands, and returns the decisive one if it is among them.
func joinFormulas(op Op, neutral, decisive *Formula, args []*Formula) *Formula {
	var kept []*Formula
	for _, a := range args {
		switch {
		case a == decisive:
			return decisive
		case a == neutral:
		case a.Op == op:
			kept = append(kept, a.Args...)
		default:
			kept = append(kept, a)
		}
	}
	switch len(kept) {
	case 0:
		return neutral
	case 1:
		return kept[0]
	}
	return &Formula{Op: op, Args: kept}
}

// Clauses counts constraints as H3's table 4 does: each condition of each match of
// a read with a write is one, whatever the number of its alternatives.
func (f *Formula) Clauses() int {
	if f.Op != And && f.Op != Choice {
		return 1
	}
	n := 0
	for _, a := range f.Args {
		n += a.Clauses()
	}
	return n
}

// Atoms counts the comparisons, those of a part that several have in common once.
func (f *Formula) Atoms() int { return f.countAtoms(map[*Formula]bool{}) }

func (f *Formula) countAtoms(seen map[*Formula]bool) int {
	switch f.Op {
	case True, False:
		return 0
	case And, Or, Choice:
		if seen[f] {
			return 0
		}
		seen[f] = true
		n := 0
		for _, a := range f.Args {
			n += a.countAtoms(seen)
		}
		return n
	}
	return 1
}

// String writes the formula in the notation of H3's figure 3, O for the clock of an
// event.
func (f *Formula) String() string {
	switch f.Op {
	case True:
		return "true"
	case False:
		return "false"
	case Less:
		return clockName(f.A) + " < " + clockName(f.B)
	case Same:
		return clockName(f.A) + " = " + clockName(f.B)
	case Holds:
		return f.Expr.String()
	}
	parts := make([]string, len(f.Args))
	for i, a := range f.Args {
		parts[i] = a.String()
		if a.Op == And || a.Op == Or || a.Op == Choice {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	sign := " ∨ "
	if f.Op == And {
		sign = " ∧ "
	}
	return strings.Join(parts, sign)
}

func clockName(c Clock) string {
	if c == Start {
		return "start"
	}
	return fmt.Sprintf("O%d", c)
}
