package litmus

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Observer picks the values that a test asks for out of final states.
type Observer struct {
	test  *Test
	Locs  []Loc
	types []Type
	index map[Loc]int
}

// State is an outcome: the final values of an observer's locations, each a
// number of the location's type.
type State []int64

// Key is a State as a string of bytes, for maps.
func (s State) Key() string {
	b := make([]byte, 8*len(s))
	for i, v := range s {
		putLE(b[8*i:8*i+8], uint64(v))
	}
	return string(b)
}

// Observer makes the test's observer. It observes the registers and locations that the condition, the
// filter and `locations` mention: registers by thread, then locations by name.
func (t *Test) Observer() *Observer {
	o := &Observer{test: t, index: map[Loc]int{}}
	add := func(l Loc) { o.Locs = append(o.Locs, t.canonical(l)...) }
	t.Cond.eachLocation(add)
	if t.Filter != nil {
		t.Filter.eachLocation(add)
	}
	for _, l := range t.Locations {
		add(l)
	}
	slices.SortFunc(o.Locs, func(a, b Loc) int {
		if a.IsReg() != b.IsReg() {
			return map[bool]int{true: -1, false: 1}[a.IsReg()]
		}
		return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Index, b.Index))
	})
	o.Locs = slices.Compact(o.Locs)
	for i, l := range o.Locs {
		o.types = append(o.types, t.locationType(l))
		o.index[l] = i
	}
	return o
}

// canonical gives equal locations equal values: registers one name, arrays
// their elements.
func (t *Test) canonical(l Loc) []Loc {
	if l.IsReg() {
		l.Name = t.registerName(l.Reg)
		return []Loc{l}
	}
	v := t.Var(l.Name)
	if !v.Array || l.Array {
		l.Array = v.Array
		return []Loc{l}
	}
	var all []Loc
	for i := range v.Count {
		all = append(all, Loc{Thread: -1, Name: l.Name, Index: i, Array: true})
	}
	return all
}

// registerName is how states show a register: as herd does, rax in tests for
// X86_64 and EAX in those for X86.
func (t *Test) registerName(r Reg) string {
	if t.Arch == "X86" {
		return strings.ToUpper(view{r, 4, false}.partName())
	}
	return regNames[r]
}

// locationType is the type of a location. A register that has none in the initial
// state is an int, unless some instruction uses all 64 bits of it.
func (t *Test) locationType(l Loc) Type {
	if !l.IsReg() {
		return t.Var(l.Name).Type
	}
	for _, init := range t.Regs {
		if init.Thread != l.Thread || init.Reg != l.Reg {
			continue
		}
		if init.Typed {
			return init.Type
		}
		if init.Value.Sym != "" {
			return int64Type
		}
	}
	wide := func(o Operand, size int) bool { return o.Kind == RegOperand && o.Reg == l.Reg && size == 8 }
	for _, in := range t.Threads[l.Thread].Code {
		if wide(in.Dst, in.Size) || wide(in.Src, in.Size) {
			return int64Type
		}
	}
	return Int
}

// convertNumber makes a number one of the type.
func (typ Type) convertNumber(n uint64) int64 {
	shift := 64 - 8*typ.Size
	if typ.Signed {
		return int64(n<<shift) >> shift
	}
	return int64(n << shift >> shift)
}

// State picks the observed values out of the registers and the memory from
// DataBase up.
func (o *Observer) State(reg func(thread int, r Reg) uint64, memory []byte) State {
	s := make(State, len(o.Locs))
	for i, l := range o.Locs {
		typ := o.types[i]
		if l.IsReg() {
			s[i] = typ.convertNumber(reg(l.Thread, l.Reg))
			continue
		}
		v := o.test.Var(l.Name)
		at := v.Addr - DataBase + uint64(l.Index*typ.Size)
		s[i] = typ.convertNumber(getLE(memory[at : at+uint64(typ.Size)]))
	}
	return s
}

// Bytes marks the bytes of memory, from DataBase up, that are observed.
func (o *Observer) Bytes() []bool {
	seen := make([]bool, o.test.End()-DataBase)
	for i, l := range o.Locs {
		if !l.IsReg() {
			at := int(o.test.Var(l.Name).Addr-DataBase) + l.Index*o.types[i].Size
			for k := range o.types[i].Size {
				seen[at+k] = true
			}
		}
	}
	return seen
}

// valuesOf gives a proposition the values of a state.
func (o *Observer) valuesOf(s State) func(Loc) int64 {
	return func(l Loc) int64 { return s[o.index[o.test.canonical(l)[0]]] }
}

// Satisfies reports whether the condition holds in s.
func (o *Observer) Satisfies(s State) bool { return o.test.Cond.Holds(o.valuesOf(s)) }

// Counts reports whether the filter lets s count.
func (o *Observer) Counts(s State) bool {
	return o.test.Filter == nil || o.test.Filter.Holds(o.valuesOf(s))
}

// Format is the state as herd prints it: 0:rax=1; [x]=2;
func (o *Observer) Format(s State) string {
	var parts []string
	for i, l := range o.Locs {
		parts = append(parts, fmt.Sprintf("%s=%s;", l, o.test.formatValue(o.types[i], s[i])))
	}
	return strings.Join(parts, " ")
}

// formatValue writes a value; one of eight bytes that is the address of something is
// written by name.
func (t *Test) formatValue(typ Type, n int64) string {
	if typ.Size == 8 {
		for _, v := range t.Vars {
			if off := uint64(n) - v.Addr; off < uint64(v.Count*v.Type.Size) {
				return Value{Sym: v.Name, Num: int64(off)}.String()
			}
		}
	}
	if !typ.Signed {
		return fmt.Sprint(uint64(n))
	}
	return fmt.Sprint(n)
}

// bindAtoms gives each comparison the number that it compares with, once
// locations have addresses and types.
func (t *Test) bindAtoms(p Prop) {
	switch p := p.(type) {
	case And:
		t.bindAtoms(p.L)
		t.bindAtoms(p.R)
	case Or:
		t.bindAtoms(p.L)
		t.bindAtoms(p.R)
	case Implies:
		t.bindAtoms(p.L)
		t.bindAtoms(p.R)
	case Not:
		t.bindAtoms(p.P)
	case *Atom:
		if p.Other == nil {
			p.num = t.locationType(p.Loc).convertNumber(t.Address(p.Value))
		}
	}
}
