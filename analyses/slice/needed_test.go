package slice_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// inner locks a mutex if its arguments are 3 and 5, and has only locked it at its end for others.
const inner = `
#include <pthread.h>
#include <stdlib.h>
pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
volatile long sum;
static void *thread(void *x) { return x; }
int main(int argc, char **argv) {
	pthread_t t;
	pthread_create(&t, 0, thread, 0);
	long a = atol(argv[1]), b = atol(argv[2]);
	if (a > 100) {
		long k = b * 3;
		if (k == 15) { pthread_mutex_lock(&mu); pthread_mutex_unlock(&mu); }
		AFTER
	}
	if (sum == 77) { pthread_mutex_lock(&mu); pthread_mutex_unlock(&mu); }
	pthread_join(t, 0);
	return 0;
}`

// TestWhatIsReadInsideIsNotNeeded: a branch whose other side reaches no operation is not kept for a kept branch that it leads
// to, since no input that does not reach that one has another schedule. It is kept if a value that is read later is computed
// there.
func TestWhatIsReadInsideIsNotNeeded(t *testing.T) {
	for after, kept := range map[string]bool{"": false, "sum = k;": true} {
		r := record(t, config(t, gcctest.C(t, strings.ReplaceAll(inner, "AFTER", after), "-no-pie"), "200", "9"), arguments)
		_, texts := sliced(r, slice.Simplified)
		has := func(part string) bool {
			return slices.ContainsFunc(texts[0], func(text string) bool { return strings.Contains(text, part) && strings.Contains(text, "branch") })
		}
		if has("argv[1]") != kept || !has("argv[2]") {
			t.Errorf("with %q after the branch: %q", after, texts[0])
		}
	}
}

// pool allocates, and locks if it has a lock.
const pool = `
#include <pthread.h>
#include <stdlib.h>
pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static char memory[4096];
static long used;
__attribute__((noinline)) void *pool_get(pthread_mutex_t *lock, long n) {
	if (lock) pthread_mutex_lock(lock);
	void *at = memory + used;
	used += n;
	if (lock) pthread_mutex_unlock(lock);
	return at;
}
static void *thread(void *x) { return x; }
int main(int argc, char **argv) {
	pthread_t t;
	pthread_create(&t, 0, thread, 0);
	char *a = pool_get(LOCK, atol(argv[1])), *b = pool_get(LOCK, 8);
	*b = 1;
	if (atol(argv[2]) == 4) pool_get(LOCK, 16);
	pthread_join(t, 0);
	return a == b;
}`

// TestConfiguredToLock: the model of an allocator that may lock holds if it did not in the run, and not if it did.
func TestConfiguredToLock(t *testing.T) {
	mine, err := cfg.ReadModels(strings.NewReader("- {function: pool_get, result: fresh, opaque: true, configured: true}"))
	if err != nil {
		t.Fatal(err)
	}
	for lock, locks := range map[string]bool{"0": false, "&mu": true} {
		r := record(t, config(t, gcctest.C(t, strings.ReplaceAll(pool, "LOCK", lock), "-no-pie", "-fno-ipa-cp"), "24", "9"), arguments)
		r.input.Models = r.input.Models.With(mine)
		s, texts := sliced(r, slice.Simplified)
		if (s.Calls.Graph.Models["pool_get"] == nil) != locks {
			t.Errorf("with lock %s the model is %v", lock, s.Calls.Graph.Models["pool_get"])
		}
		if kept := slices.ContainsFunc(texts[0], func(text string) bool { return strings.Contains(text, "argv[2]") }); kept != locks {
			t.Errorf("with lock %s: %q", lock, texts[0])
		}
	}
}
