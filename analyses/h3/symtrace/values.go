package symtrace

import (
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

func sameValues(a, b map[symbolPlace][]uint64) bool {
	return maps.EqualFunc(a, b, func(x, y []uint64) bool { return slices.Equal(x, y) })
}

// maxValues is how many values a place is known to have at most.
const maxValues = 64

// collectValues collects the values that were written, by where.
func (b *pass) collectValues() map[symbolPlace][]uint64 {
	seen := map[symbolPlace]map[uint64]bool{}
	for l, all := range b.knownValues {
		seen[l] = map[uint64]bool{}
		for _, v := range all {
			seen[l][v] = true
		}
	}
	put := func(l symbolPlace, v uint64) {
		if seen[l] == nil {
			seen[l] = map[uint64]bool{}
		}
		if len(seen[l]) < maxValues {
			seen[l][v] = true
		}
	}
	for _, w := range b.threads {
		for i := range w.events {
			e := &w.events[i]
			if !e.Kind.Writes() {
				continue
			}
			l := symbolPlace{e.Addr, e.Size}
			for _, v := range b.possibleValues(e.Value) {
				put(l, v)
			}
		}
	}
	out := map[symbolPlace][]uint64{}
	for l, all := range seen {
		out[l] = slices.Sorted(maps.Keys(all))
	}
	return out
}

// possibleValues are values of an expression of at most one symbol.
func (b *pass) possibleValues(e *symbolic.Expr) []uint64 {
	if e.IsConst() {
		return []uint64{e.Value.Lo}
	}
	name, several := "", false
	symbolic.Symbols(e, func(s *symbolic.Expr) {
		several = several || name != "" && name != s.Name
		name = s.Name
	})
	if several || name == "" {
		return nil
	}
	var all []uint64
	for _, v := range b.symbolValues(nil, name) {
		x, err := symbolic.NewEvaluator(func(string) (symbolic.Value, bool) { return v, true }).Value(e)
		if err == nil {
			all = append(all, x.Lo)
		}
	}
	return all
}

// symbolValues are the values that a symbol may have: the initial content of its place in memory,
// and the values written there.
func (b *pass) symbolValues(_ *threadExec, name string) []symbolic.Value {
	l, ok := b.symbolPlaces[name]
	if !ok {
		return nil
	}
	var all []uint64
	add := func(v uint64) {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	for _, v := range b.knownValues[l] {
		add(v)
	}
	n := 1
	if a, ok := b.arrays[l.addr]; ok {
		n = int(a.object.Size) / l.size
	}
	for i := range min(n, maxValues) {
		content := make([]byte, l.size)
		b.image.peekChanged(l.addr+uint64(i*l.size), content)
		add(symmem.ValueOf(content).Lo)
	}
	var out []symbolic.Value
	for _, v := range all {
		out = append(out, symbolic.Value{Lo: v})
	}
	return out
}
