package symbolic

import "sync"

// Program computes expressions for many assignments: each operation once, operands first,
// without look-ups. It does not change, and several goroutines may use it.
type Program struct {
	steps   []programStep
	results []int32
	names   []string // of the symbols, in the order of their slots
	sizes   []int
	slots   sync.Pool // *[]Value of earlier computations
}

// programStep computes one slot. Symbols have the first slots, in the order of names.
type programStep struct {
	e       *Expr
	a, b, c int32
}

// Compile makes the Program of some expressions.
func Compile(all []*Expr) *Program {
	p := &Program{}
	slots := map[*Expr]int32{}
	SymbolsOf(all, func(s *Expr) {
		slots[s] = int32(len(p.names))
		p.names, p.sizes = append(p.names, s.Name), append(p.sizes, s.Bits)
	})
	var place func(*Expr) int32
	place = func(e *Expr) int32 {
		if e == nil {
			return 0
		}
		if at, known := slots[e]; known {
			return at
		}
		s := programStep{e: e, a: place(e.A), b: place(e.B), c: place(e.C)}
		p.steps = append(p.steps, s)
		slots[e] = int32(len(p.names) + len(p.steps) - 1)
		return slots[e]
	}
	for _, e := range all {
		p.results = append(p.results, place(e))
	}
	return p
}

// Symbols returns the names of the symbols, in the order in which Run takes their values.
func (p *Program) Symbols() []string { return p.names }

// Len is the number of operations.
func (p *Program) Len() int { return len(p.steps) }

// Run computes the expressions, in their order, for values of the symbols.
func (p *Program) Run(symbols []Value) []Value {
	all := p.fillSymbols(symbols)
	defer p.slots.Put(all)
	slots := *all
	p.runSteps(slots, 0, len(slots))
	out := make([]Value, len(p.results))
	for i, at := range p.results {
		out[i] = slots[at]
	}
	return out
}

// FirstFalse returns the index of the first expression that is 0, and -1 if all differ from
// 0. It does not compute the expressions after it.
func (p *Program) FirstFalse(symbols []Value) int {
	all := p.fillSymbols(symbols)
	defer p.slots.Put(all)
	slots, done := *all, len(p.names)
	for i, at := range p.results {
		if int(at) >= done {
			p.runSteps(slots, done, int(at)+1)
			done = int(at) + 1
		}
		if isZero(slots[at]) {
			return i
		}
	}
	return -1
}

// fillSymbols returns slots in which those of the symbols are filled; the others have
// arbitrary values.
func (p *Program) fillSymbols(symbols []Value) *[]Value {
	slots, _ := p.slots.Get().(*[]Value)
	if slots == nil {
		slots = new([]Value)
		*slots = make([]Value, len(p.names)+len(p.steps))
	}
	for i, v := range symbols {
		(*slots)[i] = truncate(v, p.sizes[i])
	}
	return slots
}

// runSteps fills the slots of the operations in [from, to). All slots before from are
// filled.
func (p *Program) runSteps(slots []Value, from, to int) {
	for at := max(from, len(p.names)); at < to; at++ {
		s := &p.steps[at-len(p.names)]
		if s.e.Op == Const {
			slots[at] = s.e.Value
			continue
		}
		slots[at] = computeOperation(s.e, slots[s.a], slots[s.b], slots[s.c])
	}
}
