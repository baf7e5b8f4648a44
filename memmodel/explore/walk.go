package explore

import (
	"github.com/heddle-dmt/heddle/internal/rand"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

// maxWalk bounds the steps of one random execution of a test with loops.
const maxWalk = 100_000

// Walk runs a test n times, each time choosing among the enabled steps at
// random. The counts of outcomes are of executions; one that did not end within
// 100,000 steps is not counted.
func (m *Machine) Walk(t *litmus.Test, code []litmus.Code, model memmodel.Model, n int, seed uint64) (*litmus.Outcomes, Stats, error) {
	s := newSystem(m.prepareTest(t, code), model)
	observer := t.Observer()
	outcomes := litmus.NewOutcomes(observer)
	r := rand.SplitMix(seed)
	first := s.initialState()
	var stats Stats
	for range n {
		st := first
		steps := s.appendEnabled(&st, nil)
		for k := 0; len(steps) > 0 && k < maxWalk; k++ {
			next, err := s.takeStep(st, steps[r.Remainder(len(steps))])
			if err != nil {
				return nil, stats, err
			}
			st = next
			stats.Transitions++
			steps = s.appendEnabled(&st, steps[:0])
		}
		if s.isFinal(&st) {
			stats.Executions++
			outcomes.Add(s.observedState(observer, &st), 1)
		}
	}
	stats.Instructions, stats.Remembered = s.runs, s.hits
	return outcomes, stats, nil
}
