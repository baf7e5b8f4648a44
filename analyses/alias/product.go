package alias

import "github.com/heddle-dmt/heddle/analyses/vex"

// productValue is a word of a block that is a multiple of another one, its root: compilers
// compute x*56 as (8*x-x)*8, for which intervals of the parts are less precise than the
// interval of x.
type productValue struct {
	root   vex.Temp
	factor int64 // 0: it is no multiple
	value  Value // of the root
}

// maxFactor bounds factors: sizes of objects.
const maxFactor = 1 << 32

// noteProduct records the product that an assigned word is.
func (e *blockEvaluation) noteProduct(s *vex.Assign) {
	if e.block.Types[s.Temp] != vex.I64 {
		return
	}
	p, fresh := e.productOf(s.Data)
	switch {
	case p.factor <= 0 || p.factor > maxFactor:
		p = productValue{s.Temp, 1, e.temps[s.Temp]}
	case fresh && p.value.isNumber():
		e.temps[s.Temp] = scaleValue(p.value, p.factor)
	}
	if e.products == nil {
		e.products = map[vex.Temp]productValue{}
	}
	e.products[s.Temp] = p
}

// productOf returns the product that an expression is; fresh is set if the expression
// combines several products of one root.
func (e *blockEvaluation) productOf(x vex.Expr) (p productValue, fresh bool) {
	switch x := x.(type) {
	case *vex.Read:
		return e.products[x.Temp], false
	case *vex.Get:
		if n, first := registerSlot(x.Offset); n >= 0 && n < vectors && first && x.Type == vex.I64 {
			return e.registerProducts[n], false
		}
	case *vex.Operation:
		return e.combineProducts(x)
	}
	return productValue{}, false
}

func (e *blockEvaluation) combineProducts(x *vex.Operation) (p productValue, fresh bool) {
	if len(x.Args) != 2 {
		return productValue{}, false
	}
	a, _ := e.productOf(x.Args[0])
	b, _ := e.productOf(x.Args[1])
	by, constant := e.evaluateExpr(x.Args[1]).asConstant()
	switch name := x.Op.String(); {
	case name == "Shl64" && constant && by >= 0 && by < 32 && a.factor < maxFactor:
		a.factor <<= by
		return a, false
	case name == "Add64" && a.factor > 0 && b.factor > 0 && a.root == b.root:
		a.factor += b.factor
		return a, true
	case name == "Sub64" && a.factor > b.factor && b.factor > 0 && a.root == b.root:
		a.factor -= b.factor
		return a, true
	}
	return productValue{}, false
}

// noteRegister records the product in a register.
func (e *blockEvaluation) noteRegister(s *vex.Put) {
	n, _ := registerSlot(s.Offset)
	if n < 0 || n >= vectors {
		return
	}
	e.registerProducts[n] = productValue{}
	if t, ok := s.Data.(*vex.Read); ok && e.block.TypeOf(s.Data) == vex.I64 {
		e.registerProducts[n] = e.products[t.Temp]
	}
}
