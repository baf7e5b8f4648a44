package exec

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// symbolically executes a block that has been executed on recorded values once
// more, on expressions. Temporaries have the recorded values still.
func (t *thread) symbolically(b *block) error {
	if n := len(b.flat.Bits); len(t.temps) < n {
		t.temps = make([]Term, 2*n)
	}
	clear(t.temps[:len(b.flat.Bits)])
	r := &t.round
	r.thread, r.terms, r.block, r.stmt, r.at, r.n, r.err = t, t.x.terms, b, 0, 0, 0, nil
	r.steps()
	if !t.machine.Exited {
		r.stmt = len(b.Stmts)
		r.fix(r.value(b.flat.Next), t.temps[b.flat.Next], Target, "")
	}
	return r.err
}

// round is one execution of a block on expressions.
type round struct {
	*thread
	terms *terms
	block *block
	stmt  int    // number of the statement
	at    uint64 // the instruction's address
	n     uint64 // instructions before it
	err   error
	// near is memory around an address (repeated).
	near [16 + 2*longestStride]byte
}

// fix adds the constraint that a term, if there is one, has the recorded value.
func (t *thread) fix(v symbolic.Value, e Term, k Kind, reason string) {
	if e != 0 {
		t.x.add(t.constraint(t.x.terms.is(e, v), k, reason))
	}
}

// constraint is one that no statement of a block makes.
func (t *thread) constraint(e Term, k Kind, reason string) *Constraint {
	c := &t.x.constraint
	*c = Constraint{Term: e, Kind: k, Reason: reason, Thread: t.id, PC: event.Addr(t.machine.PC), At: t.count, Stmt: NoStmt}
	return c
}

func (r *round) add(e Term, k Kind, reason string) {
	c := &r.x.constraint
	*c = Constraint{Term: e, Kind: k, Reason: reason, Thread: r.id, PC: event.Addr(r.at), At: r.count + r.n - 1, Stmt: r.stmt}
	r.x.add(c)
}

func (r *round) fix(v symbolic.Value, e Term, k Kind, reason string) {
	if e == 0 {
		return
	}
	r.check(v, e)
	r.add(r.terms.is(e, v), k, reason)
}

// check compares a term with the recorded value.
func (r *round) check(v symbolic.Value, t Term) {
	if !r.x.Check || r.err != nil {
		return
	}
	e := r.x.Express(t)
	have, err := r.x.evaluator.Value(e)
	if err == nil && have != v {
		err = fmt.Errorf("%v is %#x and was %#x", e, have, v)
	}
	if err == nil && e.Bits != r.terms.bits(t) {
		err = fmt.Errorf("%v has %d bits, want %d", e, e.Bits, r.terms.bits(t))
	}
	if err != nil {
		r.err = fmt.Errorf("at %#x: %w", r.at, err)
	}
}

// operand is the value and the term of a temporary or a constant.
func (r *round) operand(e vex.Expr) (symbolic.Value, Term) {
	switch e := e.(type) {
	case *vex.Read:
		return r.machine.Temp(e.Temp), r.temps[e.Temp]
	case *vex.Const:
		return constant(e), 0
	}
	r.err = fmt.Errorf("bug: %v is no operand", e)
	return symbolic.Value{}, 0
}

// term is what an operand depends on; 0: on nothing.
func (r *round) term(e vex.Expr) Term {
	if t, ok := e.(*vex.Read); ok {
		return r.temps[t.Temp]
	}
	return 0
}

// constant is a constant's value: of a vector, bits that stand for bytes.
func constant(c *vex.Const) symbolic.Value {
	if c.Type != vex.V128 {
		return symbolic.Value{Lo: c.Bits}
	}
	var v symbolic.Value
	for i := range 8 {
		v.Lo |= c.Bits >> i & 1 * 0xff << (8 * i)
		v.Hi |= c.Bits >> (8 + i) & 1 * 0xff << (8 * i)
	}
	return v
}

// some is an operand as a term, a constant if it depends on no input.
func (r *round) some(e vex.Expr) Term {
	v, t := r.operand(e)
	if t != 0 {
		return t
	}
	return r.terms.constant(v, r.block.TypeOf(e).Bits())
}

// statement executes one that has no step.
func (r *round) statement(s vex.Stmt) {
	switch s := s.(type) {
	case *vex.Assign:
		r.assign(s.Temp, r.data(s.Temp, s.Data))
	case *vex.Store:
		r.store(s)
	case *vex.LoadG:
		r.guarded(s)
	case *vex.PutI:
		v, index := r.operand(s.Index)
		r.fix(v, index, Fixed, "index of an x87 register")
		r.put(element(s.Array, v, s.Bias), s.Array.Elem.Bytes(), r.term(s.Data))
	case *vex.CAS:
		r.exchange(s)
	case *vex.Dirty:
		r.dirty(s)
	}
}

// assign gives a temporary its term.
func (r *round) assign(t vex.Temp, e Term) {
	if e == 0 {
		return
	}
	r.check(r.machine.Temp(t), e)
	r.temps[t] = e
}

func element(a vex.Array, index symbolic.Value, bias int) int {
	i := (int(int32(index.Lo)) + bias) % a.Count
	if i < 0 {
		i += a.Count
	}
	return a.Base + i*a.Elem.Bytes()
}

// data is the term of what is assigned, if that is no step.
func (r *round) data(to vex.Temp, e vex.Expr) Term {
	switch e := e.(type) {
	case *vex.GetI:
		v, index := r.operand(e.Index)
		r.fix(v, index, Fixed, "index of an x87 register")
		return r.get(element(e.Array, v, e.Bias), e.Array.Elem.Bytes(), r.machine.Temp(to))
	case *vex.Operation:
		r.fixAll(e.Args, e.Op.String())
		return 0
	case *vex.Call:
		return r.call(e)
	}
	r.err = fmt.Errorf("bug: %v is not expressed", e)
	return 0
}

// store is one with a condition, which is fixed.
func (r *round) store(s *vex.Store) {
	v, e := r.operand(s.Guard)
	r.fix(v, e, Branch, "")
	if v.Lo == 0 {
		return
	}
	addr, e := r.operand(s.Addr)
	r.fix(addr, e, Address, "")
	size := r.block.TypeOf(s.Data).Bytes()
	r.x.memory.store(r.space, addr.Lo, size, r.terms.fit(r.term(s.Data), 8*size))
}

// guarded is a load with a condition, which is fixed.
func (r *round) guarded(s *vex.LoadG) {
	v, e := r.operand(s.Guard)
	r.fix(v, e, Branch, "")
	if v.Lo == 0 {
		r.assign(s.Temp, r.term(s.Alt))
		return
	}
	addr, e := r.operand(s.Addr)
	x := r.load(addr.Lo, e, s.Cvt.Type().Bytes(), r.machine.Temp(s.Temp))
	bits := r.block.Types[s.Temp].Bits()
	if x != 0 && s.Cvt.Signed() {
		x = r.terms.add(node{op: nodeSign, bits: uint8(bits), a: x})
	}
	r.assign(s.Temp, r.terms.fit(x, bits))
}

func (r *round) depends(args []vex.Expr) bool {
	for _, a := range args {
		if r.term(a) != 0 {
			return true
		}
	}
	return false
}

func (r *round) fixAll(args []vex.Expr, reason string) {
	for _, a := range args {
		switch a.(type) {
		case *vex.Read, *vex.Const:
			v, x := r.operand(a)
			r.fix(v, x, Fixed, reason)
		}
	}
}

// call makes the term of flags; of other helpers the arguments are fixed.
func (r *round) call(e *vex.Call) Term {
	if !r.depends(e.Args) {
		return 0
	}
	n, args := node{bits: 64}, e.Args
	switch e.Callee {
	case "amd64g_calculate_condition":
		number, t := r.operand(args[0])
		r.fix(number, t, Branch, "")
		n.op, n.bits, args = nodeCondition, uint8(number.Lo), args[1:]
	case "amd64g_calculate_rflags_all":
		n.op = nodeFlags
	case "amd64g_calculate_rflags_c":
		n.op = nodeCarry
	default:
		r.fixAll(e.Args, e.Callee)
		return 0
	}
	op, t := r.operand(args[0])
	r.fix(op, t, Branch, "")
	if op.Lo > 4*kinds {
		r.fixAll(e.Args, e.Callee)
		return 0
	}
	if !r.depends(args[1:]) {
		return 0
	}
	n.extra = uint8(op.Lo)
	n.a, n.b, n.c = r.some(args[1]), r.some(args[2]), r.some(args[3])
	return r.terms.add(n)
}

// exchange is a compare-and-exchange: that it succeeds, or fails, is fixed.
func (r *round) exchange(s *vex.CAS) {
	t := r.block.Types[s.OldLo]
	addr, at := r.operand(s.Addr)
	r.assign(s.OldLo, r.load(addr.Lo, at, t.Bytes(), r.machine.Temp(s.OldLo)))
	equal := r.terms.equal(r.some(&vex.Read{Temp: s.OldLo}), r.some(s.ExpectedLo))
	expected, _ := r.operand(s.ExpectedLo)
	holds := expected == r.machine.Temp(s.OldLo)
	if s.ExpectedHi != nil {
		r.assign(s.OldHi, r.load(addr.Lo+uint64(t.Bytes()), 0, t.Bytes(), r.machine.Temp(s.OldHi)))
		high := r.terms.equal(r.some(&vex.Read{Temp: s.OldHi}), r.some(s.ExpectedHi))
		equal = r.terms.add(node{op: nodeAnd, bits: 1, a: equal, b: high})
		expected, _ := r.operand(s.ExpectedHi)
		holds = holds && expected == r.machine.Temp(s.OldHi)
	}
	if !holds {
		r.exchanged(r.terms.not(equal), s)
		return
	}
	r.exchanged(equal, s)
	r.x.memory.store(r.space, addr.Lo, t.Bytes(), r.term(s.DataLo))
	if s.DataHi != nil {
		r.x.memory.store(r.space, addr.Lo+uint64(t.Bytes()), t.Bytes(), r.term(s.DataHi))
	}
}

// exchanged adds the constraint of a compare-and-exchange, if it depends on inputs.
func (r *round) exchanged(e Term, s *vex.CAS) {
	parts := []vex.Expr{&vex.Read{Temp: s.OldLo}, s.ExpectedLo}
	if s.ExpectedHi != nil {
		parts = append(parts, &vex.Read{Temp: s.OldHi}, s.ExpectedHi)
	}
	if r.depends(parts) {
		r.add(e, Exchange, "")
	}
}

// dirty fixes what a helper with side effects reads; what it writes depends on no
// input then.
func (r *round) dirty(s *vex.Dirty) {
	v, e := r.operand(s.Guard)
	r.fix(v, e, Branch, "")
	if v.Lo == 0 {
		return
	}
	r.fixAll(s.Args, s.Callee)
	for _, fx := range s.State {
		if !fx.Effect.Reads() {
			continue
		}
		for _, part := range fx.Spans() {
			for at := part.From; at < part.To; at += 8 {
				v, e := r.before(at, min(8, part.To-at))
				r.fix(v, e, Fixed, s.Callee)
			}
		}
	}
	for _, fx := range s.State {
		if !fx.Effect.Writes() {
			continue
		}
		for _, part := range fx.Spans() {
			r.put(part.From, part.Size(), 0)
		}
	}
	if s.Effect != vex.EffectNone {
		r.dirtyMemory(s)
	}
}

// before is bytes of the state as a helper reads them. The recorded value is what
// the term is under the recorded inputs.
func (r *round) before(offset, size int) (symbolic.Value, Term) {
	t := r.terms.gather(r.registers.cells[offset:offset+size], symbolic.Value{})
	if t == 0 {
		return symbolic.Value{}, 0
	}
	return r.known(t), t
}

// known is a term's value under the recorded inputs.
func (r *round) known(t Term) symbolic.Value {
	v, err := r.x.evaluator.Value(r.x.Express(t))
	if err != nil && r.err == nil {
		r.err = err
	}
	return v
}

func (r *round) dirtyMemory(s *vex.Dirty) {
	addr, e := r.operand(s.MemAddr)
	r.fix(addr, e, Address, "")
	if s.Effect != vex.EffectWrite {
		cells := make([]cell, s.MemSize)
		r.x.memory.load(r.space, addr.Lo, cells)
		for _, c := range cells {
			if c != 0 {
				part := r.terms.extract(c.term(), c.at(), 1)
				r.fix(r.known(part), part, Fixed, s.Callee)
			}
		}
	}
	if s.Effect != vex.EffectRead {
		r.x.memory.store(r.space, addr.Lo, s.MemSize, 0)
	}
}
