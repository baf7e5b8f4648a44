package exec

import (
	"fmt"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// opaque is a call of a function whose results are symbols of their own.
type opaque struct {
	// pages have a bit for each byte that the call has stored.
	pages map[uint64]*[pageSize / 64]uint64
	// pointers are the arguments through which it gives results.
	pointers []uint64
	touched  bool // it has read what depends on inputs
}

// newOpaque begins a call with a summary "opaque"; nil: the summary is another.
func (t *thread) newOpaque(s *Summary) *opaque {
	if s.Result != "opaque" {
		return nil
	}
	o := &opaque{pages: map[uint64]*[pageSize / 64]uint64{}}
	for _, n := range s.Writes {
		o.pointers = append(o.pointers, t.argument(n-1))
	}
	return o
}

// executed notes what a block of the call has stored.
func (o *opaque) executed(t *thread) {
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

// stored tells whether the call has stored a byte.
func (o *opaque) stored(at uint64) bool {
	p := o.pages[at/pageSize]
	return p != nil && p[at%pageSize/64]>>(at%64)&1 != 0
}

// results makes symbols of what the call gives: what it returns, and what it has
// stored from where the pointers point to on.
func (t *thread) results(c *summarized) {
	o := c.opaque
	if !o.touched {
		return
	}
	t.x.calls++
	name := fmt.Sprintf("%s#%d", c.Function, t.x.calls)
	for i, from := range o.pointers {
		n := uint64(0)
		for o.stored(from + n) {
			n++
		}
		// What the bytes are is known when they are loaded.
		in := &input{name: fmt.Sprintf("%s.%d", name, i+1), data: make([]byte, n), unknown: slices.Repeat([]bool{true}, int(n))}
		t.x.opaque[in.name] = true
		t.x.symbols(t.space, from, in)
	}
	t.x.opaque[name] = true
	v, _ := t.register(vex.OffsetRAX, c.Bits/8)
	t.registers.set(vex.SpanOf(vex.OffsetRAX, c.Bits/8), t.x.symbol(name, c.Bits, v))
}

// Opaque tells whether an expression is about what an opaque function gave.
func (x *Executor) Opaque(e *symbolic.Expr) bool {
	found := false
	symbolic.Symbols(e, func(s *symbolic.Expr) { found = found || x.opaque[s.Name] || x.opaque[inputOf(s.Name)] })
	return found
}
