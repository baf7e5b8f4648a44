package exec

import (
	"encoding/binary"
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// thread is a thread on its way.
type thread struct {
	x       *Executor
	id      event.ThreadID
	space   uint64
	machine vex.Machine
	// registers are which bytes of the state depend on inputs.
	registers registers
	temps     []Term
	count     uint64 // instructions executed
	pieces    uint64

	round round
	call  *summarized // that a summary stands for, if any

	// The piece that is executed.
	accesses []Access
	next     int    // the first that may come now
	used     int    // behind the last that the instruction has had
	branches uint32 // since the begin of the piece
	pc       uint64 // of the instruction that next and used are about
	touched  bool   // something was loaded that depends on inputs
	stores   []stored
	fresh    []fresh  // loads of the block that are symbols
	clocked  bool     // the piece has read the time, which is not known
	status   bool     // the block stores exception flags, which are not known
	was      [16]byte // what was stored last
}

type stored struct {
	addr uint64
	size int
}

// fresh is a load, of an instruction, that gave a symbol.
type fresh struct {
	pc uint64
	stored
	term Term
}

// take gives the thread registers. What changes depends on no input.
func (t *thread) take(s *vex.State) {
	old := &t.machine.State
	for _, r := range visible {
		same := true
		for i := r.From; i < r.To; i++ {
			same = same && old[i] == s[i]
		}
		if !same {
			t.registers.set(r, 0)
			copy(old[r.From:r.To], s[r.From:r.To])
		}
	}
	// The flags are the same in many forms.
	if old.RFLAGS() != s.RFLAGS() {
		flags := vex.Span{From: vex.OffsetCCOp, To: vex.OffsetCCNDep + 8}
		t.registers.set(flags, 0)
		old.SetRFLAGS(s.RFLAGS())
	}
}

// visible are the parts of the state that have one form.
var visible = func() []vex.Span {
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
}()

// register is bytes of the state: the value, and the term if there is one.
func (t *thread) register(offset, size int) (symbolic.Value, Term) {
	var b [16]byte
	copy(b[:size], t.machine.State[offset:])
	v := symbolic.Value{Lo: binary.LittleEndian.Uint64(b[:]), Hi: binary.LittleEndian.Uint64(b[8:])}
	return v, t.x.terms.gather(t.registers.cells[offset:offset+size], v)
}

// Run executes a piece: so many instructions of a thread, each iteration of a
// repeated string instruction counted, and one for its end. Accesses are its loads
// and stores, and after is what registers it ended with. An error says where
// the execution is not the recorded one.
func (x *Executor) Run(id event.ThreadID, instructions uint64, accesses []Access, after *vex.State) error {
	t := x.threads[id]
	if t == nil {
		return fmt.Errorf("thread %d runs, and has no registers", id)
	}
	t.accesses, t.next, t.used, t.branches, t.clocked = accesses, 0, 0, 0, false
	t.pieces++
	for done := uint64(0); done < instructions; {
		n, err := t.step(instructions - done)
		if err != nil {
			return fmt.Errorf("thread %d, instruction %d: %w", id, t.count, err)
		}
		done += n
		t.count += n
	}
	return t.end(after)
}

// end compares with the registers at the end of a piece.
func (t *thread) end(after *vex.State) error {
	const syscallClobbers = 1<<1 | 1<<11 // rcx and r11 are the kernel's
	for i := range 16 {
		at := vex.OffsetRAX + 8*i
		if have, want := t.machine.State.Word(at), after.Word(at); have != want && !t.clocked && syscallClobbers>>i&1 == 0 {
			return fmt.Errorf("thread %d, instruction %d at %#x: register %d is %#x and was %#x", t.id, t.count, t.machine.PC, i, have, want)
		}
	}
	if have, want := t.machine.State.Word(vex.OffsetRIP), after.Word(vex.OffsetRIP); have != want {
		return fmt.Errorf("thread %d, instruction %d: it is at %#x and was at %#x", t.id, t.count, have, want)
	}
	t.take(after)
	return nil
}

// clock answers RDTSC: nobody has recorded the time, and registers are not
// compared in this piece.
func (t *thread) clock() uint64 {
	t.clocked = true
	return 0
}

// step executes a block, of no more than so many instructions.
func (t *thread) step(most uint64) (uint64, error) {
	k := blockPlace{space: t.space, pc: t.machine.State.Word(vex.OffsetRIP)}
	b, err := t.x.block(k, t.pieces)
	if err == nil && uint64(b.instructions) > most {
		k.most = int(most)
		b, err = t.x.block(k, t.pieces)
	}
	if err != nil {
		return 0, err
	}
	t.touched, t.status = t.registers.any(b.reads), b.status
	t.stores, t.fresh, t.pc = t.stores[:0], t.fresh[:0], 0
	if t.call == nil {
		t.enter(b)
	}
	if _, _, err := t.machine.Run(b.Block); err != nil {
		return 0, err
	}
	n := uint64(t.machine.Count)
	if t.x.Tracer != nil {
		t.tell(b)
	}
	if b.mark {
		t.x.mark(t, b)
	}
	t.x.Stats.Instructions += n
	switch {
	case t.touched && t.call == nil:
		t.x.Stats.Symbolic += n
		if err := t.symbolically(b); err != nil {
			return 0, err
		}
	default:
		t.forget(b)
	}
	if b.branch && t.machine.Count == b.instructions {
		t.branches++
	}
	if t.call != nil {
		if t.call.opaque != nil {
			t.call.opaque.executed(t)
		}
		t.leave()
	}
	return n, nil
}

// tell tells of a block that has been executed.
func (t *thread) tell(b *block) {
	e := &t.x.executed
	*e = Executed{Thread: t.id, Number: b.number, Block: b.Block, Code: b.code, Machine: &t.machine}
	if t.call != nil {
		e.Summary = t.call.Function
	}
	t.x.Tracer.Executed(e)
}

// forget says of what a block has written that it depends on no input.
func (t *thread) forget(b *block) {
	if t.registers.any(b.written) {
		for _, w := range b.writes {
			t.registers.set(w, 0)
		}
	}
	for _, s := range t.stores {
		t.x.memory.store(t.space, s.addr, s.size, 0)
	}
}

// Load is vex.Memory's: what the instruction has loaded in the recorded run.
func (t *thread) Load(addr uint64, p []byte) error {
	t.instruction()
	if err := t.find(addr, p, false); err != nil {
		return err
	}
	if t.x.memory.touched(t.space, addr, len(p)) {
		t.touched = true
		if len(t.x.marks) > 0 || len(t.x.opaque) > 0 {
			t.x.learn(t.space, addr, p)
		}
	}
	if t.x.Fresh != nil {
		t.ask(addr, p)
	}
	if t.call != nil && t.call.reads {
		t.call.note(t, addr, p)
	}
	return nil
}

// ask makes what was loaded a symbol, if that is wanted.
func (t *thread) ask(addr uint64, p []byte) {
	var b [16]byte
	copy(b[:], p)
	a := Access{PC: t.machine.PC, Addr: addr, Size: len(p), Branches: t.branches}
	a.Value[0], a.Value[1] = binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
	name := t.x.Fresh(&a, t.id)
	if name == "" {
		return
	}
	t.touched = true
	v := symbolic.Value{Lo: a.Value[0], Hi: a.Value[1]}
	t.fresh = append(t.fresh, fresh{a.PC, stored{addr, len(p)}, t.x.symbol(name, 8*len(p), v)})
}

// Store is vex.Memory's: it must be what was stored.
func (t *thread) Store(addr uint64, p []byte) error {
	t.instruction()
	t.stores = append(t.stores, stored{addr, len(p)})
	was := t.was[:len(p)]
	if err := t.find(addr, was, true); err != nil {
		return err
	}
	if string(was) != string(p) && !t.clocked && !t.status {
		return fmt.Errorf("% x is stored to %#x, and % x was", p, addr, was)
	}
	return nil
}

// instruction begins with the accesses of another instruction than before.
func (t *thread) instruction() {
	if key := t.machine.PC ^ uint64(t.machine.Count)<<48; t.pc != key {
		t.pc, t.next = key, t.used
	}
	for t.next < len(t.accesses) && t.accesses[t.next].Branches < t.branches {
		t.next++
	}
	t.used = max(t.used, t.next)
}

// find fills p with what the instruction has loaded, or stored, at an address.
func (t *thread) find(addr uint64, p []byte, store bool) error {
	missing := uint32(1)<<len(p) - 1
	for i := t.next; i < len(t.accesses) && missing != 0; i++ {
		a := &t.accesses[i]
		if a.Branches > t.branches {
			break
		}
		if a.Store != store || a.PC != t.machine.PC || a.Addr+uint64(a.Size) <= addr || a.Addr >= addr+uint64(len(p)) {
			continue
		}
		missing &^= a.copyTo(addr, p, missing)
		t.used = max(t.used, i+1)
	}
	if missing != 0 && !t.status {
		return fmt.Errorf("%d bytes at %#x: the recorded instruction has no such access", len(p), addr)
	}
	return nil
}

// copyTo copies those of the missing bytes that it has, and returns which.
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
