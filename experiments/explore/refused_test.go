package explore_test

import (
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/explore"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// refusing is a program whose second thread, or whose main thread beside it, does ACT.
const refusing = `
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static pthread_t first;
static void *act(void *a) { ACT; return a; }
int main(void) {
  pthread_t t;
  first = pthread_self();
  signal(SIGUSR1, SIG_IGN);
  signal(SIGALRM, SIG_IGN);
  pthread_create(&t, 0, act, 0);
  pthread_join(t, 0);
  return 0;
}`

// TestRefusals: a program for which the exploration does not know what is equivalent is refused, with a sentence that
// says why, and not verified.
func TestRefusals(t *testing.T) {
	for act, want := range map[string]string{
		"if (!fork()) _exit(0); wait(0)":            "makes a process",
		"if (!vfork()) _exit(0)":                    "makes a process",
		"execl(\"/bin/true\", \"true\", (char *)0)": "executes another program",
		"pthread_kill(first, SIGUSR1)":              "sends a signal to another thread",
		"kill(getpid(), SIGUSR1)":                   "sends signals",
		"alarm(1)":                                  "sends signals",
		"struct itimerval v = {{0}, {1, 0}}; setitimer(ITIMER_REAL, &v, 0)": "sends signals",
		"timer_t id; timer_create(CLOCK_MONOTONIC, 0, &id)":                 "sends signals",
		"int *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0); " +
			"if (!fork()) { *p = 1; _exit(0); } wait(0)": "makes a process",
	} {
		program := gcctest.C(t, refusing, "-pthread", "-w", "-DACT="+act)
		r, err := exploreRun(t, explore.Options{}, program)
		if err == nil || !strings.Contains(err.Error(), "cannot explore a program that "+want) {
			t.Errorf("%s: %v, want one that %s; report %+v", act, err, want, r)
		}
	}
}

// TestRefusesEarlierProcess: so is a program with a process that is older than its second thread.
func TestRefusesEarlierProcess(t *testing.T) {
	source := strings.Replace(refusing, "first = pthread_self();", "int started[2]; pipe(started); if (!fork()) { char c; read(started[0], &c, 1); _exit(0); }", 1)
	source = strings.Replace(source, "pthread_join(t, 0);", "pthread_join(t, 0); write(started[1], \"x\", 1); wait(0);", 1)
	program := gcctest.C(t, source, "-pthread", "-w", "-DACT=")
	r, err := exploreRun(t, explore.Options{}, program)
	if err == nil || !strings.Contains(err.Error(), "cannot explore a program that makes a process") {
		t.Errorf("%v; report %+v", err, r)
	}
}
