package conformance

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched"
)

// otherMemory are the programs that end with other memory on Unicorn than on the direct engine: the table of
// docs/engine-differences.md has them, with the instructions.
var otherMemory = []string{"fault_x87", "float_modes", "sig_fp_state"}

// TestEnginesAgree runs the programs on both engines: the runs have equal digests, instructions, schedules
// and events.
func TestEnginesAgree(t *testing.T) {
	table, err := os.ReadFile("../../../docs/engine-differences.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range otherMemory {
		if !strings.Contains(string(table), "\n| `"+name+"` |") {
			t.Errorf("docs/engine-differences.md has no line on %s", name)
		}
	}
	forms(t, func(t *testing.T, turn int, p Program, program string) {
		switch {
		case p.NativeOnly != "":
			t.Skipf("the engine: %s", p.NativeOnly)
		case p.CPU != arch.V2:
			t.Skipf("Unicorn has no processor of level %v", p.CPU)
		case turn/2%testsize.Pick(32, 12, 1) != 0:
			t.Skip("not in the sample")
		}
		slots <- struct{}{}
		defer func() { <-slots }()
		list := machines(turn)
		for _, m := range testsize.Sample(list, 1, turn/2) {
			c := machine.DefaultConfig()
			c.Args, c.Dir = []string{program}, folder(t, p)
			c.Cores, c.Seed, c.Sched = m.cores, m.seed, sched.Options{Policy: m.policy}
			if p.Root {
				c.UID, c.GID = 0, 0
			}
			if slices.Contains(otherMemory, p.Name) {
				machinetest.ExpectEqualRunsButMemory(t, c)
			} else {
				machinetest.ExpectEqualRuns(t, c)
			}
		}
	})
}
