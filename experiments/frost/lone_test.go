package frost_test

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/sched"
)

// oneThreadFirst takes locks, allocates, prints and gets signals before it has a second thread, for several epochs.
const oneThreadFirst = header + `
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
static volatile int ticks;
static long sum;
static void tick(int n) { (void)n; ticks++; }
static void *work(void *unused) {
  for (int i = 0; i < 500; i++) { pthread_mutex_lock(&a); sum += i; pthread_mutex_unlock(&a); }
  return unused;
}
int main(void) {
  pthread_t t[3];
  char *kept[64] = {0};
  signal(SIGALRM, tick);
  setitimer(ITIMER_REAL, &(struct itimerval){{0, 3000}, {0, 3000}}, 0);
  for (int i = 0; i < 60000; i++) {
    pthread_mutex_lock(&b);
    free(kept[i % 64]);
    kept[i % 64] = malloc(i % 1000 + 1);
    kept[i % 64][0] = i;
    sum += kept[i % 64][0];
    pthread_mutex_unlock(&b);
    if (i % 1000 == 0) printf("%d\n", i);
  }
  setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, 0);
  if (!ticks) return 1;
  pthread_mutex_lock(&a);
  for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, work, 0);
  pthread_mutex_unlock(&a);
  for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
  printf("%ld\n", sum);
  return 0;
}`

// TestOneThreadFirst: as long as a program has one thread its locks are no steps, and replicas are equal nevertheless,
// signals included.
func TestOneThreadFirst(t *testing.T) {
	program := gcctest.C(t, oneThreadFirst, "-pthread")
	want := ""
	for seed := uint64(1); seed <= uint64(trials(2, 20)); seed++ {
		o := frost.DefaultOptions()
		o.Epoch, o.Growth = 5, 0
		x := try(t, o, sched.Options{}, seed, program)
		if x.Verdict != frost.Clean || x.Harmless > 0 || x.Result.ExitCode != 0 {
			t.Errorf("seed %d: %s", seed, x.text())
		}
		if want == "" {
			want = x.stdout
		}
		if x.stdout != want || want == "" {
			t.Errorf("seed %d: %d bytes of output, want %d, or others", seed, len(x.stdout), len(want))
		}
	}
}

// oneThreadBetween has one thread before, between and after two rounds of several, which takes locks and allocates for some
// million instructions each time. With an argument a thread of the second round races.
const oneThreadBetween = header + `
#include <stdlib.h>
static long sum;
static int races;
static void *work(void *unused) {
  for (int i = 0; i < 1000; i++) {
    pthread_mutex_lock(&a);
    for (volatile int j = 0; j < 1000; j++);
    sum += i;
    pthread_mutex_unlock(&a);
  }
  if (races) sum = sum * 3 + 1;
  return unused;
}
static void alone(void) {
  char *kept[64] = {0};
  for (int i = 0; i < 2000; i++) {
    pthread_mutex_lock(&a);
    for (volatile int j = 0; j < 1000; j++);
    free(kept[i % 64]);
    kept[i % 64] = malloc(i % 1000 + 1);
    kept[i % 64][0] = i;
    sum += kept[i % 64][0];
    pthread_mutex_unlock(&a);
  }
}
int main(int argc, char **argv) {
  (void)argv;
  alone();
  for (int round = 0; round < 2; round++) {
    pthread_t t[2];
    races = round && argc > 1;
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    alone();
  }
  printf("%ld\n", sum);
  return 0;
}`

// TestEpochsWithOneThread: epochs have one thread or several where these are long, those with one have no epoch-parallel replica,
// the output is the native one, and a race in a later round is found.
func TestEpochsWithOneThread(t *testing.T) {
	program := gcctest.C(t, oneThreadBetween, "-pthread", "-O1")
	want, _ := natively(t, []string{program})
	o := frost.DefaultOptions()
	o.Epoch = 1000
	x := try(t, o, sched.Options{}, 1, program)
	if x.Verdict != frost.Clean || x.Harmless > 0 || x.stdout != want {
		t.Errorf("%q, natively %q: %s", x.stdout, want, x.text())
	}
	var threads []int
	for _, e := range x.Epochs {
		threads = append(threads, len(e.Replicas))
	}
	if want := []int{1, 3, 1, 3, 1}; len(threads) < len(want) || !slices.Equal(threads[:len(want)], want) {
		t.Errorf("epochs have %v replicas, want %v", threads, want)
	}
	if x := try(t, o, sched.Options{}, 1, program, "races"); x.Races == 0 {
		t.Errorf("the race is not found: %s", x.text())
	}
}

// standsInUnusedFrame has threads at system calls in a function whose frame has bytes that nothing stores.
const standsInUnusedFrame = header + "#include <stdlib.h>" + `
#include <fcntl.h>
#include <unistd.h>
static long sum;
static __attribute__((noinline)) void stop(int fd) {
  volatile char unused[160];
  __asm__ volatile("" : : "r"(unused));
  char c;
  if (pread(fd, &c, 1, 0) != 1) abort();
}
static void *work(void *fd) {
  for (int i = 0; i < 300; i++) {
    pthread_mutex_lock(&a);
    for (volatile int j = 0; j < 200; j++) sum += j;
    pthread_mutex_unlock(&a);
    stop(*(int *)fd);
  }
  return 0;
}
int main(void) {
  pthread_t t[4];
  int fd = open("/etc/passwd", O_RDONLY);
  for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, work, &fd);
  for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
  printf("%ld\n", sum);
  return 0;
}`

// TestLeftovers: what a lock that had to wait leaves below the stack is no difference of replicas, where a later function has it
// in its frame. The sum is 4 * 300 * (0 + ... + 199).
func TestLeftovers(t *testing.T) {
	program := gcctest.C(t, standsInUnusedFrame, "-pthread", "-O1")
	for seed := uint64(1); seed <= uint64(trials(2, 20)); seed++ {
		o := frost.DefaultOptions()
		o.Epoch, o.Growth = 0.3, 0
		x := try(t, o, sched.Options{}, seed, program)
		if x.Verdict != frost.Clean || x.Harmless > 0 || x.stdout != "23880000\n" {
			t.Errorf("seed %d: %s", seed, x.text())
		}
	}
}

// parallelLoop has OpenMP's threads wait for each other a hundred times, and prints how they wait.
const parallelLoop = `
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  long sum = 0;
  for (int r = 0; r < 100; r++) {
    #pragma omp parallel for num_threads(4)
    for (int i = 0; i < 4; i++) {
      volatile int n = i == 0 ? 20000 : 1;
      while (n > 0) n--;
    }
    sum += r;
  }
  printf("%ld %s\n", sum, getenv("OMP_WAIT_POLICY"));
  return 0;
}`

// TestOpenMPWaitsInTheKernel: replicas of a program with OpenMP execute no loops of waiting threads, which have a
// turn of the scheduler for each PAUSE, unless the environment asks for them.
func TestOpenMPWaitsInTheKernel(t *testing.T) {
	program := gcctest.C(t, parallelLoop, "-fopenmp", "-O1")
	x := try(t, frost.DefaultOptions(), sched.Options{}, 1, program)
	if x.Verdict != frost.Clean || x.stdout != "4950 passive\n" {
		t.Errorf("%q: %s", x.stdout, x.text())
	}
}

// TestAttemptsAreClean: threads that repeat a CMPXCHG until it stores, after a plain load of the old value, leave the same
// memory in all replicas.
func TestAttemptsAreClean(t *testing.T) {
	bin := gcctest.File(t, "testdata/stack.c", "-pthread", "-static")
	want, _ := natively(t, []string{bin})
	for seed := 1; seed <= trials(2, 30); seed++ {
		x := try(t, options(), sched.Options{Policy: sched.Random, Quantum: 200}, uint64(seed), bin)
		if x.Verdict != frost.Clean || x.Harmless > 0 || x.stdout != want {
			t.Errorf("seed %d prints %q, natively %q: %s", seed, x.stdout, want, x.text())
		}
	}
}
