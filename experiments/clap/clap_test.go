package clap

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/clap"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/flow"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// work has everything that makes paths difficult: loops within loops, a switch, recursion, calls
// through pointers and by the library, jumps over frames, signals, threads that end within calls.
const work = `
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile long shared;
static __thread jmp_buf back;
static volatile sig_atomic_t signals;
static void on_signal(int n) { if (signals++ % 2) signals += n > 100; }
__attribute__((noinline)) static long leaf(long x) { return x & 1 ? x * 3 + 1 : x / 2; }
__attribute__((noinline)) static long tail(long x) { return x > 1000 ? x : leaf(x); }
__attribute__((noinline)) static long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) static long choose(long x) {
	switch (x % 7) {
	case 0: return x + 1;
	case 1: return leaf(x);
	case 2: return x * x;
	case 3: return fib(x % 9);
	case 4: return ~x;
	case 5: return tail(x);
	}
	return 0;
}
static long (*const table[])(long) = {leaf, tail, choose, fib};
__attribute__((noinline)) static void deep(int n) { if (n == 0) longjmp(back, 1); deep(n - 1); shared++; }
static int compare(const void *a, const void *b) { long x = *(long *)a, y = *(long *)b; return (x > y) - (x < y); }
static void *run(void *arg) {
	long a[20], sum = 0, me = (long)arg;
	for (long i = 0; i < 12 * (me + 1); i++) {
		for (long k = 0; k < 20; k++) a[k] = (i * 7919 + k * 104729) % 1000;
		qsort(a, 20, sizeof a[0], compare);
		sum += table[i % 3](a[i % 20]) + table[3](i % 8);
		if (i % 5 == me % 5 && !setjmp(back)) deep(i % 4);
		if (i % 16 == 0) raise(SIGUSR1);
		pthread_mutex_lock(&mutex);
		shared += sum;
		pthread_mutex_unlock(&mutex);
		char text[64];
		sprintf(text, "%ld %ld", sum, i);
		sum += strlen(text);
		if (me == 3 && i == 40) pthread_exit(0);
	}
	return (void *)sum;
}
int main(void) {
	pthread_t t[4];
	signal(SIGUSR1, on_signal);
	for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, run, (void *)i);
	for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
	printf("%d\n", shared > 0);
	exit(0);
}`

// record records the program with branch traces.
func record(t *testing.T, cores int, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "trace")
	to, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.Cores, c.Seed = []string{gcctest.C(t, work, flags...)}, dir, cores, uint64(cores)
	c.Sched.TimeSlice = 20_000
	c.Record = &machine.Record{To: to, PT: &pt.Config{PSBPeriod: 4096, RetCompression: true}}
	if result, err := machine.Run(t.Context(), c); err != nil || result.ExitCode != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	return path
}

// executed are the addresses of the wanted code that each thread executed by the branch traces.
func executed(t *testing.T, path string, want func(uint64) bool) map[arch.ThreadID][]uint64 {
	t.Helper()
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all := map[arch.ThreadID][]uint64{}
	for p, err := range flow.All(r) {
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range p.AppendAddresses(nil) {
			if want(a) {
				all[p.Thread] = append(all[p.Thread], a)
			}
		}
	}
	return all
}

// Invariant 2 of analyses/clap, through a file: the log decodes to the instructions of each thread
// by the branch traces, which are recorded and decoded in another way.
func TestPathsAreWhatRan(t *testing.T) {
	for _, flags := range [][]string{{"-static", "-g", "-O2"}, {"-g", "-O1"}} {
		path := record(t, 3, flags...)
		for _, whole := range []bool{true, false} {
			rec, err := Record(path, "/", whole)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, path, rec, whole)
		}
	}
}

func compare(t *testing.T, path string, rec *Recording, whole bool) {
	t.Helper()
	var file bytes.Buffer
	if _, err := rec.Log.Write(&file); err != nil {
		t.Fatal(err)
	}
	size := file.Len()
	log, err := clap.ReadLog(&file)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := log.Decode(rec.code)
	if err != nil {
		t.Fatal(err)
	}
	want, n := executed(t, path, rec.code.Instrumented), uint64(0)
	for id, addresses := range want {
		n += uint64(len(addresses))
		if decoded[id] == nil {
			t.Errorf("whole %v: thread %d has no paths", whole, id)
		} else if got := slices.Collect(decoded[id]); !slices.Equal(got, addresses) {
			t.Errorf("whole %v, thread %d: %d instructions decoded, %d executed", whole, id, len(got), len(addresses))
		}
	}
	if n == 0 || n != rec.InstrumentedInstructions || whole && n != rec.Instructions {
		t.Errorf("whole %v: %d threads, %d instructions of %d, counted were %d", whole, len(want), n, rec.Instructions, rec.InstrumentedInstructions)
	}
	var c clap.Counts
	for _, x := range rec.Cores {
		c.Increments, c.Writes, c.Bytes = c.Increments+x.Increments, c.Writes+x.Writes, c.Bytes+x.Bytes
	}
	t.Logf("whole %v: %d of %d instructions, %d functions, %d increments, %d writes, %d bytes, %d in the file",
		whole, n, rec.Instructions, rec.Functions, c.Increments, c.Writes, c.Bytes, size)
}

// A log that was changed, and one of other code, are refused.
func TestForeignLog(t *testing.T) {
	rec, err := Record(record(t, 2, "-static", "-g", "-O2"), "/", false)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := rec.Log.Write(&file); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{3, file.Len() / 2, file.Len() - 1} {
		damaged := slices.Clone(file.Bytes())
		damaged[at] ^= 0x10
		if _, err := clap.ReadLog(bytes.NewReader(damaged)); err == nil {
			t.Errorf("a log with byte %d changed is read", at)
		}
	}
	rec.Log.Threads[0].Records = append(rec.Log.Threads[0].Records, 0xfe, 0xff, 0xff, 0xff, 0xff, 0x0f)
	if _, err := rec.Log.Decode(rec.code); err == nil || !strings.Contains(err.Error(), "no function has the path") {
		t.Errorf("a path that there is not: %v", err)
	}
	if _, err := rec.Log.Decode(&programCode{}); err == nil || !strings.Contains(err.Error(), "there is no code") {
		t.Errorf("other code: %v", err)
	}
}
