package concolic

import (
	"fmt"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// opaqueCall is a call of a function whose results are symbols of their own.
type opaqueCall struct {
	// pages have a bit for each byte that the call has stored.
	pages map[uint64]*[pageSize / 64]uint64
	// pointers are the arguments through which it returns results.
	pointers []uint64
	touched  bool // it has read data that depend on inputs
}

// newOpaqueCall begins a call with a summary "opaque"; nil: the summary is another.
func (t *thread) newOpaqueCall(s *Summary) *opaqueCall {
	if s.Result != "opaque" {
		return nil
	}
	o := &opaqueCall{pages: map[uint64]*[pageSize / 64]uint64{}}
	for _, n := range s.Writes {
		o.pointers = append(o.pointers, t.argumentValue(n-1))
	}
	return o
}

// recordStores records the stores of a block of the call.
func (o *opaqueCall) recordStores(t *thread) {
	o.touched = o.touched || t.touched
	for _, s := range t.stores {
		for at := s.addr; at < s.addr+uint64(s.size); at++ {
			p := o.pages[at/pageSize]
			if p == nil {
				p = new([pageSize / 64]uint64)
				o.pages[at/pageSize] = p
			}
			p[at%pageSize/64] |= 1 << (at % 64)
		}
	}
}

// hasStored reports whether the call has stored a byte.
func (o *opaqueCall) hasStored(at uint64) bool {
	p := o.pages[at/pageSize]
	return p != nil && p[at%pageSize/64]>>(at%64)&1 != 0
}

// mostPadding is the length of the longest gap between members of a structure.
const mostPadding = 8

// span is the addresses from one up to another.
type span struct{ from, to uint64 }

// storedFrom lists the bytes that the call has stored from an address on, up to a gap that is no padding.
func (o *opaqueCall) storedFrom(from uint64) (list []span) {
	for at, gap := from, 0; gap <= mostPadding; at++ {
		switch {
		case !o.hasStored(at):
			gap++
		case gap > 0 || len(list) == 0:
			list, gap = append(list, span{at, at + 1}), 0
		default:
			list[len(list)-1].to++
		}
	}
	return list
}

// setOpaqueResults makes symbols of the call's results: the return value and the bytes
// stored from each pointer on, padding of structures left out.
func (t *thread) setOpaqueResults(c *summarizedCall) {
	o := c.opaque
	if !o.touched {
		return
	}
	t.x.calls++
	name := fmt.Sprintf("%s#%d", c.Function, t.x.calls)
	for i, from := range o.pointers {
		for _, r := range o.storedFrom(from) {
			n := int(r.to - r.from)
			// The values of the bytes are learnt when they are loaded.
			in := &input{name: fmt.Sprintf("%s.%d", name, i+1), first: int(r.from - from), data: make([]byte, n), unknown: slices.Repeat([]bool{true}, n)}
			t.x.opaque[in.name] = true
			t.x.addInput(t.space, r.from, in)
		}
	}
	t.x.opaque[name] = true
	v, _ := t.registerTerm(vex.OffsetRAX, c.Bits/8)
	t.registers.setTerm(vex.SpanOf(vex.OffsetRAX, c.Bits/8), t.x.namedTerm(name, "", c.Bits, v))
}

// IsOpaque reports whether an expression contains a symbol of an opaque function.
func (x *Executor) IsOpaque(e *symbolic.Expr) bool {
	found := false
	symbolic.Symbols(e, func(s *symbolic.Expr) { found = found || x.opaque[s.Name] || x.opaque[inputName(s.Name)] })
	return found
}
