package machine_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/sched"
)

// TestPagesShowTSO: results that TSO forbids never happen with the engine that works by
// pages, and results that it allows do, unless stores are committed eagerly.
func TestPagesShowTSO(t *testing.T) { onEngines(t, testPagesShowTSO) }

func testPagesShowTSO(t *testing.T, engine string) {
	testsize.SkipQuick(t)
	bin := machinetest.Compile(t, ordering)
	for _, policy := range storebuffer.Policies() {
		for seed := range uint64(3) {
			c, out := machinetest.Config(t, bin)
			c.Engine = engine
			c.Cores, c.Sched, c.Seed = 2, fine, seed
			c.Memory = storebuffer.Options{Model: "tso", Engine: storebuffer.Pages, Commit: policy, Rate: 0.05}
			machinetest.Run(t, c)
			var sb, mp, fenced, coherence int
			if _, err := fmt.Sscanf(out.String(), "sb %d mp %d fenced %d coherence %d", &sb, &mp, &fenced, &coherence); err != nil {
				t.Fatalf("%s: %v", out, err)
			}
			if mp > 0 || fenced > 0 || coherence > 0 {
				t.Errorf("%s, seed %d: what TSO forbids: %s", policy, seed, out)
			}
			if (sb > 0) != (policy != "eager") {
				t.Errorf("%s, seed %d: %s", policy, seed, out)
			}
		}
	}
}

// pageOptions are ways to commit under which runs must repeat.
var pageOptions = []storebuffer.Options{
	{Model: "tso", Engine: storebuffer.Pages},
	{Model: "tso", Engine: storebuffer.Pages, Commit: "timed"},
	{Model: "tso", Engine: storebuffer.Pages, Commit: "lazy", Capacity: 2},
}

// TestPagesRepeatAndReplay: the same seed gives the same run, and so does a replay
// of its log: also of one in which a lock fails that needs SC ("broken"). Blocks
// with locked instructions are run in steps if those are recorded.
func TestPagesRepeatAndReplay(t *testing.T) { onEngines(t, testPagesRepeatAndReplay) }

func testPagesRepeatAndReplay(t *testing.T, engine string) {
	programs := map[string]string{
		"ordering": machinetest.Compile(t, ordering), "racy": machinetest.Compile(t, machinetest.Racy), "signals": machinetest.Compile(t, signals), "mappings": machinetest.Compile(t, mappings),
		"broken": machinetest.Compile(t, broken),
	}
	for name, bin := range programs {
		for _, o := range testsize.Sample(pageOptions, testsize.Pick(1, len(pageOptions), len(pageOptions)), 0) {
			t.Run(name+"-"+o.Commit, func(t *testing.T) {
				c, out := machinetest.Config(t, bin)
				c.Engine = engine
				c.Memory = o
				switch name {
				case "ordering":
					c.Sched = fine
				case "broken", "mappings":
					c.Sched = sched.Options{Policy: sched.Random, Quantum: 30}
				}
				want := repeats(t, c, out, allButMemory)
				if name == "broken" && strings.HasPrefix(want, "3000 ") {
					t.Errorf("the lock did not fail: %s", want)
				}
			})
		}
	}
}

// TestPagesSnapshots: a run continues from a snapshot as it would have without it, also
// when pages are held, and when snapshots were taken meanwhile.
func TestPagesSnapshots(t *testing.T) { onEngines(t, testPagesSnapshots) }

func testPagesSnapshots(t *testing.T, engine string) {
	for name, source := range map[string]string{"ordering": ordering, "mappings": mappings} {
		if name == "mappings" && testing.Short() {
			continue
		}
		bin := machinetest.Compile(t, source)
		c, out := machinetest.Config(t, bin)
		c.Engine = engine
		c.Sched, c.Memory = fine, pageOptions[2]
		want := machinetest.Run(t, c)
		text := out.String()
		out.Reset()
		m, err := machine.New(c)
		if err != nil {
			t.Fatal(err)
		}
		for range 3000 {
			m.Step()
		}
		s := m.Snapshot()
		for range 2 {
			for i := range 2000 {
				m.Step()
				if i%25 == 0 {
					m.Snapshot().Release()
				}
			}
			m.Restore(s)
		}
		s.Release()
		out.Reset()
		got, err := m.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if got.Digest != want.Digest || !strings.HasSuffix(text, out.String()) {
			t.Errorf("%s: from the snapshot %s %s, without %s %s", name, got.Digest, out, want.Digest, text)
		}
		m.Close()
	}
}

// broken is Peterson's lock without fences around a counter, and an atomic one.
const broken = `
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
static volatile long wants[2], turn, counter;
static atomic_long all;
static void *body(void *arg) {
	long me = (long)arg;
	for (int i = 0; i < 1500; i++) {
		wants[me] = 1;
		turn = 1 - me;
		for (int k = 0; k < 100 && wants[1 - me] && turn == 1 - me; k++) __builtin_ia32_pause();
		counter = counter + 1;
		wants[me] = 0;
		if (i % 16 == 0) atomic_fetch_add(&all, 1);
	}
	return 0;
}
int main(void) {
	pthread_t t;
	pthread_create(&t, 0, body, (void *)1);
	body(0);
	pthread_join(t, 0);
	printf("%ld %ld\n", counter, (long)all);
	return 0;
}`

// mappings stores to pages and then changes how they are mapped, from another
// thread, while the stores may still wait; it prints the contents.
const mappings = `
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define PAGE 4096
static char *volatile page, *volatile shared;
static atomic_int turn;
static volatile unsigned noise[3 * PAGE];
static void wait_for(int n) { while (atomic_load(&turn) != n) noise[PAGE]++, __builtin_ia32_pause(); }
static void *writer(void *arg) {
	for (int i = 0; i < 24; i++) {
		wait_for(2 * i + 1);
		for (int k = 0; k < 2 * PAGE; k += 7) page[k] = (char)(i + k);
		memset((void *)shared, i, 100);
		page[PAGE - 3] = 1, *(volatile long *)(page + PAGE - 4) = i;
		atomic_store(&turn, 2 * i + 2);
		for (int k = 0; k < 50; k++) noise[k * 100] = k + i;
	}
	return 0;
}
static int open_memory(void) {
	static int fd = -1;
	return fd >= 0 ? fd : (fd = memfd_create("pages", 0));
}
static unsigned sum(const char *p, int n) {
	unsigned s = 0;
	while (n--) s = s * 31 + (unsigned char)*p++;
	return s;
}
static int child(void) {
	int status;
	if (fork() == 0) {
		shared[200] = (char)sum(page, 2 * PAGE);
		page[5] = 99;
		_exit(sum(page, 2 * PAGE) & 127);
	}
	wait(&status);
	return WEXITSTATUS(status);
}
int main(void) {
	pthread_t t;
	page = mmap(0, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	shared = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *there = mmap(0, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_create(&t, 0, writer, 0);
	for (int i = 0; i < 24; i++) {
		page[2 * PAGE - 1] = i;
		atomic_store(&turn, 2 * i + 1);
		wait_for(2 * i + 2);
		switch (i % 6) {
		case 0: mprotect(page, 2 * PAGE, PROT_READ); break;
		case 1: page = mremap(page, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, there + (i & 2) * PAGE); break;
		case 2: printf("child %d\n", child()); break;
		case 3: madvise(page + PAGE, PAGE, MADV_DONTNEED); break;
		case 4: page[100]++; printf("write %ld\n", (long)write(open_memory(), page, 2 * PAGE)); break;
		case 5: munmap(page + PAGE, PAGE); mmap(page + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0); break;
		}
		printf("%d %u %u %d\n", i, sum(page, 2 * PAGE), sum(shared, 100), shared[200]);
		mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE);
	}
	pthread_join(t, 0);
	return 0;
}`

// TestPagesChangeMappings: the program's output is that of a native run, whatever
// waits when mappings change.
func TestPagesChangeMappings(t *testing.T) { onEngines(t, testPagesChangeMappings) }

func testPagesChangeMappings(t *testing.T, engine string) {
	bin := machinetest.Compile(t, mappings)
	want, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range pageOptions {
		for seed := range testsize.Pick[uint64](1, 1, 2) {
			for _, p := range []sched.Options{{}, {Policy: sched.Random, Quantum: 30}} {
				c, out := machinetest.Config(t, bin)
				c.Engine = engine
				c.Seed, c.Sched, c.Memory = seed, p, o
				if r := machinetest.Run(t, c); r.ExitCode != 0 || out.String() != string(want) {
					t.Fatalf("%s, seed %d, %+v: status %d, and printed\n%s\nnatively\n%s", o.Commit, seed, p, r.ExitCode, out, want)
				}
			}
		}
	}
}

// TestPagesAndMemoryLogs: the two do not go together, which is said.
func TestPagesAndMemoryLogs(t *testing.T) {
	c, _ := machinetest.Config(t, "/bin/true")
	c.Memory = pageOptions[0]
	c.Record = &machine.Record{To: &bytes.Buffer{}, Memory: &recorder.MemoryConfig{}}
	if _, err := machine.New(c); err == nil || !strings.Contains(err.Error(), "stores are kept by pages") {
		t.Errorf("got %v", err)
	}
}
