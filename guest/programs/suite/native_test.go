package suite

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/internal/testsize"
)

// threadCounts are the numbers of threads that every program is run with.
var threadCounts = []int{1, 2, 4, 8, 16}

// variantsOf is the number of variants, of eight, in which a sampled program is built.
const variantsOf = 3

// TestEveryVariantRuns builds each form in several of the eight variants, in rotation, and runs
// the fixed ones, whose output must not depend on the variant.
func TestEveryVariantRuns(t *testing.T) {
	each(t, Fixed, func(t *testing.T, p Program) {
		want := ""
		for _, v := range testsize.Sample(Variants(Fixed), variantsOf, turn(p)) {
			r := run(t, timeLimit, nil, append([]string{build(t, p, v)}, p.CommandLine(p.Arguments.Test, 4)...)...)
			if r.status != 0 || r.timedOut || r.stderr != "" || r.stdout == "" {
				t.Fatalf("%s: %v", v.label(), r)
			}
			if want == "" {
				want = r.stdout
			}
			if p.Output != Varies && r.stdout != want {
				t.Errorf("%s prints %q, others %q", v.label(), r.stdout, want)
			}
		}
		if p.Has(Buggy) {
			for _, v := range testsize.Sample(Variants(Buggy), variantsOf, turn(p)+1) {
				build(t, p, v)
			}
		}
	})
}

// TestThreadCounts runs the fixed forms with 1 to 16 threads; each checks its
// own result.
func TestThreadCounts(t *testing.T) {
	each(t, Fixed, func(t *testing.T, p Program) {
		bin := build(t, p, Variant{Form: Fixed, Optimize: 2})
		want := ""
		for _, threads := range threadCounts {
			r := run(t, timeLimit, nil, append([]string{bin}, p.CommandLine(p.Arguments.Test, threads)...)...)
			if r.status != 0 || r.timedOut || r.stderr != "" {
				t.Fatalf("%d threads: %v", threads, r)
			}
			if want == "" {
				want = r.stdout
			}
			if p.Output == Same && r.stdout != want {
				t.Errorf("%d threads print %q, others %q", threads, r.stdout, want)
			}
		}
	})
}

func TestUsage(t *testing.T) {
	each(t, Fixed, func(t *testing.T, p Program) {
		bin := build(t, p, Variant{Form: Fixed, Optimize: 2})
		letter := "q"
		if words := strings.Fields(p.Arguments.Test); len(words) > 0 {
			letter = words[0][1:]
		}
		for _, args := range [][]string{
			{"-?"},
			{"--help"},
			{"operand"},
			{"-"},
			{"-" + letter},
			{"-" + letter, "x"},
			{"-" + letter, "4x"},
			{"-" + letter, "-1"},
			{"-" + letter, ""},
			{"-" + letter + "99999999999999999999"},
			{"-" + letter, "0x4"},
			{"-" + letter, " 4"},
		} {
			r := run(t, timeLimit, nil, append([]string{bin}, args...)...)
			if r.status != 2 || r.stdout != "" || !strings.HasPrefix(r.stderr, "usage: "+p.Name) ||
				strings.Index(r.stderr, "\n") != len(r.stderr)-1 {
				t.Errorf("%q: want a usage line and status 2, got %v", args, r)
			}
		}
	})
}

// nativeRuns is in how many native runs a bug has to show once: on a busy host ten were once not enough.
const nativeRuns = 50

// TestShowsWithDelays runs buggy forms that pause at the critical places; one
// of nativeRuns runs must fail in a way that program.yaml names, and none in another.
func TestShowsWithDelays(t *testing.T) {
	testsize.SkipQuick(t)
	eachBug(t, func(t *testing.T, p Program) {
		oneOfThree(t, p)
		bin := build(t, p, Variant{Form: Buggy, Optimize: 2, Delays: true})
		want := run(t, timeLimit, nil, append([]string{build(t, p, Variant{Form: Fixed, Optimize: 2})}, p.CommandLine(p.Trigger(), 4)...)...)
		for range nativeRuns {
			r := run(t, p.limit(), nil, append([]string{bin}, p.CommandLine(p.Trigger(), 4)...)...)
			got := r.outcome(want.stdout)
			if !p.expects(got) {
				t.Fatalf("the outcome is %s, of which program.yaml knows nothing: %v", got, r)
			}
			if got != Correct {
				return
			}
		}
		if len(p.Outcomes) > 1 {
			t.Errorf("the bug did not show in %d runs", nativeRuns)
		}
	})
}

// expects reports whether program.yaml names an outcome. A native run
// that does not end may be a deadlock or an endless loop.
func (p Program) expects(got Outcome) bool {
	for _, o := range p.Outcomes {
		if o == got || o == Deadlock && got == Hang {
			return true
		}
	}
	return false
}

// TestCompressorWithBzip2 exchanges files with the program bzip2.
func TestCompressorWithBzip2(t *testing.T) {
	p, err := Find("compressor")
	if err != nil {
		t.Fatal(err)
	}
	bin, dir := build(t, p, Variant{Form: Fixed, Optimize: 2}), t.TempDir()
	text := filepath.Join(dir, "text")
	var lines strings.Builder
	for i := range 30000 {
		fmt.Fprintf(&lines, "line %d\n", i*i)
	}
	for _, content := range []string{lines.String(), "", "x"} {
		if err := os.WriteFile(text, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		packed, again := filepath.Join(dir, "packed"), filepath.Join(dir, "again")
		for _, command := range [][]string{
			{bin, "-b", "50", "-i", text, "-o", packed},
			{"sh", "-c", "bzip2 -dc " + packed + " | cmp - " + text},
			{bin, "-d", "1", "-i", packed, "-o", again},
			{"cmp", again, text},
			{"sh", "-c", "bzip2 -c " + text + " > " + packed},
			{bin, "-d", "1", "-i", packed, "-o", again},
			{"cmp", again, text},
		} {
			if r := run(t, timeLimit, nil, command...); r.status != 0 {
				t.Errorf("%d bytes: %q: %v", len(content), command, r)
			}
		}
	}
	if r := run(t, timeLimit, nil, bin, "-d", "1", "-i", text, "-o", filepath.Join(dir, "out")); r.outcome("") != Wrong {
		t.Errorf("a file that is no bzip2 file: %v", r)
	}
}

// TestScannerCountsLikeGrep compares with the program grep on the suite's own
// sources.
func TestScannerCountsLikeGrep(t *testing.T) {
	p, err := Find("scanner")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, timeLimit, nil, build(t, p, Variant{Form: Fixed, Optimize: 2}), "-w", "return", "-d", folder)
	want := run(t, timeLimit, nil, "sh", "-c", "grep -rho return "+folder+" | wc -l; find "+folder+" -type f | wc -l")
	var matches, files int
	if _, err := fmt.Sscan(want.stdout, &matches, &files); err != nil {
		t.Fatal(err)
	}
	if got.stdout != fmt.Sprintf("scanner: %d matches in %d files, correct\n", matches, files) {
		t.Errorf("got %q, want %d matches in %d files", got.stdout, matches, files)
	}
}

// TestDownloaderApart runs server and client as two processes.
func TestDownloaderApart(t *testing.T) {
	p, err := Find("downloader")
	if err != nil {
		t.Fatal(err)
	}
	bin := build(t, p, Variant{Form: Fixed, Optimize: 2})
	script := bin + ` -r server > port & for i in $(seq 100); do [ -s port ] && break; sleep 0.05; done
read word port < port; ` + bin + ` -r client -P $port && wait`
	r := run(t, timeLimit, nil, "sh", "-c", script)
	if r.status != 0 || r.stdout != "downloader: 256000 bytes, correct\n" {
		t.Errorf("%v", r)
	}
}

// TestMeasureSizes times, with -update, every kernel and tool at its test and
// small sizes.
func TestMeasureSizes(t *testing.T) {
	if !*update {
		t.Skip("times are of the host; -update measures them")
	}
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Kind != Kernel && p.Kind != Tool && p.Kind != Stress {
			continue
		}
		bin := build(t, p, Variant{Form: Fixed, Optimize: 2})
		least := func(arguments string, runs int) float64 {
			took := time.Duration(math.MaxInt64)
			for range runs {
				took = min(took, run(t, timeLimit, nil, append([]string{bin}, p.CommandLine(arguments, 4)...)...).took)
			}
			return math.Round(took.Seconds()*1e4) / 10
		}
		s := sizes{Test: least(p.Arguments.Test, 5), Small: least(p.Arguments.Small, 3)}
		t.Logf("%s: %v", p.Name, s)
		updated(t, func(m *measured) { m.Sizes[p.Name] = s })
	}
}
