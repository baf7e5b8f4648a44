package litmus

import "slices"

// types that a location or register can have, by C's names.
var typeNames = map[string]Type{
	"int": Int, "char": {"char", 1, true}, "short": {"short", 2, true}, "long": {"long", 8, true},
	"int8_t": {"int8_t", 1, true}, "int16_t": {"int16_t", 2, true}, "int32_t": {"int32_t", 4, true}, "int64_t": int64Type,
	"uint8_t": {"uint8_t", 1, false}, "uint16_t": {"uint16_t", 2, false}, "uint32_t": {"uint32_t", 4, false},
	"uint64_t": {"uint64_t", 8, false}, "intptr_t": {"intptr_t", 8, true}, "uintptr_t": {"uintptr_t", 8, false},
	"atomic_int": Int,
}

var qualifiers = []string{"volatile", "const", "_Atomic", "signed", "unsigned"}

// parseType reads a type, if there is one.
func (p parser) parseType(r *reader) (typ Type, typed bool, err error) {
	typ = Int
	unsigned := false
	for r.peekToken().kind == tokName {
		word := r.peekToken().text
		t, known := typeNames[word]
		switch {
		case known && typed && typ.Name == "long" && (word == "long" || word == "int"), known && typed && typ.Name == "short" && word == "int":
			// "long long", "long int", "short int".
		case known && !typed:
			typ = t
		case slices.Contains(qualifiers, word):
			unsigned = unsigned || word == "unsigned"
			r.nextToken()
			continue
		default:
			return parsePointer(r, applySign(typ, unsigned), typed || unsigned)
		}
		typed = true
		r.nextToken()
	}
	return parsePointer(r, applySign(typ, unsigned), typed || unsigned)
}

func applySign(t Type, unsigned bool) Type {
	if unsigned && t.Signed {
		t.Name, t.Signed = "unsigned "+t.Name, false
	}
	return t
}

func parsePointer(r *reader, t Type, typed bool) (Type, bool, error) {
	if !r.acceptText("*") {
		return t, typed, nil
	}
	if !typed {
		return t, false, r.positionOf(r.peekToken()).errorSyntax(quoteTrimmed("*"), "a type before it")
	}
	return Type{Name: t.Name + "*", Size: 8, Signed: true}, true, nil
}

// parseInitialState reads the initial state.
func (p parser) parseInitialState(r *reader) error {
	for r.peekToken().kind != tokEnd {
		if r.acceptText(";") {
			continue
		}
		if err := p.parseBinding(r); err != nil {
			return err
		}
		if r.peekToken().kind != tokEnd && !r.acceptText(";") {
			return r.errorExpected(quoteTrimmed(";"))
		}
	}
	return nil
}

// parseBinding reads one entry: [type] location [= value].
func (p parser) parseBinding(r *reader) error {
	typ, typed, err := p.parseType(r)
	if err != nil {
		return err
	}
	t := r.peekToken()
	if t.kind == tokNumber || t.kind == tokName && r.peekTokenAt(1).text == ":" {
		return p.regBinding(r, typ, typed)
	}
	bracket := r.acceptText("[")
	name, err := r.readName("a location, a register as THREAD:REGISTER, or a type")
	if err != nil {
		return err
	}
	if bracket {
		if err := r.expectText("]"); err != nil {
			return err
		}
	} else if r.acceptText("[") {
		return p.arrayBinding(r, name, typ, typed)
	}
	if v := p.Var(name.text); v != nil && v.Init != nil {
		return r.positionOf(name).errorMeaning("%s is given twice", name.text)
	}
	value := Value{}
	if r.acceptText("=") {
		if value, err = p.parseValue(r); err != nil {
			return err
		}
	}
	v := p.declareLocation(name.text)
	v.Init = []Value{value}
	if typed {
		v.Type, v.Typed = typ, true
	}
	return nil
}

// declareLocation returns the location of that name, made if need be.
func (p parser) declareLocation(name string) *Var {
	if v := p.Var(name); v != nil {
		return v
	}
	p.Vars = append(p.Vars, Var{Name: name, Type: Int, Count: 1})
	return &p.Vars[len(p.Vars)-1]
}

// arrayBinding reads the rest of name[count] = {values}, or of name[index] =
// value for an array that is there.
func (p parser) arrayBinding(r *reader, name token, typ Type, typed bool) error {
	n, err := r.readBounded(257, "a number of elements from 1 to 256")
	if err != nil {
		return err
	}
	if err := r.expectText("]"); err != nil {
		return err
	}
	if v := p.Var(name.text); v != nil && v.Init != nil {
		return p.checkElement(r, name, v, n)
	}
	if n == 0 {
		return r.positionOf(name).errorSyntax(quoteTrimmed("0"), "a number of elements from 1 to 256")
	}
	values := make([]Value, n)
	if r.acceptText("=") {
		if err := p.parseElements(r, values); err != nil {
			return err
		}
	}
	v := p.declareLocation(name.text)
	*v = Var{Name: name.text, Type: typ, Typed: typed, Count: n, Array: true, Init: values}
	return nil
}

func (p parser) checkElement(r *reader, name token, v *Var, n int) error {
	if !v.Array || n >= v.Count {
		return r.positionOf(name).errorMeaning("%s has no element %d", v.Name, n)
	}
	if err := r.expectText("="); err != nil {
		return err
	}
	value, err := p.parseValue(r)
	v.Init[n] = value
	return err
}

// parseElements reads {v, v, ...}; missing ones are zero.
func (p parser) parseElements(r *reader, values []Value) error {
	if err := r.expectText("{"); err != nil {
		return err
	}
	for i := 0; !r.acceptText("}"); i++ {
		if i > 0 && !r.acceptText(",") {
			return r.errorExpected(quoteTrimmed(",") + " or " + quoteTrimmed("}"))
		}
		if i == len(values) {
			return r.errorExpected(quoteTrimmed("}") + ": the array has no more elements")
		}
		v, err := p.parseValue(r)
		if err != nil {
			return err
		}
		values[i] = v
	}
	return nil
}

// parseValue reads a number, or a location whose address is meant: x, &x, t[1],
// x+4.
func (p parser) parseValue(r *reader) (Value, error) {
	if r.peekToken().kind == tokNumber {
		n, err := r.readNumber()
		return Value{Num: n}, err
	}
	r.acceptText("&")
	name, err := r.readName("a number or a location")
	if err != nil {
		return Value{}, err
	}
	v := Value{Sym: name.text}
	target := p.declareLocation(name.text)
	if r.acceptText("[") {
		if !target.Array {
			return v, r.positionOf(name).errorMeaning("%s is no array, or becomes one only later", name.text)
		}
		n, err := r.readBounded(int64(target.Count)+1, "an index of "+name.text)
		if err != nil {
			return v, err
		}
		v.Num = int64(n * target.Type.Size)
		return v, r.expectText("]")
	}
	if r.acceptText("+") {
		v.Num, err = r.readNumber()
	}
	return v, err
}

// regBinding reads THREAD:REGISTER = value.
func (p parser) regBinding(r *reader, typ Type, typed bool) error {
	t := r.peekToken()
	loc, err := p.parseRegister(r)
	if err != nil {
		return err
	}
	for _, other := range p.Regs {
		if other.Thread == loc.Thread && other.Reg == loc.Reg {
			return r.positionOf(t).errorMeaning("%v is given twice", loc)
		}
	}
	init := RegInit{Thread: loc.Thread, Reg: loc.Reg, Type: typ, Typed: typed}
	if r.acceptText("=") {
		if init.Value, err = p.parseValue(r); err != nil {
			return err
		}
	}
	p.Regs = append(p.Regs, init)
	return nil
}

// setRegisterType gives a register a type.
func (p parser) setRegisterType(thread int, reg Reg, typ Type) {
	for i := range p.Regs {
		if p.Regs[i].Thread == thread && p.Regs[i].Reg == reg {
			p.Regs[i].Type, p.Regs[i].Typed = typ, true
			return
		}
	}
	p.Regs = append(p.Regs, RegInit{Thread: thread, Reg: reg, Type: typ, Typed: true})
}
