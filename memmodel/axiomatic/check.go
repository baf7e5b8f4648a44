package axiomatic

import (
	"fmt"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

var errEvents = errs.Define("litmus-many-events",
	"{file}: the axiomatic checker takes tests with up to 64 memory accesses and fences, and this one has {count}",
	"The number of candidate executions grows beyond reach long before that.",
	"Explore the test on the machine alone.")

// Result is the set of allowed outcomes.
type Result struct {
	// Outcomes are counted by the candidate executions that were allowed and
	// looked at: at least one for each outcome.
	Outcomes *litmus.Outcomes
	// Candidates is the number of combinations of traces of the threads.
	Candidates int
	witnesses  map[string][]string
}

// Witness describes an allowed execution with the outcome: its events, where
// reads read from and the coherence orders. It is nil if no execution has it.
func (r *Result) Witness(s litmus.State) []string { return r.witnesses[s.Key()] }

type checker struct {
	test     *litmus.Test
	model    memmodel.Model
	init     []byte
	observer *litmus.Observer
	result   *Result
	// memoryMatters reports whether the test observes memory: otherwise a
	// combination of traces has one outcome.
	memoryMatters bool
}

// Check derives the outcomes that the model allows a test.
func Check(t *litmus.Test, m memmodel.Model) (*Result, error) {
	all, err := threadTraces(t)
	if err != nil {
		return nil, err
	}
	o := t.Observer()
	c := &checker{
		test: t, model: m, init: t.Memory(), observer: o,
		result: &Result{Outcomes: litmus.NewOutcomes(o), witnesses: map[string][]string{}},
	}
	for _, l := range o.Locs {
		c.memoryMatters = c.memoryMatters || !l.IsReg()
	}
	return c.result, c.combineTraces(all, nil)
}

// combineTraces goes through all ways to choose a trace for each thread.
func (c *checker) combineTraces(all [][]trace, chosen []trace) error {
	if len(chosen) < len(all) {
		for _, t := range all[len(chosen)] {
			if err := c.combineTraces(all, append(chosen[:len(chosen):len(chosen)], t)); err != nil {
				return err
			}
		}
		return nil
	}
	c.result.Candidates++
	k := &candidate{checker: c, traces: chosen}
	if n := k.countEvents(); n > 64 {
		return errEvents.New(c.test.File, n)
	}
	if !c.memoryMatters {
		if _, known := c.result.witnesses[k.finalState(c.observer).Key()]; known {
			return nil
		}
	}
	k.buildEvents()
	if !k.hasSources() {
		return nil
	}
	k.searchCells(0, k.base)
	return nil
}

func (c *candidate) countEvents() int {
	n := 0
	for _, t := range c.traces {
		n += len(t.events)
	}
	return n
}

// hasSources reports whether every read has some write of its value.
func (c *candidate) hasSources() bool {
	for i := range c.cells {
		cl := &c.cells[i]
		for _, r := range cl.reads {
			found := c.cellValue(r, cl) == c.initialValue(cl)
			for _, w := range cl.writes {
				found = found || c.cellValue(w, cl) == c.cellValue(r, cl)
			}
			if !found {
				return false
			}
		}
	}
	return true
}

// addAllowed takes note of an execution that satisfies the model.
func (c *checker) addAllowed(k *candidate) {
	s := k.finalState(c.observer)
	c.result.Outcomes.Add(s, 1)
	if key := s.Key(); c.result.witnesses[key] == nil {
		c.result.witnesses[key] = k.describeExecution()
	}
}

// describeExecution puts an execution into words.
func (c *candidate) describeExecution() []string {
	var lines []string
	for i, e := range c.events {
		lines = append(lines, fmt.Sprintf("e%d: %v", i, e))
	}
	for i := range c.cells {
		cl := &c.cells[i]
		for k, r := range cl.reads {
			from := "the initial state"
			if w := cl.source[k]; w >= 0 {
				from = fmt.Sprintf("e%d", w)
			}
			lines = append(lines, fmt.Sprintf("bytes %#x to %#x: e%d reads from %s", cl.at, cl.at+cl.size-1, r, from))
		}
		if len(cl.co) > 1 {
			line := fmt.Sprintf("bytes %#x to %#x: coherence", cl.at, cl.at+cl.size-1)
			for _, w := range cl.co {
				line += fmt.Sprintf(" e%d", w)
			}
			lines = append(lines, line)
		}
	}
	return lines
}
