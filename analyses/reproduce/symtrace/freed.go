package symtrace

import (
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
)

// Memory that was freed is given out as it is, but what is written into it by the
// allocator, and by who gets it next, is not followed. That does not matter for data,
// which are read along paths. It does for locks: an operation on a lock in such memory may
// wait forever, where the trace has it end. So operations on a lock are taken to be over
// before its memory is freed: the free writes to a place of its own, the operations
// read it, and that they read 0 is assumed. It may be otherwise, as with all that
// is assumed.

// freedPlaces is where these places are, by the address of the lock.
const freedPlaces = 1 << 62

// freed notes that the memory of locks is freed.
func (w *walker) freed() {
	at := w.argument(1)
	if !at.IsConst() || at.Value.Lo < lowest {
		return
	}
	o, ok := w.b.object(at.Value.Lo)
	if !ok {
		return
	}
	from, _ := slices.BinarySearch(w.b.locks, o.Addr)
	for _, lock := range w.b.locks[from:] {
		if lock >= o.Addr+o.Size {
			return
		}
		w.touched(freedPlaces+lock, 1, true)
		if w.b.sharing.shared(freedPlaces+lock, 1) {
			w.add(model.Event{Kind: model.Write, Addr: freedPlaces + lock, Size: 1, Value: w.b.pool.Word(1, 8)}, true)
		}
	}
}

// unfreed has an operation on a lock be over before its memory is freed.
func (w *walker) unfreed(lock uint64) {
	at := freedPlaces + lock
	w.touched(at, 1, false)
	if !w.b.sharing.shared(at, 1) {
		return
	}
	s := w.symbol(8)
	w.b.bits[s.Name], w.b.places[s.Name] = s.Bits, location{at, 1}
	w.add(model.Event{Kind: model.Read, Addr: at, Size: 1, Symbol: s}, true)
	w.coords[len(w.coords)-1].Name = true
	p := w.b.pool
	w.conds = append(w.conds, model.Condition{Expr: p.Eq(s, p.Const(w.b.options.Prefer[s.Name], 8)), Thread: w.number, Assumed: true})
}

// operated are the addresses of what operations were about.
func (b *builder) operated() []uint64 { return slices.Sorted(maps.Keys(b.ids)) }
