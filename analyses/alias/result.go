package alias

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/specialize"
	"github.com/heddle-dmt/heddle/internal/effort"
)

// Set is a set of addresses: an index in its Result. Sets with equal members are the same.
type Set int32

// Predefined sets.
const (
	// Nothing is the empty set.
	Nothing Set = iota
	// Unknown is any address outside of other contexts' private frames.
	Unknown
)

// Access is a load or a store of a block; accesses are in the block's order.
type Access struct {
	PC    uint64
	Set   Set
	Size  int
	Store bool
	// Atomic is set if the instruction is atomic.
	Atomic bool
}

// LibraryEffects are the accesses of a call of a library's function.
type LibraryEffects struct {
	Model         *cfg.Model
	Reads, Writes Set
}

// Result is the result of an analysis.
type Result struct {
	// Regions are the regions, by number.
	Regions []*Region
	// Steps is the number of block visits.
	Steps int

	accesses     [][][]Access
	reached      [][]*registerState
	libraries    map[blockNode]*LibraryEffects
	values       []sizedValue // by set
	numbers      map[string]Set
	setsByRegion [][]Set // by region: the sets that contain addresses in it, in order
	meter        *effort.Meter
}

// sizedValue is addresses of pieces of memory.
type sizedValue struct {
	at   Value
	size int
}

func (a *analysis) buildResult() *Result {
	r := &Result{
		meter:   a.meter,
		Regions: a.regions, Steps: a.steps, libraries: map[blockNode]*LibraryEffects{},
		values: []sizedValue{{}, {topValue, 1}}, numbers: map[string]Set{},
	}
	r.reached = a.before
	r.accesses = make([][][]Access, len(a.run.Contexts))
	for i, c := range a.run.Contexts {
		r.accesses[i] = make([][]Access, len(c.Function.Blocks))
		for k := range c.Function.Blocks {
			n := blockNode{i, k}
			r.accesses[i][k] = r.resolveAccesses(a.accesses[n])
			if m := a.imports[n]; m != nil {
				r.libraries[n] = r.resolveLibrary(m)
			}
		}
	}
	r.indexRegions()
	return r
}

// indexRegions finds the sets that have addresses in a region.
func (r *Result) indexRegions() {
	r.setsByRegion = make([][]Set, len(r.Regions))
	for n := range r.values {
		for _, p := range r.values[n].at.parts {
			r.setsByRegion[p.region] = append(r.setsByRegion[p.region], Set(n))
		}
	}
}

func (r *Result) resolveAccesses(list []rawAccess) []Access {
	var out []Access
	for _, x := range list {
		r.meter.Add(1 + len(x.at.parts))
		set := r.setNumber(x.at, x.size)
		if set == Nothing {
			set = Unknown // a number, or a value that no store is known to have written
		}
		out = append(out, Access{x.pc, set, x.size, x.store, x.atomic})
	}
	return out
}

func (r *Result) resolveLibrary(m *libraryCall) *LibraryEffects {
	l := &LibraryEffects{Model: m.model}
	if m.model.Opaque && len(m.model.Writes) == 0 || m.model.Pure {
		return l
	}
	reads, writes := Value{}, Value{}
	for k, v := range m.arguments {
		if v.isTop && !slices.Contains(m.model.Writes, k+1) {
			continue // an argument beyond the function's parameters may hold anything
		}
		reads = joinValues(reads, anyOffset(addressesOnly(v)))
	}
	for _, k := range m.model.Writes {
		if v := m.arguments[k-1]; !v.isTop || m.model.Result != "unknown" || k <= 2 {
			writes = joinValues(writes, anyOffset(addressesOnly(v)))
		}
	}
	l.Reads, l.Writes = r.setNumber(reads, wordBytes), r.setNumber(writes, wordBytes)
	return l
}

// addressesOnly is a value without its numbers.
func addressesOnly(v Value) Value {
	if len(v.parts) > 0 && v.parts[0].region == numberRegion {
		return Value{isTop: v.isTop, parts: v.parts[1:]}
	}
	return v
}

// setNumber returns the set of addresses of pieces of memory.
func (r *Result) setNumber(at Value, size int) Set {
	at = addressesOnly(at)
	switch {
	case at.isTop:
		return Unknown
	case at.isUnset():
		return Nothing
	}
	key := fmt.Sprint(size, at)
	if n, ok := r.numbers[key]; ok {
		return n
	}
	n := Set(len(r.values))
	r.numbers[key] = n
	r.values = append(r.values, sizedValue{at, size})
	return n
}

// Accesses returns the accesses of a block of a context; none if it cannot be reached.
func (r *Result) Accesses(c *specialize.Context, b *cfg.Block) []Access {
	if c.Number >= len(r.accesses) {
		return nil
	}
	return r.accesses[c.Number][b.Index]
}

// IsReached reports whether a block of a context can be reached.
func (r *Result) IsReached(c *specialize.Context, b *cfg.Block) bool {
	return c.Number < len(r.reached) && r.reached[c.Number][b.Index] != nil
}

// LibraryEffects returns the effects of a block's call of a library; nil if it calls none.
func (r *Result) LibraryEffects(c *specialize.Context, b *cfg.Block) *LibraryEffects {
	return r.libraries[blockNode{c.Number, b.Index}]
}

// MayOverlap reports whether two sets may have an address in common.
func (r *Result) MayOverlap(a, b Set) bool {
	r.meter.Add(1)
	return r.pairMayOverlap(&r.values[a], &r.values[b])
}

// Overlapping returns the sets that may have an address in common with s, in order. It
// skips sets of other regions: there are many, most of them in a single frame.
func (r *Result) Overlapping(s Set) []Set {
	v := &r.values[s]
	var list []Set
	if v.at.isTop {
		for n := range r.values {
			list = append(list, Set(n))
		}
	} else {
		list = append(list, Unknown)
		for _, p := range v.at.parts {
			list = append(list, r.setsByRegion[p.region]...)
		}
		slices.Sort(list)
		list = slices.Compact(list)
	}
	return slices.DeleteFunc(list, func(n Set) bool { return !r.MayOverlap(s, n) })
}

func (r *Result) pairMayOverlap(a, b *sizedValue) bool {
	switch {
	case a.at.isUnset() || b.at.isUnset():
		return false
	case a.at.isTop && b.at.isTop:
		return true
	case a.at.isTop:
		return r.isReachable(b.at)
	case b.at.isTop:
		return r.isReachable(a.at)
	}
	for _, p := range a.at.parts {
		for _, q := range b.at.parts {
			if p.region == q.region && p.at.MayOverlap(a.size, q.at, b.size) {
				return true
			}
		}
	}
	return false
}

// isReachable reports whether an unknown address may be in a set.
func (r *Result) isReachable(v Value) bool {
	for _, p := range v.parts {
		if g := r.Regions[p.region]; g.escaped || g.Kind == Library || g.Kind == Global {
			return true
		}
	}
	return false
}

// OwnFrame returns the offsets from the return address if a set is in the frame of a
// context.
func (r *Result) OwnFrame(s Set, c *specialize.Context) (at Interval, size int, own bool) {
	v := r.values[s]
	if v.at.isTop || len(v.at.parts) != 1 {
		return Interval{}, 0, false
	}
	g := r.Regions[v.at.parts[0].region]
	if g.Kind != Stack || g.Context != c {
		return Interval{}, 0, false
	}
	return v.at.parts[0].at, v.size, true
}

// NumSets is the number of sets.
func (r *Result) NumSets() int { return len(r.values) }

// Describe describes a set.
func (r *Result) Describe(s Set) string {
	v := r.values[s].at
	if v.isTop {
		return "anything"
	}
	var list []string
	for _, p := range v.parts {
		list = append(list, r.Regions[p.region].Name()+"["+p.at.String()+"]")
	}
	return strings.Join(list, " or ")
}

// IsPrivate reports whether a set is in a frame whose address only its context has.
func (r *Result) IsPrivate(s Set) bool {
	v := r.values[s]
	if v.at.isTop || len(v.at.parts) != 1 {
		return false
	}
	g := r.Regions[v.at.parts[0].region]
	return g.Kind == Stack && !g.escaped
}
