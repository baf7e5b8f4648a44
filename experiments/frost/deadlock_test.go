package frost_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/complementary"
	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched"
)

const header = `#include <pthread.h>
#include <stdio.h>
#include <time.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
`

// twoLocks deadlocks if both threads take their first mutex before either takes its second.
const twoLocks = header + `
static void compute(void) { for (volatile int i = 0; i < 20000; i++); }
static void *first(void *unused) {
  pthread_mutex_lock(&a); compute(); pthread_mutex_lock(&b);
  pthread_mutex_unlock(&b); pthread_mutex_unlock(&a);
  return unused;
}
static void *second(void *unused) {
  pthread_mutex_lock(&b); compute(); pthread_mutex_lock(&a);
  pthread_mutex_unlock(&a); pthread_mutex_unlock(&b);
  return unused;
}
int main(void) {
  pthread_t t, u;
  pthread_create(&t, 0, first, 0); pthread_create(&u, 0, second, 0);
  pthread_join(t, 0); pthread_join(u, 0);
  puts("done");
}`

// TestDeadlocks: a deadlock that is no data race is one of all replicas. Another interleaving may avoid it;
// otherwise it ends the run.
func TestDeadlocks(t *testing.T) {
	for name, c := range map[string]struct {
		source, verdict, failure, stdout string
		outcome                          machine.Outcome
	}{
		"a mutex that is locked already": {
			header + `int main(void) { puts("lock"); fflush(stdout); pthread_mutex_lock(&a); return pthread_mutex_lock(&a); }`,
			frost.Failed, "deadlock", "lock\n", machine.OutcomeDeadlock,
		},
		"a futex call outside of operations": {
			header + `
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
static int word;
static void *wait(void *unused) { syscall(SYS_futex, &word, FUTEX_WAIT, 0, 0); return unused; }
int main(void) { pthread_t t; pthread_create(&t, 0, wait, 0); pthread_join(t, 0); }`,
			frost.Failed, "deadlock", "", machine.OutcomeDeadlock,
		},
		"a condition that no thread signals": {
			header + `
static void *wait(void *unused) { pthread_mutex_lock(&a); pthread_cond_wait(&c, &a); return unused; }
int main(void) { pthread_t t; pthread_create(&t, 0, wait, 0); pthread_join(t, 0); }`,
			frost.Failed, "deadlock", "", machine.OutcomeDeadlock,
		},
		"two mutexes in opposite orders": {twoLocks, frost.Avoided, "", "done\n", machine.OutcomeExit},
		"a wait with a timeout": {
			header + `
int main(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  t.tv_nsec = (t.tv_nsec + 1000000) % 1000000000; t.tv_sec += t.tv_nsec < 1000000;
  pthread_mutex_lock(&a); printf("%d\n", pthread_cond_timedwait(&c, &a, &t));
}`,
			frost.Clean, "", "110\n", machine.OutcomeExit,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := try(t, options(), sched.Options{}, 1, gcctest.C(t, c.source))
			if x.Verdict != c.verdict || x.Failure != c.failure || x.Races > 0 || x.stdout != c.stdout || x.Result.Outcome != c.outcome {
				t.Errorf("%s, prints %q\n%s", x.Result.Outcome, x.stdout, x.text())
			}
			want := complementary.Combination("F-FF")
			if other := slices.IndexFunc(x.Combinations(), func(c complementary.Combination) bool { return c != want }); other >= 0 {
				t.Errorf("%v, want %s only", x.Combinations(), want)
			}
		})
	}
}

// TestThreadsThatAreEnded: where a thread is that another one ends is not ordered, so what it has read says
// nothing about races.
func TestThreadsThatAreEnded(t *testing.T) {
	o := options()
	o.CompareReads = true
	x := try(t, o, sched.Options{}, 1, gcctest.C(t, header+`
static void *run(void *unused) { return unused; }
int main(void) { pthread_t t; return pthread_create(&t, 0, run, 0); }`))
	if x.Verdict != frost.Clean || x.Harmless > 0 {
		t.Error(x.text())
	}
}

// TestLongReports: the report for people has the first epochs with findings, and says how many more there
// are.
func TestLongReports(t *testing.T) {
	r := frost.Report{Verdict: frost.Survived, Races: 120}
	for i := range 120 {
		r.Epochs = append(r.Epochs, &frost.Epoch{Number: i + 1, Combination: "F-AA", Race: true, Committed: true})
	}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if last := lines[len(lines)-1]; len(lines) != 2+50+1 || last != "70 more epochs with findings: see the report of --report" {
		t.Errorf("%d lines, the last one %q", len(lines), last)
	}
}
