package follow_test

import (
	"bytes"
	"context"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle"
	sym "github.com/heddle-dmt/heddle/analyses/symbolic/exec"
	"github.com/heddle-dmt/heddle/experiments/follow"
	"github.com/heddle-dmt/heddle/guest/programs"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// BenchmarkFollow follows gawk with one symbol, and with none for comparison.
// Instructions of the run per second include the machine's.
func BenchmarkFollow(b *testing.B) {
	for name, choose := range map[string]func(*event.Input) bool{
		"none": func(*event.Input) bool { return false },
		"args": arguments,
	} {
		b.Run(name, func(b *testing.B) {
			instructions := uint64(0)
			for b.Loop() {
				c := heddle.DefaultConfig()
				c.Args = []string{"gawk", "BEGIN { for (i = 0; i < 300; i++) s += i * ARGV[1]; print s }", "12"}
				c.Dir, c.Stdout, c.Stderr, c.Stdin = b.TempDir(), io.Discard, io.Discard, bytes.NewReader(nil)
				r := follow.New(follow.Options{Args: c.Args, Env: c.Env, Choose: choose})
				c.Record = &heddle.Record{To: io.Discard, Watch: []recorder.Recording{r}}
				if _, err := heddle.Run(context.Background(), c); err != nil {
					b.Fatal(err)
				}
				if r.Err() != nil {
					b.Fatal(r.Err())
				}
				instructions += r.Executor.Stats.Instructions
				r.Close()
			}
			b.ReportMetric(float64(instructions)/b.Elapsed().Seconds()/1e6, "Minstr/s")
		})
	}
}

// table4 are the programs of PEREGRINE's table 4 that have stand-ins, with thousands
// of instructions of LLVM's in a trace and seconds of symbolic execution.
var table4 = []struct {
	name            string
	trace, symbolic float64
}{
	{"compressor", 2227, 19.7},
	{"downloader", 233, 13.2},
	{"scanner", 46602, 1136.6},
	{"barnes", 324, 56.9},
	{"fft", 39, 0.4},
	{"lu-contig", 44799, 1126.7},
	{"lu-non-contig", 41302, 1201.0},
	{"radix", 3110, 182.9},
	{"water-spatial", 7508, 120.6},
	{"water-nsquared", 12381, 215.7},
	{"ocean", 55247, 2062.1},
	{"fmm", 13772, 151.3},
	{"cholesky", 47200, 685.5},
	{"blackscholes", 62024, 3284.8},
	{"swaptions", 1366, 1.2},
	{"streamcluster", 259, 4.9},
}

// BenchmarkTable4 follows PEREGRINE's programs with all inputs as symbols, and
// keeps what a slice needs: in microseconds of processor time an instruction, the
// machine included, and in ratio to the paper's.
func BenchmarkTable4(b *testing.B) {
	var instructions uint64
	var seconds, logs float64
	var ratios []float64
	for b.Loop() {
		for _, row := range table4 {
			r, s := symbolicTime(b, row.name)
			n := r.Executor.Stats.Instructions
			r.Close()
			ratio := row.symbolic / row.trace / 1e3 / (s / float64(n))
			b.Logf("%s: %d instructions, %.2f us each, %.0f times", row.name, n, s/float64(n)*1e6, ratio)
			instructions += n
			seconds += s
			logs += math.Log(ratio)
			ratios = append(ratios, ratio)
		}
	}
	slices.Sort(ratios)
	b.ReportMetric(seconds/float64(instructions)*1e6, "us/instr")
	b.ReportMetric(math.Exp(logs/float64(len(ratios))), "times(mean)")
	b.ReportMetric(ratios[0], "times(least)")
}

// BenchmarkLongTrace is the memory that a trace of over 50 million instructions
// takes, nearly all of which touch symbols: an fft of 65536 points.
func BenchmarkLongTrace(b *testing.B) {
	for b.Loop() {
		runtime.GC()
		r, s := symbolicTime(b, "fft", "-p", "4", "-m", "16")
		n := float64(r.Executor.Stats.Instructions)
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(n/1e6, "Minstr")
		b.ReportMetric(s/n*1e6, "us/instr")
		b.ReportMetric(float64(m.Sys)/(1<<30), "GiB")
		r.Close()
	}
}

// symbolicTime follows a program, with its usual arguments if there are none, and
// returns the seconds of processor time besides.
func symbolicTime(b *testing.B, name string, arguments ...string) (*follow.Recording, float64) {
	b.Helper()
	p, err := programs.Find(name)
	if err != nil {
		b.Fatal(err)
	}
	form := programs.Fixed
	if p.Has(programs.Buggy) {
		form = programs.Buggy
	}
	bin, err := p.Build(programs.Variant{Form: form, Optimize: 2})
	if err != nil {
		b.Fatal(err)
	}
	if arguments == nil {
		arguments = p.CommandLine(p.Trigger(), 4)
	}
	c := heddle.DefaultConfig()
	c.Args, c.Dir = append([]string{bin}, arguments...), b.TempDir()
	c.Stdout, c.Stderr, c.Stdin = io.Discard, io.Discard, bytes.NewReader(nil)
	mine := func(e *event.Input) bool {
		return e.Source != event.InputEnv && !strings.Contains(e.Name, ".so") && (e.Source != event.InputArgs || e.Offset > 0)
	}
	r := follow.New(follow.Options{Args: c.Args, Env: c.Env, Choose: mine, Summaries: sym.DefaultSummaries(), Path: true})
	c.Record = &heddle.Record{To: io.Discard, Watch: []recorder.Recording{r}}
	before := processorTime(b)
	if _, err := heddle.Run(context.Background(), c); err != nil {
		b.Fatal(err)
	}
	after := processorTime(b)
	if r.Err() != nil {
		b.Fatal(r.Err())
	}
	return r, after - before
}

func processorTime(b *testing.B) float64 {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
