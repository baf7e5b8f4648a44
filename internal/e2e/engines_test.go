package e2e

import (
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched"
)

// TestEnginesAgree runs Debian's programs, and those of testdata, on both engines: the runs have equal digests,
// instructions, schedules and events.
func TestEnginesAgree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	realInputs(t, dir)
	policies := []string{sched.Timed, sched.Random, sched.PCT, sched.RR}
	type program struct {
		name    string
		command []string
	}
	var list []program
	for _, command := range [][]string{{"racy"}, {"deadlock", "order"}, {"pairs", "20", "pairs.out"}, {"hello"}, {"wild"}} {
		list = append(list, program{command[0], append([]string{compile(t, command[0])}, command[1:]...)})
	}
	for _, p := range real {
		list = append(list, program{p.name, p.command})
	}
	t.Run("programs", func(t *testing.T) {
		for i, p := range testsize.Sample(list, testsize.Pick(2, 6, 0), 1) {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				for n, cores := range testsize.Sample([]int{1, 4, 8}, 1, i) {
					c := machine.DefaultConfig()
					c.Args, c.Dir = p.command, dir
					c.Cores, c.Seed, c.MaxInstructions = cores, uint64(i), testsize.Pick[uint64](3_000_000, 10_000_000, 2_000_000_000)
					c.Sched.Policy = policies[(i+n)%len(policies)]
					machinetest.ExpectEqualRuns(t, c)
				}
			})
		}
	})
}
