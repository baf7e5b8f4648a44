package frost_test

import (
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
