package h3

import (
	"strings"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/analyses/h3/symtrace"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// stack fails when one thread pops what the other has not pushed since.
const stack = `
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pushed, top;
static void *push(void *arg)
{
	for (int i = 0; i < 5; i++) {
		pthread_mutex_lock(&lock);
		top++;
		pushed = 1;
		pthread_mutex_unlock(&lock);
	}
	return arg;
}
static void *pop(void *arg)
{
	for (int i = 0; i < 5; i++) {
		pthread_mutex_lock(&lock);
		if (pushed) {
			assert(top != 0);
			top--;
		}
		pthread_mutex_unlock(&lock);
	}
	return arg;
}
int main(void)
{
	pthread_t first, second;
	pthread_create(&first, 0, push, 0);
	pthread_create(&second, 0, pop, 0);
	pthread_join(first, 0);
	pthread_join(second, 0);
	return 0;
}`

// A thread can be about to return from an unlock when the process ends. The unlock has had its
// effect then, and the schedule must let the thread leave it, but no further.
func TestCallsThatTheFailureInterrupts(t *testing.T) {
	bin := gcctest.C(t, stack, "-O2", "-static", "-pthread")
	b := &bug{class: machine.FailureAssertion, sched: sched.Options{Policy: sched.PCT, Depth: 4, Length: 12_000}}
	interrupted := 0
	for seed := uint64(1); seed <= 1000 && interrupted < 2; seed++ {
		path, _, failed := record(t, b, bin, seed, nil)
		if !failed {
			continue
		}
		r, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		out, err := r.Reproduce(t.Context(), Options{Now: time.Now})
		r.Close()
		if err != nil || !out.Verified || out.Divergence != "" || !strings.Contains(out.Failure.Text, "top != 0") {
			t.Fatalf("seed %d: %+v, %v", seed, out, err)
		}
		for i := range out.Trace.Threads {
			if x := &out.Trace.Threads[i]; x.Ending == symtrace.InCall && x.Last.Op == event.OpMutexUnlock {
				interrupted++
			}
		}
	}
	if interrupted == 0 {
		t.Error("in no recorded run of 1000 seeds a thread is in an unlock where the run ends")
	}
}
