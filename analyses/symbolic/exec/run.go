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
	if len(t.temps) < len(b.Types) {
		t.temps = make([]Term, 2*len(b.Types))
	}
	clear(t.temps[:len(b.Types)])
	r := &t.round
	*r = round{thread: t, terms: t.x.terms, block: b}
	for i, s := range b.Stmts[:t.machine.Done] {
		r.stmt = i
		r.statement(s)
	}
	if !t.machine.Exited {
		r.stmt = len(b.Stmts)
		v, e := r.operand(b.Next)
		r.fix(v, e, Target, "")
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
}

// fix adds the constraint that a term, if there is one, has the recorded value.
func (t *thread) fix(v symbolic.Value, e Term, k Kind, reason string) {
	if e != 0 {
		t.x.add(t.constraint(t.x.terms.same(e, v), k, reason))
	}
}

// constraint is one that no statement of a block makes.
func (t *thread) constraint(e Term, k Kind, reason string) *Constraint {
	return &Constraint{Term: e, Kind: k, Reason: reason, Thread: t.id, PC: event.Addr(t.machine.PC), At: t.count, Stmt: NoStmt}
}

// same is that a term has a value.
func (t *terms) same(e Term, v symbolic.Value) Term { return t.equal(e, t.constant(v, t.bits(e))) }

func (r *round) add(e Term, k Kind, reason string) {
	r.x.add(&Constraint{Term: e, Kind: k, Reason: reason, Thread: r.id, PC: event.Addr(r.at), At: r.count + r.n - 1, Stmt: r.stmt})
}

func (r *round) fix(v symbolic.Value, e Term, k Kind, reason string) {
	if e == 0 {
		return
	}
	r.check(v, e)
	r.add(r.terms.same(e, v), k, reason)
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

func (r *round) statement(s vex.Stmt) {
	switch s := s.(type) {
	case *vex.Mark:
		r.at = s.Addr
		r.n++
	case *vex.Put:
		r.put(s.Offset, r.block.TypeOf(s.Data).Bytes(), r.term(s.Data))
	case *vex.Assign:
		r.assign(s.Temp, r.data(s.Temp, s.Data))
	case *vex.Store:
		r.store(s)
	case *vex.LoadG:
		r.guarded(s)
	case *vex.Exit:
		r.exit(s)
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

func (r *round) put(offset, size int, e Term) {
	r.registers.set(vex.SpanOf(offset, size), r.terms.fit(e, 8*size))
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

// data is the term of what is assigned.
func (r *round) data(to vex.Temp, e vex.Expr) Term {
	switch e := e.(type) {
	case *vex.Read, *vex.Const:
		return r.term(e)
	case *vex.Get:
		return r.get(e.Offset, e.Type, r.machine.Temp(to))
	case *vex.GetI:
		v, index := r.operand(e.Index)
		r.fix(v, index, Fixed, "index of an x87 register")
		return r.get(element(e.Array, v, e.Bias), e.Array.Elem, r.machine.Temp(to))
	case *vex.Load:
		return r.load(e.Addr, e.Type, r.machine.Temp(to))
	case *vex.ITE:
		return r.choose(e)
	case *vex.Operation:
		return r.operation(e, r.block.Types[to].Bits())
	case *vex.Call:
		return r.call(e)
	}
	r.err = fmt.Errorf("bug: %v is not expressed", e)
	return 0
}

func (r *round) get(offset int, t vex.Type, v symbolic.Value) Term {
	size := t.Bytes()
	return r.terms.fit(r.terms.gather(r.registers.cells[offset:offset+size], v), t.Bits())
}

// load is what memory has at an address, which is fixed to the recorded one, or to
// those with the same bytes.
func (r *round) load(at vex.Expr, t vex.Type, v symbolic.Value) Term {
	addr, e := r.operand(at)
	if e != 0 {
		if row := r.tabled(addr.Lo, e, t.Bytes()); row != 0 {
			r.add(row, Address, "")
			return 0
		}
	}
	r.fix(addr, e, Address, "")
	for _, f := range r.fresh {
		if f.pc == r.at && f.addr == addr.Lo && f.size == t.Bytes() {
			return r.terms.fit(f.term, t.Bits())
		}
	}
	var cells [16]cell
	some := cells[:t.Bytes()]
	r.x.memory.load(r.space, addr.Lo, some)
	return r.terms.fit(r.terms.gather(some, v), t.Bits())
}

func (r *round) store(s *vex.Store) {
	if s.Guard != nil {
		v, e := r.operand(s.Guard)
		r.fix(v, e, Branch, "")
		if v.Lo == 0 {
			return
		}
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
	x := r.load(s.Addr, s.Cvt.Type(), r.machine.Temp(s.Temp))
	bits := r.block.Types[s.Temp].Bits()
	if x != 0 && s.Cvt.Signed() {
		x = r.terms.add(node{op: nodeSign, bits: uint8(bits), a: x})
	}
	r.assign(s.Temp, r.terms.fit(x, bits))
}

// exit adds the condition of a side exit, or its negation.
func (r *round) exit(s *vex.Exit) {
	v, e := r.operand(s.Guard)
	if e == 0 {
		return
	}
	r.check(v, e)
	if v.Lo == 0 {
		e = r.terms.not(e)
	}
	r.add(e, Branch, "")
}

func (r *round) choose(e *vex.ITE) Term {
	v, c := r.operand(e.Cond)
	if c == 0 {
		arm := e.Else
		if v.Lo != 0 {
			arm = e.Then
		}
		return r.term(arm)
	}
	then := r.some(e.Then)
	return r.terms.add(node{op: nodeIte, bits: uint8(r.terms.bits(then)), a: c, b: then, c: r.some(e.Else)})
}

// operation makes an operation's term. One that has no expression has its operands
// fixed.
func (r *round) operation(e *vex.Operation, bits int) Term {
	if !r.depends(e.Args) {
		return 0
	}
	rule := &r.terms.rules[e.Op]
	if rule.make == nil || rule.known > 0 && !r.isKnown(e.Args[rule.known-1], rule.nearest) {
		r.fixAll(e.Args, e.Op.String())
		return 0
	}
	var args [3]Term
	for i, a := range e.Args {
		args[i] = r.some(a)
	}
	t := r.terms.operation(e.Op, bits, args[0], args[1], args[2])
	if rule.division {
		r.add(r.terms.add(node{op: nodeSound, bits: 1, a: t}), Division, "")
	}
	return t
}

func (r *round) depends(args []vex.Expr) bool {
	for _, a := range args {
		if r.term(a) != 0 {
			return true
		}
	}
	return false
}

// isKnown tells whether an operand depends on no input, and is the nearest rounding
// mode if it has to be.
func (r *round) isKnown(e vex.Expr, nearest bool) bool {
	v, t := r.operand(e)
	return t == 0 && (!nearest || symbolic.Mode(v.Lo&3) == symbolic.Nearest)
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
	old := r.load(s.Addr, t, r.machine.Temp(s.OldLo))
	r.assign(s.OldLo, old)
	addr, _ := r.operand(s.Addr)
	equal := r.terms.equal(r.some(&vex.Read{Temp: s.OldLo}), r.some(s.ExpectedLo))
	expected, _ := r.operand(s.ExpectedLo)
	holds := expected == r.machine.Temp(s.OldLo)
	if s.ExpectedHi != nil {
		next := &vex.Const{Type: vex.I64, Bits: addr.Lo + uint64(t.Bytes())}
		r.assign(s.OldHi, r.load(next, t, r.machine.Temp(s.OldHi)))
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
	return r.value(t), t
}

// value is a term's under the recorded inputs.
func (r *round) value(t Term) symbolic.Value {
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
			if c.term != 0 {
				part := r.terms.extract(c.term, int(c.at), 1)
				r.fix(r.value(part), part, Fixed, s.Callee)
			}
		}
	}
	if s.Effect != vex.EffectRead {
		r.x.memory.store(r.space, addr.Lo, s.MemSize, 0)
	}
}
