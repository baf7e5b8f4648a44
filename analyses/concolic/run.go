package concolic

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// runSymbolically executes on terms a block that was just executed on recorded values.
// Temporaries still have the recorded values.
func (t *thread) runSymbolically(b *block) error {
	if n := len(b.flat.Bits); len(t.temps) < n {
		t.temps = make([]Term, 2*n)
	}
	clear(t.temps[:len(b.flat.Bits)])
	r := &t.blockRun
	r.thread, r.terms, r.block, r.stmt, r.at, r.n, r.err = t, t.x.terms, b, 0, 0, 0, nil
	r.runSteps()
	if !t.machine.Exited {
		r.stmt = len(b.Stmts)
		r.fixToRecorded(r.recordedOperand(b.flat.Next), t.temps[b.flat.Next], Target, "")
	}
	return r.err
}

// blockRun is one execution of a block on terms.
type blockRun struct {
	*thread
	terms *termStore
	block *block
	stmt  int    // index of the statement
	at    uint64 // the instruction's address
	n     uint64 // instructions before it
	err   error
	// nearMemory is memory around an address (hasRepeats).
	nearMemory [16 + 2*maxStride]byte
}

// fixOutsideBlock adds the constraint, from no statement, that a term, if it is not 0, has
// the recorded value.
func (t *thread) fixOutsideBlock(v symbolic.Value, e Term, k Kind, reason string) {
	if e != 0 {
		t.x.addConstraint(t.newConstraint(t.x.terms.hasValue(e, v), k, reason))
	}
}

// newConstraint makes a constraint that comes from no statement of a block.
func (t *thread) newConstraint(e Term, k Kind, reason string) *Constraint {
	c := &t.x.constraint
	*c = Constraint{Term: e, Kind: k, Reason: reason, Thread: t.id, PC: arch.Addr(t.machine.PC), At: t.count, Stmt: NoStmt}
	return c
}

func (r *blockRun) addConstraint(e Term, k Kind, reason string) {
	c := &r.x.constraint
	*c = Constraint{Term: e, Kind: k, Reason: reason, Thread: r.id, PC: arch.Addr(r.at), At: r.count + r.n - 1, Stmt: r.stmt}
	r.x.addConstraint(c)
}

func (r *blockRun) fixToRecorded(v symbolic.Value, e Term, k Kind, reason string) {
	if e == 0 {
		return
	}
	r.checkTerm(v, e)
	r.addConstraint(r.terms.hasValue(e, v), k, reason)
}

// fixAddress is fixToRecorded for the address of an access of some bytes, unless Executor.OnAddress allows others.
func (r *blockRun) fixAddress(v symbolic.Value, e Term, size int) {
	if e != 0 && r.x.OnAddress != nil {
		r.checkTerm(v, e)
		if r.x.OnAddress(r.x.Express(e), v.Lo, size) {
			return
		}
	}
	r.fixToRecorded(v, e, Address, "")
}

// checkTerm compares a term with the recorded value, if Executor.Check is set.
func (r *blockRun) checkTerm(v symbolic.Value, t Term) {
	if !r.x.Check || r.err != nil || r.terms.isUntracked(t) {
		return
	}
	e := r.x.Express(t)
	have, err := r.x.evaluator.Value(e)
	if err == nil && have != v {
		err = fmt.Errorf("%v is %#x and was %#x", e, have, v)
	}
	if err == nil && e.Bits != r.terms.sizeOf(t) {
		err = fmt.Errorf("%v has %d bits, want %d", e, e.Bits, r.terms.sizeOf(t))
	}
	if err != nil {
		r.err = fmt.Errorf("at %#x: %w", r.at, err)
	}
}

// operandValue returns the value and the term of a temporary or a constant.
func (r *blockRun) operandValue(e vex.Expr) (symbolic.Value, Term) {
	switch e := e.(type) {
	case *vex.Read:
		return r.machine.Temp(e.Temp), r.temps[e.Temp]
	case *vex.Const:
		return constantValue(e), 0
	}
	r.err = fmt.Errorf("bug: %v is no operand", e)
	return symbolic.Value{}, 0
}

// operandTerm returns the term of an operand; 0: it depends on no input.
func (r *blockRun) operandTerm(e vex.Expr) Term {
	if t, ok := e.(*vex.Read); ok {
		return r.temps[t.Temp]
	}
	return 0
}

// constantValue is a constant's value; for a vector, each bit stands for a byte.
func constantValue(c *vex.Const) symbolic.Value {
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

// termOrConstant returns an operand as a term, a constant if it depends on no input.
func (r *blockRun) termOrConstant(e vex.Expr) Term {
	v, t := r.operandValue(e)
	if t != 0 {
		return t
	}
	return r.terms.constantTerm(v, r.block.TypeOf(e).Bits())
}

// runStatement executes a statement that has no step.
func (r *blockRun) runStatement(s vex.Stmt) {
	switch s := s.(type) {
	case *vex.Assign:
		r.assignTemp(s.Temp, r.assignedTerm(s.Temp, s.Data))
	case *vex.Store:
		r.runGuardedStore(s)
	case *vex.LoadG:
		r.runGuardedLoad(s)
	case *vex.PutI:
		v, index := r.operandValue(s.Index)
		r.fixToRecorded(v, index, Fixed, "index of an x87 register")
		r.writeState(arrayElement(s.Array, v, s.Bias), s.Array.Elem.Bytes(), r.operandTerm(s.Data))
	case *vex.CAS:
		r.runExchange(s)
	case *vex.Dirty:
		r.runDirty(s)
	}
}

// assignTemp gives a temporary its term.
func (r *blockRun) assignTemp(t vex.Temp, e Term) {
	if e == 0 {
		return
	}
	r.checkTerm(r.machine.Temp(t), e)
	r.temps[t] = e
}

func arrayElement(a vex.Array, index symbolic.Value, bias int) int {
	i := (int(int32(index.Lo)) + bias) % a.Count
	if i < 0 {
		i += a.Count
	}
	return a.Base + i*a.Elem.Bytes()
}

// assignedTerm is the term of an assignment that is no step.
func (r *blockRun) assignedTerm(to vex.Temp, e vex.Expr) Term {
	switch e := e.(type) {
	case *vex.GetI:
		v, index := r.operandValue(e.Index)
		r.fixToRecorded(v, index, Fixed, "index of an x87 register")
		return r.readState(arrayElement(e.Array, v, e.Bias), e.Array.Elem.Bytes(), r.machine.Temp(to))
	case *vex.Operation:
		r.fixOperands(e.Args, e.Op.String())
		return 0
	case *vex.Call:
		return r.runHelper(e)
	}
	r.err = fmt.Errorf("bug: %v is not expressed", e)
	return 0
}

// runGuardedStore executes a store with a condition, which is fixed.
func (r *blockRun) runGuardedStore(s *vex.Store) {
	v, e := r.operandValue(s.Guard)
	r.fixToRecorded(v, e, Branch, "")
	if v.Lo == 0 {
		return
	}
	addr, e := r.operandValue(s.Addr)
	size := r.block.TypeOf(s.Data).Bytes()
	r.fixAddress(addr, e, size)
	r.x.memory.storeTerm(r.space, addr.Lo, size, r.terms.fitSize(r.operandTerm(s.Data), 8*size))
}

// runGuardedLoad executes a load with a condition, which is fixed.
func (r *blockRun) runGuardedLoad(s *vex.LoadG) {
	v, e := r.operandValue(s.Guard)
	r.fixToRecorded(v, e, Branch, "")
	if v.Lo == 0 {
		r.assignTemp(s.Temp, r.operandTerm(s.Alt))
		return
	}
	addr, e := r.operandValue(s.Addr)
	x := r.loadTerm(addr.Lo, e, s.Cvt.Type().Bytes(), r.machine.Temp(s.Temp))
	bits := r.block.Types[s.Temp].Bits()
	if x != 0 && s.Cvt.Signed() {
		x = r.terms.addNode(termNode{op: nodeSign, bits: uint8(bits), a: x})
	}
	r.assignTemp(s.Temp, r.terms.fitSize(x, bits))
}

func (r *blockRun) dependsOnInput(args []vex.Expr) bool {
	for _, a := range args {
		if r.operandTerm(a) != 0 {
			return true
		}
	}
	return false
}

func (r *blockRun) fixOperands(args []vex.Expr, reason string) {
	for _, a := range args {
		switch a.(type) {
		case *vex.Read, *vex.Const:
			v, x := r.operandValue(a)
			r.fixToRecorded(v, x, Fixed, reason)
		}
	}
}

// runHelper builds the term of a helper that computes flags; for other helpers the
// arguments are fixed.
func (r *blockRun) runHelper(e *vex.Call) Term {
	if !r.dependsOnInput(e.Args) {
		return 0
	}
	n, args := termNode{bits: 64}, e.Args
	switch e.Callee {
	case "amd64g_calculate_condition":
		number, t := r.operandValue(args[0])
		r.fixToRecorded(number, t, Branch, "")
		n.op, n.bits, args = nodeCondition, uint8(number.Lo), args[1:]
	case "amd64g_calculate_rflags_all":
		n.op = nodeFlags
	case "amd64g_calculate_rflags_c":
		n.op = nodeCarry
	default:
		r.fixOperands(e.Args, e.Callee)
		return 0
	}
	op, t := r.operandValue(args[0])
	r.fixToRecorded(op, t, Branch, "")
	if op.Lo > 4*numKinds {
		r.fixOperands(e.Args, e.Callee)
		return 0
	}
	if !r.dependsOnInput(args[1:]) {
		return 0
	}
	n.extra = uint8(op.Lo)
	n.a, n.b, n.c = r.termOrConstant(args[1]), r.termOrConstant(args[2]), r.termOrConstant(args[3])
	return r.terms.addNode(n)
}

// runExchange executes a compare-and-exchange; its success is fixed.
func (r *blockRun) runExchange(s *vex.CAS) {
	t := r.block.Types[s.OldLo]
	addr, at := r.operandValue(s.Addr)
	r.assignTemp(s.OldLo, r.loadTerm(addr.Lo, at, t.Bytes(), r.machine.Temp(s.OldLo)))
	equal := r.terms.equalTerm(r.termOrConstant(&vex.Read{Temp: s.OldLo}), r.termOrConstant(s.ExpectedLo))
	expected, _ := r.operandValue(s.ExpectedLo)
	holds := expected == r.machine.Temp(s.OldLo)
	if s.ExpectedHi != nil {
		r.assignTemp(s.OldHi, r.loadTerm(addr.Lo+uint64(t.Bytes()), 0, t.Bytes(), r.machine.Temp(s.OldHi)))
		high := r.terms.equalTerm(r.termOrConstant(&vex.Read{Temp: s.OldHi}), r.termOrConstant(s.ExpectedHi))
		equal = r.terms.addNode(termNode{op: nodeAnd, bits: 1, a: equal, b: high})
		expected, _ := r.operandValue(s.ExpectedHi)
		holds = holds && expected == r.machine.Temp(s.OldHi)
	}
	if !holds {
		r.addExchangeConstraint(r.terms.notTerm(equal), s)
		return
	}
	r.addExchangeConstraint(equal, s)
	r.x.memory.storeTerm(r.space, addr.Lo, t.Bytes(), r.operandTerm(s.DataLo))
	if s.DataHi != nil {
		r.x.memory.storeTerm(r.space, addr.Lo+uint64(t.Bytes()), t.Bytes(), r.operandTerm(s.DataHi))
	}
}

// addExchangeConstraint adds the constraint of a compare-and-exchange, if it depends on
// inputs.
func (r *blockRun) addExchangeConstraint(e Term, s *vex.CAS) {
	parts := []vex.Expr{&vex.Read{Temp: s.OldLo}, s.ExpectedLo}
	if s.ExpectedHi != nil {
		parts = append(parts, &vex.Read{Temp: s.OldHi}, s.ExpectedHi)
	}
	if r.dependsOnInput(parts) {
		r.addConstraint(e, Exchange, "")
	}
}

// runDirty fixes the data that a helper with side effects reads; then its results depend on
// no input.
func (r *blockRun) runDirty(s *vex.Dirty) {
	v, e := r.operandValue(s.Guard)
	r.fixToRecorded(v, e, Branch, "")
	if v.Lo == 0 {
		return
	}
	r.fixOperands(s.Args, s.Callee)
	for _, fx := range s.State {
		if !fx.Effect.Reads() {
			continue
		}
		for _, part := range fx.Spans() {
			for at := part.From; at < part.To; at += 8 {
				v, e := r.stateTerm(at, min(8, part.To-at))
				r.fixToRecorded(v, e, Fixed, s.Callee)
			}
		}
	}
	for _, fx := range s.State {
		if !fx.Effect.Writes() {
			continue
		}
		for _, part := range fx.Spans() {
			r.writeState(part.From, part.Size(), 0)
		}
	}
	if s.Effect != vex.EffectNone {
		r.runDirtyMemory(s)
	}
}

// stateTerm returns bytes of the state as a helper reads them. The recorded value is
// computed from the term.
func (r *blockRun) stateTerm(offset, size int) (symbolic.Value, Term) {
	t := r.terms.gatherTerm(r.registers.cells[offset:offset+size], symbolic.Value{})
	if t == 0 {
		return symbolic.Value{}, 0
	}
	return r.recordedValue(t), t
}

// recordedValue is the value of a term under the recorded inputs; any value if it is untracked.
func (r *blockRun) recordedValue(t Term) symbolic.Value {
	if r.terms.isUntracked(t) {
		return symbolic.Value{}
	}
	v, err := r.x.evaluator.Value(r.x.Express(t))
	if err != nil && r.err == nil {
		r.err = err
	}
	return v
}

func (r *blockRun) runDirtyMemory(s *vex.Dirty) {
	addr, e := r.operandValue(s.MemAddr)
	r.fixAddress(addr, e, int(s.MemSize))
	if s.Effect != vex.EffectWrite {
		cells := make([]cell, s.MemSize)
		r.x.memory.loadCells(r.space, addr.Lo, cells)
		for _, c := range cells {
			if c == 0 {
				continue
			}
			if part := r.terms.extractBytes(c.term(), c.byteIndex(), 1); part > 0 {
				r.fixToRecorded(r.recordedValue(part), part, Fixed, s.Callee)
			}
		}
	}
	if s.Effect != vex.EffectRead {
		r.x.memory.storeTerm(r.space, addr.Lo, s.MemSize, 0)
	}
}
