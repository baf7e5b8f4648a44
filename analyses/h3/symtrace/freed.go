package symtrace

import (
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// Freed memory keeps its content: writes into it by the allocator, and by its next owner, are not
// followed. For data this does not matter, as they are read along paths. For locks it does: an
// operation on a lock in such memory may wait forever, although the operation ends in the recorded
// run. So operations on a lock are assumed to end before its memory is freed: the free writes to a
// place of its own, the operations read it, and the assumption is that they read 0. As with every
// assumption, other values are possible.

// freedPlaces is where these places are, by the address of the lock, and freedPieces where a thread
// has a byte for each piece of memory that it has freed.
const freedPlaces, freedPieces = 1 << 62, 1 << 61

// freeMemory is free. Nothing is freed twice, as the addresses of memory are not used again: glibc
// would have ended the run.
func (w *threadExec) freeMemory() error {
	at, p := w.callArgument(1), w.pass.pool
	if !at.IsConst() || at.Value.Lo < lowest {
		return nil
	}
	w.noteFreedMemory(at.Value.Lo)
	return w.addCondition(p.Eq(w.markFreed(at.Value.Lo), p.Word(0, 8)))
}

// markFreed marks a piece as freed, and returns the mark that it had: 1 if it was freed before.
func (w *threadExec) markFreed(at uint64) *symbolic.Expr {
	p, mark := w.pass.pool, freedPieces+at
	was := w.substituteFixed(w.memory.Load(p, mark, 1))
	w.noteAccess(mark, 1, true)
	if w.pass.sharing.IsShared(mark, 1) {
		was = w.nextSymbol(8)
		w.pass.symbolBits[was.Name], w.pass.symbolPlaces[was.Name] = was.Bits, symbolPlace{mark, 1}
		w.addEvent(model.Event{Kind: model.Read, Addr: mark, Size: 1, Symbol: was}, true)
		w.addEvent(model.Event{Kind: model.Write, Addr: mark, Size: 1, Value: p.Word(1, 8)}, true)
	}
	w.memory.Write(mark, []byte{1})
	return was
}

// endInAllocator is where the allocator ends the run: the last condition of the path is that the
// memory was freed before.
func (w *threadExec) endInAllocator(c *functionCall) error {
	why := errOffPath{c.Function.Name + " ends the run, as the allocator's data are overwritten or a pointer is wrong, which is not followed", true}
	if c.Role != Free {
		return why
	}
	at, err := w.constantArgument(1)
	if err != nil {
		return err
	}
	was := w.markFreed(at)
	if was.IsConst() && was.Value.Lo == 0 {
		return why
	}
	w.noteLastCall(c)
	w.conditions = append(w.conditions, model.Condition{Expr: w.pass.pool.Eq(was, w.pass.pool.Word(1, 8)), Thread: w.number, PC: arch.Addr(w.currentPC())})
	w.endPath(Failed)
	return nil
}

// allocates are the roles of the allocator's functions.
var allocates = map[Role]bool{Free: true, Allocate: true, Calloc: true, Resize: true, Duplicate: true}

// aborts reports whether the rest of the path calls abort.
func (w *threadExec) aborts() bool {
	for at := w.at; ; at = (paths.Position{Block: at.Block + 1}) {
		pc, ok := w.path.PCAt(at)
		if f := w.pass.image.Functions[pc]; !ok || f.Name == "abort" {
			return ok
		}
	}
}

// noteFreedMemory notes that memory is freed, and the locks in it. If threads share its begin, some
// may find there what the allocator writes.
func (w *threadExec) noteFreedMemory(at uint64) {
	o, ok := w.pass.objectAt(at)
	if !ok {
		return
	}
	const list = 16 // of free pieces, in each of them
	if w.pass.sharing.IsShared(o.Addr, int(min(o.Size, list))) {
		w.otherOutcomes++
	}
	from, _ := slices.BinarySearch(w.pass.previousLocks, o.Addr)
	for _, lock := range w.pass.previousLocks[from:] {
		if lock >= o.Addr+o.Size {
			return
		}
		w.noteAccess(freedPlaces+lock, 1, true)
		if w.pass.sharing.IsShared(freedPlaces+lock, 1) {
			w.addEvent(model.Event{Kind: model.Write, Addr: freedPlaces + lock, Size: 1, Value: w.pass.pool.Word(1, 8)}, true)
		}
	}
}

// assumeNotFreed has an operation on a lock be over before its memory is freed.
func (w *threadExec) assumeNotFreed(lock uint64) {
	at := freedPlaces + lock
	w.noteAccess(at, 1, false)
	if !w.pass.sharing.IsShared(at, 1) {
		return
	}
	s := w.nextSymbol(8)
	w.pass.symbolBits[s.Name], w.pass.symbolPlaces[s.Name] = s.Bits, symbolPlace{at, 1}
	w.addEvent(model.Event{Kind: model.Read, Addr: at, Size: 1, Symbol: s}, true)
	w.coordinates[len(w.coordinates)-1].Named = true
	p := w.pass.pool
	w.conditions = append(w.conditions, model.Condition{Expr: p.Eq(s, p.Const(w.pass.options.Prefer[s.Name], 8)), Thread: w.number, Assumed: true})
}

// lockAddresses returns the addresses of all synchronization objects.
func (b *pass) lockAddresses() []uint64 { return slices.Sorted(maps.Keys(b.objectIDs)) }
