// Package machinetest has the common parts of tests that run machines: programs in C, and the configurations of runs.
package machinetest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched"
)

// Compile builds a C program for a test and returns its path.
func Compile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	return gcctest.C(t, source, flags...)
}

// Racy prints a counter that four threads increment without synchronization, and numbers from a
// pipe, through files, with children: state of every part of the kernel.
const Racy = `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int counter;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static volatile int *shared;
static void *work(void *arg) {
	for (int i = 0; i < 3000; i++) {
		counter = counter + 1;
		if (i % 500 == 0) {
			pthread_mutex_lock(&mu);
			dprintf(ends[1], "%ld", (long)arg);
			pthread_mutex_unlock(&mu);
			usleep(10);
		}
	}
	return NULL;
}
int main(void) {
	pthread_t t[4];
	char buf[200] = {0};
	pipe(ends);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FILE *f = tmpfile();
	for (long i = 0; i < 4; i++) pthread_create(&t[i], NULL, work, (void *)i);
	if (fork() == 0) {
		for (int i = 0; i < 1000; i++) *shared = *shared + 1;
		_exit(0);
	}
	for (int i = 0; i < 1000; i++) *shared = *shared + 1;
	for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
	wait(NULL);
	read(ends[0], buf, sizeof buf - 1);
	fprintf(f, "%s", buf);
	rewind(f);
	fgets(buf, sizeof buf, f);
	printf("%d %d %s\n", counter, *shared, buf);
	return 0;
}`

// Rounds touches argv[1] MiB, then writes forever a word to each of argv[2]
// pages, argv[3] times over, and prints a dot.
const Rounds = `
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
	size_t size = (size_t)atoi(argv[1]) << 20, pages = atoi(argv[2]);
	int times = atoi(argv[3]);
	volatile char *p = malloc(size + 4096);
	memset((char *)p, 1, size);
	for (;;) {
		write(1, ".", 1);
		for (int t = 0; t < times; t++)
			for (size_t i = 0; i < pages; i++) p[i * 4096] += t;
	}
}`

// Config returns a configuration that runs a program in its own folder, and the buffer that gets
// its standard output and standard error.
func Config(t testing.TB, args ...string) (machine.Config, *bytes.Buffer) {
	t.Helper()
	out := &bytes.Buffer{}
	c := machine.DefaultConfig()
	c.Args, c.Stdout, c.Stderr = args, out, out
	c.Dir = filepath.Dir(args[0])
	return c, out
}

// Run runs a configuration to its end.
func Run(t testing.TB, c machine.Config) *machine.Result {
	t.Helper()
	r, err := machine.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Shortest is the least of several times: noise only adds.
func Shortest(times int, f func() time.Duration) time.Duration {
	least := f()
	for range times {
		least = min(least, f())
	}
	return least
}

// Machines are configurations under which runs are recorded and repeated.
func Machines() map[string]func(*machine.Config) {
	sets := map[string]func(*machine.Config){}
	for i, p := range sched.PolicyNames() {
		sets[p] = func(c *machine.Config) { c.Sched.Policy, c.Seed = p, uint64(i+1) }
	}
	sets["one core"] = func(c *machine.Config) { c.Cores = 1 }
	sets["eight cores"] = func(c *machine.Config) { c.Cores, c.Seed = 8, 99 }
	sets["delays"] = func(c *machine.Config) { c.Sched.DelayRate = 0.2 }
	sets["each instruction"] = func(c *machine.Config) { c.Sched = sched.Options{Policy: sched.Random, Granularity: sched.Instruction} }
	sets["at sync"] = func(c *machine.Config) { c.Sched = sched.Options{Policy: sched.RR, Granularity: sched.Sync} }
	sets["limited"] = func(c *machine.Config) { c.MaxInstructions = 150_000 }
	if testing.Short() {
		maps.DeleteFunc(sets, func(how string, _ func(*machine.Config)) bool {
			return how != "timed" && how != "at sync" && how != "delays"
		})
	}
	return sets
}

// ExpectEqualRuns runs a configuration on both engines and compares all that a run's digest covers: its
// output, the instructions of each turn, system calls with their results, and memory at the end.
func ExpectEqualRuns(t testing.TB, c machine.Config) {
	t.Helper()
	if u, d := expectEqualEvents(t, c, true); u.Digest != d.Digest {
		t.Errorf("%q: digest %s with unicorn, %s with direct", c.Args, u.Digest, d.Digest)
	}
}

// ExpectEqualRunsButMemory does so but for memory.
func ExpectEqualRunsButMemory(t testing.TB, c machine.Config) {
	t.Helper()
	expectEqualEvents(t, c, false)
}

func expectEqualEvents(t testing.TB, c machine.Config, memory bool) (u, d *machine.Result) {
	t.Helper()
	u, want, wantOut := runOn(t, c, engines.Unicorn)
	d, got, gotOut := runOn(t, c, engines.Direct)
	for n := 0; len(want) > 0 && len(got) > 0; n++ {
		var a, b []byte
		a, want, _ = bytes.Cut(want, []byte("\n"))
		b, got, _ = bytes.Cut(got, []byte("\n"))
		isMemory := bytes.HasPrefix(a, []byte("memory ")) && bytes.HasPrefix(b, []byte("memory "))
		if !bytes.Equal(a, b) && (memory || !isMemory) {
			t.Errorf("%q: event %d is %q with unicorn, %q with direct", c.Args, n, a, b)
			break
		}
	}
	if u.ScheduleDigest != d.ScheduleDigest || u.Instructions != d.Instructions || !bytes.Equal(wantOut, gotOut) {
		t.Errorf("%q: with unicorn schedule %s, %d instructions, %d bytes of output; with direct schedule %s, %d instructions, %d bytes", c.Args,
			u.ScheduleDigest, u.Instructions, len(wantOut), d.ScheduleDigest, d.Instructions, len(gotOut))
	}
	return u, d
}

// runOn runs a configuration on an engine and returns the result, the event log and the output.
func runOn(t testing.TB, c machine.Config, engine string) (r *machine.Result, events, output []byte) {
	t.Helper()
	var out, log bytes.Buffer
	c.Engine, c.Stdout, c.Stderr, c.EventLog = engine, &out, &out, &log
	r, err := machine.Run(t.Context(), c)
	if err != nil {
		t.Fatalf("%q: engine %s: %v", c.Args, engine, err)
	}
	return r, log.Bytes(), out.Bytes()
}

// CompareResults demands that two results of a run are equal.
func CompareResults(t *testing.T, got, want *machine.Result) {
	t.Helper()
	a, b := *got, *want
	a.HostSeconds, b.HostSeconds = 0, 0
	a.SyncRecognition, b.SyncRecognition = "", "" // of recorded runs alone
	if fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
		t.Errorf("the replay gave\n%+v\nwant\n%+v", a, b)
	}
}
