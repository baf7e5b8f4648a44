package preconditions

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// DefaultLimit is a limit of Z3's steps for one question: some hundredths of a second
// on today's processors. A question that is not answered keeps the term.
const DefaultLimit = 500_000

// Simplify leaves out of terms, which are in the order in which they came up, those
// that the rest implies (TERN section 7.3: what came up later tends to say more, so
// the earlier is looked at first). What has only one value left is said to have it.
// Recorded are the values of the symbols in the run that the terms are of.
func Simplify(p *symbolic.Pool, terms []*symbolic.Expr, recorded symbolic.Assignment, limit uint) []*symbolic.Expr {
	z := &simplifier{pool: p, solver: smt.New(limit), evaluator: symbolic.NewEvaluator(recorded), limit: limit}
	return arrange(z.each(groups(settle(p, terms))))
}

// distinct leaves out what is there already, and parts of conjunctions on their own
// take their place.
func distinct(terms []*symbolic.Expr) []*symbolic.Expr {
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

// propagate puts the values of bytes that have to be what they were into all other
// terms: those about a text that is an option say nothing more then.
func propagate(p *symbolic.Pool, terms []*symbolic.Expr) []*symbolic.Expr {
	values := map[string]*symbolic.Expr{}
	for {
		var bytes, others []*symbolic.Expr
		before := len(values)
		for _, t := range terms {
			if _, _, _, ok := byteIs(t); ok {
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
		terms = distinct(append(bytes, others...))
	}
}

// groups divides terms so that no two of different groups have a symbol in common: one
// cannot imply anything about the other.
func groups(terms []*symbolic.Expr) [][]*symbolic.Expr {
	parent := make([]int, len(terms))
	var root func(int) int
	root = func(i int) int {
		if parent[i] != i {
			parent[i] = root(parent[i])
		}
		return parent[i]
	}
	first := map[*symbolic.Expr]int{} // the term in which an operation or a symbol came up
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
	limit     uint
	// unanswered are the questions about a group that reached the limit.
	unanswered int
}

// mostUnanswered is how many questions about a group may reach the limit before no more
// are asked.
const mostUnanswered = 4

// each simplifies groups.
func (z *simplifier) each(groups [][]*symbolic.Expr) []*symbolic.Expr {
	var kept []*symbolic.Expr
	for _, g := range groups {
		kept = append(kept, z.group(g)...)
	}
	return kept
}

// group simplifies terms that belong together.
func (z *simplifier) group(terms []*symbolic.Expr) []*symbolic.Expr {
	cheap, costly := apart(terms)
	switch s := only(terms); {
	case s != nil && small(s):
		return z.values(terms, s)
	case len(costly) > 0:
		return z.apart(cheap, costly)
	case Large(terms):
		return z.large(terms)
	case len(terms) == 1:
		return z.exactly(terms)
	}
	if only(terms) == nil {
		terms = assume(z.pool, z.alone(terms))
	}
	z.unanswered = 0
	terms = z.fromBehind(terms)
	if parts := groups(terms); len(parts) > 1 {
		return z.each(parts)
	}
	if bounds := z.bounds(terms); bounds != nil {
		return bounds
	}
	return z.fromBefore(z.exactly(terms))
}

// fromBehind keeps of terms, the last first, what does not follow from those kept: one
// question each, to a solver that keeps what it has learnt.
func (z *simplifier) fromBehind(terms []*symbolic.Expr) []*symbolic.Expr {
	z.solver.Push()
	defer z.solver.Pop()
	var kept []*symbolic.Expr
	for _, t := range slices.Backward(terms) {
		if !z.follows(t) {
			kept = append(kept, t)
			z.solver.Assert(t)
		}
	}
	slices.Reverse(kept)
	return kept
}

// maxQuadratic is the most terms that are each asked about with all others.
const maxQuadratic = 64

// fromBefore leaves out, the first first, what follows from all the rest.
func (z *simplifier) fromBefore(terms []*symbolic.Expr) []*symbolic.Expr {
	if len(terms) > maxQuadratic {
		return terms
	}
	for i := 0; i < len(terms); {
		z.solver.Push()
		for j, t := range terms {
			if j != i {
				z.solver.Assert(t)
			}
		}
		implied := z.follows(terms[i])
		z.solver.Pop()
		if implied {
			terms = slices.Delete(slices.Clone(terms), i, i+1)
		} else {
			i++
		}
	}
	return terms
}

// follows tells whether what the solver has implies a term, as far as Z3 knows.
func (z *simplifier) follows(t *symbolic.Expr) bool {
	if z.unanswered > mostUnanswered {
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

// exactly adds, behind terms, what they leave one value to.
func (z *simplifier) exactly(terms []*symbolic.Expr) []*symbolic.Expr {
	candidates := compared(terms)
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
		if !is.IsConst() && !slices.Contains(terms, is) && z.follows(is) {
			exact = append(exact, is)
			if len(terms) == 1 {
				return exact
			}
		}
	}
	return slices.Concat(terms, exact)
}

// compared are what terms compare with constants, but for equality.
func compared(terms []*symbolic.Expr) []*symbolic.Expr {
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

// arrange puts terms about single bytes behind the others, in the order of the bytes.
func arrange(terms []*symbolic.Expr) []*symbolic.Expr {
	type known struct {
		term     *symbolic.Expr
		text, at int
	}
	texts := map[string]int{}
	var others []*symbolic.Expr
	var bytes []known
	for _, t := range terms {
		base, at, ok := aboutByte(t)
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

// aboutByte takes apart the name of the byte of an input that a term compares with
// constants, if that is all it does.
func aboutByte(t *symbolic.Expr) (base string, at int, ok bool) {
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
	return splitByte(s.Name)
}
