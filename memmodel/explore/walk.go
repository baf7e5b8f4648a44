package explore

import (
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

// random is the generator splitmix64 (Steele, Lea, Flood, "Fast splittable
// pseudorandom number generators", OOPSLA 2014).
type random uint64

func (r *random) below(n int) int {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return int(z % uint64(n))
}

// maxWalk bounds the steps of one random execution of a test with loops.
const maxWalk = 100_000

// Walk runs a test n times, each time choosing among the enabled steps at
// random. The counts of outcomes are of executions; one that did not end within
// 100,000 steps is not counted.
func (m *Machine) Walk(t *litmus.Test, code []litmus.Code, model memmodel.Model, n int, seed uint64) (*litmus.Outcomes, Stats, error) {
	s := newSystem(m.prepare(t, code), model)
	observer := t.Observer()
	outcomes := litmus.NewOutcomes(observer)
	r := random(seed)
	first := s.initial()
	var stats Stats
	for range n {
		st := first
		steps := s.enabled(&st, nil)
		for k := 0; len(steps) > 0 && k < maxWalk; k++ {
			next, err := s.take(st, steps[r.below(len(steps))])
			if err != nil {
				return nil, stats, err
			}
			st = next
			stats.Transitions++
			steps = s.enabled(&st, steps[:0])
		}
		if s.final(&st) {
			stats.Executions++
			outcomes.Add(s.outcome(observer, &st), 1)
		}
	}
	stats.Instructions, stats.Remembered = s.runs, s.hits
	return outcomes, stats, nil
}
