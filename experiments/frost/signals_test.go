package frost_test

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/sched"
)

// TestSignalsAreClean: programs without a data race whose threads get signals in loops, in
// system calls that fail or are made again (10 and 12 are SIGUSR1 and SIGUSR2), in waits and
// while they hold a mutex, from other threads and from timers, are cancelled, or end by a signal,
// print the same as natively, and no replica differs, whatever the epochs.
func TestSignalsAreClean(t *testing.T) {
	bin := gcctest.File(t, "testdata/signals.c")
	for _, args := range []string{
		"timer", "loop 10", "lock 10", "lock 12", "read 10", "read 12", "sleep 10", "sem 10", "sem 12", "cond 10", "cond 12",
		"cancel", "disable", "end",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			command := append([]string{bin}, strings.Fields(args)...)
			want, signal := natively(t, command)
			for seed := 1; seed <= trials(3, 20); seed++ {
				o, s := options(), sched.Options{}
				if seed%3 == 0 {
					o.Epoch, o.Growth = 0.03, 0.01
				}
				if seed%3 == 2 {
					o.Epoch, s = 0.05, sched.Options{Policy: sched.Random, Quantum: 200}
				}
				x := try(t, o, s, uint64(seed), command...)
				if x.Verdict != frost.Clean || x.Harmless > 0 || x.stdout != want || (x.Result.Signal != 0) != signal {
					t.Errorf("seed %d prints %q, natively %q: %s", seed, x.stdout, want, x.text())
				}
			}
		})
	}
}

// natively returns the output of a command, and whether it ends by a signal.
func natively(t *testing.T, command []string) (out string, signal bool) {
	t.Helper()
	var b bytes.Buffer
	c := exec.Command(command[0], command[1:]...)
	c.Stdout = &b
	err := c.Run()
	exit := new(exec.ExitError)
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return b.String(), err != nil && !exit.Exited()
}

// detached is a program whose threads are detached while they work, exit, or are gone.
const detached = `
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int n;
static void spend(long k) { for (volatile long i = 0; i < k; i++) ; }
static void *work(void *u)
{
	spend(100 * (long)u);
	pthread_mutex_lock(&m);
	n++;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	return 0;
}
int main(void)
{
	for (int r = 0; r < 12; r++) {
		pthread_t t[4];
		for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, work, (void *)i);
		spend(r * 1500);
		for (int i = 0; i < 4; i++) { pthread_detach(t[i]); spend(300); }
		pthread_mutex_lock(&m);
		while (n < 4 * (r + 1)) pthread_cond_wait(&c, &m);
		pthread_mutex_unlock(&m);
	}
	printf("%d\n", n);
}
`

// TestDetachedThreadsAreClean: a thread looks in the end whether it is detached, by a plain
// read. Whether it was is the same in all replicas.
func TestDetachedThreadsAreClean(t *testing.T) {
	o := options()
	o.Epoch, o.Growth = 0.05, 0.01
	for _, bin := range []string{gcctest.C(t, detached), gcctest.C(t, detached, "-static")} {
		for seed := 1; seed <= trials(5, 50); seed++ {
			x := try(t, o, sched.Options{Policy: sched.Random, Quantum: 200}, uint64(seed), bin)
			if x.Verdict != frost.Clean || x.Harmless > 0 || x.stdout != "48\n" {
				t.Errorf("seed %d prints %q: %s", seed, x.stdout, x.text())
			}
		}
	}
}
