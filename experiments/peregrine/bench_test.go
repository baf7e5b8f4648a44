package peregrine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched"
)

// BenchmarkRaceyHybrid is the time to make racey's hybrid schedule at the size of
// configs/peregrine/determinism.yaml, about that of PEREGRINE's table 2, of a
// stored trace.
func BenchmarkRaceyHybrid(b *testing.B) {
	p, err := suite.Find("racey")
	if err != nil {
		b.Fatal(err)
	}
	bin, err := p.Build(suite.Variant{Form: suite.Buggy, Optimize: 2, Debug: true})
	if err != nil {
		b.Fatal(err)
	}
	file, err := os.Create(filepath.Join(b.TempDir(), "trace"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	c := config(append([]string{bin}, p.CommandLine("-p 8 -i 13600", 8)...)...)
	c.Cores, c.Seed, c.Sched = 8, 1, sched.Options{Quantum: 8000}
	c.Control, c.Record = peregrine.ControlConfig(), peregrine.RecordConfig(file)
	if _, err := machine.Run(b.Context(), c); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m, err := peregrine.Make(b.Context(), file.Name(), peregrine.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(m.Counts.Races), "races")
		b.ReportMetric(float64(m.Counts.Subsumed), "constraints")
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s-making")
}
