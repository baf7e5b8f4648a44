package flow_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/flow"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// work has threads that count in a function of their own, with system calls and
// more threads than cores, so that they move about.
const work = `
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#define COUNT(n) __attribute__((noinline)) long count##n(long i) { return i * n + 1; }
COUNT(0) COUNT(1) COUNT(2) COUNT(3) COUNT(4)
static long (*volatile counts[])(long) = {count0, count1, count2, count3, count4};
static void *run(void *arg) {
	long n = 0;
	for (int i = 0; i < 1000 * ((long)arg + 1); i++) {
		n += counts[(long)arg](i);
		if (i % 300 == 0) usleep(1);
	}
	return (void *)n;
}
int main(void) {
	pthread_t t[5];
	for (long i = 0; i < 5; i++) pthread_create(&t[i], 0, run, (void *)i);
	for (int i = 0; i < 5; i++) pthread_join(t[i], 0);
	puts("done");
	return 0;
}`

func record(t *testing.T, cores int) (string, *trace.Reader, *machine.Result) {
	t.Helper()
	dir := t.TempDir()
	bin, path := gcctest.C(t, work, "-no-pie"), filepath.Join(dir, "trace")
	to, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.Cores = []string{bin}, dir, cores
	c.Sched.TimeSlice = 20_000
	c.Record = &machine.Record{To: to, PT: &pt.Config{PSBPeriod: 1000, RetCompression: true}}
	result, err := machine.Run(context.Background(), c)
	if err != nil || result.ExitCode != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return bin, r, result
}

// symbols are the addresses of the functions count0 to count4.
func symbols(t *testing.T, bin string) (addrs [5]uint64) {
	t.Helper()
	all := gcctest.Symbols(t, bin)
	for i := range addrs {
		addrs[i] = all[fmt.Sprintf("count%d", i)].Value
	}
	return addrs
}

// TestThreadsOfCores: each thread has executed its function as often as the
// source says, and no other thread's; the flow of the cores is the flow of the
// threads.
func TestThreadsOfCores(t *testing.T) {
	for _, cores := range []int{1, 2, 4} {
		bin, r, _ := record(t, cores)
		functions := symbols(t, bin)
		threads := map[arch.ThreadID]uint64{}
		for s, err := range trace.Get[event.Start](r, trace.Key{Kind: trace.Threads}, trace.Where{}) {
			if err != nil {
				t.Fatal(err)
			}
			calls := [5]int{}
			for p, err := range flow.Thread(r, s.Thread) {
				if err != nil {
					t.Fatal(err)
				}
				if p.Thread != s.Thread {
					t.Fatalf("a piece of thread %d among those of %d", p.Thread, s.Thread)
				}
				threads[s.Thread] += uint64(p.Count)
				for i, f := range functions {
					if p.Addr == f {
						calls[i]++
					}
				}
			}
			want := [5]int{}
			if n := int(s.Thread) - 1001; n >= 0 {
				want[n] = 1000 * (n + 1)
			}
			if calls != want {
				t.Errorf("%d cores: thread %d made calls %v, want %v", cores, s.Thread, calls, want)
			}
		}
		onCores := map[arch.ThreadID]uint64{}
		for core := range cores {
			at := uint64(0)
			for p, err := range flow.Core(r, arch.CoreID(core)) {
				if err != nil {
					t.Fatal(err)
				}
				if p.At != at {
					t.Fatalf("core %d: a piece at %d, want %d", core, p.At, at)
				}
				at += uint64(p.Count)
				onCores[p.Thread] += uint64(p.Count)
			}
		}
		for id, n := range threads {
			if onCores[id] != n {
				t.Errorf("%d cores: thread %d executed %d instructions, on cores %d", cores, id, n, onCores[id])
			}
		}
	}
}
