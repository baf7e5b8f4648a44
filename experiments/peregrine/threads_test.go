package peregrine_test

import (
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// testFollowed expects that all runs under the schedule of one run have its output, and one final state.
func testFollowed(t *testing.T, bin string, policies ...sched.Options) {
	t.Helper()
	for _, policy := range policies {
		c := config(bin)
		peregrine.BindNow(&c)
		other := c
		c.Sched = policy
		m, err := peregrine.Make(t.Context(), record(t, c, true), peregrine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		first, state := "", ""
		for _, v := range varied(other, 3) {
			v.MaxInstructions = 50_000_000
			r, out := enforced(t, v, m, enforce.Options{})
			if first == "" {
				first, state = out, r.StateDigest
			}
			if !r.Schedule.Followed || r.ExitCode != 0 || out != first || r.StateDigest != state {
				t.Errorf("%+v, %d cores: status %d, %q, not %q; %s", policy, v.Cores, r.ExitCode, out, first, r.Message)
			}
		}
	}
}

// TestExecByAnotherThread: a thread that is not the first of its process executes another program, and gets
// the first one's id. Threads that it ends are stopped where they were in the recorded run.
func TestExecByAnotherThread(t *testing.T) {
	testFollowed(t, gcctest.File(t, "testdata/exec_thread.c", "-g", "-O1"),
		sched.Options{}, sched.Options{Policy: sched.Random, Quantum: 100})
}

// TestCanceledWaits: waits on a condition that end by a deadline or by cancellation change the condition when they end,
// and not when they have the mutex again.
func TestCanceledWaits(t *testing.T) {
	testFollowed(t, gcctest.File(t, "testdata/cancel_wait.c", "-g", "-O1"),
		sched.Options{Policy: sched.Random}, sched.Options{Policy: sched.Random, Quantum: 100})
}

// TestThreadsOfClone has threads that are not made by pthread_create.
func TestThreadsOfClone(t *testing.T) {
	testFollowed(t, gcctest.File(t, "testdata/clone.c", "-g", "-O1"), sched.Options{Policy: sched.Random})
}

// TestAddressSanitizer: the search for leaks stops the threads with ptrace(2), and no schedule is made with it.
func TestAddressSanitizer(t *testing.T) {
	bin := gcctest.C(t, `
#include <pthread.h>
#include <stdio.h>
static int n;
static void *add(void *arg) { n++; return arg; }
int main(void) {
	pthread_t t[2];
	for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, add, 0);
	for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
	printf("%d\n", n);
	return 0;
}`, "-g", "-fsanitize=address")
	c := config(bin)
	if _, err := peregrine.Make(t.Context(), record(t, c, true), peregrine.Options{}); err == nil || !strings.Contains(err.Error(), "ASAN_OPTIONS=detect_leaks=0") {
		t.Errorf("with the search for leaks: %v", err)
	}
	c.Env = append(c.Env, "ASAN_OPTIONS=detect_leaks=0")
	m, err := peregrine.Make(t.Context(), record(t, c, true), peregrine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r, out := enforced(t, c, m, enforce.Options{}); !r.Schedule.Followed || out != "2\n" {
		t.Errorf("without it: %q; %s", out, r.Message)
	}
}
