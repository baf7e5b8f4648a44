package symtrace

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/symbolic/exec"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// errChoose tells that a symbol needs a value before the block can be executed.
type errChoose struct {
	name   string
	values []symbolic.Value
	guess  bool // it may stay a symbol
}

func (e errChoose) Error() string { return "the value of " + e.name + " has to be chosen" }

// round is one execution of a block on expressions.
type round struct {
	*walker
	block *block
	n     int    // instructions begun
	at    uint64 // the instruction
	base  uint64 // since, at the block's begin
	from  position
	// stored is what memory was before the block's stores, the latest last.
	stored []storedBefore
	// lockedRead is what the present locked instruction has read.
	lockedAddr uint64
	lockedRead *symbolic.Expr
	// accesses is how many loads and stores of the present instruction have begun, and pieces
	// how many accesses they are to the machine: one that lies in two cache lines is two.
	accesses, pieces int
	err              error
}

type storedBefore struct {
	addr uint64
	was  *symbolic.Expr
}

// express executes a block on expressions.
func (w *walker) express(b *block) error {
	if len(w.temps) < len(b.Types) {
		w.temps = make([]*symbolic.Expr, 2*len(b.Types))
	}
	clear(w.temps[:len(b.Types)])
	state, cells, unknown := w.machine.State, w.cells, w.unknown
	events, conds := len(w.events), len(w.conds)
	r := &round{walker: w, block: b, base: w.since, from: w.at}
	next, err := r.all()
	w.since, w.at = r.base, r.from
	if err == nil {
		w.machine.State.SetWord(vex.OffsetRIP, next)
		return w.advance(b, r.n, next)
	}
	choose, ok := err.(errChoose)
	if !ok {
		// A branch that goes wrong leaves the thread behind the block.
		if _, wrong := err.(errWrong); wrong {
			w.advance(b, max(1, r.n), 0)
		}
		if f, faults := err.(errFault); faults {
			return w.faultsAt(r.n, f)
		}
		return err
	}
	for i := len(r.stored) - 1; i >= 0; i-- {
		w.mem.store(r.stored[i].addr, r.stored[i].was)
	}
	w.machine.State, w.cells, w.unknown = state, cells, unknown
	w.events, w.coords, w.conds = w.events[:events], w.coords[:events], w.conds[:conds]
	return choose
}

// faultsAt ends the path before the instruction of a number in the block, where the
// signal may have come from.
func (w *walker) faultsAt(n int, f errFault) error {
	w.since += uint64(max(1, n) - 1)
	w.at = w.path.after(w.at, max(1, n)-1)
	w.faults(f.condition)
	w.finish(Cut)
	return nil
}

// fix gives a symbol a value, which becomes a condition.
func (w *walker) fix(name string, v symbolic.Value) {
	p := w.b.pool
	bits := w.b.bits[name]
	w.conds = append(w.conds, model.Condition{Expr: p.Eq(p.Symbol(name, bits), p.Const(v, bits)), Thread: w.number, Assumed: true})
	w.fixed[name] = v
	w.settleRegisters()
}

// all executes the statements and returns where the block goes.
func (r *round) all() (uint64, error) {
	for _, s := range r.block.Stmts {
		left, to := r.statement(s)
		if r.err != nil {
			return 0, r.err
		}
		if left {
			return to, nil
		}
	}
	return r.leave(r.value(r.block.Next))
}

// leave goes where an expression says: it is where the path goes.
func (r *round) leave(to *symbolic.Expr) (uint64, error) {
	if r.err != nil {
		return 0, r.err
	}
	to = r.settled(to)
	if to.IsConst() {
		return to.Value.Lo, nil
	}
	next, ok := r.path.pc(r.path.after(r.from, r.n))
	if !ok {
		return 0, nil // the path ends here, wherever it would go
	}
	p := r.b.pool
	return next, r.condition(p.Eq(to, p.Word(next, 64)))
}

func (r *round) fail(format string, args ...any) *symbolic.Expr {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	return r.b.pool.Word(0, 64)
}

// statement executes one; it may leave the block.
func (r *round) statement(s vex.Stmt) (left bool, to uint64) {
	switch s := s.(type) {
	case *vex.Mark:
		r.at = s.Addr
		if s.Len > 0 {
			r.n++
			r.accesses, r.pieces = 0, 0
			r.lockedRead = nil
			// Events are before this instruction.
			r.since, r.walker.at = r.base+uint64(r.n-1), r.path.after(r.from, r.n-1)
			r.machine.State.SetWord(vex.OffsetRIP, s.Addr)
		}
	case *vex.Put:
		r.put(s.Offset, r.block.TypeOf(s.Data), r.value(s.Data))
	case *vex.Assign:
		r.temps[s.Temp] = r.short(r.data(r.block.Types[s.Temp], s.Data))
	case *vex.Store:
		if s.Guard != nil && !r.holds(r.value(s.Guard)) {
			return false, 0
		}
		r.store(r.value(s.Addr), r.value(s.Data))
	case *vex.LoadG:
		r.guarded(s)
	case *vex.Exit:
		return r.exit(s)
	case *vex.CAS:
		r.exchange(s)
	case *vex.Fence:
		r.fence()
	default:
		r.fail("%v depends on what is not known", s)
	}
	return false, 0
}

// holds is whether a truth holds, which must be known.
func (r *round) holds(e *symbolic.Expr) bool {
	e = r.settled(e)
	if !e.IsConst() {
		r.choose1(e)
		return false
	}
	return e.Value.Lo != 0
}

// choose1 asks for the value of a symbol of an expression.
func (r *round) choose1(e *symbolic.Expr) {
	if r.err != nil {
		return
	}
	r.err = r.chooses(e)
}

// maxSize is how large an expression may become before it gets a name.
const maxSize = 256

// short is an expression, or, if it is large, a symbol for it: it is written to a
// place of the thread's own and read back.
func (r *round) short(e *symbolic.Expr) *symbolic.Expr {
	e = r.computed(e)
	if e.Size() <= maxSize || e.Bits%8 != 0 || r.err != nil {
		return e
	}
	at, size := r.own()+ownNames+16*uint64(len(r.events)), e.Bits/8
	r.add(model.Event{Kind: model.Write, Addr: at, Size: size, Value: r.settled(e)}, false)
	r.coords[len(r.coords)-1].Name = true
	s := r.symbol(e.Bits)
	r.b.bits[s.Name], r.b.named[s.Name] = s.Bits, r.settled(e)
	r.add(model.Event{Kind: model.Read, Addr: at, Size: size, Symbol: s}, false)
	r.coords[len(r.coords)-1].Name = true
	return s
}

func (r *round) put(offset int, t vex.Type, e *symbolic.Expr) {
	if e.Bits < 8*t.Bytes() {
		e = r.b.pool.ZeroExt(e, 8*t.Bytes())
	}
	r.setRegister(offset, e)
}

// setRegister makes bytes of the state those of an expression.
func (w *walker) setRegister(offset int, e *symbolic.Expr) {
	size := e.Bits / 8
	w.clear(offset, offset+size)
	if e.IsConst() {
		b := bytesOf(e.Value)
		copy(w.machine.State[offset:], b[:size])
		return
	}
	for i := range size {
		w.cells[offset+i] = cell{e, i}
	}
	w.unknown += size
}

// register is bytes of the state.
func (w *walker) register(offset, size int) *symbolic.Expr {
	return gather(w.b.pool, w.cells[offset:offset+size], w.machine.State[offset:offset+size])
}

// value is that of an operand.
func (r *round) value(e vex.Expr) *symbolic.Expr {
	p := r.b.pool
	switch e := e.(type) {
	case *vex.Read:
		return r.temps[e.Temp]
	case *vex.Const:
		if e.Type != vex.V128 {
			return p.Word(e.Bits, e.Type.Bits())
		}
		var v symbolic.Value
		for i := range 8 {
			v.Lo |= e.Bits >> i & 1 * 0xff << (8 * i)
			v.Hi |= e.Bits >> (8 + i) & 1 * 0xff << (8 * i)
		}
		return p.Const(v, 128)
	}
	return r.fail("bug: %v is no operand", e)
}

// data is what is assigned.
func (r *round) data(t vex.Type, e vex.Expr) *symbolic.Expr {
	p := r.b.pool
	switch e := e.(type) {
	case *vex.Read, *vex.Const:
		return r.value(e)
	case *vex.Get:
		return r.fit(r.register(e.Offset, e.Type.Bytes()), e.Type)
	case *vex.Load:
		return r.fit(r.load(r.value(e.Addr), e.Type.Bytes()), e.Type)
	case *vex.ITE:
		c := r.value(e.Cond)
		if c.IsConst() {
			if c.Value.Lo != 0 {
				return r.value(e.Then)
			}
			return r.value(e.Else)
		}
		return p.Ite(c, r.value(e.Then), r.value(e.Else))
	case *vex.Operation:
		return r.operation(t, e)
	case *vex.Call:
		return r.fit(r.help(e), e.Type)
	}
	return r.fail("%v depends on what is not known", e)
}

func (r *round) fit(e *symbolic.Expr, t vex.Type) *symbolic.Expr {
	if e.Bits > t.Bits() {
		return r.b.pool.Extract(e, 0, t.Bits())
	}
	return r.b.pool.ZeroExt(e, t.Bits())
}

func (r *round) operation(to vex.Type, e *vex.Operation) *symbolic.Expr {
	args := make([]*symbolic.Expr, len(e.Args))
	known := true
	for i, a := range e.Args {
		args[i] = r.value(a)
		known = known && args[i].IsConst()
	}
	p := r.b.pool
	if known {
		var numbers [4]vex.Value
		for i, a := range args {
			numbers[i] = a.Value
		}
		v, ok := vex.Compute(e.Op, numbers)
		if !ok {
			return r.fail("operation %v is not known", e.Op)
		}
		return p.Const(v, to.Bits())
	}
	x, sound := exec.Operation(p, e.Op, args)
	if x == nil {
		for _, a := range args {
			if a = r.settled(a); !a.IsConst() {
				r.choose1(a)
				return p.Word(0, 64)
			}
		}
		return r.fail("bug: %v has no value", e.Op)
	}
	if sound != nil && r.err == nil {
		r.err = r.assume(sound)
	}
	return x
}

// help is what a helper returns.
func (r *round) help(e *vex.Call) *symbolic.Expr {
	args := make([]*symbolic.Expr, len(e.Args))
	known := true
	for i, a := range e.Args {
		args[i] = r.value(a)
		known = known && args[i].IsConst()
	}
	p := r.b.pool
	if !known {
		if x := exec.Flags(p, e.Callee, args); x != nil {
			return x
		}
		for i, a := range args {
			if args[i] = r.settled(a); !args[i].IsConst() {
				r.choose1(args[i])
				return p.Word(0, 64)
			}
		}
	}
	numbers := make([]uint64, len(args))
	for i, a := range args {
		numbers[i] = a.Value.Lo
	}
	v, err := r.machine.Help(e.Callee, numbers)
	if err != nil {
		return r.fail("%w", err)
	}
	return p.Const(v, e.Type.Bits())
}

// exit is a side exit: the path says whether it is taken.
func (r *round) exit(s *vex.Exit) (left bool, to uint64) {
	g := r.settled(r.value(s.Guard))
	if g.IsConst() {
		return g.Value.Lo != 0, s.Dst
	}
	next, ok := r.path.pc(r.path.after(r.from, r.n))
	switch {
	case !ok:
		return true, s.Dst // the path ends here
	case next != s.Dst:
		r.err = r.condition(r.b.pool.Not(g))
		return false, 0
	}
	if rest := r.path.after(r.from, r.n); r.n < r.block.instructions && rest.i == r.from.i {
		// The path goes on in the block.
		r.err = r.condition(r.b.pool.Not(g))
		return false, 0
	}
	r.err = r.condition(g)
	return true, s.Dst
}

// fence is MFENCE or SFENCE; LFENCE orders nothing that is not in order.
func (r *round) fence() {
	at := int(r.at - r.block.Addr)
	if at+2 >= len(r.block.code) {
		return
	}
	switch r.block.code[at+2] {
	case 0xf0:
		r.add(model.Event{Kind: model.Fence}, false)
	case 0xf8:
		r.add(model.Event{Kind: model.StoreFence}, false)
	}
}
