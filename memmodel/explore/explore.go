package explore

import (
	"math"

	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

// Stats measure an exploration.
type Stats struct {
	// States and Transitions are of the graph that was explored; Merged of the
	// transitions led to states that were known already, and Pruned were not
	// taken since others made them superfluous.
	States, Transitions, Merged, Pruned int
	// Executions are the different paths through that graph, from the first
	// state to a final one; 0 when loops make them infinitely many.
	Executions uint64
	// Instructions were run by the engine; Remembered were needed again.
	Instructions, Remembered uint64
}

// Result is the set of outcomes that an exploration found.
type Result struct {
	Outcomes *litmus.Outcomes
	Stats    Stats
	explorer *explorer
	final    map[string]int32 // a final state for each outcome
}

// Options tune an exploration.
type Options struct {
	Model memmodel.Model
	// MaxStates bounds the states; 0 means 4 million.
	MaxStates int
	// Full takes every step of every state, without reduction.
	Full bool
}

const defaultMaxStates = 4_000_000

// explorer is an exploration under way.
type explorer struct {
	*system
	options Options
	loops   bool
	at      map[state]int32
	states  []state
	// parents and by say how each state was first reached.
	parents []int32
	by      []step
	edges   [][]int32
	stats   Stats
}

// Explore finds all outcomes of a test, whose code is the given one. Each
// outcome's count is the number of executions explored that end in it.
func (m *Machine) Explore(t *litmus.Test, code []litmus.Code, o Options) (*Result, error) {
	if o.MaxStates == 0 {
		o.MaxStates = defaultMaxStates
	}
	x := &explorer{system: newSystem(m.prepareTest(t, code), o.Model), options: o, at: map[state]int32{}}
	for _, c := range x.threads {
		x.loops = x.loops || c.loops
	}
	x.reachState(x.initialState(), -1, step{})
	for next := 0; next < len(x.states); next++ {
		if err := x.expandState(int32(next)); err != nil {
			return nil, err
		}
		if len(x.states) > o.MaxStates {
			return nil, errStates.New(t.File, o.MaxStates)
		}
	}
	return x.gatherOutcomes(), nil
}

// reachState returns the number of a state, and whether it is new.
func (x *explorer) reachState(st state, from int32, by step) (id int32, isNew bool) {
	if id, ok := x.at[st]; ok {
		return id, false
	}
	id = int32(len(x.states))
	x.at[st] = id
	x.states = append(x.states, st)
	x.parents = append(x.parents, from)
	x.by = append(x.by, by)
	x.edges = append(x.edges, nil)
	return id, true
}

// expandState takes the steps that are needed from a state.
func (x *explorer) expandState(id int32) error {
	st := x.states[id]
	var room [32]step
	steps := x.appendEnabled(&st, room[:0])
	if !x.options.Full && len(steps) > 1 {
		only, ok, err := x.sufficientStep(&st, steps)
		if err != nil {
			return err
		}
		if ok {
			next, err := x.takeStep(st, only)
			if err != nil {
				return err
			}
			if _, seen := x.at[next]; !seen || !x.loops {
				x.stats.Pruned += len(steps) - 1
				steps = append(steps[:0], only)
			}
		}
	}
	for _, by := range steps {
		next, err := x.takeStep(st, by)
		if err != nil {
			return err
		}
		to, isNew := x.reachState(next, id, by)
		x.stats.Transitions++
		if !isNew {
			x.stats.Merged++
		}
		x.edges[id] = append(x.edges[id], to)
	}
	return nil
}

// gatherOutcomes gathers the outcomes of the final states.
func (x *explorer) gatherOutcomes() *Result {
	observer := x.test.Observer()
	r := &Result{Outcomes: litmus.NewOutcomes(observer), explorer: x, final: map[string]int32{}}
	paths, finite := x.countPaths()
	for id := range x.states {
		st := &x.states[id]
		if !x.isFinal(st) {
			continue
		}
		n := uint64(1)
		if finite {
			n = paths[id]
			x.stats.Executions = saturatingSum(x.stats.Executions, n)
		}
		out := x.observedState(observer, st)
		r.Outcomes.Add(out, n)
		if _, ok := r.final[out.Key()]; !ok {
			r.final[out.Key()] = int32(id)
		}
	}
	x.stats.States, x.stats.Instructions, x.stats.Remembered = len(x.states), x.runs, x.hits
	r.Stats = x.stats
	return r
}

func saturatingSum(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// countPaths counts the ways from the first state to each; finite is false when
// there are cycles.
func (x *explorer) countPaths() (paths []uint64, finite bool) {
	into := make([]int32, len(x.states))
	for _, out := range x.edges {
		for _, to := range out {
			into[to]++
		}
	}
	paths = make([]uint64, len(x.states))
	paths[0] = 1
	if into[0] > 0 {
		return nil, false
	}
	ready := []int32{0}
	done := 0
	for ; len(ready) > 0; done++ {
		id := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, to := range x.edges[id] {
			paths[to] = saturatingSum(paths[to], paths[id])
			if into[to]--; into[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	return paths, done == len(x.states)
}
