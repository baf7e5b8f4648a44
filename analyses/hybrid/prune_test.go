package hybrid

import (
	"cmp"
	"slices"
	"testing"

	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/analyses/races"
)

// run is a random run: who did step i, and whether it was a synchronization
// operation, and constraints between other steps.
type run struct {
	threads     []int
	syncs       []bool
	constraints []Constraint
}

func drawRun(t *rapid.T) run {
	n := rapid.IntRange(2, 30).Draw(t, "length")
	var r run
	count := map[int]uint64{}
	var accesses []races.Instance
	for i := range n {
		thread := rapid.IntRange(0, 3).Draw(t, "thread")
		sync := rapid.IntRange(0, 3).Draw(t, "sync") == 0
		r.threads, r.syncs = append(r.threads, thread), append(r.syncs, sync)
		if sync {
			count[thread]++
			continue
		}
		accesses = append(accesses, races.Instance{Thread: thread, Syncs: count[thread], At: uint64(i)})
	}
	for _, a := range accesses {
		for _, b := range accesses {
			if a.At < b.At && a.Thread != b.Thread && rapid.IntRange(0, 4).Draw(t, "race") == 0 {
				r.constraints = append(r.constraints, Constraint{a, b})
			}
		}
	}
	slices.SortFunc(r.constraints, func(a, b Constraint) int {
		return cmp.Or(cmp.Compare(a.Second.At, b.Second.At), cmp.Compare(b.First.At, a.First.At))
	})
	return r
}

// order is the run as a graph of steps: threads' own orders, the total order of
// synchronization operations, and constraints.
func (r run) order(constraints []Constraint) *simple.DirectedGraph {
	g := simple.NewDirectedGraph()
	for i := range r.threads {
		g.AddNode(simple.Node(i))
	}
	edge := func(a, b int) { g.SetEdge(simple.Edge{F: simple.Node(a), T: simple.Node(b)}) }
	for j := range r.threads {
		for i := range j {
			if r.threads[i] == r.threads[j] || r.syncs[i] && r.syncs[j] {
				edge(i, j)
			}
		}
	}
	for _, c := range constraints {
		edge(int(c.First.At), int(c.Second.At))
	}
	return g
}

func implied(g *simple.DirectedGraph, c Constraint) bool {
	return topo.PathExistsIn(g, simple.Node(c.First.At), simple.Node(c.Second.At))
}

func subsumed(r run) (kept []Constraint) {
	s := NewSubsumer()
	for _, c := range r.constraints {
		if s.Add(c) {
			kept = append(kept, c)
		}
	}
	return kept
}

func reduced(r run) (kept []Constraint) {
	var reducer Reducer
	next := 0
	for i, thread := range r.threads {
		if r.syncs[i] {
			reducer.Sync(thread, uint64(i))
		}
		for ; next < len(r.constraints) && r.constraints[next].Second.At == uint64(i); next++ {
			if c := r.constraints[next]; reducer.Add(c) {
				kept = append(kept, c)
			}
		}
	}
	return kept
}

// Invariants 1 and 2, by a graph.
func TestPruning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRun(t)
		for name, kept := range map[string][]Constraint{"Subsume": subsumed(r), "Reduce": reduced(r)} {
			g := r.order(kept)
			for _, c := range r.constraints {
				if !implied(g, c) {
					t.Fatalf("%s: %v does not follow from %v", name, c, kept)
				}
			}
		}
		kept := reduced(r)
		for i, c := range kept {
			if implied(r.order(slices.Delete(slices.Clone(kept), i, i+1)), c) {
				t.Fatalf("Reduce: %v follows from the rest of %v", c, kept)
			}
		}
		if len(kept) > len(subsumed(r)) {
			t.Fatalf("Reduce keeps more than Subsume")
		}
	})
}

// Figure 7 of PEREGRINE: inst1 and inst2 of one segment, inst3 and inst4 of
// another; inst1 -> inst4 follows from inst2 -> inst3.
func TestFigure7(t *testing.T) {
	inst := func(thread int, at uint64) races.Instance { return races.Instance{Thread: thread, At: at} }
	s := NewSubsumer()
	if !s.Add(Constraint{inst(0, 2), inst(1, 3)}) || s.Add(Constraint{inst(0, 1), inst(1, 4)}) {
		t.Error("inst1 -> inst4 is kept, or inst2 -> inst3 is not")
	}
	// Not subsumed when the segment is another.
	other := races.Instance{Thread: 1, At: 5, Syncs: 1}
	if !s.Add(Constraint{inst(0, 1), other}) {
		t.Error("a constraint to another segment is left out")
	}
}

// In PEREGRINE's figure 7 a constraint inst2 -> inst3 subsumes inst1 -> inst4. If it leads
// through a third thread the rule of the paper misses that, and transitivity does not
// (section 3.1).
func TestThirdThread(t *testing.T) {
	at := func(thread int, place uint64) races.Instance { return races.Instance{Thread: thread, At: place} }
	inst1, inst2, other, inst3, inst4 := at(0, 1), at(0, 2), at(2, 3), at(1, 4), at(1, 5)
	for _, c := range []struct {
		name              string
		constraints       []Constraint
		subsumer, reducer []bool
	}{
		{"figure 7", []Constraint{{inst2, inst3}, {inst1, inst4}}, []bool{true, false}, []bool{true, false}},
		{
			"through a third thread",
			[]Constraint{{inst2, other}, {other, inst3}, {inst1, inst4}},
			[]bool{true, true, true},
			[]bool{true, true, false},
		},
		{"crossing", []Constraint{{inst1, inst3}, {inst2, inst4}}, []bool{true, true}, []bool{true, true}},
	} {
		s, r := NewSubsumer(), &Reducer{}
		for i, x := range c.constraints {
			if s.Add(x) != c.subsumer[i] {
				t.Errorf("%s: the subsumer keeps constraint %d: %v", c.name, i, !c.subsumer[i])
			}
			if r.Add(x) != c.reducer[i] {
				t.Errorf("%s: the reducer keeps constraint %d: %v", c.name, i, !c.reducer[i])
			}
		}
	}
}
