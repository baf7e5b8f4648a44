package alias

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/simplify"
)

// Set is a set of places in memory: a number of its Result's. Sets with equal
// members are one.
type Set int32

// Sets that are always there.
const (
	// Nothing is no place.
	Nothing Set = iota
	// Unknown may be any place that is no other context's private frame.
	Unknown
)

// Access is a load or a store of a block, in their order there.
type Access struct {
	PC    uint64
	Set   Set
	Size  int
	Store bool
	// Atomic tells that it is one of an atomic instruction.
	Atomic bool
}

// Called is what a call of a library's function may access.
type Called struct {
	Model         *cfg.Model
	Reads, Writes Set
}

// Result is what was found out.
type Result struct {
	// Regions are the regions, by number.
	Regions []*Region
	// Steps is how many blocks were looked at.
	Steps int

	accesses  [][][]Access
	reached   [][]*state
	libraries map[node]*Called
	values    []sized // of sets
	numbers   map[string]Set
	within    [][]Set // by region: those that have places in it, in order
}

// sized is addresses of pieces of memory.
type sized struct {
	at   Value
	size int
}

func (a *analysis) result() *Result {
	r := &Result{
		Regions: a.regions, Steps: a.steps, libraries: map[node]*Called{},
		values: []sized{{}, {top, 1}}, numbers: map[string]Set{},
	}
	r.reached = a.before
	r.accesses = make([][][]Access, len(a.run.Contexts))
	for i, c := range a.run.Contexts {
		r.accesses[i] = make([][]Access, len(c.Function.Blocks))
		for k := range c.Function.Blocks {
			n := node{i, k}
			r.accesses[i][k] = r.found(a.accesses[n])
			if m := a.imports[n]; m != nil {
				r.libraries[n] = r.library(m)
			}
		}
	}
	r.index()
	return r
}

// index finds the sets that have places in a region.
func (r *Result) index() {
	r.within = make([][]Set, len(r.Regions))
	for n := range r.values {
		for _, p := range r.values[n].at.parts {
			r.within[p.region] = append(r.within[p.region], Set(n))
		}
	}
}

func (r *Result) found(list []rawAccess) []Access {
	var out []Access
	for _, x := range list {
		set := r.set(x.at, x.size)
		if set == Nothing {
			set = Unknown // a number, or what nobody is known to have written
		}
		out = append(out, Access{x.pc, set, x.size, x.store, x.atomic})
	}
	return out
}

func (r *Result) library(m *importation) *Called {
	l := &Called{Model: m.model}
	if m.model.Opaque && len(m.model.Writes) == 0 || m.model.Pure {
		return l
	}
	reads, writes := Value{}, Value{}
	for k, v := range m.arguments {
		if v.any && !slices.Contains(m.model.Writes, k+1) {
			continue // what is no argument is anything
		}
		reads = join(reads, whole(addresses(v)))
	}
	for _, k := range m.model.Writes {
		if v := m.arguments[k-1]; !v.any || m.model.Result != "unknown" || k <= 2 {
			writes = join(writes, whole(addresses(v)))
		}
	}
	l.Reads, l.Writes = r.set(reads, wordBytes), r.set(writes, wordBytes)
	return l
}

// addresses is a value without its numbers.
func addresses(v Value) Value {
	if len(v.parts) > 0 && v.parts[0].region == number {
		return Value{any: v.any, parts: v.parts[1:]}
	}
	return v
}

// set is the number of a set.
func (r *Result) set(at Value, size int) Set {
	at = addresses(at)
	switch {
	case at.any:
		return Unknown
	case at.none():
		return Nothing
	}
	key := fmt.Sprint(size, at)
	if n, ok := r.numbers[key]; ok {
		return n
	}
	n := Set(len(r.values))
	r.numbers[key] = n
	r.values = append(r.values, sized{at, size})
	return n
}

// Accesses are those of a block of a context; none if it cannot be come to.
func (r *Result) Accesses(c *simplify.Context, b *cfg.Block) []Access {
	if c.Number >= len(r.accesses) {
		return nil
	}
	return r.accesses[c.Number][b.Index]
}

// Reached tells whether a block of a context can be come to.
func (r *Result) Reached(c *simplify.Context, b *cfg.Block) bool {
	return c.Number < len(r.reached) && r.reached[c.Number][b.Index] != nil
}

// Called is what a block's call of a library's function may do; nil if it calls none.
func (r *Result) Called(c *simplify.Context, b *cfg.Block) *Called {
	return r.libraries[node{c.Number, b.Index}]
}

// May tells whether two sets may have a place in common.
func (r *Result) May(a, b Set) bool {
	return r.may(&r.values[a], &r.values[b])
}

// Meeting are the sets with which one may have a place in common, in order. Those of
// other regions are not looked at: there are many, and most are of one frame.
func (r *Result) Meeting(s Set) []Set {
	v := &r.values[s]
	var list []Set
	if v.at.any {
		for n := range r.values {
			list = append(list, Set(n))
		}
	} else {
		list = append(list, Unknown)
		for _, p := range v.at.parts {
			list = append(list, r.within[p.region]...)
		}
		slices.Sort(list)
		list = slices.Compact(list)
	}
	return slices.DeleteFunc(list, func(n Set) bool { return !r.May(s, n) })
}

func (r *Result) may(a, b *sized) bool {
	switch {
	case a.at.none() || b.at.none():
		return false
	case a.at.any && b.at.any:
		return true
	case a.at.any:
		return r.reachable(b.at)
	case b.at.any:
		return r.reachable(a.at)
	}
	for _, p := range a.at.parts {
		for _, q := range b.at.parts {
			if p.region == q.region && p.at.Meets(a.size, q.at, b.size) {
				return true
			}
		}
	}
	return false
}

// reachable tells whether an unknown address may be one of a set.
func (r *Result) reachable(v Value) bool {
	for _, p := range v.parts {
		if g := r.Regions[p.region]; g.escaped || g.Kind == Library || g.Kind == Global {
			return true
		}
	}
	return false
}

// Own tells whether a set is of places in the frame of a context, and which offsets
// from the return address they are.
func (r *Result) Own(s Set, c *simplify.Context) (at Interval, size int, own bool) {
	v := r.values[s]
	if v.at.any || len(v.at.parts) != 1 {
		return Interval{}, 0, false
	}
	g := r.Regions[v.at.parts[0].region]
	if g.Kind != Stack || g.Context != c {
		return Interval{}, 0, false
	}
	return v.at.parts[0].at, v.size, true
}

// Sets is how many sets there are.
func (r *Result) Sets() int { return len(r.values) }

// Describe says what is in a set.
func (r *Result) Describe(s Set) string {
	v := r.values[s].at
	if v.any {
		return "anything"
	}
	var list []string
	for _, p := range v.parts {
		list = append(list, r.Regions[p.region].Name()+"["+p.at.String()+"]")
	}
	return strings.Join(list, " or ")
}

// Private tells that a set is of a frame whose address nobody but its context has.
func (r *Result) Private(s Set) bool {
	v := r.values[s]
	if v.at.any || len(v.at.parts) != 1 {
		return false
	}
	g := r.Regions[v.at.parts[0].region]
	return g.Kind == Stack && !g.escaped
}
