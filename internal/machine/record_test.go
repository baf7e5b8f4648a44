package machine_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/sched/dmt"
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

// record runs a program and records it, and returns the trace's path.
func record(t *testing.T, c machine.Config, recording func(io.Writer) *machine.Record) (*machine.Result, string) {
	t.Helper()
	f := traceFile(t)
	c.Record = recording(f)
	return machinetest.Run(t, c), f.Name()
}

// repeats demands equal results of a run that is not recorded, recorded and replayed. Everything that it prints goes to out.
func repeats(t *testing.T, c machine.Config, out *bytes.Buffer, recording func(io.Writer) *machine.Record) (printed string) {
	t.Helper()
	plain := machinetest.Run(t, c)
	want := out.String()
	out.Reset()
	recorded, path := record(t, c, recording)
	if recorded.Digest != plain.Digest || recorded.Cycles != plain.Cycles || out.String() != want {
		t.Errorf("recorded: %s, %d cycles, %s, not recorded: %s, %d cycles, %s",
			recorded.Digest, recorded.Cycles, out, plain.Digest, plain.Cycles, want)
	}
	again, text := replayed(t, path, nil)
	machinetest.CompareResults(t, again, recorded)
	if text != want {
		t.Errorf("output of the replay %q, want %q", text, want)
	}
	return want
}

// everything asks for all recordings.
func everything(to io.Writer) *machine.Record {
	return &machine.Record{
		To: to, Inputs: true, PT: &pt.Config{PSBPeriod: 4096, RetCompression: true, Timing: pt.Timing{TSC: true}},
		Sync: &machine.SyncRecord{Atomics: true}, Memory: &recorder.MemoryConfig{},
	}
}

// everythingOf asks for all recordings that runs of a configuration can have: loads and stores of threads with views of
// their own cannot be recorded.
func everythingOf(c *machine.Config) func(to io.Writer) *machine.Record {
	return func(to io.Writer) *machine.Record {
		r := everything(to)
		if dmt.Isolates(c.Sched.Policy) {
			r.Memory = nil
		}
		return r
	}
}

// replayed repeats a recorded run and returns its result and its output.
func replayed(t *testing.T, path string, change func(*machine.Config)) (*machine.Result, string) {
	t.Helper()
	r, err := machine.OpenReplay(path)
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
	return machinetest.Run(t, c), out.String()
}

func TestRecordingChangesNothingAndReplays(t *testing.T) {
	programs := map[string]string{"racy": machinetest.Compile(t, machinetest.Racy), "signals": machinetest.Compile(t, signals)}
	for name, bin := range programs {
		for how, set := range machinetest.Machines() {
			t.Run(name+"/"+how, func(t *testing.T) {
				c, out := machinetest.Config(t, bin)
				set(&c)
				repeats(t, c, out, everythingOf(&c))
			})
		}
	}
}

// signals uses timers, signals, clocks and random numbers, which depend on time.
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
