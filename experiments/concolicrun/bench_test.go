package concolicrun_test

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	sym "github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// BenchmarkConcolic executes gawk with one symbol, and with none for comparison. Its
// instructions per second include the machine's time.
func BenchmarkConcolic(b *testing.B) {
	for name, choose := range map[string]func(*event.Input) bool{
		"none": func(*event.Input) bool { return false },
		"args": arguments,
	} {
		b.Run(name, func(b *testing.B) {
			instructions := uint64(0)
			for b.Loop() {
				c := machine.DefaultConfig()
				c.Args = []string{"gawk", "BEGIN { for (i = 0; i < 300; i++) s += i * ARGV[1]; print s }", "12"}
				c.Dir, c.Stdout, c.Stderr, c.Stdin = b.TempDir(), io.Discard, io.Discard, bytes.NewReader(nil)
				r := concolicrun.New(concolicrun.Options{Args: c.Args, Env: c.Env, Choose: choose})
				c.Record = &machine.Record{To: io.Discard}
				if _, err := machine.Run(context.Background(), c, machine.WithRecordings(r)); err != nil {
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

// table4 are the programs of PEREGRINE's table 4 that have stand-ins, with thousands of
// LLVM instructions in a trace and seconds of symbolic execution. The arguments give traces
// of about those lengths, as far as possible: an empty program executes 130,000
// instructions here, most of them the dynamic linker's.
var table4 = []struct {
	line            string
	trace, symbolic float64
}{
	{"compressor -p 4 -n 2 -b 1", 2227, 19.7},
	{"downloader -p 2 -n 1", 233, 13.2},
	{"scanner -p 4 -n 12 -k 16", 46602, 1136.6},
	{"barnes -p 2 -n 16", 324, 56.9},
	{"fft -p 4 -m 12", 39, 0.4},
	{"lu-contig -p 4 -n 240", 44799, 1126.7},
	{"lu-non-contig -p 4 -n 224", 41302, 1201.0},
	{"radix -p 4 -n 16384", 3110, 182.9},
	{"water-spatial -p 4 -n 64 -t 5", 7508, 120.6},
	{"water-nsquared -p 4 -n 125 -t 3", 12381, 215.7},
	{"ocean -p 4 -m 6 -t 5", 55247, 2062.1},
	{"fmm -p 4 -n 352", 13772, 151.3},
	{"cholesky -p 4 -g 64", 47200, 685.5},
	{"blackscholes -p 4 -n 4096 -r 34", 62024, 3284.8},
	{"swaptions -p 4 -n 4 -t 80", 1366, 1.2},
	{"streamcluster -p 2 -n 32 -c 32 -d 4 -k 2 -l 6", 259, 4.9},
}

// BenchmarkTable4 executes PEREGRINE's programs with all inputs as symbols, and keeps the
// data that slicing needs. It reports microseconds of processor time an instruction, with
// the machine's, and the ratio to the paper's, with the number of programs for which the
// ratio is below fifty. HEDDLE_ONLY names one program.
func BenchmarkTable4(b *testing.B) {
	var instructions uint64
	var seconds, logs, below float64
	var ratios []float64
	only := os.Getenv("HEDDLE_ONLY")
	for _, row := range table4 {
		if only != "" && !strings.HasPrefix(row.line, only+" ") {
			continue
		}
		r, s := symbolicTime(b, row.line)
		n := r.Executor.Stats.Instructions
		r.Close()
		ratio := row.symbolic / row.trace / 1e3 / (s / float64(n))
		b.Logf("%s: %.0f thousand instructions, the paper %.0f, %.3f us each, %.1f times", row.line, float64(n)/1e3, row.trace,
			s/float64(n)*1e6, ratio)
		instructions += n
		seconds += s
		logs += math.Log(ratio)
		ratios = append(ratios, ratio)
		if ratio < 50 {
			below++
		}
	}
	b.ReportMetric(seconds/float64(instructions)*1e6, "us/instr")
	b.ReportMetric(math.Exp(logs/float64(len(ratios))), "times(mean)")
	b.ReportMetric(slices.Min(ratios), "times(least)")
	b.ReportMetric(below, "below50")
}

// BenchmarkLongTrace measures the memory for a trace of over 60 million instructions,
// nearly all of which touch symbols.
func BenchmarkLongTrace(b *testing.B) {
	for b.Loop() {
		runtime.GC()
		r, s := symbolicTime(b, "swaptions -p 4 -n 16 -t 820")
		n := float64(r.Executor.Stats.Instructions)
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(n/1e6, "Minstr")
		b.ReportMetric(s/n*1e6, "us/instr")
		b.ReportMetric(100*float64(r.Executor.Stats.Symbolic)/n, "%symbolic")
		b.ReportMetric(float64(m.Sys)/(1<<30), "GiB")
		r.Close()
	}
}

// symbolicTime executes a program concolically and returns the seconds of processor time,
// too.
func symbolicTime(b *testing.B, line string) (*concolicrun.Recording, float64) {
	b.Helper()
	words := strings.Fields(line)
	p, err := suite.Find(words[0])
	if err != nil {
		b.Fatal(err)
	}
	bin, err := p.Build(suite.Variant{Form: suite.Fixed, Optimize: 2})
	if err != nil {
		b.Fatal(err)
	}
	c := machine.DefaultConfig()
	c.Args, c.Dir = append([]string{bin}, words[1:]...), b.TempDir()
	c.Stdout, c.Stderr, c.Stdin = io.Discard, io.Discard, bytes.NewReader(nil)
	mine := func(e *event.Input) bool {
		return e.Source != event.InputEnv && !strings.Contains(e.Name, ".so") && (e.Source != event.InputArgs || e.Offset > 0)
	}
	r := concolicrun.New(concolicrun.Options{Args: c.Args, Env: c.Env, Choose: mine, Summaries: sym.DefaultSummaries(), Path: true})
	c.Record = &machine.Record{To: io.Discard}
	before := processorTime(b)
	result, err := machine.Run(context.Background(), c, machine.WithRecordings(r))
	after := processorTime(b)
	if err != nil || result.ExitCode != 0 {
		b.Fatalf("%s: %+v, %v", line, result, err)
	}
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
