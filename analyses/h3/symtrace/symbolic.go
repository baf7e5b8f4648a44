package symtrace

import (
	"errors"
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// round is one execution of a block on expressions.
type round struct {
	*threadExec
	block           *block
	begun           int    // instructions begun
	instructionAddr uint64 // the instruction
	sinceAtBegin    uint64 // since, at the block's begin
	from            paths.Position
	// stored is the content of memory before the block's stores, the latest last.
	stored []storedValue
	// lockedRead is the value that the present locked instruction has read.
	lockedAddr uint64
	lockedRead *symbolic.Expr
	// accesses is how many loads and stores of the present instruction have begun, and pieces
	// how many accesses they are to the machine: one that lies in two cache lines is two.
	accesses, pieces int
	err              error
}

type storedValue struct {
	addr uint64
	was  *symbolic.Expr
}

// runSymbolically executes a block on expressions.
func (w *threadExec) runSymbolically(b *block) error {
	if len(w.temps) < len(b.Types) {
		w.temps = make([]*symbolic.Expr, 2*len(b.Types))
	}
	clear(w.temps[:len(b.Types)])
	state, cells, unknown := w.machine.State, w.cells, w.symbolicBytes
	events, conds := len(w.events), len(w.conditions)
	r := &round{threadExec: w, block: b, sinceAtBegin: w.sinceCall, from: w.at}
	next, err := r.runStatements()
	w.sinceCall, w.at = r.sinceAtBegin, r.from
	if err == nil {
		w.machine.State.SetWord(vex.OffsetRIP, next)
		return w.advancePast(b, r.begun, next)
	}
	choose, ok := err.(errNeedsValue)
	if !ok {
		// A branch that goes wrong leaves the thread after the block.
		if _, wrong := err.(errOffPath); wrong {
			w.advancePast(b, max(1, r.begun), 0)
		}
		if f, faults := err.(errFault); faults {
			return w.endAtFault(r.begun, f)
		}
		return err
	}
	for i := len(r.stored) - 1; i >= 0; i-- {
		w.memory.Store(r.stored[i].addr, r.stored[i].was)
	}
	w.machine.State, w.cells, w.symbolicBytes = state, cells, unknown
	w.events, w.coordinates, w.conditions = w.events[:events], w.coordinates[:events], w.conditions[:conds]
	return choose
}

// runStatements executes the statements and returns where the block goes.
func (r *round) runStatements() (uint64, error) {
	for _, s := range r.block.Stmts {
		left, to := r.execStatement(s)
		if r.err != nil {
			return 0, r.err
		}
		if left {
			return to, nil
		}
	}
	return r.leaveTo(r.operandValue(r.block.Next))
}

// leaveTo goes where an expression says: it is where the path goes.
func (r *round) leaveTo(to *symbolic.Expr) (uint64, error) {
	if r.err != nil {
		return 0, r.err
	}
	to = r.substituteFixed(to)
	if to.IsConst() {
		return to.Value.Lo, nil
	}
	next, ok := r.path.PCAt(r.path.Advance(r.from, r.begun))
	if !ok {
		return 0, nil // the path ends here, wherever it would go
	}
	p := r.pass.pool
	return next, r.addCondition(p.Eq(to, p.Word(next, 64)))
}

// errOperand is the error of an instruction without a symbolic form.
var errOperand = errors.New("an operand of the instruction depends on the schedule, which is not supported for this instruction")

func (r *round) failWith(err error) *symbolic.Expr {
	if r.err == nil {
		r.err = err
	}
	return r.pass.pool.Word(0, 64)
}

// execStatement executes one; it may leave the block.
func (r *round) execStatement(s vex.Stmt) (left bool, to uint64) {
	switch s := s.(type) {
	case *vex.Mark:
		r.instructionAddr = s.Addr
		if s.Len > 0 {
			r.begun++
			r.accesses, r.pieces = 0, 0
			r.lockedRead = nil
			// Events are before this instruction.
			r.sinceCall, r.threadExec.at = r.sinceAtBegin+uint64(r.begun-1), r.path.Advance(r.from, r.begun-1)
			r.machine.State.SetWord(vex.OffsetRIP, s.Addr)
		}
	case *vex.Put:
		r.putRegister(s.Offset, r.block.TypeOf(s.Data), r.operandValue(s.Data))
	case *vex.Assign:
		r.temps[s.Temp] = r.nameLargeExpr(r.assignedValue(r.block.Types[s.Temp], s.Data))
	case *vex.Store:
		if s.Guard != nil && !r.isTrue(r.operandValue(s.Guard)) {
			return false, 0
		}
		r.storeTo(r.operandValue(s.Addr), r.operandValue(s.Data))
	case *vex.LoadG:
		r.guardedLoad(s)
	case *vex.Exit:
		return r.sideExit(s)
	case *vex.CAS:
		r.compareExchange(s)
	case *vex.Fence:
		r.memoryFence()
	default:
		r.failWith(errOperand)
	}
	return false, 0
}

// isTrue is whether a truth holds, which must be known.
func (r *round) isTrue(e *symbolic.Expr) bool {
	e = r.substituteFixed(e)
	if !e.IsConst() {
		r.requestValue(e)
		return false
	}
	return e.Value.Lo != 0
}

// requestValue asks for the value of a symbol of an expression.
func (r *round) requestValue(e *symbolic.Expr) {
	if r.err != nil {
		return
	}
	r.err = r.needsValue(e)
}

// maxSize is how large an expression may become before it gets a name.
const maxSize = 256

// nameLargeExpr is an expression, or, if it is large, a symbol for it: it is written to a
// place of the thread's own and read back.
func (r *round) nameLargeExpr(e *symbolic.Expr) *symbolic.Expr {
	e = r.applyGuess(e)
	if e.Size() <= maxSize || e.Bits%8 != 0 || r.err != nil {
		return e
	}
	at, size := r.ownBase()+ownNames+16*uint64(len(r.events)), e.Bits/8
	r.addEvent(model.Event{Kind: model.Write, Addr: at, Size: size, Value: r.substituteFixed(e)}, false)
	r.coordinates[len(r.coordinates)-1].Named = true
	s := r.nextSymbol(e.Bits)
	r.pass.symbolBits[s.Name], r.pass.namedExprs[s.Name] = s.Bits, r.substituteFixed(e)
	r.addEvent(model.Event{Kind: model.Read, Addr: at, Size: size, Symbol: s}, false)
	r.coordinates[len(r.coordinates)-1].Named = true
	return s
}

func (r *round) putRegister(offset int, t vex.Type, e *symbolic.Expr) {
	if e.Bits < 8*t.Bytes() {
		e = r.pass.pool.ZeroExt(e, 8*t.Bytes())
	}
	r.setRegister(offset, e)
}

// setRegister makes bytes of the state those of an expression.
func (w *threadExec) setRegister(offset int, e *symbolic.Expr) {
	size := e.Bits / 8
	w.clearSymbols(offset, offset+size)
	if e.IsConst() {
		b := symmem.BytesOf(e.Value)
		copy(w.machine.State[offset:], b[:size])
		return
	}
	for i := range size {
		w.cells[offset+i] = symmem.Cell{Expr: e, Byte: i}
	}
	w.symbolicBytes += size
}

// readRegister is bytes of the state.
func (w *threadExec) readRegister(offset, size int) *symbolic.Expr {
	return symmem.Gather(w.pass.pool, w.cells[offset:offset+size], w.machine.State[offset:offset+size])
}

// operandValue is that of an operand.
func (r *round) operandValue(e vex.Expr) *symbolic.Expr {
	p := r.pass.pool
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
	return r.failWith(fmt.Errorf("bug: %v is no operand", e))
}

// assignedValue evaluates the right side of an assignment.
func (r *round) assignedValue(t vex.Type, e vex.Expr) *symbolic.Expr {
	p := r.pass.pool
	switch e := e.(type) {
	case *vex.Read, *vex.Const:
		return r.operandValue(e)
	case *vex.Get:
		return r.fitToType(r.readRegister(e.Offset, e.Type.Bytes()), e.Type)
	case *vex.Load:
		return r.fitToType(r.loadFrom(r.operandValue(e.Addr), e.Type.Bytes()), e.Type)
	case *vex.ITE:
		c := r.operandValue(e.Cond)
		if c.IsConst() {
			if c.Value.Lo != 0 {
				return r.operandValue(e.Then)
			}
			return r.operandValue(e.Else)
		}
		return p.Ite(c, r.operandValue(e.Then), r.operandValue(e.Else))
	case *vex.Operation:
		return r.applyOperation(t, e)
	case *vex.Call:
		return r.fitToType(r.applyHelper(e), e.Type)
	}
	return r.failWith(errOperand)
}

func (r *round) fitToType(e *symbolic.Expr, t vex.Type) *symbolic.Expr {
	if e.Bits > t.Bits() {
		return r.pass.pool.Extract(e, 0, t.Bits())
	}
	return r.pass.pool.ZeroExt(e, t.Bits())
}

func (r *round) applyOperation(to vex.Type, e *vex.Operation) *symbolic.Expr {
	args := make([]*symbolic.Expr, len(e.Args))
	known := true
	for i, a := range e.Args {
		args[i] = r.operandValue(a)
		known = known && args[i].IsConst()
	}
	p := r.pass.pool
	if known {
		var numbers [4]vex.Value
		for i, a := range args {
			numbers[i] = a.Value
		}
		v, ok := vex.Compute(e.Op, numbers)
		if !ok {
			return r.failWith(fmt.Errorf("the operation %v depends on the schedule, which is not supported for it", e.Op))
		}
		return p.Const(v, to.Bits())
	}
	x, sound := concolic.Operation(p, e.Op, args)
	if x == nil {
		for _, a := range args {
			if a = r.substituteFixed(a); !a.IsConst() {
				r.requestValue(a)
				return p.Word(0, 64)
			}
		}
		return r.failWith(fmt.Errorf("bug: %v has no value", e.Op))
	}
	if sound != nil && r.err == nil {
		r.err = r.assumeCondition(sound)
	}
	return x
}

// applyHelper returns the result of a helper.
func (r *round) applyHelper(e *vex.Call) *symbolic.Expr {
	args := make([]*symbolic.Expr, len(e.Args))
	known := true
	for i, a := range e.Args {
		args[i] = r.operandValue(a)
		known = known && args[i].IsConst()
	}
	p := r.pass.pool
	if !known {
		if x := concolic.Flags(p, e.Callee, args); x != nil {
			return x
		}
		for i, a := range args {
			if args[i] = r.substituteFixed(a); !args[i].IsConst() {
				r.requestValue(args[i])
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
		return r.failWith(err)
	}
	return p.Const(v, e.Type.Bits())
}

// sideExit is a side exit: the path says whether it is taken, unless it leads to the next
// instruction, as a jump of no distance does.
func (r *round) sideExit(s *vex.Exit) (left bool, to uint64) {
	g := r.substituteFixed(r.operandValue(s.Guard))
	if g.IsConst() {
		return g.Value.Lo != 0, s.Dst
	}
	next, ok := r.path.PCAt(r.path.Advance(r.from, r.begun))
	switch {
	case !ok:
		return true, s.Dst // the path ends here
	case next != s.Dst:
		r.err = r.addCondition(r.pass.pool.Not(g))
		return false, 0
	case r.leadsOn(s):
		return true, s.Dst
	}
	if rest := r.path.Advance(r.from, r.begun); r.begun < r.block.instructions && rest.Block == r.from.Block {
		// The path continues in the block.
		r.err = r.addCondition(r.pass.pool.Not(g))
		return false, 0
	}
	r.err = r.addCondition(g)
	return true, s.Dst
}

// leadsOn reports whether a side exit leads where the block goes without it, with nothing done in
// between.
func (r *round) leadsOn(s *vex.Exit) bool {
	next, known := r.block.Next.(*vex.Const)
	return known && next.Bits == s.Dst && r.block.Stmts[len(r.block.Stmts)-1] == vex.Stmt(s)
}

// memoryFence is MFENCE or SFENCE; LFENCE orders nothing that is not in order.
func (r *round) memoryFence() {
	at := int(r.instructionAddr - r.block.Addr)
	if at+2 >= len(r.block.code) {
		return
	}
	switch r.block.code[at+2] {
	case 0xf0:
		r.addEvent(model.Event{Kind: model.Fence}, false)
	case 0xf8:
		r.addEvent(model.Event{Kind: model.StoreFence}, false)
	}
}
