package slice_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// figure4 records the program of PEREGRINE's figure 3 under the schedule of figure 4: the
// first thread leaves its critical section before the second one reaches it, and the second
// adds its sum before the first prints.
func figure4(t *testing.T) *recorded {
	t.Helper()
	bin := gcctest.File(t, "../../experiments/concolicrun/testdata/divide.c", "-fno-inline", "-no-pie", "-DLATE")
	for seed := range uint64(40) {
		c := config(t, bin, "2", "2", "0")
		c.Seed, c.Sched = seed, sched.Options{Policy: sched.Random, Quantum: 200}
		if r := record(t, c, arguments); r.ordered() {
			t.Logf("seed %d", seed)
			return r
		}
	}
	t.Fatal("no schedule is that of figure 4")
	return nil
}

// ordered reports whether the schedule is that of figure 4.
func (r *recorded) ordered() bool {
	var locks []int
	for i := range r.made.Schedule.Operations {
		if o := &r.made.Schedule.Operations[i]; o.Op == event.OpMutexLock && o.Part == event.WholePart {
			locks = append(locks, o.Thread)
		}
	}
	if len(locks) < 2 || locks[0] != 0 || locks[1] != 1 {
		return false
	}
	for i := range r.made.Schedule.Constraints {
		c := &r.made.Schedule.Constraints[i]
		if c.First.Thread == 1 && c.Second.Thread == 0 && r.input.Image.OwnsCode(uint64(c.First.PC)) && r.input.Image.OwnsCode(uint64(c.Second.PC)) {
			return true
		}
	}
	return false
}

func sliced(r *recorded, m slice.Mode) (*slice.Slice, [][]string) {
	o := slice.DefaultOptions()
	o.Mode = m
	s := slice.Make(r.input, o)
	texts := make([][]string, len(r.trace.Threads))
	for i := range texts {
		for _, c := range s.Constraints(i) {
			texts[i] = append(texts[i], c.Kind.String()+" "+c.Expr().String())
		}
	}
	return s, texts
}

// The slice of figure 4: of the first thread L3, twice L4, and L7; nothing of L12 in either
// thread. In addition, divisions must not trap, which the paper does not say.
func TestFigure4(t *testing.T) {
	r := figure4(t)
	const threads, size, add = "atoi(argv[1])", "atoi(argv[2])", "atoi(argv[3])"
	reach := []string{
		"branch " + threads + " ≤ " + size, "branch 0 < " + threads, "branch 1 < " + threads, "branch " + threads + " < 3",
	}
	all := slices.Concat(reach, []string{"branch " + add + " ≠ 1"})
	for mode, want := range map[slice.Mode][]string{slice.Simplified: all, slice.Lower: reach, slice.TERN: reach} {
		s, texts := sliced(r, mode)
		for thread, list := range texts {
			list = slices.DeleteFunc(list, func(text string) bool { return strings.HasPrefix(text, "division") })
			if thread == 0 && !slices.Equal(list, want) || thread > 0 && len(list) > 0 {
				t.Errorf("%s, thread %d: %q, want %q", slice.Modes()[mode], thread, list, want)
			}
		}
		t.Logf("%s: %+v", slice.Modes()[mode], s.Stats)
	}
	if s, _ := sliced(r, slice.Upper); s.Stats.KeptConstraints != s.Stats.Constraints || s.Stats.Constraints < 20 {
		t.Errorf("everything: %+v", s.Stats)
	}
}
