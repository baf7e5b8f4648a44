package windows

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/bytesets"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched/windows"
)

// pointerFinder finds the pointers in hidden state by which a window accesses memory.
type pointerFinder struct {
	sets  *bytesets.Finder
	found map[pointerWord]*foundPointer
	order []*foundPointer
	known map[*symbolic.Expr]*foundPointer // of expressions of words
	bases map[*symbolic.Expr]*foundPointer // of addresses
}

// pointerWord is where a pointer is.
type pointerWord struct {
	process int32
	at      uint64
}

type foundPointer struct {
	pointerWord
	value uint64
	used  map[uint64]bool // recorded addresses divided by 8
	not   map[uint64]bool
	// compared are pointers that it was compared with, number is that among the pointers of the precondition.
	compared map[*foundPointer]bool
	number   int
}

func newPointerFinder(sets *bytesets.Finder) *pointerFinder {
	return &pointerFinder{sets: sets, found: map[pointerWord]*foundPointer{}, known: map[*symbolic.Expr]*foundPointer{}, bases: map[*symbolic.Expr]*foundPointer{}}
}

// addAddress takes the address of an access of some bytes, and reports whether it is a pointer in hidden state plus a constant of the window.
func (f *pointerFinder) addAddress(e *symbolic.Expr, recorded uint64, size int) bool {
	base, known := f.bases[e]
	if !known {
		base = f.baseOf(e, recorded)
		f.bases[e] = base
	}
	if base == nil {
		return false
	}
	for w := recorded / wordBytes; w <= (recorded+uint64(max(size, 1))-1)/wordBytes; w++ {
		base.used[w] = true
	}
	return true
}

// baseOf returns the pointer that an address is relative to, or nil; the rest of the address keeps its value.
func (f *pointerFinder) baseOf(e *symbolic.Expr, recorded uint64) (base *foundPointer) {
	var terms []*symbolic.Expr
	var gather func(*symbolic.Expr)
	gather = func(x *symbolic.Expr) {
		if x.Op == symbolic.Add && len(terms) < maxParts {
			gather(x.A)
			gather(x.B)
			return
		}
		terms = append(terms, x)
	}
	gather(e)
	if len(terms) > maxParts {
		return nil // a hash, and no place in memory
	}
	for _, x := range terms {
		switch p := f.pointer(x); {
		case x.IsConst():
		case p != nil && base == nil && recorded-p.value+farthest < 2*farthest:
			base = p
		default:
			f.sets.Add(x)
		}
	}
	return base
}

// maxParts is how many parts an address has at most.
const maxParts = 8

// farthest is how far from a pointer memory is that belongs to it.
const farthest = 1 << 20

// addCondition takes a condition, and reports whether it says that a pointer has not a certain value, or compares two
// pointers.
func (f *pointerFinder) addCondition(e *symbolic.Expr) bool {
	negated := false
	for e.Op == symbolic.Not || e.Op == symbolic.Eq && e.Bits == 1 && e.B.IsConst() && e.A.Bits == 1 || e.Op == symbolic.Eq && e.A.IsConst() && e.B.Bits == 1 {
		switch {
		case e.Op == symbolic.Not:
			negated, e = !negated, e.A
		case e.B.IsConst():
			negated, e = negated != (e.B.Value.Lo == 0), e.A
		default:
			negated, e = negated != (e.A.Value.Lo == 0), e.B
		}
	}
	if e.Op != symbolic.Eq {
		return false
	}
	x, c := e.A, e.B
	if p, q := f.pointer(x), f.pointer(c); p != nil && q != nil {
		p.compared[q], q.compared[p] = true, true
		return true
	}
	if !negated {
		return false
	}
	if x.IsConst() {
		x, c = c, x
	}
	p := f.pointer(x)
	if p == nil || !c.IsConst() {
		return false
	}
	p.not[c.Value.Lo] = true
	return true
}

// pointer returns the pointer that an expression is, or nil.
func (f *pointerFinder) pointer(e *symbolic.Expr) *foundPointer {
	p, known := f.known[e]
	if !known {
		p = f.readPointer(e)
		f.known[e] = p
	}
	return p
}

func (f *pointerFinder) readPointer(e *symbolic.Expr) *foundPointer {
	if e.Bits != 64 || e.Op != symbolic.Concat {
		return nil
	}
	var names []string // the lowest byte first
	var gather func(*symbolic.Expr) bool
	gather = func(x *symbolic.Expr) bool {
		switch x.Op {
		case symbolic.Concat:
			return gather(x.B) && gather(x.A)
		case symbolic.Symbol:
			names = append(names, x.Name)
			return x.Bits == 8
		}
		return false
	}
	if !gather(e) || len(names) != wordBytes {
		return nil
	}
	first, ok := parseState(names[0])
	if !ok {
		return nil
	}
	var b [wordBytes]byte
	for i, name := range names {
		at, ok := parseState(name)
		if !ok || at.process != first.process || at.at != first.at+uint64(i) {
			return nil
		}
		v, _ := f.sets.Recorded(name)
		b[i] = byte(v.Lo)
	}
	p := f.found[first]
	if p == nil {
		p = &foundPointer{pointerWord: first, value: binary.LittleEndian.Uint64(b[:]), used: map[uint64]bool{}, not: map[uint64]bool{}, compared: map[*foundPointer]bool{}}
		f.found[first] = p
		f.order = append(f.order, p)
	}
	return p
}

const statePrefix = "state"

func stateName(process int32) string { return fmt.Sprintf("%s%d", statePrefix, process) }

// parseState is the place of a symbol of hidden state.
func parseState(name string) (w pointerWord, ok bool) {
	rest, ok := strings.CutPrefix(name, statePrefix)
	if !ok {
		return w, false
	}
	process, at, _ := strings.Cut(strings.TrimSuffix(rest, "]"), "[")
	n, err := strconv.ParseInt(process, 10, 32)
	if err != nil {
		return w, false
	}
	w.process = int32(n)
	w.at, err = strconv.ParseUint(at, 10, 64)
	return w, err == nil
}

// pointers lists the pointers, and says which of them leads to a word.
func (f *pointerFinder) pointers() (list []windows.Pointer, leads func(pointerWord) int) {
	owner := map[pointerWord]int{}
	leads = func(w pointerWord) int {
		if i, known := owner[pointerWord{w.process, w.at / wordBytes}]; known {
			return i
		}
		return windows.Fixed
	}
	for _, p := range f.order {
		p.number = -1
	}
	for _, p := range f.order {
		if len(p.used) == 0 && len(p.not) == 0 && len(p.compared) == 0 {
			continue
		}
		x := windows.Pointer{Process: p.process, At: arch.Addr(p.at), By: leads(p.pointerWord), Value: p.value, Used: sortedKeys(p.used), Not: sortedKeys(p.not)}
		for q := range p.compared {
			if q.number >= 0 {
				x.Compared = append(x.Compared, q.number)
			}
		}
		slices.Sort(x.Compared)
		p.number = len(list)
		list = append(list, x)
		for _, w := range x.Used {
			if key := (pointerWord{p.process, w}); leads(pointerWord{p.process, w * wordBytes}) == windows.Fixed {
				owner[key] = len(list) - 1
			}
		}
	}
	return list, leads
}

func sortedKeys(m map[uint64]bool) (list []uint64) {
	for k := range m {
		list = append(list, k)
	}
	slices.SortFunc(list, cmp.Compare[uint64])
	return list
}
