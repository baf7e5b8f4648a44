package symtrace

import (
	"cmp"
	"errors"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// choice is something that the path decides later: the values that are left.
type choice struct {
	saved *threadState
	ways  []func(w *threadExec)
	next  int // the way to be tried next
	// excluded are the ways under which the thread left its path before anything else was
	// assumed: they are out of the question.
	excluded map[int]bool
	guess    bool
}

// decisions are the choices of a thread.
type decisions struct {
	choices []choice
	// bestWays are the ways with which the thread came furthest, to instruction bestInstruction.
	bestWays        []int
	bestInstruction uint64
	// firstChoiceState is the state before the first choice. repeatsBest says that the best ways
	// are taken again, for good.
	firstChoiceState *threadState
	repeatsBest      bool
	// backtracks is how many choices were taken back, strayed how often the thread was put
	// back on its path.
	backtracks, forcedOntoPath int
}

// tryWays continues with the first of some ways; the others are tried if the thread leaves its
// path.
func (w *threadExec) tryWays(ways []func(*threadExec), guess bool) {
	way := 0
	d := &w.decisions
	switch {
	case len(ways) == 1:
		ways[0](w)
		return
	case d.repeatsBest && len(w.waysTaken) < len(d.bestWays):
		way = min(d.bestWays[len(w.waysTaken)], len(ways)-1) // there are fewer if a peer has not come as far as then
	case !d.repeatsBest:
		c := choice{saved: w.clone(), ways: ways, next: 1, excluded: map[int]bool{}, guess: guess}
		if d.firstChoiceState == nil {
			d.firstChoiceState = cmp.Or(w.beforeSyscall, c.saved)
		}
		d.choices = append(d.choices, c)
	}
	w.waysTaken = append(w.waysTaken, way)
	ways[way](w)
}

// backtrack takes the next way of the latest choice, or the best ways again if no way is left;
// false: the thread leaves its path whatever it chooses. Sure says that only the assumptions made
// it leave the path.
func (w *threadExec) backtrack(sure bool) bool {
	d := &w.decisions
	if d.repeatsBest {
		return false
	}
	if w.Instructions > d.bestInstruction {
		d.bestWays, d.bestInstruction = slices.Clone(w.waysTaken), w.Instructions
	}
	if n := len(d.choices); sure && n > 0 && w.hasOneAssumption(d.choices[n-1].saved) {
		d.choices[n-1].excluded[d.choices[n-1].next-1] = true
	}
	d.backtracks++
	for len(d.choices) > 0 && d.backtracks <= w.pass.maxBacktracks {
		c := &d.choices[len(d.choices)-1]
		if c.next == len(c.ways) {
			d.choices = d.choices[:len(d.choices)-1]
			continue
		}
		way := c.next
		c.next++
		w.restoreState(c.saved)
		w.waysTaken = append(w.waysTaken, way)
		c.ways[way](w)
		return true
	}
	d.repeatsBest, d.choices = true, nil
	if d.firstChoiceState == nil || slices.Equal(d.bestWays, w.waysTaken) {
		return false
	}
	w.restoreState(d.firstChoiceState)
	return true
}

// hasOneAssumption reports whether exactly one assumption was made after the state was saved.
func (w *threadExec) hasOneAssumption(s *threadState) bool {
	assumed := 0
	for _, c := range w.conditions[len(s.conditions):] {
		if c.Assumed {
			assumed++
		}
	}
	return assumed == 1 && w.otherOutcomes == s.otherOutcomes
}

// How often a thread's choices are taken back in total: while it is not known which memory is
// shared, and later.
const (
	fewBacktracks = 64
	maxBacktracks = 4000
)

// recoverFrom continues where a value has to be chosen, or where the thread has left its path.
func (w *threadExec) recoverFrom(err error) error {
	var choose errNeedsValue
	if errors.As(err, &choose) {
		err = w.chooseValue(choose)
	}
	var wrong errOffPath
	if !errors.As(err, &wrong) {
		return err
	}
	if w.offPathReason == nil {
		w.offPathReason = w.pathError(wrong)
	}
	if w.backtrack(!wrong.uncertain) {
		w.offPathReason = nil
		return nil
	}
	w.forcedOntoPath++
	if w.cutShort = w.pass.interactionsUnknown; w.cutShort {
		w.endPath(Cut)
		return nil
	}
	w.forceOntoPath()
	return nil
}

// chooseValue continues with a value for a symbol.
func (w *threadExec) chooseValue(c errNeedsValue) error {
	if c.guess {
		w.takeGuess(c.name, c.values[0])
		return nil
	}
	if _, again := w.fixed[c.name]; again || len(c.values) == 0 {
		return errOffPath{"no value is possible for " + c.name, true}
	}
	values := w.pass.preferredFirst(c.name, c.values)
	var ways []func(*threadExec)
	for i, v := range values {
		ways = append(ways, func(w *threadExec) { w.excludeValues(c.name, values[:i]); w.fixSymbol(c.name, v) })
	}
	w.tryWays(ways, false)
	return nil
}

// preferredFirst puts the value that is to be tried first before others.
func (b *pass) preferredFirst(name string, values []symbolic.Value) []symbolic.Value {
	v, ok := b.options.Prefer[name]
	if !ok {
		return values
	}
	return append([]symbolic.Value{v}, slices.DeleteFunc(slices.Clone(values), func(x symbolic.Value) bool { return x == v })...)
}

// excludeValues notes that a symbol has none of some values, as far as the thread left its path
// under them before it made another choice.
func (w *threadExec) excludeValues(name string, values []symbolic.Value) {
	if len(values) == 0 || w.decisions.repeatsBest {
		return
	}
	p, bits := w.pass.pool, w.pass.symbolBits[name]
	for i, v := range values {
		if w.choices[len(w.choices)-1].excluded[i] {
			w.conditions = append(w.conditions, model.Condition{Expr: p.Not(p.Eq(p.Symbol(name, bits), p.Const(v, bits))), Thread: w.number})
		}
	}
}

// maxForced is how often a thread is put back on its path: its accesses then still show which
// memory is shared, but each time less of its state is true.
const maxForced = 64

// forceOntoPath continues along the path, wherever the thread would jump.
func (w *threadExec) forceOntoPath() {
	if pc, ok := w.path.PCAt(w.at); ok && w.forcedOntoPath < maxForced {
		w.machine.State.SetWord(vex.OffsetRIP, pc)
		return
	}
	w.endPath(Cut)
}

// errOffPath says that a thread would not take its path.
type errOffPath struct {
	why string
	// uncertain: this may hold only under the assumptions that were made, or it is not known.
	uncertain bool
}

func (e errOffPath) Error() string { return e.why }

// errNeedsValue says that a symbol needs a value before the block can be executed.
type errNeedsValue struct {
	name   string
	values []symbolic.Value
	guess  bool // it may stay a symbol
}

func (e errNeedsValue) Error() string { return "the value of " + e.name + " has to be chosen" }

// fixSymbol gives a symbol a value, which becomes a condition.
func (w *threadExec) fixSymbol(name string, v symbolic.Value) {
	p := w.pass.pool
	bits := w.pass.symbolBits[name]
	w.conditions = append(w.conditions, model.Condition{Expr: p.Eq(p.Symbol(name, bits), p.Const(v, bits)), Thread: w.number, Assumed: true})
	w.fixed[name] = v
	w.substituteRegisters()
}
