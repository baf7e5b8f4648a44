package reproduce

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/reproduce/constraints"
	"github.com/heddle-dmt/heddle/guest/programs"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/sched"
)

// measured is a program of H3's table 4, with the seconds of its table 2 for the
// symbolic trace; 0: it is not there.
type measured struct {
	paper, program, args string
	sched                sched.Options
	right                bool
	symbolic             float64
}

var measuredPrograms = []measured{
	{paper: "bbuf", program: "bounded-buffer", args: "-p 5 -n 20", symbolic: 5.5},
	{paper: "sbuf", program: "string-buffer", args: "-p 2 -r 30", sched: sched.Options{Policy: sched.Random, Quantum: 200}, symbolic: 1.6},
	{paper: "racey1", program: "racey", args: "-p 4 -i 500", right: true, symbolic: 107},
	{paper: "racey2", program: "racey", args: "-p 4 -i 1000", right: true},
	{paper: "racey3", program: "racey", args: "-p 4 -i 1500", right: true},
}

// failing records the first failing run of a program, and returns what the right output
// is, if another one is the failure.
func (m *measured) failing(b *testing.B) (file string, right []byte) {
	b.Helper()
	p, err := programs.Find(m.program)
	if err != nil {
		b.Fatal(err)
	}
	bin, err := p.Build(programs.Variant{Form: programs.Buggy, Optimize: 2, Static: true, Debug: true})
	if err != nil {
		b.Fatal(err)
	}
	c := heddle.DefaultConfig()
	c.Args, c.Dir = append([]string{bin}, strings.Fields(m.args)...), "/"
	if m.right {
		serial := c
		var out bytes.Buffer
		serial.Cores, serial.Sched, serial.Stdout = 1, sched.Options{Policy: sched.RR}, &out
		if _, err := heddle.Run(b.Context(), serial); err != nil {
			b.Fatal(err)
		}
		right = out.Bytes()
	}
	c.Sched = m.sched
	for c.Seed = 1; c.Seed <= 100; c.Seed++ {
		var out, trace bytes.Buffer
		c.Stdout, c.Record = &out, &heddle.Record{To: &trace, PT: &pt.Config{PSBPeriod: 4096, RetCompression: true}}
		r, err := heddle.Run(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		if _, failed := r.Failure(nil); failed || right != nil && !bytes.Equal(right, out.Bytes()) {
			file = filepath.Join(b.TempDir(), "failing.trace")
			if err := os.WriteFile(file, trace.Bytes(), 0o600); err != nil {
				b.Fatal(err)
			}
			return file, right
		}
	}
	b.Fatal("no seed up to 100 fails")
	return "", nil
}

// BenchmarkReproduce is what issue 9 bounds: seconds until there is a schedule, those of
// the symbolic trace in ratio to H3's table 2, and bits of branch trace an
// instruction.
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
	for i := range measuredPrograms[:2] {
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
