package solve_test

import (
	"math/rand/v2"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/analyses/h3/explore"
	"github.com/heddle-dmt/heddle/analyses/h3/model"
)

// The counts equal the constraints that the encodings make: of random programs, and of threads that
// select elements of an array.
func TestCountsAreWhatIsMade(t *testing.T) {
	most := 0
	check := func(seed uint64, tr *model.Trace) {
		t.Helper()
		for _, e := range []constraints.Encoding{constraints.CLAP{}, constraints.Cores{}} {
			system, err := constraints.New(tr, model.SC, e, 0)
			if err != nil {
				t.Fatal(err)
			}
			got := constraints.CountCLAP(tr)
			if e.Name() == "h3" {
				got = constraints.CountCores(tr)
			}
			want := system.Clauses(constraints.ReadWrite)
			if got != want {
				t.Errorf("seed %d, %s: %d counted, %d made", seed, e.Name(), got, want)
			}
			most = max(most, want)
		}
	}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 9))
		p := explore.Random(r, 5)
		check(seed, explore.Record(p, model.SC, 1+r.IntN(len(p.Threads)), 4+r.IntN(16), r).Trace)
	}
	for seed := range uint64(10) {
		check(seed, races(seed, 2+int(seed%3), 6).Trace)
	}
	if most < 1000 {
		t.Errorf("the largest has %d constraints", most)
	}
}
