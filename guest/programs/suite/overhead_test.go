package suite

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched"
)

var overheadSize = flag.String("overhead-size", "test", "size of the programs in the table of overheads: test or small")

// overheadPrograms are kernels and tools with little synchronization up to almost
// nothing else.
var overheadPrograms = []string{
	"blackscholes", "swaptions", "fft", "lu-contig", "radix", "ocean", "barnes", "water-spatial", "water-nsquared",
	"streamcluster", "compressor", "scanner",
}

// overheadOptions measure time to 1000 cycles, without noise.
func overheadOptions(policy string) sched.Options {
	none := 0.0
	o := sched.Options{Policy: policy, Jitter: &none, Quantum: 1000}
	if policy == sched.CoreDet {
		o.Quantum = 0 // the default
	}
	return o
}

// overheads are makespans by policy over that under timed.
func overheads(t *testing.T, p Program, arguments string, policies []string) (ratios []float64, timed uint64) {
	t.Helper()
	command := append([]string{build(t, p, Variant{Form: Fixed, Optimize: 2})}, p.CommandLine(arguments, 4)...)
	for _, policy := range append([]string{sched.Timed}, policies...) {
		r, h := emulate(t, machineSetup{cores: 4, seed: 1, sched: overheadOptions(policy), limit: 20 * instructionLimit}, command...)
		if got := emulated(r, h, ""); got != Correct {
			t.Fatalf("%s: %s, %v", policy, got, r)
		}
		if policy == sched.Timed {
			timed = h.Cycles
			continue
		}
		ratios = append(ratios, float64(h.Cycles)/float64(timed))
	}
	return ratios, timed
}

// TestOverheads logs a table of virtual makespans, and checks two properties: with an
// enforced order of operations a run takes at least as long as without, up to the effect
// of another order of the same work; and where threads do little but synchronize,
// waiting at each atomic instruction for the end of all threads' quanta (CoreDet) takes longer than
// waiting for their logical clocks (Kendo).
func TestOverheads(t *testing.T) {
	testsize.SkipQuick(t)
	policies := []string{sched.FCFSSync, sched.RRSync, sched.Kendo, sched.CoreDet}
	var table strings.Builder
	for _, name := range overheadPrograms {
		p, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		arguments := p.Arguments.Test
		if *overheadSize == "small" {
			arguments = p.Arguments.Small
		}
		ratios, timed := overheads(t, p, arguments, policies)
		fmt.Fprintf(&table, "| %s | %.1f |", name, float64(timed)/1e6)
		for i, r := range ratios {
			fmt.Fprintf(&table, " %.2f |", r)
			if r < 0.95 {
				t.Errorf("%s under %s takes %.2f of its time under timed", name, policies[i], r)
			}
		}
		table.WriteString("\n")
		if name == "streamcluster" && ratios[3] <= ratios[2] {
			t.Errorf("%s takes %.2f under coredet, and %.2f under kendo", name, ratios[3], ratios[2])
		}
	}
	t.Logf("\n%s", table.String())
}
