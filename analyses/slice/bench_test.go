package slice_test

import (
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/slice"
)

// table4 are programs of PEREGRINE's table 4 that have stand-ins: thousands of LLVM
// instructions in a trace, and seconds of slicing and of simplification with alias
// analysis. The arguments give traces of about those lengths, except for ocean and
// lu-non-contig, which would take minutes: theirs have 2 and 8 million instructions.
var table4 = []struct {
	line                     string
	trace, slicing, simplify float64
}{
	{"compressor -p 2 -n 2 -b 1", 2227, 587.9, 317.8},
	{"ocean -p 8 -m 4 -t 1", 55247, 2259.3, 5902.8},
	{"barnes -p 2 -n 16", 324, 300.5, 481.5},
	{"fft -p 2 -m 10", 39, 2.1, 3661.7},
	{"lu-contig -p 2 -n 240", 44799, 1271.5, 124.9},
	{"lu-non-contig -p 2 -n 128", 41302, 1999.8, 14243.8},
	{"radix -p 2 -n 16384", 3110, 46.2, 96.4},
	{"water-nsquared -p 2 -n 125 -t 3", 12381, 962.3, 1841.4},
	{"blackscholes -p 2 -n 4096 -r 34", 62024, 539.9, 542.9},
	{"swaptions -p 2 -n 4 -t 80", 1366, 23.2, 87.3},
	{"streamcluster -p 2 -n 32 -c 32 -d 4 -k 2 -l 6", 259, 1.4, 1.9},
}

// BenchmarkTable4 compares the processor time of slicing, and of simplification with alias
// analysis, with the paper's, both per thousand instructions of a trace: geometric means,
// and the least. HEDDLE_ONLY names one program.
func BenchmarkTable4(b *testing.B) {
	var slicing, simplifying []float64
	most, only := 0.0, os.Getenv("HEDDLE_ONLY")
	for _, p := range table4 {
		f := strings.Fields(p.line)
		if only != "" && only != f[0] {
			continue
		}
		st := stand{f[0], f[1:]}
		r := st.record(b)
		before := memory()
		begin := processor(b)
		prepared := slice.Prepare(r.input, slice.DefaultOptions())
		middle := processor(b)
		s := prepared.Slice()
		end := processor(b)
		thousand := float64(s.Stats.Instructions) / 1000
		slicing = append(slicing, p.slicing/p.trace/((end-middle).Seconds()/thousand))
		simplifying = append(simplifying, p.simplify/p.trace/((middle-begin).Seconds()/thousand))
		most = max(most, (memory()-before)/float64(s.Stats.Instructions))
		b.Logf("%s: %.0f thousand instructions, slicing %v, simplification %v: %.0f and %.0f times as fast", p.line, thousand,
			end-middle, middle-begin, slicing[len(slicing)-1], simplifying[len(simplifying)-1])
		runtime.KeepAlive(s)
	}
	report(b, "slicing", slicing)
	report(b, "simplification", simplifying)
	b.ReportMetric(most, "B/instr")
}

// processor is the processor time of the process so far, with the garbage collector's.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memory is the number of bytes in use.
func memory() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func report(b *testing.B, what string, times []float64) {
	sum, least := 0.0, math.Inf(1)
	for _, x := range times {
		sum += math.Log(x)
		least = min(least, x)
	}
	b.ReportMetric(math.Exp(sum/float64(len(times))), what+"(mean)")
	b.ReportMetric(least, what+"(least)")
}
