package suite

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// TestEnginesAgree runs the programs in both forms on both engines, up to a limit of instructions: the runs have equal
// digests, instructions, schedules and events.
func TestEnginesAgree(t *testing.T) {
	for _, form := range []Form{Fixed, Buggy} {
		t.Run(string(form), func(t *testing.T) {
			each(t, form, func(t *testing.T, p Program) {
				if testsize.Pick(turn(p)%12 != 0, !slices.Contains(quick, p.Name), false) {
					t.Skip("not in the sample")
				}
				const threads = 4
				program := build(t, p, Variant{Form: form, Optimize: 2})
				words := append([]string{program}, p.CommandLine(p.Arguments.Test, threads)...)
				for _, m := range testsize.Sample(kernelMachines(threads), 1, turn(p)) {
					slots <- struct{}{}
					c := machine.DefaultConfig()
					c.Args, c.Dir, c.MaxMemory = words, "/", 1<<30
					c.Cores, c.Seed, c.Sched, c.MaxInstructions = m.cores, m.seed, m.sched, testsize.Pick[uint64](1_000_000, 2_000_000, 100_000_000)
					machinetest.ExpectEqualRuns(t, c)
					<-slots
				}
			})
		})
	}
}
