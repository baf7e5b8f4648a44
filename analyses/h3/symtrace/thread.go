package symtrace

import (
	"errors"
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// threadExec executes one thread along its path. Its state is a value: a choice that
// the path decides later keeps a clone, and taking the choice back restores it.
type threadExec struct {
	threadState
	decisions
	pass          *pass
	number        int
	path          *paths.Track
	returnAddress uint64
	// temps, journal, undoing and faulting belong to the block that is executed.
	temps         []*symbolic.Expr
	journal       []savedBytes
	recordsStores bool
	faulting      bool // the next instruction faults
	// beforeSyscall is the state where the present system call began, while the thread has
	// made no choice.
	beforeSyscall *threadState
	// offPathReason says why the thread does not take the recorded path, and failure why it
	// cannot be executed.
	offPathReason error
	failure       error
}

// savedBytes is memory as it was before a block.
type savedBytes struct {
	addr    uint64
	content [16]byte
	size    int
}

var errSymbolic = errors.New("an expression is in the way")

func (w *threadExec) currentPC() uint64 { return w.machine.State.Word(vex.OffsetRIP) }

// A PathError says where a thread cannot be followed along its path, and why.
type PathError struct {
	Thread       arch.ThreadID
	Instructions uint64 // that were followed
	PC           uint64
	Err          error
}

// Error implements error.
func (e *PathError) Error() string {
	return fmt.Sprintf("thread %d at %#x, after %d instructions: %v", e.Thread, e.PC, e.Instructions, e.Err)
}

// Unwrap returns the reason.
func (e *PathError) Unwrap() error { return e.Err }

func (w *threadExec) pathError(err error) error {
	if wrong, ok := err.(errOffPath); ok && w.askedTime {
		err = fmt.Errorf("%s; it has asked for the time before, which depends on the schedule", wrong.why)
	}
	return &PathError{w.ID, w.Instructions, w.currentPC(), err}
}

// runToEnd follows the thread to the end of its path.
func (w *threadExec) runToEnd() error {
	for !w.finished {
		if w.pass.pollStop() {
			return ErrStopped
		}
		if err := w.executeStep(); err != nil {
			if err = w.recoverFrom(err); err != nil {
				return w.pathError(err)
			}
		}
	}
	return nil
}

func (w *threadExec) endPath(e Ending) {
	w.finished, w.Ending = true, e
}

// executeStep executes a block, or the replacement of a call.
func (w *threadExec) executeStep() error {
	if err := w.deferredErr; err != nil {
		w.deferredErr = nil
		return err
	}
	if w.pendingCall != nil {
		return w.resumePendingCall()
	}
	if w.inSyscall {
		return w.runSyscall()
	}
	if w.returnAddress != ownReturn && w.returnAddress != 0 && w.currentPC() == w.returnAddress {
		return w.returnFromStart()
	}
	pc, ok := w.path.PCAt(w.at)
	if !ok {
		return w.reachPathEnd()
	}
	if have := w.currentPC(); have != pc {
		if pc, ok := w.nextCancelHandler(); ok {
			return w.enterCancelHandler(pc)
		}
		if have == handlerReturn && len(w.signalFrames) > 0 {
			w.machine.State.SetWord(vex.OffsetRIP, pc)
			return nil
		}
		if have == w.returnAddress && w.returnAddress != 0 {
			return w.returnFromStart()
		}
		return errOffPath{why: fmt.Sprintf("it would continue at %#x, and its recorded branches continue at %#x", have, pc)}
	}
	if f, ok := w.pass.image.Functions[pc]; ok && f.Role != Cancel && !w.isMemoryStream(f) {
		return w.simulateCall(pc, f)
	}
	n, size := w.path.Remaining(w.at)
	b, err := w.pass.liftBlock(pc, n, size)
	if err != nil {
		return err
	}
	if b.stub != nil {
		return w.passStub(pc, b.stub)
	}
	return w.runBlock(b)
}

// returnFromStart is where the thread's function has returned.
func (w *threadExec) returnFromStart() error {
	w.addEvent(model.Event{Kind: model.End}, false)
	w.endPath(Returned)
	return nil
}

// reachPathEnd is at the end of the path.
func (w *threadExec) reachPathEnd() error {
	if w.pass.options.Fault {
		w.probeFault()
	}
	w.endPath(Cut)
	return nil
}

// runBlock executes a block: on numbers if it meets no expression.
func (w *threadExec) runBlock(b *block) error {
	if w.symbolicBytes == 0 || !w.readsSymbols(b) {
		state := w.machine.State
		w.journal, w.recordsStores = w.journal[:0], true
		next, _, err := w.machine.Run(b.Block)
		w.recordsStores = false
		if err == nil {
			w.markConcrete(b)
			return w.advancePast(b, w.machine.Count, next)
		}
		if !errors.Is(err, errSymbolic) {
			return err
		}
		w.machine.State = state
		w.undoStores()
	}
	return w.runSymbolically(b)
}

// undoStores undoes the stores of a block.
func (w *threadExec) undoStores() {
	for i := len(w.journal) - 1; i >= 0; i-- {
		u := &w.journal[i]
		w.memory.Write(u.addr, u.content[:u.size])
	}
}

// advancePast continues after n instructions of a block; an instruction that repeats is in the path
// once.
func (w *threadExec) advancePast(b *block, n int, next uint64) error {
	w.sinceCall += uint64(n)
	w.Instructions += uint64(n)
	passed, from := n, w.at
	if b.repeats && next == b.last && n == b.instructions {
		passed--
	}
	w.at = w.path.Advance(w.at, passed)
	if b.Jump == vex.JumpSyscall && n == b.instructions {
		w.syscallAt = w.path.Advance(from, passed-1)
		return w.runSyscall()
	}
	return nil
}

// readsSymbols reports whether a block reads a byte of the state that is an expression.
func (w *threadExec) readsSymbols(b *block) bool {
	for _, r := range b.reads {
		for i := r.From; i < r.To; i++ {
			if w.cells[i].Expr != nil {
				return true
			}
		}
	}
	return false
}

// markConcrete marks the bytes of the state that a block has written as known.
func (w *threadExec) markConcrete(b *block) {
	if w.symbolicBytes == 0 {
		return
	}
	for _, r := range b.writes {
		w.clearSymbols(r.From, r.To)
	}
}

func (w *threadExec) clearSymbols(from, to int) {
	for i := from; i < to; i++ {
		if w.cells[i].Expr != nil {
			w.cells[i] = symmem.Cell{}
			w.symbolicBytes--
		}
	}
}

// hasOwnValue reports whether the thread's own memory holds the value that a read of shared memory
// gets.
func (w *threadExec) hasOwnValue(addr uint64, size int) bool {
	return w.pass.sharing.OnlyWriter(w.number, addr, size) || w.pass.sharing.HasOneValue(w.clock, addr, size)
}

// Load is vex.Memory's.
func (w *threadExec) Load(addr uint64, p []byte) error {
	if addr < lowest {
		return errSymbolic
	}
	if w.pass.sharing.IsShared(addr, len(p)) && !w.hasOwnValue(addr, len(p)) || !w.memory.Read(addr, p) {
		return errSymbolic
	}
	w.noteAccess(addr, len(p), false)
	return nil
}

// Store is vex.Memory's.
func (w *threadExec) Store(addr uint64, p []byte) error {
	if addr < lowest {
		return errSymbolic
	}
	if w.pass.sharing.IsShared(addr, len(p)) {
		return errSymbolic
	}
	if w.recordsStores {
		u := savedBytes{addr: addr, size: len(p)}
		if !w.memory.Read(addr, u.content[:u.size]) {
			return errSymbolic // the old content must be kept
		}
		w.journal = append(w.journal, u)
	}
	w.memory.Write(addr, p)
	w.noteAccess(addr, len(p), true)
	return nil
}

func (w *threadExec) noteAccess(addr uint64, size int, write bool) {
	w.pass.sharing.NoteAccess(w.clock, addr, size, write)
}

// startStretch begins another stretch between forks and joins.
func (w *threadExec) startStretch() {
	w.clocks[w.number]++
	w.clock = w.pass.sharing.StartStretch(w.number, w.clocks)
}

// addEvent adds an event; within says that it happens in the next call.
func (w *threadExec) addEvent(e model.Event, within bool) *model.Event {
	e.Thread, e.PC = w.number, arch.Addr(w.currentPC())
	place, since := w.at, w.sinceCall
	if w.inSyscall { // the call is executed already
		since--
		if e.Kind != model.Read && e.Kind != model.Take {
			place = w.syscallAt // after a wait it continues elsewhere
		}
	}
	if at := min(place.Block, len(w.path.Blocks)-1); at >= 0 {
		s := &w.path.Blocks[at]
		e.Core, e.CoreInstructions = s.Core, s.CoreInstructions+uint64(place.Instruction)
	}
	w.events = append(w.events, e)
	w.coordinates = append(w.coordinates, Coordinate{Calls: len(w.Calls), SinceCall: since, InNextCall: within, block: place.Block})
	return &w.events[len(w.events)-1]
}

// nextSymbol makes the symbol of the value that the next event reads.
func (w *threadExec) nextSymbol(bits int) *symbolic.Expr {
	name := fmt.Sprintf("r%d.%d", w.number, len(w.events))
	delete(w.pass.namedExprs, name) // of an attempt that was given up
	return w.pass.pool.Symbol(name, bits)
}

// addCondition has something hold; false: it cannot.
func (w *threadExec) addCondition(e *symbolic.Expr) error {
	e = w.substituteFixed(e)
	if e.IsConst() {
		if e.Value.Lo == 0 {
			return errOffPath{why: "a branch would go the other way than the recorded one"}
		}
		return nil
	}
	w.conditions = append(w.conditions, model.Condition{Expr: e, Thread: w.number, PC: arch.Addr(w.currentPC())})
	return nil
}

// assumeCondition adds a condition that the path does not imply.
func (w *threadExec) assumeCondition(e *symbolic.Expr) error {
	before := len(w.conditions)
	err := w.addCondition(e)
	if err != nil {
		return errOffPath{"an assumed value is impossible", true}
	}
	for i := before; i < len(w.conditions); i++ {
		w.conditions[i].Assumed = true
	}
	return nil
}

// substituteFixed is an expression with the values that were chosen.
func (w *threadExec) substituteFixed(e *symbolic.Expr) *symbolic.Expr {
	if len(w.fixed) == 0 || e.IsConst() {
		return e
	}
	return w.pass.pool.Substitute(e, func(name string) *symbolic.Expr {
		if v, ok := w.fixed[name]; ok {
			return w.pass.pool.Const(v, w.pass.symbolBits[name])
		}
		return nil
	})
}

func (w *threadExec) ownBase() uint64 { return ownMemory + ownSize*uint64(w.number) }

// threadPointer is the thread pointer of a thread that was made, which is its pthread_t.
func (w *threadExec) threadPointer() uint64 {
	return w.ownBase() + ownBlock + w.pass.image.NewThread.Pointer%symmem.PageSize
}

// initNewThread writes what the C library prepares for a thread.
func (w *threadExec) initNewThread(mem *symmem.Memory) {
	n := &w.pass.image.NewThread
	pointer := w.threadPointer()
	moved := func(addr uint64) uint64 {
		switch {
		case n.Block.has(addr):
			return addr - n.Pointer + pointer
		case n.Modules.has(addr):
			return addr - n.Modules.Addr + w.ownBase() + ownModules
		}
		return addr
	}
	for _, p := range []*Piece{&n.Block, &n.Modules} {
		for i := 0; i+8 <= len(p.Content); i += 8 {
			mem.Write(moved(p.Addr+uint64(i)), wordBytes(moved(symmem.ValueOf(p.Content[i:i+8]).Lo)))
		}
	}
	if n.ID != 0 {
		mem.Write(pointer+n.ID, wordBytes(uint64(w.ID))[:4])
	}
}

// enterFunction puts the thread at the begin of its function.
func (w *threadExec) enterFunction(start, arg *symbolic.Expr) {
	w.returnAddress = ownReturn
	w.setRegister(offsetRDI, arg)
	w.machine.State.SetWord(vex.OffsetFS, w.threadPointer())
	if !start.IsConst() {
		w.finished = true
		return
	}
	w.machine.State.SetWord(vex.OffsetRIP, start.Value.Lo)
	first, ok := w.path.FindBlock(paths.Position{}, start.Value.Lo)
	if !ok {
		w.finished = true // it never came so far
		return
	}
	w.makeStack(first)
	w.at = first
	w.Calls = []Call{{Return: start.Value.Lo, Name: "start"}}
	w.addEvent(model.Event{Kind: model.Begin}, false)
}

// joinWrites makes the writes of a joined thread known to the thread that joined it.
func (w *threadExec) joinWrites(child *threadExec) {
	if w.clocks[child.number] >= child.clocks[child.number] {
		return // known already, through another thread
	}
	for t := range w.clocks {
		w.clocks[t] = max(w.clocks[t], child.clocks[t])
	}
	w.startStretch()
	for _, g := range child.memory.WrittenGranules() {
		addr := g * symmem.Granule
		w.memory.Store(addr, child.memory.Load(w.pass.pool, addr, symmem.Granule))
	}
}
