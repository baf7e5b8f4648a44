package frost_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/complementary"
	racereport "github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched"
)

// trials is how many seeds a test tries.
func trials(usual, long int) int { return testsize.Runs(max(1, usual/4), usual, long) }

// table2 are the first combinations of epochs with a bug, where they are the same as in the
// paper's table 2 for every seed.
var table2 = map[string]complementary.Combination{
	"compressor": "F-AA", "mysql-3596": "F-AB", "glibc-12486": "F-AA", "apache-25520": "A-BC", "scanner": "F-FA",
	"frost-figure-1a": "F-FA", "mysql-12848": "F-FA",
}

// TestOutcomes: bugs that show have the outcomes of table 2. Of epochs without a
// race nothing is said.
func TestOutcomes(t *testing.T) {
	for _, name := range sortedNames(table2) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, bin := find(t, name, suite.Buggy)
			e := exhibited(t, p)
			for seed := uint64(1); seed <= 8; seed++ {
				x := try(t, options(), schedule(t, e.Schedule), seed, e.command(bin)...)
				if slices.Contains(x.Combinations(), table2[name]) {
					return
				}
			}
			t.Errorf("no epoch has the combination %s", table2[name])
		})
	}
}

func sortedNames[V any](m map[string]V) (list []string) {
	for name := range m {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// TestFixedFormsDoNotDiverge: without a data race all replicas are alike.
func TestFixedFormsDoNotDiverge(t *testing.T) {
	for _, name := range append(slices.Clone(bugs), "frost-figure-1a", "frost-figure-1b", "frost-figure-3", "downloader") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, bin := find(t, name, suite.Fixed)
			for seed := 1; seed <= trials(2, 1000); seed++ {
				o := options()
				if seed%2 == 0 {
					o.Epoch = 0.02
				}
				o.CompareReads = seed%16 == 1
				x := try(t, o, schedule(t, p.Schedule), uint64(seed), command(p, bin)...)
				if x.Verdict != frost.Clean || x.Harmless > 0 || x.Result.ExitCode != 0 {
					t.Errorf("seed %d: %s", seed, x.text())
				}
			}
		})
	}
}

// TestPriorityInversion: in the order A, B, C of figure 3 both schedules have b
// before a1 and fail; with A and C next to each other one does not (section 3.4.2).
// The thread-parallel replica does not fail.
func TestPriorityInversion(t *testing.T) {
	p, bin := find(t, "frost-figure-3", suite.Buggy)
	for heuristic, want := range map[string]complementary.Combination{frost.Exact: "A-AF", frost.None: "A-FF"} {
		o := options()
		o.Heuristic = heuristic
		x := try(t, o, sched.Options{}, 1, command(p, bin)...)
		if got := x.Combinations(); len(got) == 0 || got[0] != want {
			t.Errorf("%s: %v, want %s first", heuristic, got, want)
		}
		if heuristic == frost.Exact && x.Verdict != frost.Survived {
			t.Errorf("%s", x.text())
		}
	}
}

// TestNameRaces: the instructions that race in the epoch are on lines that the
// program's description has for its races.
func TestNameRaces(t *testing.T) {
	for _, name := range []string{"mysql-644", "mysql-791", "scanner", "frost-figure-1a"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, bin := build(t, name, suite.Variant{Form: suite.Buggy, Optimize: 2, Static: true, Debug: true})
			e := exhibited(t, p)
			c := configuration(schedule(t, e.Schedule), 1, e.command(bin)...)
			r, err := frost.Run(t.Context(), c, options())
			if err != nil {
				t.Fatal(err)
			}
			named, err := frost.NameRaces(t.Context(), c, r)
			if err != nil {
				t.Fatal(err)
			}
			if (named != nil) != (r.Races+r.Harmless > 0) || named != nil && !names(p, named) {
				t.Errorf("%d epochs with a race; named: %+v", r.Races, named)
			}
			if r.Races == 0 {
				t.Errorf("no race: %s", trial{Report: r}.text())
			}
		})
	}
}

// TestNoOperations: a run that ends before its first operation has no races to name.
func TestNoOperations(t *testing.T) {
	o := options()
	o.DetectOnly = true
	c := configuration(sched.Options{}, 1, "/bin/true")
	c.MaxInstructions = 500
	r, err := frost.Run(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	named, err := frost.AllRaces(t.Context(), c, r)
	if err != nil || len(named.Races) > 0 || named.Counts.Accesses == 0 {
		t.Errorf("%+v, %v", named, err)
	}
}

// names reports whether a race was found between two lines that the description of a
// program has.
func names(p suite.Program, found *racereport.Report) bool {
	known := func(a *racereport.Access) bool {
		return slices.ContainsFunc(a.Stack, func(f racereport.Frame) bool {
			line := fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
			return slices.ContainsFunc(p.Races, func(r suite.Race) bool { return slices.Contains(r.Lines, line) })
		})
	}
	return slices.ContainsFunc(found.Races, func(r *racereport.Race) bool { return known(&r.First) && known(&r.Second) })
}

// TestRunsAreEqual: the same again is the same again, report and all, however many
// replicas are executed at the same time, and with the host busy or not. There are
// epochs that are rolled back, with others ahead of them.
func TestRunsAreEqual(t *testing.T) {
	for _, name := range []string{"mysql-644", "mysql-12848", "apache-25520"} {
		p, bin := find(t, name, suite.Buggy)
		text := func(followers, processors int) string {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			o := options()
			o.Followers, o.Epoch, o.Growth = followers, 0.02, 0.01
			x := try(t, o, schedule(t, p.Schedule), 2, command(p, bin)...)
			x.Result.HostSeconds = 0
			b, err := json.Marshal(x.Report)
			if err != nil {
				t.Fatal(err)
			}
			return string(b) + x.stdout + x.stderr
		}
		want := text(2, 2)
		for _, n := range []int{1, 2, 5} {
			if got := text(n, n); got != want {
				t.Errorf("%s with %d at a time:\n%s\n%s", name, n, got, want)
			}
		}
	}
}

// TestDetectOnly: the run is the thread-parallel one, with its failure.
func TestDetectOnly(t *testing.T) {
	p, bin := find(t, "mysql-791", suite.Buggy)
	o := options()
	o.DetectOnly = true
	x := try(t, o, schedule(t, p.Schedule), 1, command(p, bin)...)
	if x.Verdict != frost.Detected || x.Rollbacks != 0 {
		t.Errorf("%s", x.text())
	}
}

// TestSampling: no epoch is checked at rate 0.
func TestSampling(t *testing.T) {
	p, bin := find(t, "mysql-791", suite.Buggy)
	o := options()
	o.Sample = 0
	x := try(t, o, schedule(t, p.Schedule), 1, command(p, bin)...)
	if x.Races != 0 || len(x.Epochs[0].Replicas) != 1 {
		t.Errorf("%s", x.text())
	}
}

func TestOptions(t *testing.T) {
	for _, change := range []func(*frost.Options){
		func(o *frost.Options) { o.Sample = 2 }, func(o *frost.Options) { o.Epoch = 0 },
		func(o *frost.Options) { o.Heuristic = "best" }, func(o *frost.Options) { o.Hang = 1 },
		func(o *frost.Options) { o.Rollbacks = -1 },
	} {
		o := frost.DefaultOptions()
		change(&o)
		if _, err := frost.Run(t.Context(), machine.DefaultConfig(), o); err == nil {
			t.Errorf("%+v is allowed", o)
		}
	}
}

// TestTimeline: every execution is on the timeline, each replica on its track, none
// before the one before it.
func TestTimeline(t *testing.T) {
	p, bin := find(t, "mysql-12848", suite.Buggy)
	x := try(t, options(), schedule(t, p.Schedule), 1, command(p, bin)...)
	var b bytes.Buffer
	if err := x.WritePerfetto(&b); err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct {
			Phase   string  `json:"ph"`
			Begin   float64 `json:"ts"`
			Time    float64 `json:"dur"`
			TID     int     `json:"tid"`
			Ignored any     `json:"args"`
		}
	}
	if err := json.Unmarshal(b.Bytes(), &trace); err != nil {
		t.Fatal(err)
	}
	ends := map[int]float64{}
	slices, want := 0, 0
	for _, e := range trace.TraceEvents {
		if e.Phase != "X" {
			continue
		}
		slices++
		if e.Begin+1e-6 < ends[e.TID] && e.TID == 1 {
			t.Errorf("a thread-parallel replica begins at %v, before %v", e.Begin, ends[e.TID])
		}
		ends[e.TID] = e.Begin + e.Time
	}
	for _, e := range x.Epochs {
		want += len(e.Replicas)
	}
	if slices != want {
		t.Errorf("%d replicas, want %d", slices, want)
	}
	if x.Pipeline < x.Parallel || x.Pipeline > x.All {
		t.Errorf("%v ms with cores to spare, %v thread-parallel, %v in all", x.Pipeline, x.Parallel, x.All)
	}
}

// lines is a program in which three threads print numbers in order.
const lines = `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n, most;
static void *work(void *u) {
	for (;;) {
		pthread_mutex_lock(&m);
		int i = n++;
		if (i < most) dprintf(1, "%d\n", i);
		pthread_mutex_unlock(&m);
		if (i >= most) return u;
		for (volatile int k = 0; k < 50000; k++) ;
	}
}
int main(int c, char **v) {
	most = atoi(v[1]);
	pthread_t t[3];
	for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, work, 0);
	for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
	return 0;
}`

// TestOutputEndsFewEpochs: a program that prints all the time without a race has longer and longer
// epochs.
func TestOutputEndsFewEpochs(t *testing.T) {
	x := try(t, options(), sched.Options{}, 1, gcctest.C(t, lines, "-static"), "200")
	if x.Verdict != frost.Clean || x.Committed > 20 || x.Committed < 5 {
		t.Errorf("200 lines: %s", x.text())
	}
}

// TestMemoryStaysBounded: the states of all replicas take no more after many epochs
// than after few, and no line is lost or doubled.
func TestMemoryStaysBounded(t *testing.T) {
	bin := gcctest.C(t, lines, "-static")
	o := options()
	o.Epoch, o.Growth = 0.05, 0
	var peaks []uint64
	for _, n := range []int{40, trials(200, 25_000)} {
		x := try(t, o, sched.Options{}, 1, bin, fmt.Sprint(n))
		if x.Failure != "" || x.Committed < n/3 || n == 25_000 && x.Committed < 10_000 {
			t.Fatalf("%d lines: %s", n, x.text())
		}
		var want strings.Builder
		for i := range n {
			fmt.Fprintln(&want, i)
		}
		if x.stdout != want.String() {
			t.Errorf("%d lines: lost or doubled", n)
		}
		t.Logf("%d lines: %d epochs, %d bytes", n, x.Committed, x.PeakMemory)
		peaks = append(peaks, x.PeakMemory)
	}
	if peaks[1] > peaks[0]+peaks[0]/4 {
		t.Errorf("%d bytes at most with few epochs, %d with many", peaks[0], peaks[1])
	}
}
