// Package bytesets finds conditions on single bytes that are sufficient for terms on many: for each byte of
// an input the set of values that it may have, so that terms that hold for the recorded input hold for all
// inputs of the sets.
//
// It is for preconditions that must be decided for thousands of schedules in a millisecond. They are stronger than the
// terms: preconditions (the package) has sets of terms that are exact.
//
// Invariants:
//
//  1. The recorded bytes are in their sets.
//  2. An input whose bytes are all in their sets satisfies all terms that were added.
//  3. The sets are a function of the terms, whatever their order.
package bytesets

import (
	"math/bits"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Set is a set of values of a byte: bit v%64 of word v/64 is value v.
type Set [4]uint64

// All is the set of all values.
func All() Set { return Set{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)} }

// Only is the set of one value.
func Only(v byte) (s Set) {
	s[v/64] = 1 << (v % 64)
	return s
}

// Has reports whether a value is in the set.
func (s *Set) Has(v byte) bool { return s[v/64]>>(v%64)&1 != 0 }

// First is the smallest value of a set that has one.
func (s *Set) First() byte {
	for i, w := range s {
		if w != 0 {
			return byte(64*i + bits.TrailingZeros64(w))
		}
	}
	return 0
}

// Len is the number of values.
func (s *Set) Len() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// Finder finds the sets. Symbols are bytes.
type Finder struct {
	recorded symbolic.Assignment
	values   *symbolic.Evaluator
	sets     map[string]*Set
	kept     map[*symbolic.Expr]mask
	symbols  map[*symbolic.Expr]symbolsOf
	unknown  bool
}

// symbolsOf says which symbols an expression has: none, one, or several.
type symbolsOf struct {
	number int // 2 for several
	one    *symbolic.Expr
}

// New makes a Finder for an input that was recorded.
func New(recorded symbolic.Assignment) *Finder {
	return &Finder{
		recorded: recorded, values: symbolic.NewEvaluator(recorded), sets: map[string]*Set{}, kept: map[*symbolic.Expr]mask{},
		symbols: map[*symbolic.Expr]symbolsOf{},
	}
}

// Add takes a term that holds for the recorded input, or an expression that must keep the value that it has for it.
func (f *Finder) Add(term *symbolic.Expr) { f.keep(term, lowBits(term.Bits)) }

// Recorded is the recorded value of a symbol.
func (f *Finder) Recorded(name string) (symbolic.Value, bool) { return f.recorded(name) }

// Complete reports whether the sets are sufficient: all symbols of the terms were bytes with a recorded value.
func (f *Finder) Complete() bool { return !f.unknown }

// Set is the set of a symbol.
func (f *Finder) Set(name string) Set {
	if s := f.sets[name]; s != nil {
		return *s
	}
	return All()
}

// Names lists the symbols whose set has not all values, in no order.
func (f *Finder) Names() (list []string) {
	for name, s := range f.sets {
		if *s != All() {
			list = append(list, name)
		}
	}
	return list
}

func (f *Finder) symbolsOf(e *symbolic.Expr) (s symbolsOf) {
	if e == nil {
		return s
	}
	if s, known := f.symbols[e]; known {
		return s
	}
	if e.Op == symbolic.Symbol {
		s = symbolsOf{1, e}
	}
	for _, x := range []*symbolic.Expr{e.A, e.B, e.C} {
		switch o := f.symbolsOf(x); {
		case o.number == 0:
		case s.number == 0:
			s = o
		case o.number > 1 || o.one != s.one:
			s = symbolsOf{number: 2}
		}
	}
	f.symbols[e] = s
	return s
}

// narrow leaves the values of a byte with which an expression has a value that is allowed.
func (f *Finder) narrow(e, symbol *symbolic.Expr, allowed func(symbolic.Value) bool) {
	if _, known := f.recorded(symbol.Name); !known || symbol.Bits != 8 {
		f.unknown = true
		return
	}
	set := f.sets[symbol.Name]
	if set == nil {
		all := All()
		set = &all
		f.sets[symbol.Name] = set
	}
	program := symbolic.Compile([]*symbolic.Expr{e})
	for v := range 256 {
		if set.Has(byte(v)) && !allowed(program.Run([]symbolic.Value{{Lo: uint64(v)}})[0]) {
			set[v/64] &^= 1 << (v % 64)
		}
	}
}
