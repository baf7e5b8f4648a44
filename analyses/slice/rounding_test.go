package slice_test

import (
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

const roundingProgram = `
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile double root;

static void *work(void *arg) {
  for (long i = 0; i < (long)arg; i++) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

int main(int argc, char *argv[]) {
  pthread_t thread;
  double x = atof(argv[2]);
  long n = atol(argv[1]);
  pthread_create(&thread, NULL, work, (void *)1);
  if (x > 5) CALL;
  work((void *)(long)((double)n * 0.25)); // the conversion of n rounds
  pthread_join(thread, NULL);
  return 0;
}
`

// A function that preserves the rounding mode, on the other side of a branch, is no reason to keep the branch; one that
// changes it is.
func TestRoundingIsPreserved(t *testing.T) {
	for call, kept := range map[string]bool{"root = sqrt(x)": false, "fesetround(FE_UPWARD)": true} {
		bin := gcctest.C(t, roundingProgram, "-O1", "-fno-builtin", "-no-pie", "-DCALL="+call, "-lm")
		r := record(t, config(t, bin, "12", "1.5"), arguments)
		s := slice.Make(r.input, slice.DefaultOptions())
		found := false
		for i := range r.trace.Threads {
			for _, c := range s.Constraints(i) {
				symbolic.Symbols(c.Expr(), func(e *symbolic.Expr) { found = found || strings.Contains(e.Name, "argv[2]") })
			}
		}
		if found != kept {
			t.Errorf("%s: a constraint about the branch is kept: %v, want %v", call, found, kept)
		}
	}
}
