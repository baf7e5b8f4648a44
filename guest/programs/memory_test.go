package programs

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/sched"
)

// eachMemory runs a parallel subtest for every program whose buggy form fails
// under weak memory models only.
func eachMemory(t *testing.T, f func(t *testing.T, p Program)) {
	each(t, Buggy, func(t *testing.T, p Program) {
		if p.Kind == Memory {
			f(t, p)
		}
	})
}

// TestMemoryProgramsUnderSC runs the buggy forms under sequential consistency,
// where they are right in every interleaving.
func TestMemoryProgramsUnderSC(t *testing.T) {
	eachMemory(t, func(t *testing.T, p Program) {
		command := append([]string{build(t, p, Variant{Form: Buggy, Optimize: 2, Static: true})}, p.CommandLine(p.Trigger(), 2)...)
		for _, o := range []sched.Options{
			{Policy: sched.Timed},
			{Policy: sched.Timed, Quantum: 50},
			{Policy: sched.Random, Quantum: 20},
			{Policy: sched.Random, Granularity: sched.Instruction},
			{Policy: sched.PCT, Length: 100_000},
		} {
			for seed := uint64(1); seed <= 3; seed++ {
				m := machine{cores: 4, seed: seed, sched: o}
				r, h := emulate(t, m, command...)
				if got := emulated(r, h, ""); got != Correct {
					t.Errorf("on %v: %s, %v", m, got, r)
				}
			}
		}
	})
}

// TestMemoryProgramsNatively runs the buggy forms on the host, whose processor
// keeps the order of stores: those that fail under PSO alone must be right.
func TestMemoryProgramsNatively(t *testing.T) {
	eachMemory(t, func(t *testing.T, p Program) {
		bin := build(t, p, Variant{Form: Buggy, Optimize: 2})
		for range 5 {
			r := run(t, timeLimit, nil, append([]string{bin}, p.CommandLine(p.Trigger(), 4)...)...)
			got := r.outcome("")
			if got != Correct && (!slices.Contains(p.Models, TSO) || !p.expects(got)) {
				t.Errorf("%s, %v", got, r)
			}
		}
	})
}
