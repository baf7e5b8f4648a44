package vex

import (
	"fmt"
	"strings"
)

// String prints the block as libVEX does.
func (b *Block) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "IRSB %#x, %d bytes {\n", b.Addr, b.Size)
	for i, t := range b.Types {
		separator := "   "
		if i%8 == 0 {
			separator = "\n   "
		}
		if i == 0 {
			separator = "   "
		}
		fmt.Fprintf(&s, "%st%d:%v", separator, i, t)
	}
	s.WriteString("\n\n")
	for _, stmt := range b.Stmts {
		fmt.Fprintf(&s, "   %v\n", stmt)
	}
	fmt.Fprintf(&s, "   goto {%v} %v\n}\n", b.Jump, b.Next)
	return s.String()
}

func joinExprs(args []Expr) string {
	var s []string
	for _, a := range args {
		s = append(s, a.String())
	}
	return strings.Join(s, ",")
}

func (a Array) String() string { return fmt.Sprintf("(%d:%dx%v)", a.Base, a.Count, a.Elem) }

func (t Temp) String() string { return fmt.Sprintf("t%d", int32(t)) }

func (s *Mark) String() string { return fmt.Sprintf("------ IMark(%#x, %d) ------", s.Addr, s.Len) }
func (s *Put) String() string  { return fmt.Sprintf("PUT(%d) = %v", s.Offset, s.Data) }
func (s *PutI) String() string {
	return fmt.Sprintf("PUTI%v[%v,%d] = %v", s.Array, s.Index, s.Bias, s.Data)
}
func (s *Assign) String() string { return fmt.Sprintf("%v = %v", s.Temp, s.Data) }

func (s *Store) String() string {
	text := fmt.Sprintf("STle(%v) = %v", s.Addr, s.Data)
	if s.Guard != nil {
		text = fmt.Sprintf("if (%v) %s", s.Guard, text)
	}
	return text
}

func (s *LoadG) String() string {
	return fmt.Sprintf("%v = if (%v) %v(LDle(%v)) else %v", s.Temp, s.Guard, s.Cvt, s.Addr, s.Alt)
}

func (c LoadCvt) String() string {
	return [...]string{"invalid", "IdentV128", "Ident64", "Ident32", "16Uto32", "16Sto32", "8Uto32", "8Sto32"}[c]
}

func (s *CAS) String() string {
	if s.ExpectedHi == nil {
		return fmt.Sprintf("%v = CASle(%v::%v->%v)", s.OldLo, s.Addr, s.ExpectedLo, s.DataLo)
	}
	return fmt.Sprintf("%v,%v = CASle(%v::%v,%v->%v,%v)",
		s.OldHi, s.OldLo, s.Addr, s.ExpectedHi, s.ExpectedLo, s.DataHi, s.DataLo)
}

func (e Effect) String() string { return [...]string{"No", "Rd", "Wr", "Mo"}[e] }

func (s *Dirty) String() string {
	var effects strings.Builder
	if s.Effect != EffectNone {
		fmt.Fprintf(&effects, " %vFX-mem(%v,%d)", s.Effect, s.MemAddr, s.MemSize)
	}
	for _, e := range s.State {
		fmt.Fprintf(&effects, " %vFX-gst(%d,%d)", e.Effect, e.Offset, e.Size)
	}
	result := ""
	if s.Temp != NoTemp {
		result = s.Temp.String() + " = "
	}
	return fmt.Sprintf("%sDIRTY %v%s ::: %s(%s)", result, s.Guard, effects.String(), s.Callee, joinExprs(s.Args))
}

func (s *Fence) String() string { return "MBusEvent-Fence" }
func (s *Exit) String() string  { return fmt.Sprintf("if (%v) goto {%v} %#x", s.Guard, s.Jump, s.Dst) }

func (e *Get) String() string       { return fmt.Sprintf("GET:%v(%d)", e.Type, e.Offset) }
func (e *GetI) String() string      { return fmt.Sprintf("GETI%v[%v,%d]", e.Array, e.Index, e.Bias) }
func (e *Read) String() string      { return e.Temp.String() }
func (e *Operation) String() string { return fmt.Sprintf("%v(%s)", e.Op, joinExprs(e.Args)) }
func (e *Load) String() string      { return fmt.Sprintf("LDle:%v(%v)", e.Type, e.Addr) }
func (e *Const) String() string     { return fmt.Sprintf("%#x:%v", e.Bits, e.Type) }
func (e *ITE) String() string       { return fmt.Sprintf("ITE(%v,%v,%v)", e.Cond, e.Then, e.Else) }
func (e *Call) String() string      { return fmt.Sprintf("%s(%s):%v", e.Callee, joinExprs(e.Args), e.Type) }

func (*StatePointer) String() string { return "GSPTR" }
func (*VectorResult) String() string { return "VECRET" }
