package heddle_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/sched"
)

// traceFile makes an empty file for a trace, which is closed at the test's end.
func traceFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// record runs a program with what is asked for recorded, and returns the trace's path.
func record(t *testing.T, c heddle.Config, what func(io.Writer) *heddle.Record) (*heddle.Result, string) {
	t.Helper()
	f := traceFile(t)
	c.Record = what(f)
	return run(t, c), f.Name()
}

// repeats demands that a run comes to the same not recorded, recorded and replayed.
// Everything that it prints goes to out.
func repeats(t *testing.T, c heddle.Config, out *bytes.Buffer, what func(io.Writer) *heddle.Record) (printed string) {
	t.Helper()
	plain := run(t, c)
	want := out.String()
	out.Reset()
	recorded, path := record(t, c, what)
	if recorded.Digest != plain.Digest || recorded.Cycles != plain.Cycles || out.String() != want {
		t.Errorf("recorded: %s, %d cycles, %s, not recorded: %s, %d cycles, %s",
			recorded.Digest, recorded.Cycles, out, plain.Digest, plain.Cycles, want)
	}
	again, text := replayed(t, path, nil)
	compare(t, again, recorded)
	if text != want {
		t.Errorf("output of the replay %q, want %q", text, want)
	}
	return want
}

// everything asks for all recordings.
func everything(to io.Writer) *heddle.Record {
	return &heddle.Record{
		To: to, Inputs: true, PT: &pt.Config{PSBPeriod: 4096, RetCompression: true, Timing: pt.Timing{TSC: true}},
		Sync: &heddle.SyncRecord{Atomics: true}, Memory: &recorder.MemoryConfig{},
	}
}

// replayed repeats a recorded run and returns what it came to.
func replayed(t *testing.T, path string, change func(*heddle.Config)) (*heddle.Result, string) {
	t.Helper()
	r, err := heddle.OpenReplay(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := r.Config()
	if err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	c.Stdout, c.Stderr = out, out
	if change != nil {
		change(&c)
	}
	return run(t, c), out.String()
}

// machines are configurations under which runs are recorded and repeated.
func machines() map[string]func(*heddle.Config) {
	sets := map[string]func(*heddle.Config){}
	for i, p := range sched.PolicyNames() {
		sets[p] = func(c *heddle.Config) { c.Sched.Policy, c.Seed = p, uint64(i+1) }
	}
	sets["one core"] = func(c *heddle.Config) { c.Cores = 1 }
	sets["eight cores"] = func(c *heddle.Config) { c.Cores, c.Seed = 8, 99 }
	sets["delays"] = func(c *heddle.Config) { c.Sched.DelayRate = 0.2 }
	sets["each instruction"] = func(c *heddle.Config) { c.Sched = sched.Options{Policy: sched.Random, Granularity: sched.Instruction} }
	sets["at sync"] = func(c *heddle.Config) { c.Sched = sched.Options{Policy: sched.RR, Granularity: sched.Sync} }
	sets["limited"] = func(c *heddle.Config) { c.MaxInstructions = 150_000 }
	if testing.Short() {
		maps.DeleteFunc(sets, func(how string, _ func(*heddle.Config)) bool {
			return how != "timed" && how != "at sync" && how != "delays"
		})
	}
	return sets
}

func TestRecordingChangesNothingAndReplays(t *testing.T) {
	programs := map[string]string{"racy": compile(t, racy), "signals": compile(t, signals)}
	for name, bin := range programs {
		for how, set := range machines() {
			t.Run(name+"/"+how, func(t *testing.T) {
				c, out := config(t, bin)
				set(&c)
				repeats(t, c, out, everything)
			})
		}
	}
}

// compare demands that two results of a run are equal.
func compare(t *testing.T, got, want *heddle.Result) {
	t.Helper()
	a, b := *got, *want
	a.HostSeconds, b.HostSeconds = 0, 0
	a.SyncRecognition, b.SyncRecognition = "", "" // of what is recorded alone
	if fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
		t.Errorf("the replay gave\n%+v\nwant\n%+v", a, b)
	}
}

// signals uses timers, signals, clocks and random numbers: what depends on time.
const signals = `
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <sched.h>
static volatile sig_atomic_t ticks;
static volatile int stop;
static void tick(int n) { ticks++; }
static void *spin(void *arg) {
	unsigned long n = 0;
	while (!stop) { n++; if (n % 64 == 0) sched_yield(); else if (n % 17 == 0) __builtin_ia32_pause(); }
	return (void *)n;
}
int main(void) {
	struct itimerval every = {{0, 200}, {0, 200}};
	struct timespec now;
	pthread_t t[3];
	unsigned char random[4];
	char line[200] = "";
	signal(SIGALRM, tick);
	setitimer(ITIMER_REAL, &every, 0);
	for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, spin, 0);
	while (ticks < 3) usleep(30);
	stop = 1;
	for (int i = 0; i < 3; i++) { void *n; pthread_join(t[i], &n); sprintf(line + strlen(line), "%lu ", (unsigned long)n); }
	clock_gettime(CLOCK_MONOTONIC, &now);
	getrandom(random, sizeof random, 0);
	FILE *f = fopen("/proc/stat", "r");
	char stat[400]; fgets(stat, sizeof stat, f);
	printf("%s %d %ld.%09ld %02x%02x tsc %llu cpu %d %s", line, (int)ticks, (long)now.tv_sec, now.tv_nsec, random[0], random[1],
		(unsigned long long)__builtin_ia32_rdtsc(), sched_getcpu(), stat);
	return 0;
}`
