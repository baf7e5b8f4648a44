package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// load keeps every processor of the host busy, and its memory bandwidth, until
// the test is over. In the smallest test size the host's own load has to do.
func load(t *testing.T) {
	t.Helper()
	if testsize.Pick(true, false, false) {
		return
	}
	var over atomic.Bool
	var all sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		all.Add(1)
		go func() {
			defer all.Done()
			block := make([]byte, 1<<20)
			for n := byte(0); !over.Load(); n++ {
				for i := range block {
					block[i] += n
				}
				runtime.Gosched()
			}
		}()
	}
	t.Cleanup(func() { over.Store(true); all.Wait() })
}

// repetition is the environment of heddle in a repetition: other host
// parallelism, another garbage collector's pace, and other contents that must
// not matter.
func repetition(n int) []string {
	return []string{
		fmt.Sprintf("GOMAXPROCS=%d", []int{1, 2, 8}[n%3]),
		fmt.Sprintf("GOGC=%d", []int{100, 5, 400, 30}[n%4]),
		"HEDDLE_TEST=" + strings.Repeat("x", n*37),
	}
}

// same is the part of a result that is equal in equal runs.
func same(o outcome, r machine.Result) string {
	return fmt.Sprintf("digest %s schedule %s output %s instructions %d cycles %d switches %d status %d peak %d\n%s",
		r.Digest, r.ScheduleDigest, r.OutputDigest, r.Instructions, r.Cycles, r.ContextSwitches, o.status, r.PeakMemory, o.stdout)
}

// repeat runs a program under load and fails if a repetition is not the first.
func repeat(t *testing.T, times int, dir string, flags []string, program ...string) {
	t.Helper()
	first := ""
	for n := range times {
		o, r := summarize(t, dir, repetition(n), flags, program...)
		got := same(o, r)
		if first == "" {
			first = got
		}
		if got != first {
			t.Fatalf("heddle %v -- %q: repetition %d under %q:\n%s\nwas:\n%s",
				flags, program, n, repetition(n)[:2], shorten(got), shorten(first))
		}
	}
}

// TestSameSeedSameDigest repeats a program that prints whatever could leak, at least in
// each environment of repetition once.
func TestSameSeedSameDigest(t *testing.T) {
	racy := compile(t, "racy")
	load(t)
	repeat(t, testsize.Pick(4, 12, 100), filepath.Dir(racy), []string{"--cores", "4", "--seed", "7"}, racy)
}

// TestEachPolicyRepeats does the same for other policies and options.
func TestEachPolicyRepeats(t *testing.T) {
	racy := compile(t, "racy", "-static")
	load(t)
	for _, flags := range []string{
		"--cores 1 --sched timed",
		"--cores 8 --sched timed --delay-rate 0.05 --delay-cycles 5000",
		"--cores 3 --sched rr --quantum 500",
		"--cores 4 --sched random --granularity block",
		"--cores 4 --sched random --granularity sync",
		"--cores 2 --sched random --granularity instruction",
		"--cores 4 --sched pct --depth 4",
		"--cores 4 --randomize-layout",
	} {
		t.Run(strings.ReplaceAll(flags, " ", ""), func(t *testing.T) {
			repeat(t, testsize.Pick(2, 3, 6), filepath.Dir(racy), strings.Fields(flags), racy)
		})
	}
}

// TestRealProgramsRepeat repeats some of Debian's programs.
func TestRealProgramsRepeat(t *testing.T) {
	dir := t.TempDir()
	realInputs(t, dir)
	load(t)
	for _, program := range [][]string{
		{"pbzip2", "-p4", "-b1", "-c", "text"},
		{"strace", "-f", "pigz", "-p4", "-c", "words"},
		python(`
import threading, time, os, random, tempfile
counter, log = 0, []
def work(i):
    global counter
    for n in range(200):
        seen = counter
        if n % 50 == i: time.sleep(0.0001)
        counter = seen + 1
    log.append((i, time.time(), threading.get_native_id(), random.random()))
ts = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for t in ts: t.start()
for t in ts: t.join()
print(counter, log, hash("text"), {"a", "b", "c"}, object(), os.urandom(4), tempfile.mkdtemp(), os.listdir("/proc"))`),
	} {
		t.Run(filepath.Base(program[0]), func(t *testing.T) {
			repeat(t, testsize.Pick(2, 3, 10), dir, []string{"--cores", "4", "--seed", "3", "--quiet"}, program...)
		})
	}
}

// TestSeedsGiveManySchedules counts schedules and outputs over seeds.
func TestSeedsGiveManySchedules(t *testing.T) {
	racy := compile(t, "racy")
	schedules, counters := map[string]bool{}, map[string]bool{}
	seeds := testsize.Pick(10, 30, 100)
	for seed := range seeds {
		o, r := summarize(t, filepath.Dir(racy), nil, []string{"--seed", fmt.Sprint(seed)}, racy)
		schedules[r.ScheduleDigest] = true
		line, _, _ := strings.Cut(o.stdout, "\n")
		counters[line] = true
	}
	// Two seeds may agree by chance, half of them may not.
	if len(schedules) <= seeds/2 || len(counters) <= seeds/10 {
		t.Errorf("%d seeds gave %d schedules and %d outcomes of the race", seeds, len(schedules), len(counters))
	}
	t.Logf("%d seeds: %d schedules, %d outcomes of the race", seeds, len(schedules), len(counters))
}

// TestVerify runs the mode in which heddle repeats by itself.
func TestVerify(t *testing.T) {
	racy := compile(t, "racy")
	dir := filepath.Dir(racy)
	plain := run(t, dir, []string{"--seed", "5"}, racy)
	o := run(t, dir, []string{"--seed", "5", "--verify", "3"}, racy)
	if o.status != plain.status || o.stdout != plain.stdout {
		t.Errorf("with --verify:\n%v\nwithout:\n%v", o, plain)
	}
	if !strings.Contains(o.stderr, "heddle: repetitions with the same digest: 3; digest ") {
		t.Errorf("nothing is said of the repetitions: %v", o)
	}
}

// TestOtherInputOtherDigest checks that a digest sees each of the things that
// a run is a function of: a byte of a file, an argument, the environment, the
// number of cores, the seed.
func TestOtherInputOtherDigest(t *testing.T) {
	dir := t.TempDir()
	input := writeFile(t, filepath.Join(dir, "input"), []byte("some text\n"), 0o644)
	digest := func(flags []string, program ...string) string {
		_, r := summarize(t, dir, nil, flags, program...)
		return r.Digest
	}
	base := []string{"--seed", "1", "--cores", "2"}
	seen := map[string]string{digest(base, "gzip", "-nc", "input"): "the first run"}
	differs := func(name, d string) {
		if other, there := seen[d]; there {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[d] = name
	}
	differs("another argument", digest(base, "gzip", "-nc", "-1", "input"))
	differs("another variable", digest(append(base, "--env", "X=1"), "gzip", "-nc", "input"))
	differs("another seed", digest([]string{"--seed", "2", "--cores", "2"}, "gzip", "-nc", "input"))
	differs("another number of cores", digest([]string{"--seed", "1", "--cores", "3"}, "gzip", "-nc", "input"))
	if err := os.WriteFile(input, []byte("some next\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	differs("another input", digest(base, "gzip", "-nc", "input"))
	if err := os.WriteFile(input, []byte("some text\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if d := digest(base, "gzip", "-nc", "input"); seen[d] != "the first run" {
		t.Error("with the first input again the digest is another")
	}
}
