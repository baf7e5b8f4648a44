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
		t.temps = make([]*symbolic.Expr, 2*len(b.Types))
	}
	clear(t.temps[:len(b.Types)])
	r := &round{thread: t, block: b}
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
	block *block
	stmt  int    // number of the statement
	at    uint64 // the instruction's address
	n     uint64 // instructions before it
	err   error
}

// fix adds the constraint that an expression, if there is one, has the recorded
// value.
func (t *thread) fix(v symbolic.Value, e *symbolic.Expr, k Kind, reason string) {
	if e == nil {
		return
	}
	t.add(t.x.Pool.Eq(e, t.x.Pool.Const(v, e.Bits)), k, reason)
}

func (t *thread) add(e *symbolic.Expr, k Kind, reason string) {
	t.x.add(Constraint{Expr: e, Kind: k, Reason: reason, Thread: t.id, PC: event.Addr(t.machine.PC), At: t.count, Stmt: NoStmt})
}

func (r *round) add(e *symbolic.Expr, k Kind, reason string) {
	r.x.add(Constraint{Expr: e, Kind: k, Reason: reason, Thread: r.id, PC: event.Addr(r.at), At: r.count + r.n - 1, Stmt: r.stmt})
}

func (r *round) fix(v symbolic.Value, e *symbolic.Expr, k Kind, reason string) {
	if e == nil {
		return
	}
	r.check(v, e)
	r.add(r.x.Pool.Eq(e, r.x.Pool.Const(v, e.Bits)), k, reason)
}

// check compares an expression with the recorded value.
func (r *round) check(v symbolic.Value, e *symbolic.Expr) {
	if !r.x.Check || r.err != nil {
		return
	}
	have, err := r.x.evaluator.Value(e)
	if err == nil && have != v {
		err = fmt.Errorf("%v is %#x and was %#x", e, have, v)
	}
	if err != nil {
		r.err = fmt.Errorf("at %#x: %w", r.at, err)
	}
}

// operand is the value and the expression of a temporary or a constant.
func (r *round) operand(e vex.Expr) (symbolic.Value, *symbolic.Expr) {
	switch e := e.(type) {
	case *vex.Read:
		return r.machine.Temp(e.Temp), r.temps[e.Temp]
	case *vex.Const:
		return constant(e), nil
	}
	r.err = fmt.Errorf("bug: %v is no operand", e)
	return symbolic.Value{}, nil
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

// expr is an operand as an expression, a constant if it depends on no input.
func (r *round) expr(e vex.Expr) *symbolic.Expr {
	v, x := r.operand(e)
	if x != nil {
		return x
	}
	return r.x.Pool.Const(v, r.block.typeOf(e).Bits())
}

func (r *round) statement(s vex.Stmt) {
	switch s := s.(type) {
	case *vex.Mark:
		r.at = s.Addr
		r.n++
	case *vex.Put:
		_, e := r.operand(s.Data)
		r.put(s.Offset, r.block.typeOf(s.Data).Bytes(), e)
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
		_, e := r.operand(s.Data)
		r.put(element(s.Array, v, s.Bias), s.Array.Elem.Bytes(), e)
	case *vex.CAS:
		r.exchange(s)
	case *vex.Dirty:
		r.dirty(s)
	}
}

func (r *round) put(offset, size int, e *symbolic.Expr) {
	r.symbolic += scatter(r.shadow[offset:offset+size], e)
}

// assign gives a temporary its expression, which is none if it is a constant. A
// truth in a byte of the state is kept as it is.
func (r *round) assign(t vex.Temp, e *symbolic.Expr) {
	if e == nil || e.IsConst() {
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

// data is the expression of what is assigned.
func (r *round) data(to vex.Temp, e vex.Expr) *symbolic.Expr {
	switch e := e.(type) {
	case *vex.Read, *vex.Const:
		_, x := r.operand(e)
		return x
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
		return r.operation(e)
	case *vex.Call:
		return r.call(e)
	}
	r.err = fmt.Errorf("bug: %v is not expressed", e)
	return nil
}

func (r *round) get(offset int, t vex.Type, v symbolic.Value) *symbolic.Expr {
	if r.symbolic == 0 {
		return nil
	}
	return fit(r.x.Pool, gather(r.x.Pool, r.shadow[offset:offset+t.Bytes()], v), t)
}

// fit is an expression of whole bytes as one of a type: a truth is a bit.
func fit(p *symbolic.Pool, e *symbolic.Expr, t vex.Type) *symbolic.Expr {
	if e == nil || e.Bits == t.Bits() {
		return e
	}
	return resize(p, e, t.Bits())
}

// load is what memory has at an address, which is fixed to the recorded one.
func (r *round) load(at vex.Expr, t vex.Type, v symbolic.Value) *symbolic.Expr {
	addr, e := r.operand(at)
	r.fix(addr, e, Address, "")
	for _, f := range r.fresh {
		if f.pc == r.at && f.addr == addr.Lo && f.size == t.Bytes() {
			return fit(r.x.Pool, f.e, t)
		}
	}
	var cells [16]cell
	some := cells[:t.Bytes()]
	r.x.memory.load(r.space, addr.Lo, some)
	return fit(r.x.Pool, gather(r.x.Pool, some, v), t)
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
	_, data := r.operand(s.Data)
	r.x.memory.store(r.space, addr.Lo, r.block.typeOf(s.Data).Bytes(), data)
}

// guarded is a load with a condition, which is fixed.
func (r *round) guarded(s *vex.LoadG) {
	v, e := r.operand(s.Guard)
	r.fix(v, e, Branch, "")
	if v.Lo == 0 {
		_, alt := r.operand(s.Alt)
		r.assign(s.Temp, alt)
		return
	}
	t, signed := vex.I64, false
	switch s.Cvt {
	case vex.LoadV128:
		t = vex.V128
	case vex.Load32:
		t = vex.I32
	case vex.Load16Uto32, vex.Load16Sto32:
		t, signed = vex.I16, s.Cvt == vex.Load16Sto32
	case vex.Load8Uto32, vex.Load8Sto32:
		t, signed = vex.I8, s.Cvt == vex.Load8Sto32
	}
	x := r.load(s.Addr, t, r.machine.Temp(s.Temp))
	bits := r.block.Types[s.Temp].Bits()
	switch {
	case x == nil:
	case signed:
		x = r.x.Pool.SignExt(x, bits)
	default:
		x = r.x.Pool.ZeroExt(x, bits)
	}
	r.assign(s.Temp, x)
}

// exit adds the condition of a side exit, or its negation.
func (r *round) exit(s *vex.Exit) {
	v, e := r.operand(s.Guard)
	if e == nil {
		return
	}
	r.check(v, e)
	if v.Lo == 0 {
		e = r.x.Pool.Not(e)
	}
	r.add(e, Branch, "")
}

func (r *round) choose(e *vex.ITE) *symbolic.Expr {
	v, c := r.operand(e.Cond)
	if c == nil {
		arm := e.Else
		if v.Lo != 0 {
			arm = e.Then
		}
		_, x := r.operand(arm)
		return x
	}
	return r.x.Pool.Ite(c, r.expr(e.Then), r.expr(e.Else))
}

// operation makes an operation's expression. One that has none has its operands
// fixed.
func (r *round) operation(e *vex.Operation) *symbolic.Expr {
	some := false
	for _, a := range e.Args {
		if _, x := r.operand(a); x != nil {
			some = true
		}
	}
	if !some {
		return nil
	}
	t := &term{Pool: r.x.Pool}
	for i, a := range e.Args {
		t.args[i] = r.expr(a)
	}
	var x *symbolic.Expr
	if f := opTable()[e.Op]; f != nil {
		x = f(t)
	}
	if x == nil {
		r.fixAll(e.Args, e.Op.String())
		return nil
	}
	if holds := sound(t, e.Op.String()); holds != nil {
		r.add(holds, Division, "")
	}
	return x
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

// call makes the expression of flags; of other helpers the arguments are fixed.
func (r *round) call(e *vex.Call) *symbolic.Expr {
	some := false
	for _, a := range e.Args {
		_, x := r.operand(a)
		some = some || x != nil
	}
	if !some {
		return nil
	}
	args := e.Args
	condition := e.Callee == "amd64g_calculate_condition"
	if condition {
		args = args[1:]
	}
	switch e.Callee {
	case "amd64g_calculate_condition", "amd64g_calculate_rflags_all", "amd64g_calculate_rflags_c":
	default:
		r.fixAll(e.Args, e.Callee)
		return nil
	}
	op, x := r.operand(args[0])
	r.fix(op, x, Branch, "")
	t := newThunk(r.x.Pool, op.Lo, r.expr(args[1]), r.expr(args[2]), r.expr(args[3]))
	switch {
	case t == nil:
		r.fixAll(e.Args, e.Callee)
		return nil
	case condition:
		number, _ := r.operand(e.Args[0])
		return fit(r.x.Pool, t.condition(number.Lo), e.Type)
	case e.Callee == "amd64g_calculate_rflags_c":
		return t.ZeroExt(t.flag(carry), 64)
	}
	return t.all()
}

// exchange is a compare-and-exchange: that it succeeds, or fails, is fixed.
func (r *round) exchange(s *vex.CAS) {
	t := r.block.Types[s.OldLo]
	old := r.load(s.Addr, t, r.machine.Temp(s.OldLo))
	r.assign(s.OldLo, old)
	addr, _ := r.operand(s.Addr)
	p := r.x.Pool
	equal := p.Eq(r.expr(&vex.Read{Temp: s.OldLo}), r.expr(s.ExpectedLo))
	expected, _ := r.operand(s.ExpectedLo)
	holds := expected == r.machine.Temp(s.OldLo)
	if s.ExpectedHi != nil {
		next := &vex.Const{Type: vex.I64, Bits: addr.Lo + uint64(t.Bytes())}
		r.assign(s.OldHi, r.load(next, t, r.machine.Temp(s.OldHi)))
		equal = p.And(equal, p.Eq(r.expr(&vex.Read{Temp: s.OldHi}), r.expr(s.ExpectedHi)))
		high, _ := r.operand(s.ExpectedHi)
		holds = holds && high == r.machine.Temp(s.OldHi)
	}
	if !holds {
		r.add(p.Not(equal), Exchange, "")
		return
	}
	r.add(equal, Exchange, "")
	_, data := r.operand(s.DataLo)
	r.x.memory.store(r.space, addr.Lo, t.Bytes(), data)
	if s.DataHi != nil {
		_, data = r.operand(s.DataHi)
		r.x.memory.store(r.space, addr.Lo+uint64(t.Bytes()), t.Bytes(), data)
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
	for _, fx := range effects(s) {
		if fx.Effect == vex.EffectRead || fx.Effect == vex.EffectModify {
			for at := fx.from; at < fx.to; at += 8 {
				v, e := r.before(at, min(8, fx.to-at))
				r.fix(v, e, Fixed, s.Callee)
			}
		}
	}
	for _, fx := range effects(s) {
		if fx.Effect == vex.EffectWrite || fx.Effect == vex.EffectModify {
			r.put(fx.from, fx.to-fx.from, nil)
		}
	}
	if s.Effect != vex.EffectNone {
		r.dirtyMemory(s)
	}
}

// before is bytes of the state as a helper reads them. The recorded value is what
// the expression is under the recorded inputs.
func (r *round) before(offset, size int) (symbolic.Value, *symbolic.Expr) {
	var v symbolic.Value
	e := gather(r.x.Pool, r.shadow[offset:offset+size], v)
	if e == nil {
		return v, nil
	}
	v, err := r.x.evaluator.Value(e)
	if err != nil && r.err == nil {
		r.err = err
	}
	return v, e
}

func (r *round) dirtyMemory(s *vex.Dirty) {
	addr, e := r.operand(s.MemAddr)
	r.fix(addr, e, Address, "")
	if s.Effect != vex.EffectWrite {
		cells := make([]cell, s.MemSize)
		r.x.memory.load(r.space, addr.Lo, cells)
		for _, c := range cells {
			if c.e != nil {
				part := r.x.Pool.Extract(c.e, 8*c.at, 8)
				v, _ := r.x.evaluator.Value(part)
				r.fix(v, part, Fixed, s.Callee)
			}
		}
	}
	if s.Effect != vex.EffectRead {
		r.x.memory.store(r.space, addr.Lo, s.MemSize, nil)
	}
}
