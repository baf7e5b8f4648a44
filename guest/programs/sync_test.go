package programs

import (
	"fmt"
	"testing"

	"github.com/heddle-dmt/heddle/sched"
)

// syncThreads are the numbers of threads at which synchronization is counted.
var syncThreads = []int{1, 2, 4, 8, 16}

// counts are the mean numbers of operations of a thread.
type counts struct{ Barriers, Locks, Waits float64 }

func (c counts) String() string {
	return fmt.Sprintf("%.1f barriers, %.1f locks, %.1f waits", c.Barriers, c.Locks, c.Waits)
}

// readCounts reads what a build that counts prints on standard error.
func readCounts(t testing.TB, r result, threads int) counts {
	t.Helper()
	var barriers, locks, waits float64
	if _, err := fmt.Sscanf(r.stderr, "counted: %f barriers, %f locks, %f waits", &barriers, &locks, &waits); err != nil || r.status != 0 {
		t.Fatalf("no counts: %v", r)
	}
	n := float64(threads)
	return counts{barriers / n, locks / n, waits / n}
}

// expected is what the formulas of program.yaml say.
func (s *Synchronization) expected(t testing.TB, c Case, threads int) counts {
	t.Helper()
	value := func(formula string) float64 {
		v, err := c.Evaluate(formula, threads)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return counts{value(s.Barriers), value(s.Locks), value(s.Waits)}
}

// agrees tells whether a measured number agrees with a formula.
func agrees(got, want, tolerance float64) bool {
	const rounding = 1e-6
	return got <= want*tolerance+rounding && got >= want/tolerance-rounding
}

// TestSynchronizationCounts compares the operations of each kernel's threads,
// natively and under heddle, with the formulas that program.yaml derives from
// the published structure of the original. How often a thread finds that it has
// to wait depends on the schedule, so that formula is a bound.
func TestSynchronizationCounts(t *testing.T) {
	each(t, Fixed, func(t *testing.T, p Program) {
		s := p.Synchronization
		if s == nil {
			return
		}
		bin := build(t, p, Variant{Form: Fixed, Optimize: 2, Count: true})
		for _, c := range s.Cases {
			for _, threads := range syncThreads {
				command := append([]string{bin}, p.CommandLine(c.Arguments, threads)...)
				want := s.expected(t, c, threads)
				native := readCounts(t, run(t, timeLimit, nil, command...), threads)
				r, _ := emulate(t, machine{cores: max(threads, 2), seed: 1, sched: sched.Options{Policy: sched.Timed}}, command...)
				guest := readCounts(t, r, threads)
				for _, got := range []counts{native, guest} {
					if got.Barriers != want.Barriers || !agrees(got.Locks, want.Locks, s.Tolerance) || got.Waits > want.Waits {
						t.Errorf("%s with %d threads: %v natively, %v under heddle, want %v", c.Arguments, threads, native, guest, want)
						break
					}
				}
			}
		}
	})
}
