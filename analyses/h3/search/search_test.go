package search_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/search"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// Writes of one event on their way to different elements are different states: here the
// second element is reached if the index is read late, and the search reads it early
// first.
func TestBufferedElements(t *testing.T) {
	const x, array = 0x1000, 0x2000
	w := model.New(symbolic.NewPool())
	w.AddThread("1")
	w.AddThread("2")
	w.Arrays = []model.Array{{Addr: array, Elem: 8, Count: 2}}
	add := func(e model.Event) {
		e.Core, e.CoreInstructions, e.Size = arch.CoreID(e.Thread), uint64(len(w.Events)), 8
		w.Add(e)
	}
	index, one := w.SymbolOf(0, 8), w.Pool.Word(1, 64)
	add(model.Event{Kind: model.Read, Addr: x, Symbol: index})
	add(model.Event{Kind: model.Write, Addr: array, Index: index, Value: one})
	add(model.Event{Kind: model.Write, Thread: 1, Addr: x, Value: one})
	add(model.Event{Kind: model.Fence, Thread: 1})
	got := w.SymbolOf(1, 8)
	add(model.Event{Kind: model.Read, Thread: 1, Addr: array, Index: one, Symbol: got})
	w.Bug = []model.Condition{{Expr: w.Pool.Eq(got, one), Thread: -1}}
	if r := search.Search(w, model.TSO, search.Options{FreeCores: true}); r.Answer != search.Found {
		t.Errorf("%v after %d states", r.Answer, r.States)
	}
}
