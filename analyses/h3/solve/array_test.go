package solve_test

import (
	"math/rand/v2"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/schedule"
	"github.com/heddle-dmt/heddle/analyses/h3/search"
	"github.com/heddle-dmt/heddle/analyses/h3/solve"
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
)

const array, elements = 0x4000, 4

// element is the number of the element that a value picks.
func (a *actor) element(x value) (*symbolic.Expr, uint64) {
	return a.Pool.ZeroExt(a.Pool.Extract(x.e, 0, 2), 64), x.v % elements
}

func (a *actor) readAt(x value) value {
	a.turn(nil)
	index, n := a.element(x)
	s := a.SymbolOf(a.id, 4)
	a.place++
	a.Add(model.Event{
		Kind: model.Read, Thread: a.id, Core: arch.CoreID(a.id % 4), CoreInstructions: a.place, Addr: array, Size: 4, Index: index, Symbol: s,
	})
	return value{s, a.memory[array+4*n]}
}

func (a *actor) writeAt(x, v value) {
	index, n := a.element(x)
	a.do(nil, model.Event{Kind: model.Write, Addr: array, Size: 4, Index: index, Value: v.e})
	a.memory[array+4*n] = v.v
}

// races are threads like racey's: each selects elements by values that it has read, and nothing
// orders them.
func races(seed uint64, threads, iterations int) *world {
	var bodies []func(*actor)
	for id := range threads {
		bodies = append(bodies, func(a *actor) {
			own := uint64(0x1000 + 4*id)
			next := uint64(0x1000 + 4*((id+1)%threads))
			for range iterations {
				x := a.read(own)
				seen := a.readAt(x)
				x = value{a.Pool.Add(x.e, seen.e), uint64(uint32(x.v + seen.v))}
				a.write(own, a.plus(x, int32(id+1)))
				a.writeAt(x, a.plus(a.read(next), 1))
			}
		})
	}
	w := run(seed, bodies...)
	w.Arrays = []model.Array{{Addr: array, Elem: 4, Count: elements}}
	return w
}

// Elements that are selected by values that were read: the encodings agree with the search, under
// the model of the run and under weaker ones.
func TestArraysAgree(t *testing.T) {
	runs := 40
	if testing.Short() {
		runs = 8
	}
	count := map[smt.Answer]int{}
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 3))
		w := races(seed, 2, 1+r.IntN(2))
		if err := w.Check(); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			w.Bug = nil
			for range 1 + r.IntN(2) {
				id := r.IntN(len(w.Events))
				if e := &w.Events[id]; e.Kind == model.Read {
					is := w.Pool.Word(uint64(r.IntN(3)), 32)
					w.Bug = append(w.Bug, model.Condition{Expr: w.Pool.Eq(e.Symbol, is), Thread: -1})
				}
			}
			m := []model.MemoryModel{model.SC, model.TSO, model.PSO}[r.IntN(3)]
			found := search.Search(w.Trace, m, search.Options{FreeCores: true})
			if found.Answer == search.Limit {
				t.Fatalf("seed %d: the search has not ended after %d states", seed, found.States)
			}
			if _, err := schedule.Run(w.Trace, m, found.Schedule); found.Answer == search.Found && err != nil {
				t.Fatalf("seed %d: what the search found does not run: %v", seed, err)
			}
			want := wanted(found.Answer == search.Found)
			count[want]++
			for _, e := range append(constraints.Encodings(), constraints.Pruned{FreeCores: true}) {
				if e.Supports(m) != nil {
					continue
				}
				sys, err := constraints.New(w.Trace, m, e, 0)
				if err != nil {
					t.Fatal(err)
				}
				got, err := solve.Solve(sys, solve.Options{Within: shared})
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if got.Answer != want {
					t.Fatalf("seed %d under %v: %s says %v, the search %v", seed, m, e.Name(), got.Answer, found.Answer)
				}
				if _, own := e.(constraints.Pruned); own {
					continue
				}
				if got := lazily(t, w.Trace, m, e, solve.Integers); got.Answer != want {
					t.Fatalf("seed %d under %v: %s as needed says %v, the search %v", seed, m, e.Name(), got.Answer, found.Answer)
				}
			}
		}
	}
	t.Log(count)
}

// Four threads race 1500 times each for elements that depend on values that they have read, 30000
// unordered events: if any schedule will do, one is found as fast as they can be executed.
func TestLongRaces(t *testing.T) {
	w := races(1, 4, 1500)
	out, err := solve.Portfolio{}.Find(w.Trace, model.SC)
	if err != nil {
		t.Fatal(err)
	}
	if out.Answer != smt.Satisfiable || out.States > 2*len(w.Events) {
		t.Errorf("%v after %d states for %d events", out.Answer, out.States, len(w.Events))
	}
}
