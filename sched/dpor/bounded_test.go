package dpor_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/sched/dpor"
)

// renamed gives the processes of the programs of these tests the numbers that a Bounded expects.
type renamed struct{ *dpor.Bounded }

func thread(t dpor.Process) dpor.Process { return (t + 1) << dpor.ThreadShift }

func rename(p dpor.Process) dpor.Process {
	if p < 100 {
		return thread(p)
	}
	return thread((p-100)/10) | p
}

func (r renamed) Choose(enabled, _ []dpor.Process) (dpor.Process, bool, error) {
	var list []dpor.Process
	for _, p := range enabled {
		list = append(list, rename(p))
	}
	p, ok, err := r.Bounded.Choose(list, nil)
	if i := slices.Index(list, p); i >= 0 {
		p = enabled[i]
	}
	return p, ok, err
}

func (r renamed) Add(e dpor.Event) error {
	e.Process, e.Owner = rename(e.Process), rename(e.Owner)
	return r.Bounded.Add(e)
}

// none is no thread.
const none = dpor.Process(1 << 20)

// bruteForceBounded executes every interleaving whose cost is at most a number, and returns the classes; false if there
// are too many.
func bruteForceBounded(p program, delays bool, bound, most int) (classes map[string]bool, ok bool) {
	classes = map[string]bool{}
	budget := most
	var walk func(m *machine, last dpor.Process, cost int)
	walk = func(m *machine, last dpor.Process, cost int) {
		if budget--; budget < 0 || cost > bound {
			return
		}
		list := m.enabled()
		if len(list) == 0 {
			classes[m.key()] = true
			return
		}
		threads := dpor.Process(len(p.threads))
		slices.SortStableFunc(list, func(a, b dpor.Process) int {
			at := func(p dpor.Process) int {
				if p >= 100 {
					return 1000
				}
				if last == none {
					return int(p)
				}
				return int((p - last + threads) % threads)
			}
			return at(a) - at(b)
		})
		for i, q := range list {
			extra := i
			if !delays && (i == 0 || list[0] != last) {
				extra = 0
			} else if !delays {
				extra = 1
			}
			next, latest := m.clone(), last
			if next.step(q); q < 100 {
				latest = q
			}
			walk(next, latest, cost+extra)
		}
	}
	walk(newMachine(p), none, 0)
	return classes, budget >= 0
}

// TestBounded: bounded explorations execute the classes of the interleavings that cost no more than the bound, as an
// enumeration says, and without a bound all.
func TestBounded(t *testing.T) {
	for m := sc; m <= pso; m++ {
		r := rand.New(rand.NewPCG(uint64(m), 9))
		for n := 0; n < 40; {
			p := randomProgram(r, m)
			all, ok := bruteForce(p, 4_000)
			if !ok {
				continue
			}
			n++
			for bound := -1; bound < 4; bound++ {
				for _, delays := range []bool{false, true} {
					want := all
					if bound >= 0 {
						want, _ = bruteForceBounded(p, delays, bound, 1<<40)
					}
					x := dpor.NewBounded(delays, bound)
					got := map[string]bool{}
					for more := true; more; more = x.End() {
						if m, complete := carryOut(renamed{x}, p); complete {
							got[m.key()] = true
						}
					}
					if !maps.Equal(got, want) {
						t.Fatalf("program %d, bound %d, delays %v: %d classes, want %d:\n%v", n, bound, delays, len(got), len(want), p)
					}
					if !x.IsCut() && len(got) != len(all) {
						t.Errorf("program %d, bound %d: not cut, with %d of %d classes", n, bound, len(got), len(all))
					}
				}
			}
		}
	}
}
