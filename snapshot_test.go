package heddle_test

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// compile builds a C program for a test.
func compile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	return gcctest.C(t, source, flags...)
}

// racy prints what unsynchronised increments of four threads come to, in a
// pipe, through files, with children: state of every part of the kernel.
const racy = `
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

func config(t testing.TB, args ...string) (heddle.Config, *bytes.Buffer) {
	t.Helper()
	out := &bytes.Buffer{}
	c := heddle.DefaultConfig()
	c.Args, c.Stdout, c.Stderr = args, out, out
	c.Dir = filepath.Dir(args[0])
	return c, out
}

func run(t testing.TB, c heddle.Config) *heddle.Result {
	t.Helper()
	r, err := heddle.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSnapshotsRepeatTheRun(t *testing.T) {
	bin := compile(t, racy)
	c, out := config(t, bin)
	whole := run(t, c)
	if whole.ExitCode != 0 {
		t.Fatalf("exit %d: %s", whole.ExitCode, whole.Message)
	}
	want := out.String()

	out.Reset()
	m, err := heddle.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var snapshots []*heddle.Snapshot
	var before []string
	for n := 0; !m.Done(); n++ {
		if n%40 == 0 {
			snapshots = append(snapshots, m.Snapshot())
			before = append(before, out.String())
		}
		m.Step()
	}
	if len(snapshots) < 5 {
		t.Fatalf("only %d snapshots", len(snapshots))
	}
	// Back to each, in another order than they were taken, and some twice.
	for _, i := range []int{len(snapshots) - 1, 0, len(snapshots) / 2, 1, 0} {
		m.Restore(snapshots[i])
		out.Reset()
		out.WriteString(before[i])
		r, err := m.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if r.Digest != whole.Digest || out.String() != want {
			t.Errorf("from snapshot %d: digest %s, output %q; want %s, %q", i, r.Digest, out.String(), whole.Digest, want)
		}
	}
	for _, s := range snapshots {
		s.Release()
	}
}

func TestSeedsChooseTheRun(t *testing.T) {
	bin := compile(t, racy)
	schedules := map[string]bool{}
	for seed := range uint64(30) {
		c, _ := config(t, bin)
		c.Seed = seed
		first, second := run(t, c), run(t, c)
		if first.Digest != second.Digest {
			t.Errorf("seed %d: digests %s and %s", seed, first.Digest, second.Digest)
		}
		schedules[first.ScheduleDigest] = true
	}
	if len(schedules) < 25 {
		t.Errorf("30 seeds give %d schedules", len(schedules))
	}
}
