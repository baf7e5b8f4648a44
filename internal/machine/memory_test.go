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
	"github.com/heddle-dmt/heddle/sched"
)

// ordering counts the rounds in which two threads saw results that each model forbids and the next
// weaker one allows: store buffering (SB), message passing (MP), both with and
// without fences, and coherence.
const ordering = `
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#define ROUNDS 60
static volatile int x, y, fx, fy, m, flag, c;
static int r1, r2, r3, r4;
static volatile int sink;
static int sb, mp, sbf, mpf, coherence;
static pthread_barrier_t barrier;
static void *left(void *arg) {
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&barrier);
		x = 1; r1 = y;
		m = 1; flag = 1;
		for (int k = 0; k < 100; k++) sink = k;
		c = 1; c = 2;
		fx = 1; __asm__ volatile("mfence" ::: "memory"); r3 = fy;
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
	}
	return 0;
}
static void *right(void *arg) {
	for (int i = 0; i < ROUNDS; i++) {
		int f = 0, d, c1, c2;
		pthread_barrier_wait(&barrier);
		y = 1; r2 = x;
		for (int k = 0; k < 100 && !f; k++) f = flag;
		d = m;
		c1 = c; c2 = c;
		fy = 1; __asm__ volatile("lock orl $0, (%%rsp)" ::: "memory"); r4 = fx;
		pthread_barrier_wait(&barrier);
		sb += !r1 && !r2;
		mp += f && !d;
		sbf += !r3 && !r4;
		coherence += c1 > c2;
		x = y = m = flag = fx = fy = c = 0;
		pthread_barrier_wait(&barrier);
	}
	return 0;
}
int main(void) {
	pthread_t a, b;
	pthread_barrier_init(&barrier, 0, 2);
	pthread_create(&a, 0, left, 0);
	pthread_create(&b, 0, right, 0);
	pthread_join(a, 0);
	pthread_join(b, 0);
	printf("sb %d mp %d fenced %d coherence %d\n", sb, mp, sbf, coherence);
	return 0;
}`

// fine is a policy that switches between single instructions.
var fine = sched.Options{Policy: sched.Random, Granularity: sched.Instruction, Quantum: 3}

// TestProgramsSeeTheirModel runs the program under each model and each policy
// of commits: forbidden results never happen, and allowed ones do, unless stores are committed eagerly.
func TestProgramsSeeTheirModel(t *testing.T) {
	testsize.SkipQuick(t)
	bin := machinetest.Compile(t, ordering)
	for _, model := range []string{"sc", "tso", "pso"} {
		for _, policy := range storebuffer.Policies() {
			c, out := machinetest.Config(t, bin)
			c.Cores, c.Sched, c.Memory = 2, fine, storebuffer.Options{Model: model, Commit: policy, Rate: 0.05}
			machinetest.Run(t, c)
			var sb, mp, fenced, coherence int
			if _, err := fmt.Sscanf(out.String(), "sb %d mp %d fenced %d coherence %d", &sb, &mp, &fenced, &coherence); err != nil {
				t.Fatalf("%s: %v", out, err)
			}
			if fenced > 0 || coherence > 0 {
				t.Errorf("%s, %s: what every model forbids: %s", model, policy, out)
			}
			if model != "pso" && mp > 0 || model == "sc" && sb > 0 {
				t.Errorf("%s, %s: what the model forbids: %s", model, policy, out)
			}
			if policy != "eager" && (model != "sc" && sb == 0 || model == "pso" && policy != "lazy" && mp == 0) {
				t.Errorf("%s, %s: never what the model allows: %s", model, policy, out)
			}
		}
	}
}

// TestOneCoreIsSequential: on one core the models differ in nothing that the
// program can see.
func TestOneCoreIsSequential(t *testing.T) {
	bin := machinetest.Compile(t, ordering)
	first := ""
	for _, model := range []string{"sc", "tso", "pso"} {
		c, out := machinetest.Config(t, bin)
		c.Cores, c.Sched, c.Memory = 1, fine, storebuffer.Options{Model: model, Commit: "lazy"}
		r := machinetest.Run(t, c)
		if got := out.String() + r.Digest; first == "" {
			first = got
		} else if got != first {
			t.Errorf("%s: %s, under sc %s", model, got, first)
		}
	}
}

// TestWeakRunsRepeatAndReplay: the same seed gives the same run, and so does a
// replay of its log.
func TestWeakRunsRepeatAndReplay(t *testing.T) {
	programs := map[string]string{"ordering": machinetest.Compile(t, ordering), "racy": machinetest.Compile(t, machinetest.Racy), "signals": machinetest.Compile(t, signals)}
	for name, bin := range programs {
		for _, o := range testsize.Sample([]storebuffer.Options{
			{Model: "tso"},
			{Model: "pso"},
			{Model: "tso", Commit: "timed"},
			{Model: "pso", Commit: "timed", Capacity: 3},
			{Model: "pso", Commit: "lazy", Capacity: 500},
		}, testsize.Pick(1, 5, 5), 0) {
			t.Run(fmt.Sprintf("%s/%s-%s", name, o.Model, o.Commit), func(t *testing.T) {
				c, out := machinetest.Config(t, bin)
				c.Memory = o
				if name == "ordering" {
					c.Sched = fine
				}
				repeats(t, c, out, everything)
			})
		}
	}
}

// TestWeakSnapshots: a run continues from a snapshot as it would have without it.
func TestWeakSnapshots(t *testing.T) {
	bin := machinetest.Compile(t, ordering)
	c, out := machinetest.Config(t, bin)
	c.Sched, c.Memory = fine, storebuffer.Options{Model: "pso"}
	want := machinetest.Run(t, c)
	text := out.String()
	out.Reset()
	m, err := machine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for range 3000 {
		m.Step()
	}
	s := m.Snapshot()
	defer s.Release()
	for range 2 {
		for range 2000 {
			m.Step()
		}
		m.Restore(s)
	}
	out.Reset()
	got, err := m.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest != want.Digest || out.String() != text {
		t.Errorf("from the snapshot %s %s, without %s %s", got.Digest, out, want.Digest, text)
	}
}

// TestRealProgramsUnderWeakModels: the output is that of a native run.
func TestRealProgramsUnderWeakModels(t *testing.T) {
	var numbers bytes.Buffer
	for i := range 6000 {
		fmt.Fprintln(&numbers, i*i)
	}
	for n, args := range [][]string{
		{"zstd", "-q", "-c", "-T3"}, {"pbzip2", "-c", "-p4", "-b1"}, {"python3", "-c", "import threading\nt = [threading.Thread(target=lambda: sorted(range(2000), key=lambda x: -x)) for _ in range(3)]\n[x.start() for x in t]\n[x.join() for x in t]\nprint(sum(range(1000)))"},
	} {
		if n > 0 && testing.Short() {
			break
		}
		native := exec.Command(args[0], args[1:]...)
		native.Stdin = bytes.NewReader(numbers.Bytes())
		want, err := native.Output()
		if err != nil {
			t.Skipf("%s does not run here: %v", args[0], err)
		}
		for _, o := range []storebuffer.Options{{Model: "tso"}, {Model: "pso", Commit: "lazy"}, {Model: "tso", Engine: storebuffer.Pages}} {
			c, out := machinetest.Config(t, args...)
			c.Dir, c.Memory = "/", o
			c.Stdin = strings.NewReader(numbers.String())
			if r := machinetest.Run(t, c); r.ExitCode != 0 || !bytes.Equal(out.Bytes(), want) {
				t.Errorf("%s under %s: status %d and other output than natively", args[0], o.Model, r.ExitCode)
			}
		}
	}
}
