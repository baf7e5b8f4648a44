package h3

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/sched"
)

// measured is a program of H3's table 4, with a seed under which it fails and the
// seconds of its table 2 for the symbolic trace; 0: it is not there.
type measured struct {
	paper, program, args string
	sched                sched.Options
	right                bool
	seed                 uint64
	// instructions end a run that does not end by itself; 0: maxInstructions do.
	instructions uint64
	symbolic     float64
}

var measuredPrograms = []measured{
	{paper: "bbuf", program: "bounded-buffer", args: "-p 5 -n 20", seed: 1, symbolic: 5.5},
	{paper: "sbuf", program: "string-buffer", args: "-p 2 -r 30", sched: sched.Options{Policy: sched.Random, Quantum: 200}, seed: 1, symbolic: 1.6},
	{paper: "pfscan", program: "scanner", args: "-p 2 -n 8 -k 1", sched: sched.Options{Policy: sched.PCT, Depth: 3, Length: 400_000}, seed: 1, instructions: 2_100_000, symbolic: 2.5},
	{paper: "pbzip2", program: "compressor", args: "-p 1 -n 1 -b 1", sched: sched.Options{Policy: sched.PCT, Depth: 3, Length: 1_400_000}, seed: 2, symbolic: 8.7},
	{paper: "racey1", program: "racey", args: "-p 4 -i 500", right: true, seed: 1, symbolic: 107},
	{paper: "racey2", program: "racey", args: "-p 4 -i 1000", right: true, seed: 1},
	{paper: "racey3", program: "racey", args: "-p 4 -i 1500", right: true, seed: 1},
}

// failing records the failing run of a program, and returns the right output, if another one is the
// failure.
func (m *measured) failing(b testing.TB) (file string, right []byte) {
	b.Helper()
	p, err := suite.Find(m.program)
	if err != nil {
		b.Fatal(err)
	}
	bin, err := p.Build(suite.Variant{Form: suite.Buggy, Optimize: 2, Static: true, Debug: true})
	if err != nil {
		b.Fatal(err)
	}
	c := machine.DefaultConfig()
	c.Args, c.Dir = append([]string{bin}, strings.Fields(m.args)...), "/"
	if m.right {
		serial := c
		var out bytes.Buffer
		serial.Cores, serial.Sched, serial.Stdout = 1, sched.Options{Policy: sched.RR}, &out
		if _, err := machine.Run(b.Context(), serial); err != nil {
			b.Fatal(err)
		}
		right = out.Bytes()
	}
	file = filepath.Join(b.TempDir(), "failing.trace")
	to, err := os.Create(file)
	if err != nil {
		b.Fatal(err)
	}
	defer to.Close()
	var out bytes.Buffer
	c.Sched, c.Seed, c.MaxInstructions, c.Stdout = m.sched, m.seed, cmp.Or(m.instructions, maxInstructions), &out
	c.Record = &machine.Record{To: to, PT: &pt.Config{PSBPeriod: 4096, RetCompression: true}}
	r, err := machine.Run(b.Context(), c)
	if err != nil {
		b.Fatal(err)
	}
	if _, failed := r.Failure(nil); !failed && (right == nil || bytes.Equal(right, out.Bytes())) {
		b.Fatalf("seed %d does not fail", m.seed)
	}
	return file, right
}

// BenchmarkReproduce measures seconds until there is a schedule, those of the symbolic trace in
// ratio to H3's table 2, and bits of branch trace an instruction.
func BenchmarkReproduce(b *testing.B) {
	for i := range measuredPrograms {
		m := &measuredPrograms[i]
		b.Run(m.paper, func(b *testing.B) {
			file, right := m.failing(b)
			r, err := Open(b.Context(), file)
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			solved, traced := time.Hour, time.Hour
			for b.Loop() {
				out, err := r.Reproduce(b.Context(), Options{Now: time.Now, Stdout: right})
				if err != nil || !out.Verified {
					b.Fatalf("%v, %+v", err, out)
				}
				solved, traced = min(solved, out.Solved), min(traced, out.Traced)
			}
			size, err := r.Size()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(solved.Seconds(), "s")
			b.ReportMetric(float64(8*size.Bytes)/float64(size.Instructions), "bits/instruction")
			if m.symbolic > 0 {
				b.ReportMetric(m.symbolic/traced.Seconds(), "times")
			}
		})
	}
}

// BenchmarkZ3 is the solver's time on the formulas of CLAP and H3.
func BenchmarkZ3(b *testing.B) {
	for i := range measuredPrograms {
		m := &measuredPrograms[i]
		for _, e := range []constraints.Encoding{constraints.CLAP{}, constraints.Cores{}} {
			b.Run(m.paper+"/"+e.Name(), func(b *testing.B) {
				file, right := m.failing(b)
				r, err := Open(b.Context(), file)
				if err != nil {
					b.Fatal(err)
				}
				defer r.Close()
				least := time.Hour
				for b.Loop() {
					out, err := r.Reproduce(b.Context(), Options{Now: time.Now, Stdout: right, Encoding: e.Name()})
					if err != nil || !out.Verified {
						b.Fatalf("%v, %+v", err, out)
					}
					least = min(least, out.Solved)
				}
				b.ReportMetric(least.Seconds(), "s")
			})
		}
	}
}
