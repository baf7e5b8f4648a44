package symtrace

import (
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
)

// Freed memory keeps its content: writes into it by the allocator, and by its next owner, are not
// followed. For data this does not matter, as they are read along paths. For locks it does: an
// operation on a lock in such memory may wait forever, although the operation ends in the recorded
// run. So operations on a lock are assumed to end before its memory is freed: the free writes to a
// place of its own, the operations read it, and the assumption is that they read 0. As with every
// assumption, other values are possible.

// freedPlaces is where these places are, by the address of the lock.
const freedPlaces = 1 << 62

// noteFreedLocks notes that the memory of locks is freed.
func (w *threadExec) noteFreedLocks() {
	at := w.callArgument(1)
	if !at.IsConst() || at.Value.Lo < lowest {
		return
	}
	o, ok := w.pass.objectAt(at.Value.Lo)
	if !ok {
		return
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
