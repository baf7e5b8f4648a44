package concolic

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// thread is the state of a thread.
type thread struct {
	x       *Executor
	id      arch.ThreadID
	space   uint64
	machine vex.Machine
	// registers say which bytes of the state depend on inputs.
	registers registerShadow
	temps     []Term
	count     uint64 // instructions executed
	pieces    uint64

	blockRun blockRun
	call     *summarizedCall // the call that a summary stands for, or nil

	// The piece that is executed.
	accesses      []Access
	nextAccess    int    // first access that may come now
	usedAccesses  int    // end of the accesses that the instruction has used
	branches      uint32 // since the beginning of the piece
	pc            uint64 // of the instruction that nextAccess and usedAccesses belong to
	touched       bool   // something was loaded that depends on inputs
	stores        []storedRange
	freshLoads    []freshLoad // loads of the block that are symbols
	readsClock    bool        // the piece has read the time, which is not recorded
	status        bool        // the block stores exception flags, which are not recorded
	recordedBytes [16]byte    // the bytes of the last store
}

type storedRange struct {
	addr uint64
	size int
}

// freshLoad is a load that gave a symbol of its own.
type freshLoad struct {
	pc uint64
	storedRange
	term Term
}

// setRegisters sets the registers of the thread. Changed registers depend on no input.
func (t *thread) setRegisters(s *vex.State) {
	old := &t.machine.State
	for _, r := range visibleState() {
		same := true
		for i := r.From; i < r.To; i++ {
			same = same && old[i] == s[i]
		}
		if !same {
			t.registers.setTerm(r, 0)
			copy(old[r.From:r.To], s[r.From:r.To])
		}
	}
	// The same flags have many forms.
	if old.RFLAGS() != s.RFLAGS() {
		flags := vex.Span{From: vex.OffsetCCOp, To: vex.OffsetCCNDep + 8}
		t.registers.setTerm(flags, 0)
		old.SetRFLAGS(s.RFLAGS())
	}
}

// visibleState are the parts of the state that have one form.
var visibleState = sync.OnceValue(func() []vex.Span {
	spans := []vex.Span{vex.SpanOf(vex.OffsetRIP, 8), vex.SpanOf(vex.OffsetFS, 8), vex.SpanOf(vex.OffsetGS, 8)}
	for i := range 16 {
		spans = append(spans, vex.SpanOf(vex.OffsetRAX+8*i, 8))
		spans = append(spans, vex.SpanOf(vex.OffsetXMM+32*i, 16))
	}
	for i := range 8 {
		spans = append(spans, vex.SpanOf(vex.OffsetFPReg+8*i, 8), vex.SpanOf(vex.OffsetFPTag+i, 1))
	}
	return append(spans, vex.SpanOf(vex.OffsetFTop, 4), vex.SpanOf(vex.OffsetFPRound, 8),
		vex.SpanOf(vex.OffsetFC3210, 8), vex.SpanOf(vex.OffsetRound, 8))
})

// registerTerm returns bytes of the state: the value, and the term or 0.
func (t *thread) registerTerm(offset, size int) (symbolic.Value, Term) {
	var b [16]byte
	copy(b[:size], t.machine.State[offset:])
	v := symbolic.Value{Lo: binary.LittleEndian.Uint64(b[:]), Hi: binary.LittleEndian.Uint64(b[8:])}
	return v, t.x.terms.gatherTerm(t.registers.cells[offset:offset+size], v)
}

// Run executes a piece of a thread: a number of instructions, where each iteration of a
// repeated string instruction counts, and one more for its end. Accesses are its loads and
// stores, after the registers at its end. It returns an error that says where the execution
// differs from the recorded one.
func (x *Executor) Run(id arch.ThreadID, instructions uint64, accesses []Access, after *vex.State) error {
	t := x.threads[id]
	if t == nil {
		return fmt.Errorf("thread %d runs, and has no registers", id)
	}
	t.accesses, t.nextAccess, t.usedAccesses, t.branches, t.readsClock = accesses, 0, 0, 0, false
	t.pieces++
	for done := uint64(0); done < instructions; {
		x.limitTerms()
		n, err := t.runBlock(instructions - done)
		if err != nil {
			return fmt.Errorf("thread %d, instruction %d: %w", id, t.count, err)
		}
		done += n
		t.count += n
	}
	return t.endPiece(after)
}

// endPiece compares the registers at the end of a piece.
func (t *thread) endPiece(after *vex.State) error {
	const syscallClobbers = 1<<1 | 1<<11 // the kernel overwrites rcx and r11
	for i := range 16 {
		at := vex.OffsetRAX + 8*i
		if have, want := t.machine.State.Word(at), after.Word(at); have != want && !t.readsClock && syscallClobbers>>i&1 == 0 {
			return fmt.Errorf("thread %d, instruction %d at %#x: register %d is %#x and was %#x", t.id, t.count, t.machine.PC, i, have, want)
		}
	}
	if have, want := t.machine.State.Word(vex.OffsetRIP), after.Word(vex.OffsetRIP); have != want {
		return fmt.Errorf("thread %d, instruction %d: it is at %#x and was at %#x", t.id, t.count, have, want)
	}
	t.setRegisters(after)
	return nil
}

// readClock is the result of RDTSC, which is not recorded; the registers of this piece are
// not compared.
func (t *thread) readClock() uint64 {
	t.readsClock = true
	return 0
}

// runBlock executes a block of at most that number of instructions and returns the number
// executed.
func (t *thread) runBlock(most uint64) (uint64, error) {
	k := blockKey{space: t.space, pc: t.machine.State.Word(vex.OffsetRIP)}
	b, err := t.x.blockAt(k, t.pieces)
	if err == nil && uint64(b.instructions) > most {
		k.most = int(most)
		b, err = t.x.blockAt(k, t.pieces)
	}
	if err != nil {
		return 0, err
	}
	t.touched, t.status = t.registers.anyMayDepend(b.reads), b.storesStatus
	t.stores, t.freshLoads, t.pc = t.stores[:0], t.freshLoads[:0], 0
	if t.call == nil {
		t.enterCall(b)
	}
	if _, _, err := t.machine.Run(b.Block); err != nil {
		return 0, err
	}
	n := uint64(t.machine.Count)
	if t.x.Tracer != nil {
		t.traceBlock(b)
	}
	if b.isMark {
		t.x.handleMark(t, b)
	}
	t.x.Stats.Instructions += n
	switch {
	case t.touched && t.call == nil:
		t.x.Stats.Symbolic += n
		if err := t.runSymbolically(b); err != nil {
			return 0, err
		}
	default:
		t.clearWritten(b)
	}
	if b.countsBranch && t.machine.Count == b.instructions {
		t.branches++
	}
	if t.call != nil {
		if t.call.opaque != nil {
			t.call.opaque.recordStores(t)
		}
		t.leaveCall()
	}
	return n, nil
}

// traceBlock passes an executed block to the tracer.
func (t *thread) traceBlock(b *block) {
	e := &t.x.executed
	*e = BlockExecution{Thread: t.id, Number: b.number, Block: b.Block, Code: b.code, Machine: &t.machine}
	if t.call != nil {
		e.Summary = t.call.Function
	}
	t.x.Tracer.TraceBlock(e)
}

// clearWritten marks the state and memory that a block has written as independent of
// inputs.
func (t *thread) clearWritten(b *block) {
	if t.registers.anyMayDepend(b.written) {
		for _, w := range b.writes {
			t.registers.setTerm(w, 0)
		}
	}
	for _, s := range t.stores {
		t.x.memory.storeTerm(t.space, s.addr, s.size, 0)
	}
}

// Load implements vex.Memory: it returns the value that the instruction loaded in the
// recorded run.
func (t *thread) Load(addr uint64, p []byte) error {
	t.nextInstruction()
	if err := t.findAccess(addr, p, false); err != nil {
		return err
	}
	if t.x.memory.dependsOnInput(t.space, addr, len(p)) {
		t.touched = true
		if len(t.x.marks) > 0 || len(t.x.opaque) > 0 {
			t.x.learnValues(t.space, addr, p)
		}
	}
	if t.x.FreshSymbol != nil {
		t.askFreshSymbol(addr, p)
	}
	if t.call != nil && t.call.reads {
		t.call.recordLoad(t, addr, p)
	}
	return nil
}

// askFreshSymbol makes a loaded value a symbol, if FreshSymbol names one.
func (t *thread) askFreshSymbol(addr uint64, p []byte) {
	var b [16]byte
	copy(b[:], p)
	a := Access{PC: t.machine.PC, Addr: addr, Size: len(p), Branches: t.branches}
	a.Value[0], a.Value[1] = binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
	name := t.x.FreshSymbol(&a, t.id)
	if name == "" {
		return
	}
	t.touched = true
	v := symbolic.Value{Lo: a.Value[0], Hi: a.Value[1]}
	t.freshLoads = append(t.freshLoads, freshLoad{a.PC, storedRange{addr, len(p)}, t.x.namedTerm(name, "", 8*len(p), v)})
}

// Store implements vex.Memory: the bytes must be the recorded ones.
func (t *thread) Store(addr uint64, p []byte) error {
	t.nextInstruction()
	t.stores = append(t.stores, storedRange{addr, len(p)})
	was := t.recordedBytes[:len(p)]
	if err := t.findAccess(addr, was, true); err != nil {
		return err
	}
	if string(was) != string(p) && !t.readsClock && !t.status {
		return fmt.Errorf("% x is stored to %#x, and % x was", p, addr, was)
	}
	return nil
}

// nextInstruction moves on to the accesses of the next instruction, if it is another one.
func (t *thread) nextInstruction() {
	if key := t.machine.PC ^ uint64(t.machine.Count)<<48; t.pc != key {
		t.pc, t.nextAccess = key, t.usedAccesses
	}
	for t.nextAccess < len(t.accesses) && t.accesses[t.nextAccess].Branches < t.branches {
		t.nextAccess++
	}
	t.usedAccesses = max(t.usedAccesses, t.nextAccess)
}

// findAccess fills p with the bytes that the instruction loaded or stored at an address.
func (t *thread) findAccess(addr uint64, p []byte, store bool) error {
	missing := uint32(1)<<len(p) - 1
	for i := t.nextAccess; i < len(t.accesses) && missing != 0; i++ {
		a := &t.accesses[i]
		if a.Branches > t.branches {
			break
		}
		if a.Store != store || a.PC != t.machine.PC || a.Addr+uint64(a.Size) <= addr || a.Addr >= addr+uint64(len(p)) {
			continue
		}
		missing &^= a.copyTo(addr, p, missing)
		t.usedAccesses = max(t.usedAccesses, i+1)
	}
	if missing != 0 && !t.status {
		return fmt.Errorf("%d bytes at %#x: the recorded instruction has no such access", len(p), addr)
	}
	return nil
}

// copyTo copies those of the missing bytes that it has, and returns their mask.
func (a *Access) copyTo(addr uint64, p []byte, missing uint32) (has uint32) {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], a.Value[0])
	binary.LittleEndian.PutUint64(b[8:], a.Value[1])
	if a.Addr == addr && a.Size == len(p) && missing == 1<<a.Size-1 {
		copy(p, b[:])
		return missing
	}
	for i := range a.Size {
		if at := a.Addr + uint64(i) - addr; at < uint64(len(p)) && missing>>at&1 != 0 {
			p[at] = b[i]
			has |= 1 << at
		}
	}
	return has
}
