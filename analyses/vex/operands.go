package vex

// TypeOf is the type of an operand, I64 if the block does not say. libVEX makes operands of
// puts and stores temporaries or constants.
func (b *Block) TypeOf(e Expr) Type {
	switch e := e.(type) {
	case *Read:
		return b.Types[e.Temp]
	case *Const:
		return e.Type
	case *Get:
		return e.Type
	case *GetI:
		return e.Array.Elem
	case *Load:
		return e.Type
	case *Call:
		return e.Type
	}
	return I64
}

// Type is the type that LoadG loads, before it is widened.
func (c LoadCvt) Type() Type {
	switch c {
	case LoadV128:
		return V128
	case Load32:
		return I32
	case Load16Uto32, Load16Sto32:
		return I16
	case Load8Uto32, Load8Sto32:
		return I8
	}
	return I64
}

// Signed reports whether LoadG sign-extends.
func (c LoadCvt) Signed() bool { return c == Load16Sto32 || c == Load8Sto32 }

// Reads reports whether the effect reads.
func (e Effect) Reads() bool { return e == EffectRead || e == EffectModify }

// Writes reports whether the effect writes.
func (e Effect) Writes() bool { return e == EffectWrite || e == EffectModify }

// Span is the bytes [From, To) of the guest state.
type Span struct{ From, To int }

// SpanOf is size bytes from an offset in the guest state.
func SpanOf(offset, size int) Span { return Span{offset, offset + size} }

// Size is the number of its bytes.
func (s Span) Size() int { return s.To - s.From }

// Span is the bytes of the array.
func (a Array) Span() Span { return SpanOf(a.Base, a.Count*a.Elem.Bytes()) }

// Spans are the bytes of the effect, each repetition by itself.
func (x StateEffect) Spans() []Span {
	spans := make([]Span, 0, x.Repeats+1)
	for i := 0; i <= x.Repeats; i++ {
		spans = append(spans, SpanOf(x.Offset+i*x.RepeatLen, x.Size))
	}
	return spans
}

// StateRead calls read for each part of the guest state that an expression reads, except
// reads by a helper through a StatePointer.
func StateRead(e Expr, read func(Span)) {
	switch e := e.(type) {
	case *Get:
		read(SpanOf(e.Offset, e.Type.Bytes()))
	case *GetI:
		read(e.Array.Span())
	case *Operation:
		for _, a := range e.Args {
			StateRead(a, read)
		}
	case *Call:
		for _, a := range e.Args {
			StateRead(a, read)
		}
	case *Load:
		StateRead(e.Addr, read)
	}
}
