package peregrine_test

import (
	"strconv"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched"
)

// The numbers of racey in PEREGRINE's table 2.
const (
	paperRaces       = 167_974
	paperConstraints = 9_963
)

// How many of racey's races pruning leaves depends on how often its threads took turns in the
// recorded run, and equals the paper's share with turns of a few thousand instructions. The log is
// the table of docs/schedules.md.
func TestRaceyPruning(t *testing.T) {
	testsize.SkipQuick(t)
	// About as many races each as in the paper.
	iterations := map[uint64]int{50: 8830, 200: 10490, 800: 11480, 2400: 13500, 3200: 14340, 12800: 19000}
	quanta := testsize.Pick([]uint64{2400}, []uint64{800, 2400}, []uint64{50, 200, 800, 2400, 3200, 12800})
	c := suiteConfig(t, "racey")
	c.Cores = 8
	before := 0.0
	for _, quantum := range quanta {
		c.Args = append(c.Args[:1:1], "-p", "8", "-i", strconv.Itoa(iterations[quantum]))
		c.Sched = sched.Options{Policy: sched.RR, Quantum: quantum}
		m := made(t, c, peregrine.Options{})
		races, left := float64(m.Counts.Races), float64(m.Counts.Subsumed)
		t.Logf("| %d | %d | %d | %d | %.1f %% | %d |", quantum, iterations[quantum], m.Counts.Races, m.Counts.Subsumed,
			100*(1-left/races), m.Counts.Reduced)
		if races < 0.9*paperRaces || races > 1.1*paperRaces {
			t.Errorf("quantum %d: %.0f races, and %d in the paper", quantum, races, paperRaces)
		}
		if 1-left/races <= before || m.Counts.Reduced > m.Counts.Subsumed {
			t.Errorf("quantum %d: %.0f constraints are left of %.0f: a longer one leaves more", quantum, left, races)
		}
		before = 1 - left/races
		if quantum == 2400 && (left < 0.7*paperConstraints || left > 1.5*paperConstraints) {
			t.Errorf("%.0f constraints, and %d in the paper", left, paperConstraints)
		}
	}
}
