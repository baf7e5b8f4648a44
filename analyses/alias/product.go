package alias

import "github.com/heddle-dmt/heddle/analyses/vex"

// product is a word of a block that is so many times another one, its root: compilers
// make x*56 of (8*x-x)*8, of which intervals of the parts know less than of x.
type product struct {
	root  vex.Temp
	times int64 // 0: it is none
	value Value // of the root
}

// mostTimes bounds factors: those of the sizes of objects.
const mostTimes = 1 << 32

// multiple notes what an assigned word is a product of.
func (e *evaluation) multiple(s *vex.Assign) {
	if e.block.Types[s.Temp] != vex.I64 {
		return
	}
	p, fresh := e.productOf(s.Data)
	switch {
	case p.times <= 0 || p.times > mostTimes:
		p = product{s.Temp, 1, e.temps[s.Temp]}
	case fresh && p.value.isNumber():
		e.temps[s.Temp] = scale(p.value, p.times)
	}
	if e.products == nil {
		e.products = map[vex.Temp]product{}
	}
	e.products[s.Temp] = p
}

// productOf is what an expression is a product of; fresh tells that the expression
// combines several of one root.
func (e *evaluation) productOf(x vex.Expr) (p product, fresh bool) {
	switch x := x.(type) {
	case *vex.Read:
		return e.products[x.Temp], false
	case *vex.Get:
		if n, first := slot(x.Offset); n >= 0 && n < vectors && first && x.Type == vex.I64 {
			return e.held[n], false
		}
	case *vex.Operation:
		return e.combine(x)
	}
	return product{}, false
}

func (e *evaluation) combine(x *vex.Operation) (p product, fresh bool) {
	if len(x.Args) != 2 {
		return product{}, false
	}
	a, _ := e.productOf(x.Args[0])
	b, _ := e.productOf(x.Args[1])
	by, constant := e.value(x.Args[1]).constant()
	switch name := x.Op.String(); {
	case name == "Shl64" && constant && by >= 0 && by < 32 && a.times < mostTimes:
		a.times <<= by
		return a, false
	case name == "Add64" && a.times > 0 && b.times > 0 && a.root == b.root:
		a.times += b.times
		return a, true
	case name == "Sub64" && a.times > b.times && b.times > 0 && a.root == b.root:
		a.times -= b.times
		return a, true
	}
	return product{}, false
}

// hold notes what a register has from here on.
func (e *evaluation) hold(s *vex.Put) {
	n, _ := slot(s.Offset)
	if n < 0 || n >= vectors {
		return
	}
	e.held[n] = product{}
	if t, ok := s.Data.(*vex.Read); ok && e.block.TypeOf(s.Data) == vex.I64 {
		e.held[n] = e.products[t.Temp]
	}
}
