package preconditions

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// DefaultLimit is a limit of Z3's steps for one question: some hundredths of a second on
// today's processors. A question without an answer keeps the term.
const DefaultLimit = 500_000

// Limits bound the work of Simplify. Where they end it, terms stay that others imply: the conjunction keeps its meaning.
type Limits struct {
	// Steps is the limit of Z3's steps for one question.
	Steps uint
	// Questions is the number of questions to Z3; 0: no limit.
	Questions int
	// Stop, if set, is asked now and then whether to ask Z3 nothing more, as a user's time limit does.
	Stop func() bool
}

// Simplify removes terms that the others imply. Terms are in execution order; later ones
// tend to be stronger, so the earliest are tried first (TERN section 7.3). If only one
// value is left to an expression, the result says so. Recorded are the values of the
// symbols in the recorded run.
func Simplify(p *symbolic.Pool, terms []*symbolic.Expr, recorded symbolic.Assignment, limits Limits) []*symbolic.Expr {
	narrow := narrowed(p, terms)
	z := &simplifier{pool: p, solver: smt.New(limits.Steps), evaluator: symbolic.NewEvaluator(narrow.extend(recorded)), limits: limits}
	terms = z.simplifyGroups(independentGroups(reduceWithoutSolver(p, narrow.apply(terms))))
	return sortByteTerms(narrow.undo(terms))
}

// distinctTerms removes repeated terms and splits conjunctions.
func distinctTerms(terms []*symbolic.Expr) []*symbolic.Expr {
	seen := map[*symbolic.Expr]bool{}
	var out []*symbolic.Expr
	var add func(t *symbolic.Expr)
	add = func(t *symbolic.Expr) {
		switch {
		case t.Op == symbolic.And && t.Bits == 1:
			add(t.A)
			add(t.B)
		case !seen[t] && !t.IsConst():
			seen[t] = true
			out = append(out, t)
		}
	}
	for _, t := range terms {
		add(t)
	}
	return out
}

// propagateBytes substitutes bytes that must have one value in all other terms: terms about
// an option's text then often disappear.
func propagateBytes(p *symbolic.Pool, terms []*symbolic.Expr) []*symbolic.Expr {
	values := map[string]*symbolic.Expr{}
	for {
		var bytes, others []*symbolic.Expr
		before := len(values)
		for _, t := range terms {
			if _, _, _, ok := matchByteEquality(t); ok {
				values[t.A.Name] = t.B
				bytes = append(bytes, t)
			} else {
				others = append(others, t)
			}
		}
		if len(values) == before {
			return terms
		}
		others = p.SubstituteAll(others, func(name string) *symbolic.Expr { return values[name] })
		terms = distinctTerms(append(bytes, others...))
	}
}

// independentGroups divides terms so that terms of different groups have no symbol in
// common: they cannot imply each other.
func independentGroups(terms []*symbolic.Expr) [][]*symbolic.Expr {
	parent := make([]int, len(terms))
	var root func(int) int
	root = func(i int) int {
		if parent[i] != i {
			parent[i] = root(parent[i])
		}
		return parent[i]
	}
	first := map[*symbolic.Expr]int{} // the first term with an operation or a symbol
	for i, t := range terms {
		parent[i] = i
		var visit func(e *symbolic.Expr)
		visit = func(e *symbolic.Expr) {
			if e == nil || e.IsConst() {
				return
			}
			if j, known := first[e]; known {
				a, b := root(i), root(j)
				parent[max(a, b)] = min(a, b)
				return
			}
			first[e] = i
			visit(e.A)
			visit(e.B)
			visit(e.C)
		}
		visit(t)
	}
	number := map[int]int{}
	var out [][]*symbolic.Expr
	for i, t := range terms {
		r := root(i)
		if _, known := number[r]; !known {
			number[r] = len(out)
			out = append(out, nil)
		}
		out[number[r]] = append(out[number[r]], t)
	}
	return out
}

type simplifier struct {
	pool      *symbolic.Pool
	solver    *smt.Solver
	evaluator *symbolic.Evaluator
	limits    Limits
	asked     int // questions
	// unanswered counts the questions about a group that reached the limit.
	unanswered int
}

// maxUnanswered is the number of unanswered questions about a group after which no more are
// asked.
const maxUnanswered = 4

// simplifyGroups simplifies each group of terms.
func (z *simplifier) simplifyGroups(groups [][]*symbolic.Expr) []*symbolic.Expr {
	var kept []*symbolic.Expr
	for _, g := range groups {
		kept = append(kept, z.simplifyGroup(g)...)
	}
	return kept
}

// simplifyGroup simplifies the terms of one group.
func (z *simplifier) simplifyGroup(terms []*symbolic.Expr) []*symbolic.Expr {
	cheap, costly := splitCostly(terms)
	switch s := onlySymbol(terms); {
	case s != nil && isSmallSymbol(s):
		return z.simplifyByValues(terms, s)
	case len(costly) > 0:
		return z.simplifyCostly(cheap, costly)
	case TooCostly(terms):
		return z.simplifyLarge(terms)
	case len(terms) == 1:
		return z.addExactValues(terms)
	}
	if onlySymbol(terms) == nil {
		terms = assumeComparisons(z.pool, z.simplifyPerSymbol(terms))
	}
	z.unanswered = 0
	terms = z.dropImpliedByLater(terms)
	if parts := independentGroups(terms); len(parts) > 1 {
		return z.simplifyGroups(parts)
	}
	if bounds := z.simplifyToBounds(terms); bounds != nil {
		return bounds
	}
	return z.dropImpliedByRest(z.addExactValues(terms))
}

// dropImpliedByLater removes each term that later ones imply, last term first: one question
// each, to a solver that keeps its learned clauses.
func (z *simplifier) dropImpliedByLater(terms []*symbolic.Expr) []*symbolic.Expr {
	z.solver.Push()
	defer z.solver.Pop()
	var kept []*symbolic.Expr
	for _, t := range slices.Backward(terms) {
		if !z.isImplied(t) {
			kept = append(kept, t)
			z.solver.Assert(t)
		}
	}
	slices.Reverse(kept)
	return kept
}

// maxPairwiseTerms is the number of terms up to which each is compared with all others.
const maxPairwiseTerms = 64

// dropImpliedByRest removes each term that all others imply, first term first.
func (z *simplifier) dropImpliedByRest(terms []*symbolic.Expr) []*symbolic.Expr {
	if len(terms) > maxPairwiseTerms {
		return terms
	}
	for i := 0; i < len(terms); {
		z.solver.Push()
		for j, t := range terms {
			if j != i {
				z.solver.Assert(t)
			}
		}
		implied := z.isImplied(terms[i])
		z.solver.Pop()
		if implied {
			terms = slices.Delete(slices.Clone(terms), i, i+1)
		} else {
			i++
		}
	}
	return terms
}

// mayAsk counts a question to Z3, and reports whether it is within the limits.
func (z *simplifier) mayAsk() bool {
	z.asked++
	return (z.limits.Questions == 0 || z.asked <= z.limits.Questions) && (z.limits.Stop == nil || !z.limits.Stop())
}

// isImplied reports whether the solver's constraints imply a term, as far as Z3 decides it.
func (z *simplifier) isImplied(t *symbolic.Expr) bool {
	if z.unanswered > maxUnanswered || !z.mayAsk() {
		return false
	}
	z.solver.Push()
	defer z.solver.Pop()
	z.solver.Assert(z.pool.Not(t))
	answer := z.solver.Check()
	if answer == smt.Unknown {
		z.unanswered++
	}
	return answer == smt.Unsatisfiable
}

// addExactValues adds the expressions to which the terms leave one value.
func (z *simplifier) addExactValues(terms []*symbolic.Expr) []*symbolic.Expr {
	candidates := comparedExprs(terms)
	if len(candidates) == 0 {
		return terms
	}
	z.solver.Push()
	defer z.solver.Pop()
	for _, t := range terms {
		z.solver.Assert(t)
	}
	var exact []*symbolic.Expr
	for _, e := range candidates {
		v, err := z.evaluator.Value(e)
		if err != nil {
			continue
		}
		is := z.pool.Eq(e, z.pool.Const(v, e.Bits))
		if !is.IsConst() && !slices.Contains(terms, is) && z.isImplied(is) {
			exact = append(exact, is)
			if len(terms) == 1 {
				return exact
			}
		}
	}
	return slices.Concat(terms, exact)
}

// comparedExprs returns the expressions that terms compare with constants, except by
// equality.
func comparedExprs(terms []*symbolic.Expr) []*symbolic.Expr {
	seen := map[*symbolic.Expr]bool{}
	var all []*symbolic.Expr
	for _, t := range terms {
		switch t.Op {
		case symbolic.ULT, symbolic.ULE, symbolic.SLT, symbolic.SLE:
		default:
			continue
		}
		e := t.A
		if e.IsConst() {
			e = t.B
		} else if !t.B.IsConst() {
			continue
		}
		if !seen[e] {
			seen[e] = true
			all = append(all, e)
		}
	}
	return all
}

// sortByteTerms puts terms about single bytes after the others, in the order of the bytes.
func sortByteTerms(terms []*symbolic.Expr) []*symbolic.Expr {
	type known struct {
		term     *symbolic.Expr
		text, at int
	}
	texts := map[string]int{}
	var others []*symbolic.Expr
	var bytes []known
	for _, t := range terms {
		base, at, ok := matchByteComparison(t)
		if !ok {
			others = append(others, t)
			continue
		}
		if _, seen := texts[base]; !seen {
			texts[base] = len(texts)
		}
		bytes = append(bytes, known{t, texts[base], at})
	}
	slices.SortStableFunc(bytes, func(a, b known) int { return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.at, b.at)) })
	for _, b := range bytes {
		others = append(others, b.term)
	}
	return others
}

// matchByteComparison matches a comparison of a byte of an input with a constant.
func matchByteComparison(t *symbolic.Expr) (base string, at int, ok bool) {
	if t.Op == symbolic.Not {
		t = t.A
	}
	s := t.A
	if s == nil || t.B == nil || s.IsConst() {
		s = t.B
	}
	if s == nil || s.Op != symbolic.Symbol || s.Bits != 8 || !t.A.IsConst() && !t.B.IsConst() {
		return "", 0, false
	}
	return splitByteName(s.Name)
}
