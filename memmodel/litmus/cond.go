package litmus

import (
	"fmt"
	"strings"
)

// Quantifier is a test's claim about its condition.
type Quantifier uint8

// Quantifiers: some outcome satisfies the condition, none does, all do.
const (
	Exists Quantifier = iota
	NotExists
	ForAll
)

func (q Quantifier) String() string { return [...]string{"exists", "~exists", "forall"}[q] }

// Prop is a proposition over final values.
type Prop interface {
	// Holds evaluates the proposition; get gives the value of a location as a
	// number of its type.
	Holds(get func(Loc) int64) bool
	// String is the proposition as herd prints it, without outer parentheses.
	String() string
	eachLocation(func(Loc))
}

// Atom compares a location with a number or an address, or with another
// location.
type Atom struct {
	Loc    Loc
	Value  Value
	Other  *Loc // instead of Value
	Differ bool
	num    int64
}

// And, Or, Implies and Not combine propositions; True always holds.
type (
	And     struct{ L, R Prop }
	Or      struct{ L, R Prop }
	Implies struct{ L, R Prop }
	Not     struct{ P Prop }
	True    struct{}
)

// Holds implements Prop.
func (a *Atom) Holds(get func(Loc) int64) bool {
	want := a.num
	if a.Other != nil {
		want = get(*a.Other)
	}
	return (get(a.Loc) == want) != a.Differ
}

// Holds implements Prop.
func (p And) Holds(get func(Loc) int64) bool { return p.L.Holds(get) && p.R.Holds(get) }

// Holds implements Prop.
func (p Or) Holds(get func(Loc) int64) bool { return p.L.Holds(get) || p.R.Holds(get) }

// Holds implements Prop.
func (p Implies) Holds(get func(Loc) int64) bool { return !p.L.Holds(get) || p.R.Holds(get) }

// Holds implements Prop.
func (p Not) Holds(get func(Loc) int64) bool { return !p.P.Holds(get) }

// Holds implements Prop.
func (True) Holds(func(Loc) int64) bool { return true }

func (a *Atom) eachLocation(f func(Loc)) {
	f(a.Loc)
	if a.Other != nil {
		f(*a.Other)
	}
}
func (p And) eachLocation(f func(Loc))     { p.L.eachLocation(f); p.R.eachLocation(f) }
func (p Or) eachLocation(f func(Loc))      { p.L.eachLocation(f); p.R.eachLocation(f) }
func (p Implies) eachLocation(f func(Loc)) { p.L.eachLocation(f); p.R.eachLocation(f) }
func (p Not) eachLocation(f func(Loc))     { p.P.eachLocation(f) }
func (True) eachLocation(func(Loc))        {}

func (a *Atom) String() string {
	op := "="
	if a.Differ {
		op = "!="
	}
	if a.Other != nil {
		return a.Loc.String() + op + a.Other.String()
	}
	return a.Loc.String() + op + a.Value.String()
}

// String is the value as it is written in a test.
func (v Value) String() string {
	switch {
	case v.Sym == "":
		return fmt.Sprint(v.Num)
	case v.Num == 0:
		return v.Sym
	}
	return fmt.Sprintf("%s+%d", v.Sym, v.Num)
}

// bindingLevel is how tightly a proposition's operator binds.
func bindingLevel(p Prop) int {
	switch p.(type) {
	case Implies:
		return 0
	case Or:
		return 1
	case And:
		return 2
	}
	return 3
}

// parenthesize puts parentheses around an operand that binds less tightly.
func parenthesize(p Prop, least int) string {
	if bindingLevel(p) < least {
		return "(" + p.String() + ")"
	}
	return p.String()
}

func (p And) String() string     { return parenthesize(p.L, 2) + ` /\ ` + parenthesize(p.R, 2) }
func (p Or) String() string      { return parenthesize(p.L, 1) + ` \/ ` + parenthesize(p.R, 1) }
func (p Implies) String() string { return parenthesize(p.L, 1) + " => " + parenthesize(p.R, 0) }
func (p Not) String() string     { return "not (" + p.P.String() + ")" }
func (True) String() string      { return "true" }

// Condition is the test's question as herd prints it.
func (t *Test) Condition() string {
	s := t.Cond.String()
	if !strings.HasPrefix(s, "not (") || !strings.HasSuffix(s, ")") || bindingLevel(t.Cond) < 3 {
		s = "(" + s + ")"
	}
	return t.Quant.String() + " " + s
}

// parseProposition reads a proposition: => binds least, then \/, then /\.
func (p parser) parseProposition(r *reader) (Prop, error) {
	left, err := p.disjunction(r)
	if err != nil || !r.acceptText("=>") {
		return left, err
	}
	right, err := p.parseProposition(r)
	return Implies{left, right}, err
}

func (p parser) disjunction(r *reader) (Prop, error) {
	left, err := p.conjunction(r)
	for err == nil && r.acceptText(`\/`) {
		var right Prop
		right, err = p.conjunction(r)
		left = Or{left, right}
	}
	return left, err
}

func (p parser) conjunction(r *reader) (Prop, error) {
	left, err := p.parseFactor(r)
	for err == nil && r.acceptText(`/\`) {
		var right Prop
		right, err = p.parseFactor(r)
		left = And{left, right}
	}
	return left, err
}

func (p parser) parseFactor(r *reader) (Prop, error) {
	switch {
	case r.acceptText("("):
		inner, err := p.parseProposition(r)
		if err != nil {
			return nil, err
		}
		return inner, r.expectText(")")
	case r.acceptText("~") || r.acceptWord("not"):
		inner, err := p.parseFactor(r)
		return Not{inner}, err
	case r.acceptWord("true"):
		return True{}, nil
	case r.acceptWord("false"):
		return Not{True{}}, nil
	}
	return p.parseAtom(r)
}

func (p parser) parseAtom(r *reader) (Prop, error) {
	loc, err := p.parseLocation(r)
	if err != nil {
		return nil, err
	}
	a := &Atom{Loc: loc}
	switch {
	case r.acceptText("="), r.acceptText("=="):
	case r.acceptText("!="):
		a.Differ = true
	default:
		return nil, r.errorExpected(quoteTrimmed("=") + " or " + quoteTrimmed("!="))
	}
	t := r.peekToken()
	switch {
	case t.text == "[", t.kind == tokNumber && r.peekTokenAt(1).text == ":":
		other, err := p.parseLocation(r)
		a.Other = &other
		return a, err
	case t.kind == tokName && p.Var(t.text) == nil:
		return nil, r.positionOf(t).errorMeaning("%s is no location of the test", t.text)
	}
	a.Value, err = p.parseValue(r)
	return a, err
}

// parseLocation reads THREAD:REGISTER, x, [x], t[1] or [t[1]].
func (p parser) parseLocation(r *reader) (Loc, error) {
	if t := r.peekToken(); t.kind == tokNumber || t.kind == tokName && r.peekTokenAt(1).text == ":" {
		return p.parseRegister(r)
	}
	bracket := r.acceptText("[")
	name, err := r.readName("a register as THREAD:REGISTER, or a location")
	if err != nil {
		return Loc{}, err
	}
	v := p.Var(name.text)
	if v == nil {
		return Loc{}, r.positionOf(name).errorMeaning("%s is no location of the test", name.text)
	}
	loc := Loc{Thread: -1, Name: name.text}
	if r.acceptText("[") {
		if loc.Index, err = r.readBounded(int64(v.Count), "an index of "+name.text); err != nil {
			return loc, err
		}
		loc.Array = true
		if err := r.expectText("]"); err != nil {
			return loc, err
		}
	}
	if bracket {
		err = r.expectText("]")
	}
	return loc, err
}

// parseRegister reads THREAD:REGISTER; the thread is a number, with or without P.
func (p parser) parseRegister(r *reader) (Loc, error) {
	t := r.peekToken()
	limit := int64(MaxThreads)
	if n := len(p.Threads); n > 0 {
		limit = int64(n)
	}
	n, ok := parseNumber(strings.TrimPrefix(t.text, "P"))
	if !ok || n < 0 || n >= limit {
		return Loc{}, r.errorExpected(fmt.Sprintf("a thread from 0 to %d", limit-1))
	}
	r.nextToken()
	if err := r.expectText(":"); err != nil {
		return Loc{}, err
	}
	r.acceptText("%")
	name, err := r.readName("a register")
	if err != nil {
		return Loc{}, err
	}
	v, ok := lookUpReg(name.text)
	if !ok || v.reg == 4 {
		return Loc{}, r.positionOf(name).errorSyntax(quoteTrimmed(name.text), "a general register other than rsp")
	}
	return Loc{Thread: int(n), Reg: v.reg, Name: p.registerName(v.reg)}, nil
}
